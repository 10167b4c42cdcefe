"""Programs of Triton kernels: the text of all their functions and the values that these read, as JSON.

The interpreter and the compiler both get functions that are made of a program, never those of the version's own
module, which may be others in one of the two processes.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from warpsmith.languages.triton import kernel_rules
from warpsmith.languages.triton.kernel_rules import FunctionText, TellingKernel

_OPTIONS = ("noinline", "do_not_specialize", "do_not_specialize_on_alignment", "debug")
"""Options of `triton.jit` that the compiler's result may depend on."""

_MODULE = "warpsmith_kernels"
"""Name of the module that built functions say they are of."""

MakeKernel = Callable[[FunctionType, Mapping[str, Any]], Any]
"""Makes a kernel, interpreted or compiled, of a Python function and options of `triton.jit`."""


def describe_program(kernel: Any) -> str:  # noqa: ANN401 - triton publishes no types
    """Describe a kernel, interpreted or compiled, with all functions that it calls and all values that they read.

    Raises:
        TellingKernel: it reads something that need not be the same when it is compiled.
    """
    numbers: dict[Any, int] = {kernel: 0}
    functions: list[dict[str, Any]] = []
    while len(functions) < len(numbers):
        functions.append(_describe_function(list(numbers)[len(functions)], numbers))
    return json.dumps(functions, sort_keys=True)


@cache
def build_kernel(program: str, path: str, make: MakeKernel) -> Any:  # noqa: ANN401
    """Make the kernel of a program anew; `path` is the file that has the text of its functions.

    Raises:
        TellingKernel: the file has another text there.
    """
    import triton.language

    described = json.loads(program)
    # The interpreter looks for the language among the globals of each function.
    shared = {"__name__": _MODULE, "__builtins__": builtins, "warpsmith_language": triton.language}
    namespaces = [{**shared, **_constants(each["reads"])} for each in described]
    pairs = list(zip(described, namespaces, strict=True))
    functions = [make(_execute(each, space, path), each["options"]) for each, space in pairs]
    for each, space in pairs:
        space.update(
            {name: functions[value["function"]] for name, value in each["reads"].items() if "function" in value}
        )
    return functions[0]


def encode_value(value: Any) -> Any:  # noqa: ANN401
    """Return a constant as JSON, or None for what is not one: a subclass of a number may compute anything."""
    import torch
    import triton.language as tl

    if value is None or type(value) in (bool, int, float, str):
        return {"constant": value}
    if type(value) is tl.constexpr and (inner := encode_value(value.value)):
        return {"constexpr": inner}
    if type(value) is tuple and all(inner := [encode_value(item) for item in value]):
        return {"tuple": inner}
    if type(value) is tl.dtype:
        return {"type": value.name}
    if type(value) is torch.dtype:
        return {"torch": str(value).removeprefix("torch.")}
    return None


def decode_value(value: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the constant that `encode_value` described."""
    import torch
    import triton.language as tl

    [(kind, content)] = value.items()
    if kind == "constexpr":
        return tl.constexpr(decode_value(content))
    if kind == "tuple":
        return tuple(map(decode_value, content))
    if kind == "type":
        return tl.dtype(content)
    return getattr(torch, content) if kind == "torch" else content


def _describe_function(kernel: Any, numbers: dict[Any, int]) -> dict[str, Any]:  # noqa: ANN401
    function = kernel.fn
    definition = kernel_rules.read_definition(function)
    text = getattr(kernel, "src", None)  # what a compiled kernel was read from; a version may have replaced it
    if text is not None and ast.dump(ast.parse(text)) != ast.dump(ast.parse(textwrap.dedent(definition.text))):
        raise TellingKernel(f"the source of `{definition.name}` was replaced, so it is another one when compiled")
    options = {name: _option(kernel, name) for name in _OPTIONS}
    return {
        "name": definition.name,
        "line": definition.line,
        "text": definition.text,
        "options": {name: value for name, value in options.items() if value},
        "reads": {
            name: _describe_value(definition, name, value, numbers)
            for name, value in _read_values(function, definition).items()
        },
    }


def _option(kernel: Any, name: str) -> Any:  # noqa: ANN401
    """Return an option of `triton.jit`; the interpreter keeps them in a dictionary, the compiler as attributes."""
    options: Any = getattr(kernel, "kwargs", None)
    value = options.get(name) if isinstance(options, dict) else getattr(kernel, name, None)
    return list(value) if isinstance(value, list | tuple | set) else value


def _read_values(function: FunctionType, definition: FunctionText) -> dict[str, Any]:
    """Return the values of the names that a function reads from its closure, its module and Python."""
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    values = {}
    for name in definition.names:
        if name in closure:
            values[name] = closure[name].cell_contents
        elif name in function.__globals__:
            values[name] = function.__globals__[name]
        elif name not in kernel_rules.PLAIN and hasattr(builtins, name):
            raise TellingKernel(kernel_rules.telling(definition.name, name))
    for chain in definition.chains:
        if chain[0] in values:
            kernel_rules.check_chain(definition.name, values[chain[0]], chain)
    return values


def _describe_value(definition: FunctionText, name: str, value: Any, numbers: dict[Any, int]) -> dict[str, Any]:  # noqa: ANN401
    if module := _triton_module(value):
        return {"member": [module, value.__name__]}
    if isinstance(value, ModuleType) and kernel_rules.is_plain_module(value):
        return {"module": value.__name__}
    if encoded := encode_value(value):
        return dict(encoded)
    if _is_kernel(value):
        return {"function": numbers.setdefault(value, len(numbers))}
    raise TellingKernel(kernel_rules.telling(definition.name, name))


def _triton_module(value: Any) -> str:  # noqa: ANN401
    """Return the module of Triton's language that has a value under its own name, or an empty string."""
    import triton

    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return ""
    own = sys.modules.get(str(getattr(value, "__module__", "")))
    modules = [triton.language, triton.language.math, triton.language.core, own]
    if name in kernel_rules.HOST_FUNCTIONS:
        modules.append(triton)
    same = (module for module in modules if module and getattr(module, name, None) is value)
    return next((module.__name__ for module in same if kernel_rules.is_plain_module(module)), "")


def _is_kernel(value: Any) -> bool:  # noqa: ANN401
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    return type(value) in (InterpretedFunction, JITFunction)


def _constants(reads: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    values = {}
    for name, value in reads.items():
        if "module" in value:
            values[name] = sys.modules[value["module"]]
        elif "member" in value:
            module, member = value["member"]
            values[name] = getattr(sys.modules[module], member)
        elif "function" not in value:
            values[name] = decode_value(value)
    return values


def _execute(described: Mapping[str, Any], namespace: dict[str, Any], path: str) -> FunctionType:
    """Execute the definition of a function at its own line, so that errors and listings name it."""
    text = textwrap.dedent(described["text"])
    exec(compile("\n" * (described["line"] - 1) + text, path, "exec", dont_inherit=True), namespace)
    function: FunctionType = namespace[described["name"]]
    same = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(function)))) == ast.dump(ast.parse(text))
    if not same:  # Triton reads its text from the file
        raise TellingKernel(f"line {described['line']} of the file is not where `{described['name']}` is defined")
    return function

"""Launches of Triton kernels as the interpreter sees them, and the same launches for the compiler.

What was graded by the interpreter is what the compiler gets: the recorded kernels, types and constants. The
version's `run` is not called again, since it could choose others, and a kernel that can tell the two apart is
refused.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.port.check import KernelLaunch
from warpsmith.languages.shared.fake_device import device_properties
from warpsmith.languages.triton import interpreter_fixes

_PLAIN = frozenset(
    ("abs", "bool", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "print", "range")
) | frozenset(("reversed", "sum", "tuple", "zip"))
"""Builtins that compute the same under the interpreter and the compiler."""

_TELLING = frozenset(
    ("current_target", "environ", "getenv", "is_cuda", "is_hip", "knobs", "os", "runtime", "sys", "target_info")
)
"""Names by which a kernel can tell the interpreter from a compiler, or one target from another."""

_SMALL = 2**31 - 1
"""Bytes of a tensor up to which AMD's compiler takes 32-bit offsets."""

_recorded: dict[KernelLaunch, None] = {}


class TellingKernel(ValueError):
    """A kernel that may compute something else once it is compiled."""


def record_launches(arch: str) -> None:
    """Record every launch from now on, and show host code the figures of a device of `arch`; in a worker only."""
    from triton.runtime.interpreter import InterpretedFunction

    interpreter_fixes.patch_interpreter()
    _show_device(arch)
    launch: Callable[..., Any] = InterpretedFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:  # noqa: ANN401
        if not warmup:
            _recorded[_describe_launch(self.fn, args, grid, options)] = None
        return launch(self, *args, grid=grid, warmup=warmup, **options)

    InterpretedFunction.run = run


def take_launches() -> list[KernelLaunch]:
    """Return the launches since the last call of this function, each once, in order."""
    launches = list(_recorded)
    _recorded.clear()
    return launches


def kernel_code(function: FunctionType) -> str:
    """Return a hash over a kernel's source, all functions that it calls, and the constants that they read.

    Raises:
        TellingKernel: it reads something that need not be the same when it is compiled.
    """
    parts: list[str] = []
    pending, visited = [function], set[FunctionType]()
    while pending:
        current = pending.pop()
        if current in visited:
            continue
        visited.add(current)
        parts.append(_source(current))
        for name, value in _read_names(current):
            inner = _python_function(value)
            if inner is None:
                parts.append(f"{name}={_describe_constant(function, name, value)}")
            elif not inner.__module__.startswith("triton."):
                pending.append(inner)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


_source = cache(inspect.getsource)


def replay_launch(functions: Iterable[Any], launch: KernelLaunch) -> None:
    """Launch one of a module's compiled functions as it was launched under the interpreter.

    Raises:
        TellingKernel: no function has its name and its code.
    """
    namesakes = [function for function in functions if function.__name__ == launch.kernel]
    if not namesakes:
        raise TellingKernel(
            f"the interpreter ran a kernel `{launch.kernel}`, which is no kernel of the file when it is compiled"
        )
    same = [function for function in namesakes if kernel_code(function.fn) == launch.code]
    if not same:
        raise TellingKernel(f"`{launch.kernel}` or a constant that it reads is another one when it is compiled")
    call = json.loads(launch.call)
    arguments = {name: _parse_argument(value) for name, value in call["arguments"].items()}
    same[0].run(grid=launch.grid, warmup=True, **arguments, **call["options"])


def _describe_launch(
    function: FunctionType,
    args: tuple[Any, ...],
    grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
    options: Mapping[str, Any],
) -> KernelLaunch:
    signature = inspect.signature(function)
    by_name = {name: value for name, value in options.items() if name in signature.parameters}
    bound = signature.bind(*args, **by_name)
    bound.apply_defaults()
    blocks = grid(dict(bound.arguments)) if callable(grid) else grid
    arguments = {
        name: _encode(function, name, value, constant="constexpr" in str(signature.parameters[name].annotation))
        for name, value in bound.arguments.items()
    }
    others = {name: value for name, value in options.items() if name not in by_name and _is_plain(value)}
    call = json.dumps({"arguments": arguments, "options": others}, sort_keys=True)
    return KernelLaunch(
        kernel=function.__name__, code=kernel_code(function), grid=tuple(int(size) for size in blocks), call=call
    )


def _encode(function: FunctionType, name: str, value: Any, *, constant: bool) -> Any:  # noqa: ANN401
    """Return an argument as JSON: constants as they are, of others only what the compiler learns of them."""
    import torch
    import triton.language as tl

    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if isinstance(value, torch.Tensor):
        size = sum((length - 1) * stride for length, stride in zip(value.shape, value.stride(), strict=True)) + 1
        nbytes = size * value.element_size() if value.numel() else 0
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": dtype, "aligned": value.data_ptr() % 16 == 0, "small": nbytes <= _SMALL}
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if constant or value == 1 else _stand_in(value)
    if isinstance(value, float):
        return value if constant else 0.5
    if isinstance(value, tl.dtype):
        return {"type": value.name}
    if isinstance(value, torch.dtype):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, tuple):
        return {"tuple": [_encode(function, name, item, constant=constant) for item in value]}
    raise TellingKernel(
        f"`{function.__name__}` gets a {type(value).__name__} as `{name}`, which cannot be compiled without the"
        " version's own host code; give it tensors and numbers"
    )


def _stand_in(value: int) -> int:
    """Return the number that stands for all numbers of which the compiler learns the same."""
    base = 2**63 if value >= 2**63 else 0 if -(2**31) <= value < 2**31 else 2**32
    return base + (16 if value % 16 == 0 else 17)


def _parse_argument(value: Any) -> Any:  # noqa: ANN401
    import torch
    import triton.language as tl

    if not isinstance(value, dict):
        return value
    if "type" in value:
        return tl.dtype(value["type"])
    if "torch" in value:
        return getattr(torch, value["torch"])
    if "tuple" in value:
        return tuple(_parse_argument(item) for item in value["tuple"])
    return _zeros(value["tensor"], aligned=value["aligned"], small=value["small"])


def _zeros(dtype: str, *, aligned: bool, small: bool) -> Any:  # noqa: ANN401
    """Return a tensor of zeros, whose memory is taken only when it is touched."""
    import numpy
    import torch

    width = DTYPES[dtype].bytes
    flat = torch.from_numpy(numpy.zeros(128 if small else _SMALL + 65, dtype=numpy.uint8))
    first = -flat.data_ptr() % 16 + (0 if aligned else width)
    room = (flat.numel() - first) // width * width
    return flat[first : first + room].view(getattr(torch, dtype))


def _read_names(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names that a function reads from its module, its closure and Python, with their values."""
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    yield from ((name, cell.cell_contents) for name, cell in closure)
    for name in dict.fromkeys(_global_names(function.__code__, function.__name__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
        elif name not in _PLAIN and hasattr(builtins, name):
            raise TellingKernel(_telling(function.__name__, name))


def _global_names(code: CodeType, kernel: str) -> Iterator[str]:
    if telling := sorted(_TELLING & {*code.co_names}):
        raise TellingKernel(_telling(kernel, telling[0]))
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            raise TellingKernel(_telling(kernel, str(instruction.argval)))
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant, kernel)


def _python_function(value: Any) -> FunctionType | None:  # noqa: ANN401
    """Return the Python function of a kernel, or of a function that it may call; None for other values."""
    inner = value if isinstance(value, FunctionType) else getattr(value, "fn", None)
    while inner is not None and not isinstance(inner, FunctionType):
        inner = getattr(inner, "fn", None)
    return inner


def _describe_constant(function: FunctionType, name: str, value: Any) -> str:  # noqa: ANN401
    kind = type(value)
    if kind.__name__ == "constexpr" and kind.__module__.startswith("triton."):
        value = value.value
    if isinstance(value, ModuleType):
        if value.__name__.split(".")[0] in ("triton", "math"):
            return value.__name__
    elif _is_plain(value) or (isinstance(value, tuple) and all(map(_is_plain, value))):
        return repr(value)
    elif (getattr(value, "__module__", None) or "").split(".")[0] == "triton" or kind.__module__ == "torch":
        return str(value) if kind.__name__ == "dtype" else getattr(value, "__name__", kind.__name__)
    raise TellingKernel(_telling(function.__name__, name))


def _is_plain(value: Any) -> bool:  # noqa: ANN401
    return value is None or isinstance(value, bool | int | float | str)


def _telling(kernel: str, name: str) -> str:
    return (
        f"`{kernel}` reads `{name}`, which need not be the same under the interpreter and the compiler; pass what"
        " it needs as an argument or a `tl.constexpr` constant"
    )


def _show_device(arch: str) -> None:
    """Answer host code with a device's figures, so that its choices are those that the compiler then gets."""
    import torch

    properties: SimpleNamespace = device_properties(arch)
    cuda: Any = torch.cuda
    cuda.get_device_properties = lambda *_, **__: properties
    cuda.get_device_capability = lambda *_, **__: (properties.major, properties.minor)
    cuda.get_device_name = lambda *_, **__: properties.name

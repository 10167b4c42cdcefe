"""Launches of Triton kernels as the interpreter sees them, and the same launches for the compiler.

What was graded by the interpreter is what the compiler gets: both get kernels that are made of the recorded
programs, with the recorded types and constants. The version's `run` is not called again, since it could choose
others.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.port.check import KernelLaunch
from warpsmith.languages.shared.fake_device import device_properties
from warpsmith.languages.triton import block_conflicts, careful_interpreter
from warpsmith.languages.triton.kernel_program import build_kernel, decode_value, describe_program, encode_value
from warpsmith.languages.triton.kernel_rules import TellingKernel

_SMALL = 2**31 - 1
"""Bytes of a tensor up to which AMD's compiler takes 32-bit offsets."""

_recorded: dict[KernelLaunch, None] = {}
_holds: list[None] = []
"""One item for each open context in which launches are recorded and not interpreted."""


def record_launches(arch: str) -> None:
    """Record every launch from now on, and show host code the figures of a device of `arch`; in a worker only."""
    import torch
    from triton.runtime.interpreter import InterpretedFunction

    launch: Callable[..., Any] = InterpretedFunction.run
    careful_interpreter.patch_for_ports()
    _show_device(arch)

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:  # noqa: ANN401
        if warmup:
            return
        blocks = _ask_for_blocks(self, args, grid, options)  # the version's code: it runs as host code does
        with careful_interpreter.launching():
            described = _describe_launch(self, args, blocks, options)
            tensors = [each for each in (*args, *options.values()) if isinstance(each, torch.Tensor)]
        _recorded[described] = None
        if _holds:
            return
        constants = frozenset(
            _specialised_arguments(json.loads(described.program)[0], json.loads(described.call)["arguments"])
        )
        kernel = _interpreted_kernel(described.program, self.fn.__code__.co_filename, constants)
        with careful_interpreter.launching(), block_conflicts.watched_launch(tensors):
            launch(kernel, *args, grid=described.grid, warmup=False, **options)

    InterpretedFunction.run = run


def take_launches() -> list[KernelLaunch]:
    """Return the launches since the last call of this function, each once, in order."""
    launches = list(_recorded)
    _recorded.clear()
    return launches


@contextmanager
def held_launches() -> Iterator[None]:
    """Record launches within the context and interpret none."""
    _holds.append(None)
    try:
        yield
    finally:
        _holds.pop()


def replay_launch(source: Path, launch: KernelLaunch) -> None:
    """Compile a launch as it was under the interpreter; `source` is the version's file."""
    call = json.loads(launch.call)
    arguments = {name: _parse_argument(value) for name, value in call["arguments"].items()}
    kernel = build_kernel(launch.program, str(source), _compiled_kernel)
    kernel.run(grid=launch.grid, warmup=True, **arguments, **call["options"])


def require_same_kernels(functions: Iterable[Any], launches: Iterable[KernelLaunch]) -> None:
    """Compare a module's compiled kernels with what the interpreter ran.

    Raises:
        TellingKernel: one of them is missing or another one.
    """
    programs: dict[str, set[str]] = {}
    for function in functions:
        programs.setdefault(function.__name__, set()).add(describe_program(function))
    for launch in launches:
        if launch.kernel not in programs:
            raise TellingKernel(
                f"the interpreter ran a kernel `{launch.kernel}`, which is no kernel of the file when it is"
                " compiled"
            )
        if launch.program not in programs[launch.kernel]:
            raise TellingKernel(
                f"`{launch.kernel}` or a constant that it reads is another one when it is compiled"
            )


@cache
def _interpreted_kernel(program: str, path: str, constants: frozenset[str]) -> Any:  # noqa: ANN401
    """Return a kernel for the interpreter; arguments in `constants` are some, as each 1 is for the compiler."""
    import triton.language as tl

    kernel = build_kernel(program, path, careful_interpreter.interpreted_kernel)
    if constants:
        kernel = build_kernel.__wrapped__(program, path, careful_interpreter.interpreted_kernel)
        kernel.rewrite().__annotations__.update(dict.fromkeys(constants, tl.constexpr))
    return kernel


def _compiled_kernel(function: FunctionType, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    import triton

    return triton.jit(**options)(function)


def _specialised_arguments(kernel: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterable[str]:
    """Yield the arguments that are the integer 1, which the compiler takes for a constant."""
    free = kernel["options"].get("do_not_specialize", ())
    for position, (name, value) in enumerate(arguments.items()):
        if value == {"constant": 1} and type(value["constant"]) is int and not {position, name} & {*free}:
            yield name


def _ask_for_blocks(
    kernel: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
    options: Mapping[str, Any],
) -> tuple[int, ...]:
    """Return the blocks along each dimension, for which a version's function is asked once."""
    bound = _bind(kernel.fn, args, options)
    return tuple(int(size) for size in (grid(dict(bound.arguments)) if callable(grid) else grid))


def _bind(function: FunctionType, args: tuple[Any, ...], options: Mapping[str, Any]) -> inspect.BoundArguments:
    signature = inspect.signature(function)
    bound = signature.bind(*args, **{name: each for name, each in options.items() if name in signature.parameters})
    bound.apply_defaults()
    return bound


def _describe_launch(
    kernel: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    blocks: tuple[int, ...],
    options: Mapping[str, Any],
) -> KernelLaunch:
    if kernel.pre_run_hooks:
        raise TellingKernel(f"`{kernel.__name__}` has hooks that run before it; launch a kernel in their place")
    program = describe_program(kernel)
    function: FunctionType = _interpreted_kernel(program, kernel.fn.__code__.co_filename, frozenset()).fn
    bound = _bind(function, args, options)
    parameters = bound.signature.parameters
    arguments = {
        name: _encode(function, name, value, constant=_is_constant(function, parameters[name]))
        for name, value in bound.arguments.items()
    }
    others = {name: value for name, value in options.items() if name not in parameters}
    for name, value in others.items():
        if type(value) not in (bool, int, float, str, type(None)):
            raise TellingKernel(
                f"`{function.__name__}` is launched with {name} as a {type(value).__name__}, which no compiler"
                " gets here; give a plain number"
            )
    call = json.dumps({"arguments": arguments, "options": others}, sort_keys=False)
    return KernelLaunch(
        kernel=function.__name__,
        program=program,
        grid=blocks,
        call=call,
    )


def _is_constant(function: FunctionType, parameter: inspect.Parameter) -> bool:
    """Return True for a constant; raises TellingKernel for a type, which only the compiler goes by."""
    from triton.runtime.jit import KernelParam

    described = KernelParam(0, parameter, False, False)
    if described.annotation == "constexpr" or not (described.annotation_type or "const" in described.annotation):
        return bool(described.annotation == "constexpr")
    raise TellingKernel(
        f"`{function.__name__}` declares `{parameter.name}` as `{described.annotation}`, by which the compiler"
        " goes and the interpreter does not; remove the annotation, or convert in the kernel"
    )


def _encode(function: FunctionType, name: str, value: Any, *, constant: bool) -> Any:  # noqa: ANN401
    """Return an argument as JSON: constants as they are, of others only what the compiler learns of them."""
    import torch

    if type(value) in (torch.Tensor, torch.nn.Parameter):
        size = sum((length - 1) * stride for length, stride in zip(value.shape, value.stride(), strict=True)) + 1
        nbytes = size * value.element_size() if value.numel() else 0
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": dtype, "aligned": value.data_ptr() % 16 == 0, "small": nbytes <= _SMALL}
    if type(value) is tuple:
        return {"tuple": [_encode(function, name, item, constant=constant) for item in value]}
    if not constant and type(value) is int:
        return {"constant": value if value == 1 else _stand_in(value)}
    if not constant and type(value) is float:
        return {"constant": 0.5}
    if encoded := encode_value(value):
        return encoded
    raise TellingKernel(
        f"`{function.__name__}` gets a {type(value).__name__} as `{name}`, which cannot be compiled without the"
        " version's own host code; give it tensors and plain numbers"
    )


def _stand_in(value: int) -> int:
    """Return the number that stands for all numbers of which the compiler learns the same."""
    base = 2**63 if value >= 2**63 else 0 if -(2**31) <= value < 2**31 else 2**32
    return base + (16 if value % 16 == 0 else 17)


def _parse_argument(value: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if "tensor" in value:
        return _zeros(value["tensor"], aligned=value["aligned"], small=value["small"])
    if "tuple" in value:
        return tuple(_parse_argument(item) for item in value["tuple"])
    return decode_value(value)


def _zeros(dtype: str, *, aligned: bool, small: bool) -> Any:  # noqa: ANN401
    """Return a tensor of zeros, whose memory is taken only when it is touched."""
    import numpy
    import torch

    width = DTYPES[dtype].bytes
    flat = torch.from_numpy(numpy.zeros(128 if small else _SMALL + 65, dtype=numpy.uint8))
    first = -flat.data_ptr() % 16 + (0 if aligned else width)
    room = (flat.numel() - first) // width * width
    return flat[first : first + room].view(getattr(torch, dtype))


def _show_device(arch: str) -> None:
    """Answer host code with a device's figures, so that its choices are those that the compiler then gets."""
    import torch

    properties: SimpleNamespace = device_properties(arch)
    cuda: Any = torch.cuda
    cuda.get_device_properties = lambda *_, **__: properties
    cuda.get_device_capability = lambda *_, **__: (properties.major, properties.minor)
    cuda.get_device_name = lambda *_, **__: properties.name

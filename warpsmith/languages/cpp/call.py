"""Calls of a C++ version's `run`: torch CPU tensors are passed as structs of warpsmith.hpp, without copies."""

from __future__ import annotations

import functools
import re
import struct
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec
from warpsmith.errors import BadDefinition
from warpsmith.languages.base import LibraryEntry, Run

if TYPE_CHECKING:
    import torch


def wrap_library_function(function: Callable[..., None], definition: Definition) -> Run:
    """Return `function` with the signature of `Run`. Each thread allocates its structs once, since the interpreter
    runs other threads during a call.

    Raises:
        BadDefinition: the shape or type of a returned output does not follow from the inputs.
    """
    codes = _dtype_codes()
    of_thread = threading.local()

    def call_with_outputs(*arguments: Any) -> None:  # noqa: ANN401 - tensors and numbers
        try:
            fillers = of_thread.fillers
        except AttributeError:
            specs = (*definition.inputs.values(), *definition.outputs.values())
            fillers = of_thread.fillers = [_filler(spec, codes) for spec in specs]
        function(*[fill(argument) for fill, argument in zip(fillers, arguments, strict=True)])

    if definition.outputs_are == "given":
        return call_with_outputs
    import torch

    axes = _axes(definition)
    shapes = _shapes(definition, tuple(axes))
    kinds = [
        None if spec.dtype == "workload" else getattr(torch, spec.dtype) for spec in definition.outputs.values()
    ]
    typed = _workload_typed_input(definition) if None in kinds else None

    def call_and_return(*arguments: Any) -> Any:  # noqa: ANN401
        sizes = [arguments[i] if axis is None else arguments[i].shape[axis] for i, axis in axes.values()]
        workload_dtype = None if typed is None else arguments[typed].dtype
        outputs = [torch.empty(shape, dtype=kind or workload_dtype)
                   for shape, kind in zip(shapes(*sizes), kinds, strict=True)]  # fmt: skip
        call_with_outputs(*arguments, *outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    return call_and_return


def describe_library_entry(address: int, definition: Definition) -> LibraryEntry:
    """Return the entry of a library's `run` at `address`."""
    codes = _dtype_codes()
    specs = (*definition.inputs.values(), *definition.outputs.values())
    numbers = {"float": -1, "int": -2, "bool": -3}

    def parameter_codes(arguments: Sequence[Any]) -> list[int]:
        return [
            numbers[spec.type] if isinstance(spec, ScalarSpec) else codes[argument.dtype]
            for spec, argument in zip(specs, arguments, strict=True)
        ]

    return LibraryEntry(address, parameter_codes)


def _dtype_codes() -> dict[torch.dtype, int]:
    """Map data types to their numbers in warpsmith.hpp."""
    import torch

    return {getattr(torch, name): code for code, name in enumerate(DTYPES)}


def _filler(spec: TensorSpec | ScalarSpec, codes: dict[torch.dtype, int]) -> Callable[[Any], Any]:
    """Return a function from an argument to its C value: a number, or the address of a warpsmith.hpp `Tensor`."""
    import ctypes

    if isinstance(spec, ScalarSpec):
        return {"float": ctypes.c_double, "int": ctypes.c_int64, "bool": ctypes.c_bool}[spec.type]
    dims = len(spec.shape)
    layout = struct.Struct(f"PPPii{2 * dims}q")
    block = ctypes.create_string_buffer(layout.size)
    address = ctypes.c_void_p(ctypes.addressof(block))
    shape = ctypes.addressof(block) + struct.calcsize("PPPii0q")
    strides, pack = shape + 8 * dims, layout.pack_into

    def fill(tensor: torch.Tensor) -> ctypes.c_void_p:
        if tensor.ndim != dims or not tensor.is_cpu:
            raise TypeError(f"run takes a CPU tensor of {dims} axes, not {tensor.ndim} on {tensor.device}")
        pack(
            block, 0, tensor.data_ptr(), shape, strides, dims, codes[tensor.dtype], *tensor.shape, *tensor.stride()
        )
        return address

    return fill


def _axes(definition: Definition) -> dict[str, tuple[int, int | None]]:
    """Return the argument and dimension that give each axis of the outputs; None for an integer argument."""
    sources: dict[str, tuple[int, int | None]] = {}
    for index, (name, spec) in enumerate(definition.inputs.items()):
        if isinstance(spec, TensorSpec):
            for dimension, size in enumerate(spec.shape):
                sources.setdefault(str(size), (index, dimension))
        elif spec.type == "int":
            sources.setdefault(name, (index, None))
    texts = [size for spec in definition.outputs.values() for size in spec.shape if isinstance(size, str)]
    names = {name for text in texts for name in re.findall(r"[A-Za-z_]\w*", text)}
    needed = sorted(name for name in names if isinstance(definition.axes.get(name), str))
    unknown = [name for name in needed if name not in sources]
    if unknown:
        raise BadDefinition(
            f"{definition.name}: no input has the dimension {', '.join(unknown)} of an output; "
            'set outputs_are="given" or make it an input.'
        )
    return {name: sources[name] for name in needed}


def _shapes(definition: Definition, names: tuple[str, ...]) -> Callable[..., list[tuple[int, ...]]]:
    fixed = {name: size for name, size in definition.axes.items() if isinstance(size, int)}

    @functools.lru_cache
    def shapes(*sizes: int) -> list[tuple[int, ...]]:
        axes = {**fixed, **dict(zip(names, sizes, strict=True))}
        return [tuple(n if isinstance(n, int) else int(evaluate(n, axes)) for n in spec.shape)
                for spec in definition.outputs.values()]  # fmt: skip

    return shapes


def _workload_typed_input(definition: Definition) -> int:
    """Return the number of the first input of the workload's type, whose type the outputs take."""
    for index, spec in enumerate(definition.inputs.values()):
        if isinstance(spec, TensorSpec) and spec.dtype == "workload":
            return index
    raise BadDefinition(
        f"{definition.name}: an output has the workload's dtype, but no input does; name the output's dtype."
    )

"""Wrong implementations of an operator, derived from its reference.

A mutation changes what the reference reads, or what it writes. `gross` mutations leave work out or return what
was known before: each output that they change must fail at every workload. The others are slightly wrong
everywhere and must fail somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.definition import ScalarSpec, Workload
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

    Tensors = Mapping[str, torch.Tensor]
    Change = Callable[["torch.Tensor"], "torch.Tensor"]

WRONG_SHARE = 0.02
"""Relative error of a wrong scalar: a rounded constant or a forgotten correction is no smaller."""

TILE_SHARE = 8
"""A dropped tile is this part of an axis: the smallest that a tiled kernel of few tiles can forget."""

FEWER_BITS = {"float64": 24, "float32": 8, "float16": 4, "bfloat16": 4}
"""Data type to the significant bits of the next narrower one: float32, bfloat16 and e4m3. One bit less is no
mutation: the bound allows a few roundings of the output's type, and an honest kernel may take them."""


CONSTANT = "a constant, the mean over other inputs"
"""Name of the mutation that reads no input."""


@dataclass(frozen=True)
class Mutation:
    """One wrong implementation."""

    name: str
    """Description: `every second slice of x along axis 0 is not read`."""
    gross: bool
    """True if it must fail at every workload."""
    inputs: Mapping[str, Change]
    """Input to the change before the reference reads it."""
    outputs: Mapping[str, Change]
    """Output to the change after the reference wrote it; empty if the reference writes them unchanged."""
    scalars: Mapping[str, float | int | bool]
    """Scalars that replace those of the workload."""


def list_mutations(file: DefinitionFile, workload: Workload, constants: Tensors) -> list[Mutation]:
    """List the mutations of a definition at a workload, the gross ones first.

    Args:
        file: the definition.
        workload: the workload; axes of one element have no half and no tile.
        constants: output to its mean over other inputs, in the output's type.
    """
    mutations = [*_constant(constants), *_unread_inputs(file, workload), *_unwritten_outputs(file, workload)]
    return [*mutations, *_wrong_scalars(file, workload), *_less_precision(file, workload)]


def _constant(constants: Tensors) -> Iterator[Mutation]:
    outputs = {name: _replace_by(value) for name, value in constants.items()}
    yield Mutation(CONSTANT, True, {}, outputs, {})


def _replace_by(value: torch.Tensor) -> Change:
    return lambda output: value.clone()


def _unread_inputs(file: DefinitionFile, workload: Workload) -> Iterator[Mutation]:
    """Yield a mutation for each axis of each input, and for each axis that several inputs share."""
    definition = file.definition
    shared: dict[str, dict[str, int]] = {}
    for name, spec in definition.tensor_inputs.items():
        shape = definition.shape(spec, workload)
        ordered = _may_be_ordered(file, name)
        for axis, size in enumerate(shape):
            if size < 2:
                continue
            where = f"{name} along axis {axis}"
            yield _on_inputs(f"every second slice of {where} is not read", {name: _without_half(axis)})
            if not ordered:
                yield _on_inputs(f"the last tile of {where} is not read", {name: _without_tile(axis)})
            if spec.shape[axis] in definition.axes:
                shared.setdefault(str(spec.shape[axis]), {}).setdefault(name, axis)
        if shape and shape[0] > 1 and not ordered:
            yield _on_inputs(f"the rows of {name} are permuted", {name: _permuted})
    for dimension, axes in shared.items():
        if len(axes) > 1:
            yield _on_inputs(
                f"every second slice along {dimension} is not read",
                {name: _without_half(axis) for name, axis in axes.items()},
            )


def _may_be_ordered(file: DefinitionFile, name: str) -> bool:
    """Return True for integers that may have to ascend, such as offsets: the reference is undefined without that.

    To put each even one in the place of the next keeps the order.
    """
    spec = file.definition.tensor_inputs[name]
    is_integer = spec.dtype != "workload" and not is_floating(spec.dtype) and spec.dtype != "bool"
    return is_integer and (file.inputs is not None or spec.fits_together)


def _unwritten_outputs(file: DefinitionFile, workload: Workload) -> Iterator[Mutation]:
    definition = file.definition
    for name, spec in definition.outputs.items():
        shape = definition.shape(spec, workload)
        for axis, size in enumerate(shape):
            if size > 1:
                change = {name: _without_tile(axis)}
                yield Mutation(f"the last tile of {name} along axis {axis} stays zero", True, {}, change, {})
        if shape and shape[0] > 1:
            yield Mutation(f"the rows of {name} are permuted", True, {}, {name: _permuted}, {})


def _wrong_scalars(file: DefinitionFile, workload: Workload) -> Iterator[Mutation]:
    values = file.definition.scalars(workload)
    for name, spec in file.definition.free_scalars.items():
        wrong = _wrong_value(spec, values[name])
        yield Mutation(f"the scalar {name} is {wrong!r}, not {values[name]!r}", False, {}, {}, {name: wrong})


def _wrong_value(spec: ScalarSpec, value: float) -> float | int | bool:
    match spec.type:
        case "bool":
            return not value
        case "int":
            return int(value) + 1
        case _:
            return value * (1 + WRONG_SHARE) if value else WRONG_SHARE


def _less_precision(file: DefinitionFile, workload: Workload) -> Iterator[Mutation]:
    definition = file.definition
    inputs = {name: definition.dtype(spec, workload) for name, spec in definition.tensor_inputs.items()}
    rounded = {name: _rounded_to(FEWER_BITS[dtype]) for name, dtype in inputs.items() if dtype in FEWER_BITS}
    if rounded:
        yield Mutation("inputs are rounded to the next narrower type", False, rounded, {}, {})
    for name, spec in definition.outputs.items():
        dtype = definition.dtype(spec, workload)
        if is_floating(dtype) and dtype in FEWER_BITS:
            change = {name: _rounded_to(FEWER_BITS[dtype])}
            yield Mutation(f"{name} is rounded to the next narrower type", False, {}, change, {})


def _on_inputs(name: str, changes: Mapping[str, Change]) -> Mutation:
    return Mutation(name, True, changes, {}, {})


def _without_half(axis: int) -> Change:
    """Return a change that puts each even slice in the place of the odd one after it: a mean stays a mean."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        changed, length = _movable(tensor).clone().movedim(axis, 0), tensor.shape[axis]
        changed[1::2] = changed[0 : length - 1 : 2].clone()
        return changed.movedim(0, axis).contiguous().view(tensor.dtype)

    return change


def _without_tile(axis: int) -> Change:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        changed = _movable(tensor).clone().movedim(axis, 0)
        changed[-max(1, len(changed) // TILE_SHARE) :] = 0
        return changed.movedim(0, axis).contiguous().view(tensor.dtype)

    return change


def _permuted(tensor: torch.Tensor) -> torch.Tensor:
    return _movable(tensor).roll(-1, 0).contiguous().view(tensor.dtype)


def _movable(tensor: torch.Tensor) -> torch.Tensor:
    """Return 8-bit floating-point numbers as bytes, which PyTorch can move and fill."""
    import torch

    return tensor.view(torch.uint8) if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def _rounded_to(bits: int) -> Change:
    """Return a change that keeps `bits` significant bits of each number."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        import torch

        wide = tensor.double()
        mantissa, exponent = torch.frexp(wide)
        rounded = torch.ldexp((mantissa * 2**bits).round() / 2**bits, exponent)
        return torch.where(wide.isfinite(), rounded, wide).to(tensor.dtype)

    return change

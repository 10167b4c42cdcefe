"""Shared memory of a comparison: how many slots a workload has, and how its tensors lie in the arenas."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.promises import is_promised
from warpsmith.lab.workers.arena import CONTIGUOUS, EXPANDED, FRAMED, STRIDED, Arena, Layout, TensorPlacement

MIXED = "mixed"
"""Layout of a call each of whose inputs has one of its own."""

_DENSE = ("transposed", "misaligned", EXPANDED, FRAMED)
"""Layouts that take little more memory than a contiguous one, so that the largest call has room for them."""

CHECKED_SLOTS = 2
"""Slots of a session that is only checked."""

SlotPlacements = tuple[dict[str, TensorPlacement], dict[str, TensorPlacement]]
"""Placements of a slot's inputs and outputs, by name."""


class Arenas(NamedTuple):
    """Shared memory for all workloads of a comparison: allocated once, laid out again for each workload."""

    inputs: Arena
    """Arena that all sides share."""
    outputs: dict[str, Arena]
    """Side to its arena."""
    block_seconds: float = gate_rules.BLOCK_SECONDS
    """Length that a timed block on a GPU aims at."""

    def close(self) -> None:
        """Free the memory."""
        for arena in (self.inputs, *self.outputs.values()):
            arena.close()


def allocate_arenas(
    file: DefinitionFile,
    checked: Iterable[Workload],
    timed: Iterable[Workload],
    sides: Iterable[str],
    device: str,
    block_seconds: float = gate_rules.BLOCK_SECONDS,
    checked_slots: int = CHECKED_SLOTS,
    crowds: Mapping[int, Iterable[Workload]] = MappingProxyType({}),
    mixes: Iterable[Sequence[Workload]] = (),
) -> Arenas:
    """Allocate arenas that every workload fits in, with the slots that it is checked or timed with; `crowds` has
    workloads by the number of slots that they are called on at once, and each of `mixes` those of such slots."""
    layouts = [
        lay_out(file, workload, checked_slots, layout, widest=True)
        for workload in checked
        for layout in {*list_layouts(file, workload, device), *list_dense_layouts(file)}
    ]
    layouts += [
        lay_out(file, each, slots, "contiguous") for slots, workloads in crowds.items() for each in workloads
    ]
    layouts += [lay_out_mix(file, workloads) for workloads in mixes]
    layouts += [
        lay_out(
            file, workload, max(CHECKED_SLOTS, count_slots(file, workload, device, block_seconds)), "contiguous"
        )
        for workload in timed
    ]
    input_bytes = max(inputs.room for inputs, _, _ in layouts)
    output_bytes = max(outputs.room for _, outputs, _ in layouts)
    names, chance = list(sides), random.SystemRandom()
    # A side finds the others' memory in its maps: the order of allocation must not say which of them it is.
    allocated = {name: Arena(output_bytes, device) for name in chance.sample(names, len(names))}
    return Arenas(Arena(input_bytes, device), {name: allocated[name] for name in names}, block_seconds)


def has_room(arenas: Arenas, file: DefinitionFile, workload: Workload, count: int = CHECKED_SLOTS) -> bool:
    """Return True if some contiguous slots of a workload fit in the arenas, wherever they begin; False for a
    workload at which a tensor has a size below zero."""
    if not file.definition.has_shapes(workload):
        return False
    inputs, outputs, _ = lay_out(file, workload, count, CONTIGUOUS)
    pairs = [(arenas.inputs, inputs), *((arena, outputs) for arena in arenas.outputs.values())]
    return all(layout.room <= arena.size for arena, layout in pairs)


def list_layouts(file: DefinitionFile, workload: Workload, device: str) -> tuple[str, ...]:
    """Return the memory layouts in which a workload may be checked: several if callers may choose the layout."""
    definition = file.definition
    free = sum(spec.layout == "any" for spec in definition.tensor_inputs.values())
    small = workload.set == "odd" or definition.elements(workload) <= input_rules.STRIDED_ELEMENTS[device]
    if not (free and small):
        return (CONTIGUOUS,)
    return (CONTIGUOUS, *_that_fit(file, STRIDED), *([MIXED] if free > 1 else []))


def list_dense_layouts(file: DefinitionFile) -> tuple[str, ...]:
    """Return the layouts in which a large call may be checked."""
    free = any(spec.layout == "any" for spec in file.definition.tensor_inputs.values())
    return (CONTIGUOUS, *_that_fit(file, _DENSE)) if free else (CONTIGUOUS,)


def _that_fit(file: DefinitionFile, layouts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the layouts without `expanded` and `framed` for a definition whose own draws may promise what these
    break, and without `framed` where no input may come so."""
    if file.inputs is None and any(
        _may_be_framed(file.definition, name) for name in file.definition.tensor_inputs
    ):
        return layouts
    unfit = (FRAMED,) if file.inputs is None else (EXPANDED, FRAMED)
    return tuple(layout for layout in layouts if layout not in unfit)


def _may_be_framed(definition: Definition, name: str) -> bool:
    """Return True for an input whose rows may overlap: each then holds parts of several drawn ones, which may
    break what a promise in words, or a distribution, says of a row."""
    spec = definition.tensor_inputs[name]
    is_free = spec.layout == "any" and len(spec.shape) > 1
    return is_free and not spec.fits_together and not is_promised(definition, name)


def count_slots(
    file: DefinitionFile, workload: Workload, device: str, block_seconds: float = gate_rules.BLOCK_SECONDS
) -> int:
    """Return the number of calls in a timed block, each of which has inputs of its own.

    It is one on the CPU, where the grader's clock runs around each call. On a GPU there are enough calls, as far
    as memory allows, that the tensors are twice the L2 cache and that the block is long against the hand-over.
    """
    if device == "cpu":
        return 1
    size = bytes_per_call(file, workload)
    call_seconds = size / gate_rules.ASSUMED_BANDWIDTH + gate_rules.ASSUMED_LAUNCH_SECONDS
    slots_for_cold = 2 * gate_rules.L2_BYTES // size + 1
    slots_for_length = math.ceil(block_seconds / call_seconds)
    slots = max(slots_for_cold, slots_for_length, gate_rules.MIN_SLOTS)
    slots_in_memory = _device_bytes() // gate_rules.BLOCK_MEMORY_DIVISOR // size
    return max(2, min(slots, gate_rules.MAX_SLOTS, slots_in_memory))


def lay_out(
    file: DefinitionFile,
    workload: Workload,
    count: int,
    layout: str,
    *,
    widest: bool = False,
    device: str = "cuda",
) -> tuple[Layout, Layout, list[SlotPlacements]]:
    """Lay out `count` slots of a workload; return the layouts of inputs and outputs, and the placements by
    slot. With `widest`, inputs take as much room as another draw of the layout may; the device says where tensors
    begin."""
    return lay_out_mix(file, [workload] * count, layout, widest=widest, device=device)


def lay_out_mix(
    file: DefinitionFile,
    workloads: Sequence[Workload],
    layout: str = CONTIGUOUS,
    *,
    widest: bool = False,
    device: str = "cuda",
    lengths: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Layout, Layout, list[SlotPlacements]]:
    """Lay out a slot for each of some workloads, as `lay_out` does those of one; `lengths` has the elements of the
    inputs that are vectors of another length in memory."""
    definition, step = file.definition, input_rules.BEGIN_STEPS[device]
    inputs, outputs = Layout(widest=widest, begin_step=step), Layout(begin_step=step)
    placements: list[SlotPlacements] = []
    for workload in workloads:
        slot_inputs = {
            name: inputs.add(
                (lengths[name],) if name in lengths else definition.shape(spec, workload),
                definition.dtype(spec, workload),
                _layout_of(file, name, layout, workload if widest else None),
            )
            for name, spec in definition.tensor_inputs.items()
        }
        slot_outputs = {
            name: outputs.add(definition.shape(spec, workload), definition.dtype(spec, workload))
            for name, spec in definition.outputs.items()
        }
        placements.append((slot_inputs, slot_outputs))
    return inputs, outputs, placements


def describe_slots(
    definition: Definition, workloads: Sequence[Workload], placements: Sequence[SlotPlacements]
) -> list[dict[str, Any]]:
    """Describe the tensors and numbers of each slot for a worker, in JSON."""
    return [
        {"inputs": {name: _as_json(placement) for name, placement in inputs.items()},
         "outputs": [_as_json(placement) for placement in outputs.values()],
         "scalars": definition.scalars(workload)}
        for workload, (inputs, outputs) in zip(workloads, placements, strict=True)
    ]  # fmt: skip


def _as_json(placement: TensorPlacement) -> list[object]:
    strides = None if placement.strides is None else list(placement.strides)
    return [placement.offset, list(placement.shape), placement.dtype, strides]


def _layout_of(file: DefinitionFile, name: str, layout: str, widest_at: Workload | None) -> str:
    """Return the layout of one input: in a `mixed` call one by chance, or the one that may take the most room at a
    workload. Integers that fit each other are never expanded; not every input may be framed."""
    spec = file.definition.tensor_inputs[name]
    if spec.layout != "any":
        return CONTIGUOUS
    if layout == MIXED:
        fitting = (CONTIGUOUS, *_that_fit(file, STRIDED))
        layout = random.SystemRandom().choice(fitting)
        if widest_at is not None:
            layout = max(fitting, key=lambda each: _room_of(file.definition, spec, widest_at, each))
    fits = {EXPANDED: not spec.fits_together, FRAMED: _may_be_framed(file.definition, name)}
    return layout if fits.get(layout, True) else CONTIGUOUS


def _room_of(definition: Definition, spec: TensorSpec, workload: Workload, layout: str) -> int:
    """Return the bytes that an input may take in a layout."""
    alone = Layout(widest=True)
    alone.add(definition.shape(spec, workload), definition.dtype(spec, workload), layout)
    return alone.room


def bytes_per_call(file: DefinitionFile, workload: Workload) -> int:
    """Return the bytes of one call's inputs and outputs, and 1 if it has none."""
    definition = file.definition
    specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
    return max(1, sum(definition.nbytes(spec, workload) for spec in specs))


@functools.cache
def _device_bytes() -> int:
    import torch

    return int(torch.cuda.get_device_properties(0).total_memory)

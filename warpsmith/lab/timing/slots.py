"""Slots of one workload: its tensors in shared memory, what was drawn for them, and the reference of each."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.grading import correctness, row_parts
from warpsmith.lab.grading.correctness import Grade, Truth
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.promises import is_promised
from warpsmith.lab.operator.tensor_bytes import equal_bytes
from warpsmith.lab.operator.values.related_values import view_start
from warpsmith.lab.timing.arenas import Arenas, SlotPlacements, bytes_per_call, count_slots, has_room, lay_out_mix
from warpsmith.lab.timing.stages import stage
from warpsmith.lab.workers.arena import CONTIGUOUS, NAN_PATTERN
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    import torch


ALIASED, VIEWED, OVERLAPPED = "aliased", "viewed", "overlapped"
"""Layouts of a call in which some inputs are one tensor, in which one is the beginning of another one, and in
which one begins inside of another one and ends behind it."""

SHARED = "shared"
"""Layout of calls that share their weights, as those that one model serves do."""

_EVEN = 0.5


class Slots:
    """Tensors of a workload, one set for each call of a block, and the outputs of some sides."""

    def __init__(
        self,
        file: DefinitionFile,
        workload: Workload,
        arenas: Arenas,
        names: tuple[str, ...],
        seed: int,
        device: str,
        *,
        count: int | None,
        layout: str,
        mix: Sequence[Workload] = (),
    ) -> None:
        """Lay out the slots; `names` are those of the sides, the other parameters those of a `Session`."""
        self.file, self.workload, self.device = file, workload, device
        self._arenas, self._names = arenas, names
        self.slots = len(mix) or count or count_slots(file, workload, device, arenas.block_seconds)
        self.workloads = tuple(mix) or (workload,) * self.slots
        """Workload of each slot."""
        self.inputs = Inputs(file, workload, seed, device)
        self._sources = [Inputs(file, each, seed + slot, device) for slot, each in enumerate(mix)]
        """Source of the inputs of each slot where workloads are mixed; empty otherwise."""
        is_aliased, kind = layout in (ALIASED, VIEWED, OVERLAPPED), "cpu" if device == "cpu" else "cuda"
        is_shared = layout == SHARED
        self.alias = self.inputs.draw_alias(same_shape=layout != VIEWED) if is_aliased else ()
        """Inputs that lie in the memory of the first one of them; empty if none do."""
        self.turned = layout == ALIASED and _draw_turn(file, workload, self.alias)
        """True if the second one of those that are one tensor is its transpose."""
        self.overlap = _draw_overlap(file, workload, self.alias, kind) if layout == OVERLAPPED else 0
        """Elements behind the beginning of the first one at which the second one begins."""
        layout = CONTIGUOUS if is_aliased or is_shared else layout
        self._input_layout, self._output_layout, self._placements = lay_out_mix(
            file, self.workloads, layout, device=kind, lengths=self._joint_lengths()
        )
        self._share_memory()
        self._owners = _share_weights(file, self.workloads, self._placements) if is_shared else {}
        """Slot whose weight another slot has, by that slot and the weight's name."""
        memory = arenas.inputs.memory
        self._views = [
            {name: placement.view(memory) for name, placement in inputs.items()} for inputs, _ in self._placements
        ]
        """Inputs of each slot by name, as views of the arena."""
        self.drawn: list[dict[str, torch.Tensor]] = [{} for _ in range(self.slots)]
        self.shares_elements = any(
            tensor.shares_elements for inputs, _ in self._placements for tensor in inputs.values()
        )
        """True if several elements of an input are one in memory."""
        self.correlated = self.shares_elements  # sums of such elements do not cancel
        self._truths: dict[int, Truth] = {}
        self._random = random.Random(seed)

    def _joint_lengths(self) -> dict[str, int]:
        """Return the elements that two overlapping inputs take in memory: the first one has room for both."""
        if not self.overlap:
            return {}
        first, second, *_ = self.alias
        return {first: prod(self._shape(first)) + self.overlap, second: 0}

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.file.definition.shape(self.file.definition.tensor_inputs[name], self.workload)

    def _share_memory(self) -> None:
        """Place the inputs of a group where the first one lies; the second one may begin further on."""
        for inputs, _ in self._placements if self.alias else ():
            first = inputs[self.alias[0]]
            shift = self.overlap * DTYPES[first.dtype].bytes
            for position, name in enumerate(self.alias):
                shape, is_second = self._shape(name), position == 1
                strides = _transposed_strides(shape) if is_second and self.turned else None
                offset = first.offset + (shift if is_second else 0)
                inputs[name] = replace(first, offset=offset, shape=shape, strides=strides)

    def describe_alias(self) -> str:
        """Say which inputs lie in the memory of another one, and how; empty if none do."""
        if not self.alias:
            return ""
        first, second, *others = self.alias
        if self.overlap:
            return f"{second} begins {self.overlap} elements inside of {first}"
        is_whole = self._shape(second) == self._shape(first)
        same = "the transpose of" if self.turned else "the same tensor as" if is_whole else "the beginning of"
        return " and ".join([f"{second} is {same} {first}", *(f"{name} is the same" for name in others)])

    def _join_values(self, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the values of a group's inputs but the first one, which has those of its own."""
        import torch

        first, second, *others = self.alias
        memory, tail = values[first].flatten(), values[second].flatten()
        if self.overlap:
            memory = torch.cat([memory, tail[len(tail) - self.overlap :]])
        start = view_start(memory[self.overlap :], self._shape(second))
        start = start.transpose(-1, -2).contiguous() if self.turned else start
        return {second: start, **{name: view_start(memory, self._shape(name)) for name in others}}

    def exchange_axes(self, axes: Mapping[str, tuple[int, int]]) -> None:
        """Place the inputs of slot 1 where those of slot 0 lie, with two axes of one size of some exchanged.

        It counts from the next `Session.prepare` on.
        """
        placed = dict(self._placements[0][0])
        for name, (first, second) in axes.items():
            strides = list(self._views[0][name].stride())
            strides[first], strides[second] = strides[second], strides[first]
            placed[name] = replace(placed[name], strides=tuple(strides))
        self._placements[1] = (placed, self._placements[1][1])
        memory = self._arenas.inputs.memory
        self._views[1] = {name: placement.view(memory) for name, placement in placed.items()}

    @property
    def cold(self) -> bool:
        """True if no call finds its inputs in a cache: on a GPU, a block's tensors are at least twice the L2."""
        block_bytes = self.slots * bytes_per_call(self.file, self.workload)
        return self.device == "cpu" or block_bytes >= 2 * gate_rules.L2_BYTES

    def has_room(self, workload: Workload) -> bool:
        """Return True if as many slots of another workload fit in the arenas."""
        return has_room(self._arenas, self.file, workload, self.slots)

    def truth(self, slot: int) -> Truth:
        """Return the reference's outputs for a slot, with their bounds."""
        if slot not in self._truths:
            if row_parts.exceeds_memory(self.file, self.workload, self.device):
                self._truths.clear()  # it is large, and workers need the room
            with stage("reference"):
                self._truths[slot] = correctness.compute_truth(
                    self.file, self.workloads[slot], self.drawn[slot], correlated=self.correlated
                )
        return self._truths[slot]

    def grade_reference(self, slot: int = 0) -> Grade:
        """Grade the reference in its own precision, with its sums in several orders, on a filled slot."""
        with stage("reference"):
            return correctness.grade_reference(self.file, self.workloads[slot], self.drawn[slot], self.truth(slot))

    def choices_are_stable(self, slot: int = 0) -> bool:
        """Return True if no discrete choice of the reference depends on rounding, on a filled slot."""
        return correctness.choices_are_stable(self.file, self.workloads[slot], self.drawn[slot], self.truth(slot))

    def _draw_slots(
        self, count: int, distribution: str | None, *, quick: bool
    ) -> Iterator[dict[str, torch.Tensor]]:
        """Draw the inputs of the first `count` slots."""
        if not self._sources:
            return self.inputs.draw_several(count, distribution, quick=quick)
        return (source.draw(distribution, quick=quick) for source in self._sources[:count])

    def _prepare_memory(self) -> None:
        """Write the guards, and clear memory beyond the tensors: another side could have left a message there."""
        # Timed calls see the same bytes as checked ones, so that no version can tell them apart.
        self._arenas.inputs.write_guards(self._input_layout, NAN_PATTERN)
        self._arenas.inputs.clear_beyond(self._input_layout)
        for name in self._names:
            self._arenas.outputs[name].write_guards(self._output_layout, NAN_PATTERN)
            self._arenas.outputs[name].clear_beyond(self._output_layout)
        self._synchronize()

    def _poison_outputs(self, names: Iterable[str]) -> None:
        for name in names:
            self._arenas.outputs[name].poison_all(self._output_layout)
        self._synchronize()

    def _write_slot(self, slot: int, values: dict[str, torch.Tensor]) -> None:
        """Write inputs into a slot; where several elements are one in memory, what the view reads counts."""
        self._truths.pop(slot, None)
        shared = {name: self.drawn[owner][name] for (at, name), owner in self._owners.items() if at == slot}
        self.drawn[slot] = values = {**values, **shared}
        if self.alias:
            values |= self._join_values(values)
        for name, view in self._views[slot].items():
            placement, first, part = self._placements[slot][0][name], values[name], view
            if placement.hop:
                values[name] = _write_framed(view, first, placement.hop)
                continue
            for axis in placement.expanded_axes:
                first, part = first.narrow(axis, 0, 1), part.narrow(axis, 0, 1)
            part.copy_(first)
            if part is not view:
                values[name] = first.expand(view.shape).contiguous()

    def _check_memory(self, name: str, slot: int) -> None:
        for key, view in self._views[slot].items():
            if not equal_bytes(view, self.drawn[slot][key]):
                raise SideFailed(Status.INPUT_MUTATED, f"{name} changed its input {key}")
        outputs = self._arenas.outputs[name]
        if not self._arenas.inputs.guards_are_intact(self._input_layout) or not outputs.guards_are_intact(
            self._output_layout
        ):
            raise SideFailed(Status.OUT_OF_BOUNDS, f"{name} wrote outside of its tensors")

    def _synchronize(self) -> None:
        if self.device != "cpu":
            import torch

            torch.cuda.synchronize()


def _write_framed(view: torch.Tensor, values: torch.Tensor, hop: int) -> torch.Tensor:
    """Write rows that overlap, and return what they hold then, contiguous.

    Each element of the memory is written once, since the order of several writes is left to chance: the beginning
    of each row up to the next one, and all of the last row.
    """
    import torch

    view[..., :-1, :hop].copy_(values[..., :-1, :hop])
    view[..., -1, :].copy_(values[..., -1, :])
    return view.clone(memory_format=torch.contiguous_format)


def _draw_overlap(file: DefinitionFile, workload: Workload, alias: tuple[str, ...], kind: str) -> int:
    """Draw the elements behind the beginning of an input at which the second one of its shape begins: one, or a
    row; as many more as its alignment takes where its layout is fixed. 0 where it has no more.

    `kind` is `cpu` or `cuda`.
    """
    if not alias:
        return 0
    definition, spec = file.definition, file.definition.tensor_inputs[alias[1]]
    shape, width = definition.shape(spec, workload), DTYPES[definition.dtype(spec, workload)].bytes
    step = 1 if spec.layout == "any" else input_rules.BEGIN_STEPS[kind] // width
    shifts = {-(-shift // step) * step for shift in (1, shape[-1] if shape else 1)}
    return random.SystemRandom().choice([shift for shift in shifts if shift < prod(shape)] or [0])


def _draw_turn(file: DefinitionFile, workload: Workload, alias: tuple[str, ...]) -> bool:
    """Draw whether the second of some inputs is the transpose of the first one, if layout and shape allow it."""
    if not alias:
        return False
    spec = file.definition.tensor_inputs[alias[1]]
    shape = file.definition.shape(spec, workload)
    is_square = len(shape) > 1 and shape[-1] == shape[-2] > 1
    return spec.layout == "any" and is_square and random.SystemRandom().random() < _EVEN


def _share_weights(
    file: DefinitionFile, workloads: Sequence[Workload], placements: Sequence[SlotPlacements]
) -> dict[tuple[int, str], int]:
    """Place each weight where the first slot with one of that shape and type has it; return that slot, by each
    other slot and name.

    Integers may depend on a size, so slots of one workload alone share them. None share what a promise in words
    names, or what the definition draws, since it may have to fit the other inputs.
    """
    definition = file.definition
    names = [
        name
        for name, spec in definition.tensor_inputs.items()
        if spec.role == "weight" and file.inputs is None and not is_promised(definition, name)
    ]
    first: dict[object, int] = {}
    owners: dict[tuple[int, str], int] = {}
    for slot, (workload, (inputs, _)) in enumerate(zip(workloads, placements, strict=True)):
        for name in names:
            weight = inputs[name]
            sizes = "" if is_floating(weight.dtype) else str(workload)
            owner = first.setdefault((name, weight.shape, weight.dtype, sizes), slot)
            if owner != slot:
                owners[slot, name], inputs[name] = owner, placements[owner][0][name]
    return owners


def _transposed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor whose last two axes, of one size, are exchanged."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    last, row, *others = strides
    return (*reversed(others), last, row)

"""Other batches: rows of a call, called again alone, among others and in longer batches, have the same bits."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from math import ceil, inf, nan
from typing import TYPE_CHECKING

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.gate.calls.other_values import fill_other_values
from warpsmith.lab.grading import correctness, free_axes, reference_calls, rows
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.promises import is_promised, mentions_finite
from warpsmith.lab.operator.values.distributions import MIXED_ROWS, REPLACEABLE
from warpsmith.lab.timing.arenas import Arenas, has_room
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    import torch


def check_batches(
    file: DefinitionFile, workload: Workload, lengths: Collection[int], open_session: Callable[[Workload], Session]
) -> None:
    """Call rows of a workload again, at random places in batches of other lengths; every bit must be the same.

    Args:
        file: a definition that is batch invariant.
        workload: the workload.
        lengths: lengths of the batches.
        open_session: opens a session of the version.

    Raises:
        SideFailed: a row depends on its batch.
    """
    axis = file.definition.batch_invariant
    assert axis is not None
    size = file.definition.sizes(workload)[axis]
    whole, chance = open_session(workload), random.SystemRandom()
    if not (whole.chance(input_rules.OTHER_VALUES_SHARE) and fill_other_values(whole)):
        whole.fill_inputs(slots=1)
    twins = rows.choose_places(size, min(max(size // 2, 1), input_rules.PLACED_ROWS))
    whole.write_inputs(0, copy_to_neighbors(whole, whole.drawn[0], axis, twins))
    outputs = {name: spec for name, spec in file.definition.outputs.items() if axis in spec.shape}
    team = chance.choice(input_rules.BATCH_TEAMS) if whole.device == "cpu" else 0
    caller: dict[str, float | str] = {"team": team} if team else {}
    expected = _call_outputs(whole, caller)
    for length in sorted(lengths):
        chosen = rows.choose_places(size, min(size, length, input_rules.PLACED_ROWS))
        places = rows.choose_places(length, len(chosen))
        batch = open_session(rows.shorten(workload, axis, length))
        others = draw_neighbors(batch, axis, places)
        inputs = file.definition.tensor_inputs
        placed = rows.place_rows(others, whole.drawn[0], inputs, axis, chosen, places)
        batch.write_inputs(0, copy_to_neighbors(batch, placed, axis, places))
        results = _call_outputs(batch, caller)
        again = rows.take_rows({name: results[name] for name in outputs}, outputs, axis, places)
        first = rows.take_rows({name: expected[name] for name in outputs}, outputs, axis, chosen)
        if name := correctness.differing_output(first, again):
            where = f"{length} instead of {size} along `{axis}`" + (f", {team} OpenMP threads" if caller else "")
            raise SideFailed(Status.NOT_REPRODUCIBLE, f"bits of {name} depend on the batch of a row: {where}")


def draw_neighbors(batch: Session, axis: str, places: Collection[int]) -> dict[str, torch.Tensor]:
    """Draw the inputs of a batch; by chance one row, at none of some places, holds the largest numbers, NaN or
    infinities. It holds these two where the reference of the rows at the places does not change.

    Inputs that a promise in words names, or whose range is declared, keep what was drawn.
    """
    chance, definition = random.SystemRandom(), batch.file.definition
    adversarial = batch.inputs.adversarial_distributions
    batch.fill_inputs(chance.choice((None, MIXED_ROWS)) if adversarial else None, slots=1)
    free = sorted(set(range(definition.sizes(batch.workload)[axis])).difference(places))
    if not (free and adversarial and chance.random() < input_rules.LARGEST_NEIGHBOR):
        return dict(batch.drawn[0])
    row, broken = chance.choice(free), chance.choice((None, nan, inf))
    has_nan = any(each.distribution == "nonfinite" for each in definition.workloads)
    if broken is not None and (has_nan or not mentions_finite(definition)):
        spoiled = _fill_row(batch, axis, row, broken)
        if _keeps_rows(batch, spoiled, axis, places):
            return spoiled
    return _fill_row(batch, axis, row, None)


def _fill_row(batch: Session, axis: str, row: int, number: float | None) -> dict[str, torch.Tensor]:
    """Return the inputs of a batch with a number in one row; by default the largest one of each type."""
    import torch

    drawn, definition = dict(batch.drawn[0]), batch.file.definition
    for name, spec in definition.tensor_inputs.items():
        bounded = is_promised(definition, name) or spec.distribution not in REPLACEABLE
        if axis in spec.shape and drawn[name].is_floating_point() and not bounded:
            largest = torch.finfo(drawn[name].dtype).max
            drawn[name] = drawn[name].clone()
            drawn[name].select(spec.shape.index(axis), row).fill_(largest if number is None else number)
    return drawn


def _keeps_rows(batch: Session, changed: dict[str, torch.Tensor], axis: str, places: Collection[int]) -> bool:
    """Return True if the reference gives the rows at the places as it did before inputs changed; False for a call
    that is too large to try."""
    file = batch.file
    outputs = {name: spec for name, spec in file.definition.outputs.items() if axis in spec.shape}
    if file.definition.elements(batch.workload) > input_rules.BATCH_ELEMENTS:
        return False
    try:
        usual, other = (
            reference_calls.call_function(file, file.reference, batch.workload, inputs)
            for inputs in (batch.drawn[0], changed)
        )
    except BadDefinition:  # the reference refuses such numbers
        return False
    before, after = (
        rows.take_rows({name: results[name] for name in outputs}, outputs, axis, sorted(places))
        for results in (usual, other)
    )
    return not correctness.differing_output(before, after)


def copy_to_neighbors(
    batch: Session, inputs: dict[str, torch.Tensor], axis: str, places: Collection[int]
) -> dict[str, torch.Tensor]:
    """Copy rows at some places to rows directly before and behind them, by chance: whole ones, or a first part of
    them along another axis, as requests that share a prompt have.

    Where only a part is copied, inputs that a promise in words names, or whose values fit each other, stay as they
    are. Nothing is copied where the definition draws its inputs, or ids along the axis may not repeat.
    """
    chance, file = random.SystemRandom(), batch.file
    specs = {name: spec for name, spec in file.definition.tensor_inputs.items() if axis in spec.shape}
    sources = _list_neighbors(file.definition.sizes(batch.workload)[axis], places)
    differs = any(spec.fits_together and spec.shape[-1] == axis for spec in specs.values())
    if not sources or file.inputs is not None or differs or chance.random() >= input_rules.COPIED_NEIGHBORS:
        return dict(inputs)
    rows_to = chance.sample(sorted(sources), chance.randint(1, len(sources)))
    moves = [(sources[row], row) for row in rows_to]
    others = sorted({str(size) for spec in specs.values() for size in spec.shape if size != axis})
    along, share, copies = "", 1.0, dict(inputs)
    if others and chance.random() < input_rules.COPIED_PARTS:
        along, share = chance.choice(others), chance.random()
        specs = {name: spec for name, spec in specs.items() if _may_share_part(file, name, along)}
    for name, spec in specs.items():
        dim = [str(size) for size in spec.shape].index(along) if along else None
        copies[name] = _copy_rows(inputs[name], spec.shape.index(axis), moves, dim, share)
    return copies


def _list_neighbors(size: int, places: Collection[int]) -> dict[int, int]:
    """Return the rows directly before and behind some places that are at none of them, each with that place."""
    free = set(range(size)).difference(places)
    return {row: source for source in places for row in (source - 1, source + 1) if row in free}


def _may_share_part(file: DefinitionFile, name: str, along: str) -> bool:
    """Return True if rows of an input may share a part along an axis, and have that axis."""
    spec = file.definition.tensor_inputs[name]
    return along in map(str, spec.shape) and not spec.fits_together and not is_promised(file.definition, name)


def _copy_rows(
    tensor: torch.Tensor, dim: int, moves: Collection[tuple[int, int]], along: int | None, share: float
) -> torch.Tensor:
    """Return a tensor with rows along `dim` copied; only that share of another axis, if one is given."""
    copy = tensor.clone()
    part = copy if along is None else copy.narrow(along, 0, ceil(share * copy.size(along)))
    for source, row in moves:
        part.select(dim, row).copy_(part.select(dim, source))
    return copy


def draw_lengths(
    file: DefinitionFile, workload: Workload, numbers: Collection[float], arenas: Arenas | None
) -> set[int]:
    """Draw the lengths of the batches that rows of a workload are placed in; none for a single row.

    Some are shorter than the workload. Where callers may choose the axis, others are longer, as far as a call is
    small and memory has room: one is drawn, and others are at the numbers of the version's source.

    Args:
        file: a definition that is batch invariant.
        workload: the workload.
        numbers: numbers of the version's source.
        arenas: memory of the calls; None where no batch is to be longer.
    """
    axis, chance = file.definition.batch_invariant, random.SystemRandom()
    assert axis is not None
    size = file.definition.sizes(workload)[axis]
    if size < 1:
        return set()
    lengths = {1, *(n for n in input_rules.BATCH_LENGTHS if n < size)}
    lengths |= {int(size ** chance.random()) for _ in range(input_rules.BATCH_TRIES)}
    most = _longest_batch(file, workload, axis) if arenas and axis in free_axes.drawable_axes(file) else size
    if most > size:
        lengths.add(int(size * (most / size) ** chance.random()) + 1)
    turns = [int(number) for number in numbers if 1 < number < most and float(number).is_integer()]
    for turn in chance.sample(turns, min(len(turns), input_rules.BATCH_NUMBERS)):
        lengths.add(turn if turn < size else min(most, turn + chance.randint(1, input_rules.GUIDED_BEYOND)))
    return {
        length
        for length in lengths - {size}
        for shorter in [rows.shorten(workload, axis, length)]
        if (file.definition.has_shapes(shorter) if length < size else arenas and has_room(arenas, file, shorter))
    }


def _longest_batch(file: DefinitionFile, workload: Workload, axis: str) -> int:
    """Return the length of the longest batch whose call has `input_rules.BATCH_ELEMENTS`."""
    single, double = (file.definition.elements(rows.shorten(workload, axis, length)) for length in (1, 2))
    room = 1 + (input_rules.BATCH_ELEMENTS - single) // max(double - single, 1)
    return min(room, input_rules.LONGEST_BATCH)


def _call_outputs(session: Session, caller: dict[str, float | str]) -> dict[str, torch.Tensor]:
    session.call_side(SOLUTION, fresh="poison", deliver=True, caller=caller)
    return {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}

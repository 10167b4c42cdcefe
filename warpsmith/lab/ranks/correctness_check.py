"""Correctness over ranks: calls in a row with late ranks, graded on all ranks against a single process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import REFERENCE_MISSES, Correctness, Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.grading import correctness, odd
from warpsmith.lab.grading.correctness import Grade, Truth
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import ADVERSARIAL, UNMIXED
from warpsmith.lab.ranks import shards
from warpsmith.lab.ranks.group import COPIES, SLOTS, RankGroup
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

BLOCKS = 3
"""Blocks of calls at a workload. Chosen: the slots are filled anew for each, and every rank is late in each."""

JOLTED_BLOCKS, SMALL_ELEMENTS = (16, 4), 1 << 18
"""Further blocks, in which one rank is stopped within its calls instead: at workloads of up to so many elements,
and at larger ones. Chosen: a small tensor is written in microseconds, so that few stops fall into that time."""

LATE_SECONDS = (0.002, 0.02)
"""Seconds by which one rank is late at a call. Chosen: beyond a call's exchange, and beyond a sleeping process."""


class WrongOnRank(SideFailed):
    """A rank's outputs are beyond their bounds; has the grade."""

    def __init__(self, grade: Grade, message: str, side: str) -> None:
        super().__init__(grade.status, message, side)
        self.grade = grade


def list_rank_workloads(file: DefinitionFile, seed: int) -> list[Workload]:
    """List the workloads at which a version must be right: those that are timed, odd ones, and sizes that nobody
    could prepare for; the axes that ranks share out are rounded up to whole parts."""
    definition = file.definition
    drawn = odd.draw_near_workloads(file, seed=seed)
    if not definition.select("odd"):
        drawn += odd.derive_odd_workloads(file)
    drawn = [share_evenly(definition, workload) for workload in drawn if all(workload.axes.values())]
    return [*definition.select("representative", "odd"), *drawn]


def share_evenly(definition: Definition, workload: Workload) -> Workload:
    """Return the workload with each axis that ranks share out rounded up to a multiple of their number."""
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    shared = {spec.shard_axis for spec in specs if spec.shard_axis in workload.axes}
    sizes = {axis: -(-workload.axes[axis] // definition.ranks) * definition.ranks for axis in shared if axis}
    return workload.model_copy(update={"axes": {**workload.axes, **sizes}})


def check_rank_workload(file: DefinitionFile, workload: Workload, group: RankGroup, seed: int) -> Correctness:
    """Grade blocks of calls at a workload; return the record of the errors.

    Raises:
        SideFailed: a rank is wrong, changes an input, or fails.
        MachineFailed: the reference misses its own bound.
    """
    inputs = Inputs(file, workload, seed, group.grading_device)
    chance, grades, repeat = random.Random(seed), list[Grade](), 0.0
    group.open_workload(workload)
    before = inputs.draw()
    _require_reference(file, workload, before)
    ranks, timely = file.definition.ranks, [[0.0] * SLOTS] * file.definition.ranks
    jolted = JOLTED_BLOCKS[file.definition.elements(workload) > SMALL_ELEMENTS]
    for block in range(BLOCKS + jolted):
        slots = _vary_inputs(file, inputs, before, block)
        group.fill(slots)
        if block < BLOCKS:
            group.call_slots(_late_ranks(ranks, block, chance))
        else:
            group.call_slots(timely, jolted=block % ranks)
        truths = [correctness.compute_truth(file, workload, tensors) for tensors in slots[:-1]]
        for slot, truth in enumerate([*truths, truths[-1]]):
            grades.append(grade_slot(file, group, slot, slots[slot], truth, _describe_call(file, block, slot)))
        repeat = max(repeat, _compare_repetition(file.definition, group, truths[-1]))
        before = slots[0]
    for name, slots in _draw_extremes(file, workload, inputs, chance):
        group.fill(slots)
        group.call_slots(_late_ranks(ranks, 0, chance))
        for slot, tensors in enumerate(slots):
            truth = correctness.compute_truth(file, workload, tensors, correlated=True)
            grades.append(grade_slot(file, group, slot, tensors, truth, f"inputs `{name}`"))
    return correctness.summarize_grades(grades, repeat=repeat)


def grade_slot(
    file: DefinitionFile, group: RankGroup, slot: int, inputs: Tensors, truth: Truth, call: str
) -> Grade:
    """Grade the last call on a slot on all ranks, and compare what they have alike.

    Raises:
        SideFailed: a rank is wrong, has changed an input, or has something else than another one.
    """
    if changed := group.changed_input(slot, inputs):
        raise SideFailed(Status.INPUT_MUTATED, f"{changed} was changed ({call})", group.name)
    definition, grades = file.definition, list[Grade]()
    for copy, when in zip(COPIES, ("when it returned", "after the calls that followed"), strict=True):
        whole = _join_on_device(definition, group, slot, copy)
        for rank, outputs in enumerate(whole):
            grades.append(correctness.grade_outputs(truth, outputs))
            if grades[-1].status is not Status.PASSED:
                owner = f"rank {rank}: " if len(whole) > 1 else ""
                raise WrongOnRank(grades[-1], f"{owner}{grades[-1].detail} ({call}, {when})", group.name)
    for rank, outputs in enumerate(whole[1:], 1):
        _, failure = correctness.compare_calls(whole[0], outputs, truth, definition.deterministic)
        if failure:
            message = f"ranks 0 and {rank} disagree on what both have ({call})"
            raise SideFailed(Status.NOT_REPRODUCIBLE, message, group.name)
    return correctness.merge_grades(grades)


def _join_on_device(definition: Definition, group: RankGroup, slot: int, copy: int) -> list[Tensors]:
    """Return the whole outputs of a slot as each rank has them, on the device that truths are computed on."""
    return shards.join_outputs(
        definition,
        [
            {name: output.to(group.grading_device) for name, output in part.items()}
            for part in group.read_outputs(slot, copy)
        ],
    )


def _require_reference(file: DefinitionFile, workload: Workload, inputs: Tensors) -> None:
    truth = correctness.compute_truth(file, workload, inputs)
    grade = correctness.grade_reference(file, workload, inputs, truth)
    if grade.status is not Status.PASSED:
        raise MachineFailed(f"{REFERENCE_MISSES} at {workload.name}: {grade.detail}; widen the tolerance.")


def _vary_inputs(file: DefinitionFile, inputs: Inputs, before: Tensors, block: int) -> list[Tensors]:
    """Draw a block's inputs: the last block's but for one rank's, these but for another's, then new ones twice."""
    definition, fresh = file.definition, inputs.draw()
    rank = block % definition.ranks
    if file.inputs is not None:  # parts of its draws may belong together
        return [inputs.draw(), inputs.draw(), fresh, fresh]
    first = shards.redraw_rank(definition, before, inputs.draw(), rank)
    second = shards.redraw_rank(definition, first, inputs.draw(), (rank + 1) % definition.ranks)
    return [first, second, fresh, fresh]


def _describe_call(file: DefinitionFile, block: int, slot: int) -> str:
    ranks = file.definition.ranks
    if file.inputs is None and slot < 2:
        return f"call {block * SLOTS + slot + 1}: only rank {(block + slot) % ranks}'s inputs are new"
    return f"call {block * SLOTS + slot + 1}"


def _late_ranks(ranks: int, block: int, chance: random.Random) -> list[list[float]]:
    """Return the seconds by which each rank is late at each slot: one rank at a time, each in turn."""
    late = [[0.0] * SLOTS for _ in range(ranks)]
    for slot in range(SLOTS):
        late[(block + slot) % ranks][slot] = chance.choice(LATE_SECONDS)
    return late


def _compare_repetition(definition: Definition, group: RankGroup, truth: Truth) -> float:
    """Compare the last two calls, which had the same inputs; return the difference as a share of the bound."""
    first, second = (_join_on_device(definition, group, SLOTS - back, -1) for back in (2, 1))
    largest = 0.0
    for earlier, later in zip(first, second, strict=True):
        share, failure = correctness.compare_calls(earlier, later, truth, definition.deterministic)
        if failure:
            raise SideFailed(Status.NOT_REPRODUCIBLE, failure, group.name)
        largest = max(largest, share)
    return largest


def _draw_extremes(
    file: DefinitionFile, workload: Workload, inputs: Inputs, chance: random.Random
) -> Iterator[tuple[str, list[Tensors]]]:
    """Draw blocks from a few other distributions at odd sizes, as far as the reference holds its bound there."""
    names = [name for name in ADVERSARIAL if name not in UNMIXED]
    if file.inputs is not None or workload.timed:
        return
    for name in chance.sample(names, 2):
        slots = [inputs.draw(name) for _ in range(SLOTS)]
        graded = (
            correctness.grade_reference(
                file, workload, each, correctness.compute_truth(file, workload, each, correlated=True)
            )
            for each in slots
        )
        if all(grade.status is Status.PASSED for grade in graded):
            yield name, slots

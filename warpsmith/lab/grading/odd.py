"""Odd workloads that a definition does not declare: sizes that no tile divides, and sizes near declared ones."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from functools import partial
from math import prod

from warpsmith.core.definition import Workload, WorkloadSet
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import correctness, free_axes
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.promised_sizes import draw_promised_workload, fit_to_promises, list_loose_axes


def derive_odd_workloads(file: DefinitionFile) -> list[Workload]:
    """Return odd workloads for a definition that declares none.

    There is one for each size along every variable axis, and one without elements along each of them, if the
    reference can compute it: along the first, and along others where all results are empty or finite then, as sums
    of nothing are. Further dtypes get those of one element and of none.
    """
    variable = free_axes.drawable_axes(file)
    if not variable:
        return []
    smallest = min(file.definition.select("representative"), key=file.definition.elements)
    workloads = [
        resize(smallest, f"odd-{name}", dict.fromkeys(variable, size))
        for name, size in input_rules.ODD_SIZES.items()
    ]
    workloads = [fit_to_promises(file.definition, workload, variable) for workload in workloads]
    empty = _resize_to_nothing(smallest, variable)
    empty = [empty[0], *(each for each in empty[1:] if _has_no_results(file, each) or _is_finite(file, each))]
    for dtype in sorted({workload.dtype for workload in file.definition.workloads} - {smallest.dtype}):
        for first, kinds in ((workloads[0], workloads), (empty[0], empty)):
            other = first.model_copy(update={"dtype": dtype, "name": f"{first.name}-{dtype}"[:80]})
            kinds.append(other)
    if file.inputs is None:
        plain = filter(file.definition.has_shapes, workloads)
        return [*plain, *(workload for workload in empty if free_axes.reference_holds(file, workload))]
    fitting = [free_axes.fit_workload(file, smallest, workload) for workload in (*workloads, *empty)]
    return [workload for workload in fitting if workload]


def _resize_to_nothing(workload: Workload, axes: Sequence[str]) -> list[Workload]:
    """Return the workload without elements along each of some axes, which are small otherwise."""
    primes = dict.fromkeys(axes, input_rules.ODD_SIZES["primes"])
    return [resize(workload, f"odd-empty-{axis}"[:80], {**primes, axis: 0}) for axis in axes]


def _has_no_results(file: DefinitionFile, workload: Workload) -> bool:
    definition = file.definition
    return not any(prod(definition.shape(spec, workload)) for spec in definition.outputs.values())


def _is_finite(file: DefinitionFile, workload: Workload) -> bool:
    """Return True if the reference's results are finite at a workload."""
    try:
        drawn = Inputs(file, workload, 1, "cpu").draw()
        return correctness.compute_truth(file, workload, drawn).is_finite
    except (BadDefinition, ValueError):
        return False


def draw_near_workloads(
    file: DefinitionFile,
    workload_set: WorkloadSet = "representative",
    *,
    interpreted: bool = False,
    seed: int | None = None,
    device: str = "cpu",
) -> list[Workload]:
    """Draw unseen workloads near those of a set, with no size a multiple of eight.

    A kernel that is right only at declared sizes is wrong there. Large workloads are first scaled down along their
    longest axis. Sizes that the reference cannot compute, because axes depend on each other, are left out.
    """
    variable, chance = free_axes.drawable_axes(file), random.Random(secrets.randbits(62) if seed is None else seed)
    if not variable:
        return []
    count = input_rules.NEAR_SHAPES_INTERPRETED if interpreted else input_rules.NEAR_SHAPES
    elements = input_rules.NEAR_ELEMENTS_INTERPRETED if interpreted else input_rules.NEAR_ELEMENTS
    declared = file.definition.select(workload_set)
    workloads: list[Workload] = []
    for workload in chance.sample(declared, len(declared)):
        small = scale_down(file, workload, variable, elements)
        name = f"near-{workload.name}"[:80]
        draw = partial(resize_near, small, name, variable, chance)
        drawn = draw_promised_workload(file.definition, draw, variable)
        if len(workloads) < count and (near := free_axes.fit_workload(file, small, drawn, device)):
            workloads.append(near)
    return workloads


def resize(workload: Workload, name: str, axes: dict[str, int]) -> Workload:
    """Return an odd workload of another name with other sizes of some axes."""
    return workload.model_copy(update={"name": name, "set": "odd", "axes": {**workload.axes, **axes}})


def scale_down(file: DefinitionFile, workload: Workload, variable: list[str], most: int) -> Workload:
    """Halve the longest axis until the tensors have at most `most` elements, or `NEAR_ROOM` times as many where no
    axis is longer than a tile. Other sizes follow as far as promises of callers bind them."""
    whole_tiles = halve_longest(file, workload, variable, most, input_rules.TILE)
    small = halve_longest(file, whole_tiles, variable, input_rules.NEAR_ROOM * most)
    return fit_to_promises(file.definition, small, variable)


def halve_longest(
    file: DefinitionFile, workload: Workload, variable: Sequence[str], most: int, least: int = 1
) -> Workload:
    """Halve the longest of some axes until the tensors have at most `most` elements, or none is longer than
    `least`."""
    while variable and file.definition.elements(workload) > most:
        longest = max(variable, key=lambda name: workload.axes[name])
        if workload.axes[longest] <= least:
            break
        workload = resize(workload, workload.name, {longest: workload.axes[longest] // 2})
    return workload


def halve_loose(file: DefinitionFile, variable: Sequence[str], most: int, workload: Workload) -> Workload | None:
    """Halve the longest of those axes that no promise of callers compares until the tensors have at most `most`
    elements; return None where they have more."""
    short = halve_longest(file, workload, list_loose_axes(file.definition, variable), most)
    return short if file.definition.elements(short) <= most else None


def resize_near(workload: Workload, name: str, axes: Sequence[str], chance: random.Random) -> Workload:
    """Return an odd workload of another name with sizes near those of some axes."""
    return resize(workload, name, {axis: draw_near_size(workload.axes[axis], chance) for axis in axes})


def draw_near_size(size: int, chance: random.Random, tile: int = input_rules.TILE, least: int = 1) -> int:
    """Return another size, at most `NEAR_DISTANCE` away and at least `least`, that no tile of a length divides."""
    sizes = range(max(least, size - input_rules.NEAR_DISTANCE), size + input_rules.NEAR_DISTANCE + 1)
    return chance.choice([other for other in sizes if other != size and other % tile])

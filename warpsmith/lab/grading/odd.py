"""Odd workloads that a definition does not declare: sizes that no tile divides, and sizes near declared ones."""

from __future__ import annotations

import random
import re
import secrets
from math import prod

from warpsmith.core.definition import Workload, WorkloadSet
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs

_SIZE_WORDS = r"\b(sizes?|shapes?|dimensions?|ax[ie]s|lengths?|multiples?|divisible|divides?|even|odd)\b"
"""Words by which a promise is about sizes, whichever it names."""


def derive_odd_workloads(file: DefinitionFile) -> list[Workload]:
    """Return odd workloads for a definition that declares none.

    There is one for each size along every variable axis, and one without elements along the first of them, and
    along each of which all results are empty then, if the reference can compute it.
    """
    variable = variable_axes(file)
    if not variable:
        return []
    smallest = min(file.definition.select("representative"), key=file.definition.elements)
    workloads = [
        resize(smallest, f"odd-{name}", dict.fromkeys(variable, size))
        for name, size in input_rules.ODD_SIZES.items()
    ]
    primes = dict.fromkeys(variable, input_rules.ODD_SIZES["primes"])
    empty = [resize(smallest, f"odd-empty-{axis}"[:80], {**primes, axis: 0}) for axis in variable]
    empty = [empty[0], *(workload for workload in empty[1:] if _has_no_results(file, workload))]
    return [*workloads, *(workload for workload in empty if reference_holds(file, workload))]


def _has_no_results(file: DefinitionFile, workload: Workload) -> bool:
    definition = file.definition
    return not any(prod(definition.shape(spec, workload)) for spec in definition.outputs.values())


def draw_near_workloads(
    file: DefinitionFile,
    workload_set: WorkloadSet = "representative",
    *,
    interpreted: bool = False,
    seed: int | None = None,
) -> list[Workload]:
    """Draw unseen workloads near those of a set, with no size a multiple of eight.

    A kernel that is right only at declared sizes is wrong there. Large workloads are first scaled down along their
    longest axis. Sizes that the reference cannot compute, because axes depend on each other, are left out.
    """
    variable, chance = variable_axes(file), random.Random(secrets.randbits(62) if seed is None else seed)
    if not variable:
        return []
    count = input_rules.NEAR_SHAPES_INTERPRETED if interpreted else input_rules.NEAR_SHAPES
    elements = input_rules.NEAR_ELEMENTS_INTERPRETED if interpreted else input_rules.NEAR_ELEMENTS
    declared = file.definition.select(workload_set)
    workloads: list[Workload] = []
    for workload in chance.sample(declared, len(declared)):
        small = scale_down(file, workload, variable, elements)
        axes = {name: draw_near_size(small.axes[name], chance) for name in variable}
        near = resize(small, f"near-{workload.name}"[:80], axes)
        if len(workloads) < count and reference_holds(file, near):
            workloads.append(near)
    return workloads


def variable_axes(file: DefinitionFile) -> list[str]:
    """Return the axes that callers may give any size: no promise in words names them. None is free where a promise
    speaks of sizes and names no axis.

    A promise that names an input, such as `0 <= label < classes`, is about values, which are drawn to fit. A
    definition that draws its own inputs may tie any axes to each other, but not the one that it draws along.
    """
    definition = file.definition
    axes = [name for name, size in definition.axes.items() if isinstance(size, str)]
    if file.inputs is not None:
        axes = [definition.drawn_along] if definition.drawn_along else []
    bound: set[str] = set()
    for promise in definition.constraints:
        words = set(re.findall(r"\w+", promise))
        axes_in_it, about_sizes = words & set(definition.axes), re.search(_SIZE_WORDS, promise, re.IGNORECASE)
        if about_sizes and not axes_in_it:
            return []
        if about_sizes or not words & set(definition.inputs):
            bound |= axes_in_it
    return [name for name in axes if name not in bound]


def resize(workload: Workload, name: str, axes: dict[str, int]) -> Workload:
    """Return an odd workload of another name with other sizes of some axes."""
    return workload.model_copy(update={"name": name, "set": "odd", "axes": {**workload.axes, **axes}})


def scale_down(file: DefinitionFile, workload: Workload, variable: list[str], most: int) -> Workload:
    """Halve the longest axis until the tensors have at most `most` elements."""
    while file.definition.elements(workload) > most:
        longest = max(variable, key=lambda name: workload.axes[name])
        if workload.axes[longest] <= input_rules.TILE:
            break
        workload = resize(workload, workload.name, {longest: workload.axes[longest] // 2})
    return workload


def draw_near_size(size: int, chance: random.Random) -> int:
    """Return another size, at most `NEAR_DISTANCE` away, that no tile divides."""
    sizes = range(max(1, size - input_rules.NEAR_DISTANCE), size + input_rules.NEAR_DISTANCE + 1)
    return chance.choice([other for other in sizes if other != size and other % input_rules.TILE])


def reference_holds(file: DefinitionFile, workload: Workload) -> bool:
    """Return True if the reference can compute the workload, and stays within its bound."""
    try:
        drawn = Inputs(file, workload, secrets.randbits(62), "cpu").draw()
        truth = correctness.compute_truth(file, workload, drawn)
        return correctness.grade_reference(file, workload, drawn, truth).status is Status.PASSED
    except (BadDefinition, ValueError):
        return False

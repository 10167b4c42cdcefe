"""Free axes: those that callers may give other sizes than the declared ones."""

from __future__ import annotations

import secrets

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import correctness, rows
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.promised_sizes import fit_to_promises
from warpsmith.lab.operator.promises import unbound_axes


def variable_axes(file: DefinitionFile) -> list[str]:
    """Return the axes that callers may give any size: no promise in words names them, nor describes them. None is
    free where a promise speaks of sizes that it does not say.

    A promise that names an input, such as `0 <= label < classes`, is about values, which are drawn to fit. A
    definition that draws its own inputs may tie any axes to each other, but not the one that it draws along.
    """
    axes = unbound_axes(file.definition)
    return axes if file.inputs is None else [axis for axis in axes if axis == file.definition.drawn_along]


def drawable_axes(file: DefinitionFile) -> list[str]:
    """Return the axes along which a judgement may draw other sizes.

    They are `variable_axes`. Where a definition draws its own inputs and does not say along which axis, it is
    tried: those along which `inputs()` and the reference compute at another size.
    """
    if file.inputs is None or file.definition.drawn_along:
        return variable_axes(file)
    return [axis for axis, failure in _tried_axes(file).items() if not failure]


def fixed_axes(file: DefinitionFile) -> dict[str, str]:
    """Return the axes that keep their declared sizes in a judgement, with the reason of each."""
    definition, free, unbound = file.definition, drawable_axes(file), unbound_axes(file.definition)
    fixed = {}
    for axis in (name for name, size in definition.axes.items() if isinstance(size, str) and name not in free):
        if axis not in unbound:
            fixed[axis] = "a promise in words is about it"
        else:
            fixed[axis] = file.tried.get(axis) or f"inputs are drawn along `{definition.drawn_along}`"
    return fixed


def reference_holds(file: DefinitionFile, workload: Workload, device: str = "cpu") -> bool:
    """Return True if the reference can compute the workload, and stays within its bound."""
    return not _describe_failure(file, workload, device)


def fit_workload(file: DefinitionFile, base: Workload, drawn: Workload, device: str = "cpu") -> Workload | None:
    """Return the drawn workload if the reference holds there; None otherwise.

    Where a definition draws its own inputs, sizes may have to fit each other: it then returns the base with as
    many of the drawn sizes as hold together, one axis after another, and None if none does.
    """
    if reference_holds(file, drawn, device):
        return drawn
    axes = base.axes
    for axis in drawn.axes if file.inputs else ():
        other = drawn.model_copy(update={"axes": {**axes, axis: drawn.axes[axis]}})
        if other.axes != axes and reference_holds(file, other, device):
            axes = other.axes
    return None if axes == base.axes else drawn.model_copy(update={"axes": axes})


def _tried_axes(file: DefinitionFile) -> dict[str, str]:
    """Return each unbound axis with the failure at its other sizes, empty where one is fine; tried once."""
    if not file.tried:
        for axis in unbound_axes(file.definition):
            file.tried[axis] = _try_axis(file, axis)
    return file.tried


def _try_axis(file: DefinitionFile, axis: str) -> str:
    """Try a few more and fewer along an axis of the smallest timed workload; return the last failure."""
    smallest, failure = min(file.definition.select("representative"), key=file.definition.elements), ""
    for step in input_rules.TRIED_STEPS:
        length = smallest.axes[axis] + step
        if length <= 0:
            continue
        tried = fit_to_promises(file.definition, rows.shorten(smallest, axis, length), [axis])
        if tried.axes == smallest.axes:
            failure = failure or "a promise binds its size"
            continue
        failure = _describe_failure(file, tried)
        if not failure:
            break
    return failure


def _describe_failure(file: DefinitionFile, workload: Workload, device: str = "cpu") -> str:
    """Return why a workload cannot be judged, empty if it can: the reference computes it within its bound."""
    if not file.definition.has_shapes(workload):
        return "a tensor has a size below zero, or a promise does not hold"
    try:
        drawn = Inputs(file, workload, secrets.randbits(62), device).draw()
        truth = correctness.compute_truth(file, workload, drawn)
        grade = correctness.grade_reference(file, workload, drawn, truth)
    except (BadDefinition, ValueError) as error:
        return str(error).removeprefix(f"{file.path}: ").splitlines()[0]
    return "" if grade.status is Status.PASSED else "the reference misses its bound"

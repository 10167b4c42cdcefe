"""Views: calls on the same elements in another shape, as views of one buffer have them."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.gate.calls import edits
from warpsmith.lab.grading import free_axes, odd
from warpsmith.lab.operator import input_rules
from warpsmith.lab.timing.session import SOLUTION, Session

SessionOpener = Callable[[Workload], Session]
"""Opens a session of the version at a workload."""


class Reshaped(NamedTuple):
    """Workload at which some inputs of another one have as many elements in another shape."""

    workload: Workload
    """The workload."""
    names: tuple[str, ...]
    """Those inputs."""


def call_on_views(open_session: SessionOpener, workloads: Sequence[Workload]) -> str:
    """Call at a workload, then with the elements of its inputs in another shape, then at the first one again.

    What a version makes of weights may be kept by their elements, but must not be taken for that of another shape.

    Args:
        open_session: opens a session of the version.
        workloads: workloads at which it is correct; the first one with such a shape is taken.

    Returns:
        The two shapes; empty if no workload has another one.

    Raises:
        SideFailed: a result is wrong.
    """
    longest: dict[str, int] = {}
    for workload in workloads:
        longest |= {axis: max(size, longest.get(axis, 0)) for axis, size in workload.axes.items()}
    for workload in workloads:
        for other in draw_reshaped(open_session(workload), longest):
            if _call_pair(open_session, workload, other):
                sizes = "x".join(str(size) for size in other.workload.axes.values())
                return f"{', '.join(other.names)} at {workload.name} and {sizes}"
    return ""


def draw_reshaped(session: Session, longest: Mapping[str, int]) -> list[Reshaped]:
    """Draw a few workloads of other sizes at which inputs have as many elements in another shape, as far as memory
    has room; those with most of such weights come first, then those with most of such inputs.

    Args:
        session: session at the workload.
        longest: largest size of each axis.
    """
    file, workload = session.file, session.workload
    specs, promises = file.definition.tensor_inputs, " ".join(file.definition.constraints)
    names = [name for name in specs if session.inputs.has_independent_values(name)]
    names = [name for name in names if not re.search(rf"\b{name}\b", promises)]
    options = []
    for sizes in _list_other_sizes(workload, free_axes.drawable_axes(file) if names else []):
        other = odd.resize(workload, f"view-{workload.name}"[:80], sizes)
        pairs = {name: [file.definition.shape(specs[name], each) for each in (workload, other)] for name in names}
        same = tuple(name for name, (old, new) in pairs.items() if old != new and prod(old) == prod(new) > 1)
        if same and all(size <= longest[axis] for axis, size in sizes.items()) and session.has_room(other):
            options.append(Reshaped(other, same))
    weights = {name for name in names if specs[name].role == "weight"}
    random.SystemRandom().shuffle(options)
    options.sort(key=lambda option: (-len(weights.intersection(option.names)), -len(option.names)))
    return options[: input_rules.VIEW_TRIES]


def _list_other_sizes(workload: Workload, axes: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yield sizes of some axes: two of them change places, or each is halved, kept or doubled."""
    for first, second in itertools.combinations(axes, 2):
        yield {first: workload.axes[second], second: workload.axes[first]}
    some = random.SystemRandom().sample(list(axes), min(len(axes), input_rules.VIEWED_AXES))
    for halves in itertools.product((1, 2, 4), repeat=len(some)):
        products = {axis: workload.axes[axis] * count for axis, count in zip(some, halves, strict=True)}
        if not any(size % 2 for size in products.values()):
            yield {axis: size // 2 for axis, size in products.items()}


def _call_pair(open_session: SessionOpener, workload: Workload, other: Reshaped) -> bool:
    """Grade calls at a workload, on its elements in another shape, and at the workload again; all of them again
    after a near miss. Return False where the reference does not hold."""
    for _ in range(gate_rules.DRAW_TRIES):
        session = open_session(workload)
        session.fill_inputs(slots=1)
        drawn = session.drawn[0]
        first = session.call_and_grade(SOLUTION)
        session = open_session(other.workload)
        try:
            session.fill_inputs(slots=1)
            views = {name: drawn[name].reshape(session.drawn[0][name].shape) for name in other.names}
            session.write_inputs(0, {**session.drawn[0], **views})
            if session.grade_reference().status is not Status.PASSED:
                return False
        except (BadDefinition, ValueError):
            return False
        grades = [session.call_and_grade(SOLUTION)]
        session = open_session(workload)
        session.write_inputs(0, drawn)
        grades.append(session.call_and_grade(SOLUTION))
        if not any(grade.near_miss for grade in (first, *grades)):
            break
    edits.require_pass(first, Status.INCORRECT_NUMERICAL, "before its elements came in another shape")
    for grade in grades:
        when = f"after a call with the elements of {', '.join(other.names)} in another shape"
        edits.require_pass(grade, Status.CACHED_RESULT, when)
    return True

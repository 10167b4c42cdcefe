"""Views: calls on the same elements in another shape or order of axes, as views of one buffer have them."""

from __future__ import annotations

import itertools
import random
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
from warpsmith.lab.operator.promises import is_promised
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
    specs, names, options = file.definition.tensor_inputs, _list_free_inputs(session), []
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


def _list_free_inputs(session: Session) -> list[str]:
    """List the inputs of independent values that no promise in words names."""
    definition = session.file.definition
    names = [name for name in definition.tensor_inputs if session.inputs.has_independent_values(name)]
    return [name for name in names if not is_promised(definition, name)]


def call_on_exchanged(open_session: SessionOpener, workloads: Sequence[Workload]) -> str:
    """Call at a workload, then on the same memory with two axes of one size exchanged, then as at first again.

    What a version makes of weights may be kept by their bytes, but must not be taken for that of their transpose.

    Args:
        open_session: opens a session of the version.
        workloads: workloads at which it is correct; the first one that has such inputs, as it is or with other
            sizes, is taken.

    Returns:
        The inputs and the sizes; empty if no input of any layout has two such axes.

    Raises:
        SideFailed: a result is wrong.
    """
    for workload in workloads:
        session = open_session(workload)
        if all(spec.layout != "any" for spec in session.file.definition.tensor_inputs.values()):
            break
        for square in _draw_squares(session):
            if names := _call_exchanged(open_session(square)):
                return f"{', '.join(names)} at {'x'.join(str(size) for size in square.axes.values())}"
    return ""


def draw_exchanges(session: Session, workload: Workload) -> dict[str, tuple[int, int]]:
    """Draw two axes of one size, at a workload, of each input that callers may pass in any layout, as far as it
    has such."""
    definition, drawn = session.file.definition, {}
    for name in _list_free_inputs(session):
        spec = definition.tensor_inputs[name]
        pairs = list(itertools.combinations(enumerate(definition.shape(spec, workload)), 2))
        alike = [(first, second) for (first, size), (second, other) in pairs if size == other > 1]
        if spec.layout == "any" and alike:
            drawn[name] = random.SystemRandom().choice(alike)
    return drawn


def _draw_squares(session: Session) -> list[Workload]:
    """Draw a few workloads at which inputs have two axes of one size, those with most such inputs first.

    They are the workload of a session, and others with all or two of its free axes as long as the shortest one.
    """
    workload, axes = session.workload, free_axes.drawable_axes(session.file)
    pairs = list(itertools.combinations(axes, 2))
    options = [workload] if draw_exchanges(session, workload) else []
    for some in (tuple(axes), *random.SystemRandom().sample(pairs, len(pairs))):
        sizes = dict.fromkeys(some, min((workload.axes[axis] for axis in some), default=0))
        other = odd.resize(workload, f"view-{workload.name}"[:80], sizes)
        if draw_exchanges(session, other) and session.has_room(other):
            options.append(other)
    options.sort(key=lambda option: -len(draw_exchanges(session, option)))
    return options[: input_rules.VIEW_TRIES]


def _call_exchanged(session: Session) -> tuple[str, ...]:
    """Grade calls on slot 0, on its memory with axes exchanged, and on slot 0 again; all of them again after a
    near miss. Return the inputs whose axes were exchanged; empty where the reference does not hold."""
    axes = draw_exchanges(session, session.workload)
    session.exchange_axes(axes)
    session.prepare()
    for _ in range(gate_rules.DRAW_TRIES):
        try:
            session.fill_inputs(slots=1)
            turned = {name: session.drawn[0][name].transpose(*pair).contiguous() for name, pair in axes.items()}
            session.write_inputs(1, {**session.drawn[0], **turned})
            if any(session.grade_reference(slot).status is not Status.PASSED for slot in (0, 1)):
                return ()
        except (BadDefinition, ValueError):
            return ()
        grades = []
        for slot in (0, 1, 0):
            session.poison_outputs()
            grades.append(session.call_and_grade(SOLUTION, slot))
        if not any(grade.near_miss for grade in grades):
            break
    edits.require_pass(grades[0], Status.INCORRECT_NUMERICAL, "before axes of its inputs were exchanged")
    for grade in grades[1:]:
        when = f"after a call on the same memory with axes of {', '.join(axes)} exchanged"
        edits.require_pass(grade, Status.CACHED_RESULT, when)
    return tuple(axes)


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

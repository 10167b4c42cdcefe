"""Unseen shapes: what of a gain survives at shapes that the judgement drew; only a large loss decides."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence

from warpsmith.core import gate_rules
from warpsmith.core.definition import SHAPE_CLASSES, Definition, Workload, shape_class
from warpsmith.core.evaluation import BEST, UnseenShapes
from warpsmith.core.trust import Check
from warpsmith.lab.grading import free_axes, guided_shapes, kept_shapes, shapes
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import timing
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.timing import TimingBudget

_BUDGET = TimingBudget(rounds=gate_rules.UNSEEN_ROUNDS, most=gate_rules.UNSEEN_ROUNDS, seconds=0.0)


def draw_workloads(
    file: DefinitionFile, timed: Sequence[Workload], numbers: Collection[float], *, interpreted: bool, device: str
) -> tuple[list[Workload], list[Workload]]:
    """Return what a judgement checks besides the timed workloads: odd ones, and larger ones with those at the
    numbers of the version's source."""
    odd, larger = shapes.draw_judged_workloads(file, timed, interpreted=interpreted, device=device)
    odd += [] if interpreted else kept_shapes.draw_kept_workloads(file, timed, device=device)
    guided = guided_shapes.draw_guided_workloads(
        file, timed, [*odd, *larger], numbers, interpreted=interpreted, device=device
    )
    return odd, [*larger, *guided]


def choose_timed(definition: Definition, drawn: Sequence[Workload], device: str) -> list[Workload]:
    """Return a shape of each class at random, of those that are small enough to be timed quickly; none at a number
    of the source, or with sizes that are kept."""
    most, chosen = gate_rules.UNSEEN_ELEMENTS[device], []
    for kind in (kind for kind in SHAPE_CLASSES if kind not in (shapes.GUIDED, shapes.KEPT)):
        fitting = [w for w in drawn if shape_class(w.name) == kind and 0 < definition.elements(w) <= most]
        chosen += random.SystemRandom().sample(fitting, min(len(fitting), 1))
    return chosen


def summarize_unseen(
    right: Iterable[Workload], timed: Sequence[Workload], open_session: Callable[[Workload], Session] | None
) -> tuple[UnseenShapes, ...]:
    """Return the drawn shapes by class, with the speedup over the best version at the timed ones.

    Args:
        right: drawn shapes at which the version is right.
        timed: those at which it is timed.
        open_session: opens a session of the version and the best one; None without a best version.

    Raises:
        SideFailed: a side fails, or a timed output is wrong.
    """
    classes = []
    for kind in SHAPE_CLASSES:
        members = [workload for workload in right if shape_class(workload.name) == kind]
        chosen = next((w for w in timed if w in members), None) if open_session else None
        speedup = _time_speedup(open_session, chosen) if open_session and chosen else None
        if members:
            name = chosen.name if chosen else None
            classes.append(UnseenShapes(kind=kind, held=len(members), workload=name, speedup=speedup))
    return tuple(classes)


def describe_large_loss(classes: Iterable[UnseenShapes]) -> str:
    """Return a sentence about a shape at which the version is far slower than the best one; empty without one."""
    for shape in classes:
        if (speedup := shape.speedup or 1.0) < gate_rules.UNSEEN_LOSS:
            return f"{1 / speedup:.1f} times as slow as the best version at {shape.workload}, which was drawn"
    return ""


def missing_shapes(file: DefinitionFile, drawn: Sequence[Workload]) -> list[Check]:
    """Return a check that did not run where axes keep their declared sizes, or no shape was drawn; none
    otherwise."""
    fixed = "; ".join(f"`{axis}` keeps its sizes: {reason}" for axis, reason in free_axes.fixed_axes(file).items())
    reason = fixed or ("" if drawn else "no size that was drawn fits the others")
    return [Check(name="unseen shapes", ran=False, how=reason)] if reason else []


def _time_speedup(open_session: Callable[[Workload], Session], workload: Workload) -> float:
    """Return the speedup at a shape; of two looks the better one where the first shows a large loss."""
    speedup = _time_once(open_session(workload))
    return speedup if speedup >= gate_rules.UNSEEN_LOSS else max(speedup, _time_once(open_session(workload)))


def _time_once(session: Session) -> float:
    samples = Samples()
    timing.time_rounds(session, samples, _BUDGET)
    return timing.compare_times(BEST, samples.seconds[SOLUTION], samples.seconds[BEST]).speedup

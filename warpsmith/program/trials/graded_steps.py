"""Graded steps: drawn steps among the timed ones, whose values and movement are read on both sides. An edit that
computes less once it is timed shows there."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpsmith.core.trial import NumericsCheck
from warpsmith.languages.source_numbers import read_changed_numbers
from warpsmith.program.models import StepValues, TensorSummary
from warpsmith.program.trials.numerics import UNMEASURABLE_ERROR
from warpsmith.program.trials.trajectory import HORIZONS, rank_name

if TYPE_CHECKING:
    from warpsmith.program.process.runner import Runner

COUNT = 3
"""Graded steps of a pair of processes. Chosen."""

LATER_STEPS, LATER_SECONDS = 200, 10.0
"""Most steps after the timed ones until one more is graded, and most seconds for them. Chosen."""

EDIT_SECONDS = 30.0
"""Most seconds of steps, on each side, on the way to those that numbers of the edit name. Chosen."""

MOST_EDIT_NUMBERS = 32
"""Most numbers of an edit at which steps are graded; among more, they are drawn. Chosen."""

VALUE_SHARE = 0.25
"""Bound of a value, relative to the original's at the same step: after hundreds of steps, two honest runs whose
rounding differs are apart by some per cent. Chosen."""

EARLY_SHARE = 0.2
"""Share of a value's size in the first steps that the bound is relative to at least: a loss near zero is noise."""

MOVEMENT_FACTOR = 4.0
"""Factor between the norms of both sides' movements in a step, at most. Chosen: gradients differ by less."""

PARAMETER_FACTOR = 20.0
"""The same for a parameter that has at least `PARAMETER_SHARE` of the movement. Chosen."""

PARAMETER_SHARE = 0.01
"""Share of the movement from which on a parameter counts by itself. Chosen."""


@dataclass(frozen=True)
class GradedStep:
    """One step of one side."""

    values: StepValues
    """Values that it returned."""
    movement: Mapping[str, float]
    """Parameter to the norm of its displacement by the step."""

    @property
    def distance(self) -> float:
        """Norm of the displacement of all parameters."""
        return _norm(self.movement.values())


GradedPair = tuple[int, GradedStep, GradedStep]
"""Number of a step, and what the original and the edited program did in it."""


def draw_numbers(first: int, count: int) -> list[int]:
    """Draw `COUNT` different step numbers from `first` on, among `count`; all of them if there are fewer."""
    return sorted(random.SystemRandom().sample(range(first, first + count), min(COUNT, count)))


def draw_later_number(first: int, step_seconds: float) -> int:
    """Draw the number of a step from `first` on, as far as steps of this duration allow."""
    return first + random.SystemRandom().randrange(min(LATER_STEPS, 1 + int(LATER_SECONDS / step_seconds)))


def read_edit_numbers(files: Iterable[tuple[str, str]]) -> list[int]:
    """Return the numbers, beyond the steps that are all compared, that edited files hold where they changed.

    A threshold on a counter of steps is one of them, whatever the counter is called.

    Args:
        files: text of each Python file before and after the edit.
    """
    numbers = {
        math.ceil(number)
        for before, after in files
        for number in read_changed_numbers(before, after)
        if number >= HORIZONS[-1]
    }
    return sorted(random.SystemRandom().sample(sorted(numbers), min(len(numbers), MOST_EDIT_NUMBERS)))


def surrounding_steps(numbers: Iterable[int]) -> list[int]:
    """Return each number and its neighbours: a counter may begin at 0 or 1, and turn before or after a number."""
    steps = {number + offset for number in numbers for offset in (-1, 0, 1)}
    return sorted(step for step in steps if step >= HORIZONS[-1])


def describe_edit_numbers(numbers: Sequence[int], pairs: Sequence[GradedPair]) -> tuple[str, ...]:
    """Describe which numbers of the edit are those of graded steps, and which are not."""
    steps = {step for step, _, _ in pairs}
    near = [number for number in numbers if number in steps]
    far = [number for number in numbers if number not in steps]
    notes = []
    if near:
        notes.append(f"Numbers in the edit at which steps were graded: {', '.join(map(str, near))}.")
    if far:
        notes.append(
            f"Numbers in the edit that no graded step reached: {', '.join(map(str, far))}. What it does from such"
            " a step on was not seen."
        )
    return tuple(notes)


def grade_step(runner: Runner) -> GradedStep:
    """Run one step, and read the values of every rank and what it moves; raises as the runner does."""
    before = _parameters(runner)
    result = runner.run(1)
    movement = {
        name: _norm(end - start for end, start in zip(sketch, before[name], strict=True))
        for name, sketch in _parameters(runner).items()
        if len(before.get(name, ())) == len(sketch)
    }
    values = {
        rank_name(path, rank): value
        for rank, steps in enumerate((result.values, *result.others))
        for path, value in steps[0].items()
    }
    return GradedStep(values, movement)


def check_graded_steps(pairs: Sequence[GradedPair], early: Mapping[str, float]) -> list[NumericsCheck]:
    """Compare the graded steps of both sides.

    Args:
        pairs: the steps; without any there is no check.
        early: value to its largest size in the first steps of the original.
    """
    if not pairs:
        return []
    checks = [
        ("timed values", list(_value_errors(pairs, early))),
        ("timed movement", list(_movement_errors(pairs))),
    ]
    return [
        NumericsCheck(name=name, worst=min(worst, UNMEASURABLE_ERROR), bound=bound, noise=0, detail=detail)
        for name, errors in checks
        for worst, bound, detail in [max(errors, default=(0.0, 0.0, ""), key=lambda error: error[0])]
    ]  # fmt: skip


def _value_errors(pairs: Sequence[GradedPair], early: Mapping[str, float]) -> Iterator[tuple[float, float, str]]:
    for step, original, edited in pairs:
        if set(original.values) != set(edited.values):
            yield UNMEASURABLE_ERROR, VALUE_SHARE, f"step {step} returns other values than the original"
            continue
        for path, value in original.values.items():
            size, other = _size(value), _size(edited.values[path])
            detail = f"step {step}, which was timed: {path} is {other:.6g}, the original's {size:.6g}"
            scale = max(abs(size), EARLY_SHARE * early.get(path, 0.0), 1e-30)
            error = abs(other - size) / scale / VALUE_SHARE
            yield error if error == error else UNMEASURABLE_ERROR, VALUE_SHARE, detail  # NaN is no error of 0


def _movement_errors(pairs: Sequence[GradedPair]) -> Iterator[tuple[float, float, str]]:
    for step, original, edited in pairs:
        for name, factor in {"": MOVEMENT_FACTOR, **dict.fromkeys(original.movement, PARAMETER_FACTOR)}.items():
            before = original.movement[name] if name else original.distance
            after = edited.movement.get(name, 0.0) if name else edited.distance
            if name and before < PARAMETER_SHARE * original.distance:
                continue
            ratio = max(before, after) / max(min(before, after), 1e-30) if max(before, after) else 1.0
            subject = name or "the parameters"
            distances = f"by {after:.3g}, the original's by {before:.3g}"
            detail = f"step {step}, which was timed, moves {subject} {distances}"
            yield ratio / factor, factor, detail


def _parameters(runner: Runner) -> dict[str, list[float]]:
    return {
        rank_name(name, rank): sketch
        for rank, sketches in enumerate(runner.call_ranks("sketch"))
        for name, _, floating, sketch, _ in sketches["parameters"]
        if floating
    }


def _size(value: float | TensorSummary) -> float:
    """Return a number, or the norm of a tensor; NaN if it is not finite."""
    if isinstance(value, TensorSummary):
        return float("nan") if value.norm is None else value.norm
    return value


def _norm(numbers: Iterable[float]) -> float:
    return math.hypot(*numbers)

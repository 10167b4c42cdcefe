"""Paired timing of two forms of a program: each runs in its own process, timed in turns by this process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from warpsmith.core.evaluation import Comparison
from warpsmith.core.text import Tell
from warpsmith.core.trial import ORIGINAL, StepTiming
from warpsmith.errors import MachineLacks
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.scripts.command_runner import CommandEnded, open_runner
from warpsmith.program.trials import graded_steps
from warpsmith.program.trials.graded_steps import GradedPair, GradedStep

BUDGET = TimingBudget(rounds=10, most=60, seconds=12.0, width=0.005)
"""Rounds of both sides: the least and the most, the seconds after which no round begins once the least are done,
and the width of the interval at which timing stops."""

BATCH_SECONDS = 0.05
"""Duration of a batch of steps, long enough that the cost of the request is negligible."""

TURNS = 4
"""Processes per side, one after the other, if two do not fit in the memory of the device."""

_WARM_TOLERANCE = 0.05
_WARM_BATCHES = (2, 12)
_LENGTH, _BATCHES_IN_LENGTH = 8000, 8
_LEAST_BATCHES = 3


@dataclass(frozen=True)
class ProgramForm:
    """A program with the content that replaces some of its files."""

    program: Program
    """The program."""
    contents: Mapping[Path, Path] = field(default_factory=dict)
    """Maps each replaced file to the copy whose content runs instead."""
    seed: int = 0
    """Seed of its random generators."""
    timeout: float = TIMEOUT
    """Time limit of one request, in seconds."""
    log: Path | None = None
    """File that takes its output; None sends it to stderr."""

    def runner(self) -> Runner:
        """Return a new process for this form."""
        return open_runner(self.program, self.contents, seed=self.seed, timeout=self.timeout, log=self.log)

    def compared_runner(self) -> Runner:
        """Return a new process whose steps are compared: a command has compiled before its first step ends."""
        runner = self.runner()
        runner.eager_random = True
        return runner


@dataclass(frozen=True)
class PairResult:
    """Result of timing both sides in turns."""

    comparison: Comparison
    """The edited program compared with the original."""
    original: StepTiming
    """Time of the original."""
    edited: StepTiming
    """Time of the edited program."""
    together: bool = True
    """True if both were in memory at the same time."""
    graded: tuple[GradedPair, ...] = ()
    """Drawn steps among the timed ones."""


def time_pair(
    original: ProgramForm,
    edited: ProgramForm,
    budget: TimingBudget | None = None,
    tell: Tell = lambda _: None,
    numbers: Sequence[int] = (),
) -> PairResult:
    """Time both forms in fresh processes, in pairs of turns, until the interval is narrow enough.

    If the two do not fit in memory together, processes take turns instead. Steps are graded at `numbers`, which
    are in order, as far as they are soon reached.

    Raises:
        SolutionFailed, TimedOut, MachineLacks, Misuse: as `Runner`, of either side.
    """
    try:
        return _time_together(original, edited, budget or BUDGET, tell, numbers)
    except MachineLacks:
        tell("the two do not fit in memory together: their processes take turns")
        return _time_in_turns(original, edited, budget or BUDGET, tell, numbers)


def time_program(runner: Runner, budget: TimingBudget | None = None, tell: Tell = lambda _: None) -> StepTiming:
    """Time a started program that has run no step yet, by itself; raises as `time_pair`."""
    return _time_alone(_TimedProcess(runner), budget or BUDGET, tell)


def time_form(form: ProgramForm, budget: TimingBudget | None = None, tell: Tell = lambda _: None) -> StepTiming:
    """Time a form by itself in a fresh process; of a command that ends too early, with smaller batches in another.

    Raises:
        CommandEnded: the command runs too few steps even so.
        SolutionFailed, TimedOut, MachineLacks, Misuse: as `Runner`.
    """
    length = _LENGTH
    while True:
        with form.runner() as runner:
            runner.start()
            side = _TimedProcess(runner, length)
            try:
                return _time_alone(side, budget or BUDGET, tell)
            except CommandEnded:
                if len(side.seconds) >= _LEAST_BATCHES:
                    return side.timing()
                if side.ran >= length:
                    raise
                length = side.ran


def _time_alone(side: _TimedProcess, budget: TimingBudget, tell: Tell) -> StepTiming:
    _warm_up((side,), tell)
    side.batches(budget.rounds)
    return side.timing()


class _TimedProcess:
    """One process and its times."""

    def __init__(self, runner: Runner, length: int = _LENGTH) -> None:
        """Time a started program, of which about `length` steps can be run."""
        self.runner = runner
        self.seconds: list[float] = []
        """Seconds per step, batch by batch."""
        self.peak = 0
        self.graded: dict[int, GradedStep] = {}
        """Number of a step to what it did."""
        self.begin(runner, length)

    def begin(self, runner: Runner, length: int) -> None:
        """Go on in another process that has run no step yet."""
        self.runner, self.length = runner, length
        self.first = 0.0
        self.ran = 0
        self.warm = 0
        self.steps = 1
        self.numbers: list[int] = []
        """Numbers of steps that are yet to be graded, in order."""

    def batch(self, count: int) -> float:
        """Run `count` steps, and return the seconds per step; one that is to be graded comes before, untimed."""
        while self.numbers and self.numbers[0] < self.ran + count:
            self.grade(self.numbers.pop(0))
        seconds = self.runner.run(count, values=False).seconds_per_step
        self.ran += count
        return seconds

    def grade(self, number: int) -> None:
        """Run the steps before a number untimed, and grade the step with that number."""
        if number > self.ran:
            self.runner.run(number - self.ran, values=False)
        self.graded[number] = graded_steps.grade_step(self.runner)
        self.ran = number + 1

    def batches(self, count: int) -> None:
        """Time `count` batches."""
        for _ in range(count):
            self.seconds.append(self.batch(self.steps))
        self.peak = max(self.peak, *map(int, self.runner.call_ranks("reserved_memory")))

    def timing(self) -> StepTiming:
        """Return the timing record of this process."""
        return _step_timing(self.seconds, self.steps, self.first, self.warm, self.peak)


def _time_together(
    original: ProgramForm, edited: ProgramForm, budget: TimingBudget, tell: Tell, numbers: Sequence[int]
) -> PairResult:
    sides: list[_TimedProcess] = []
    begin, rounds, length = time.monotonic(), 0, _LENGTH
    while True:
        with ExitStack() as stack:
            runners = [stack.enter_context(form.runner()) for form in (original, edited)]
            for runner in runners:
                runner.start()
            if sides:
                for side, runner in zip(sides, runners, strict=True):
                    side.begin(runner, length)
            else:
                sides = [_TimedProcess(runner) for runner in runners]
            for side in sides:
                side.numbers = list(numbers)
            try:
                _time_rounds(sides, budget, begin, tell)
            except CommandEnded:
                rounds, before = _drop_unpaired(sides), rounds
                ran = min(side.ran for side in sides)
                if rounds == before and ran >= length:
                    raise
                length = min(length, ran)
                if rounds < budget.rounds:
                    tell("the command ended: timing goes on in fresh processes; with more steps it is quicker")
                    continue
            return PairResult(
                _compare_times(sides[1].seconds, sides[0].seconds), sides[0].timing(), sides[1].timing(),
                graded=_pair_steps(sides[0].graded, sides[1].graded),
            )  # fmt: skip


def _time_rounds(sides: list[_TimedProcess], budget: TimingBudget, begin: float, tell: Tell) -> None:
    """Warm both processes up, and time rounds until there are enough; a later step is graded too."""
    _warm_up(sides, tell)
    tell("timing both in turns")
    first = rounds = len(sides[0].seconds)
    while rounds < budget.rounds or not _is_done(sides, budget, rounds, time.monotonic() - begin):
        if (rounds - first) % budget.rounds == 0:
            numbers = graded_steps.draw_numbers(sides[0].ran, budget.rounds * sides[0].steps)
            for side in sides:
                side.numbers = sorted({*side.numbers, *numbers})
        for side in sides if rounds % 2 else reversed(sides):  # the order may matter
            side.batches(1)
        rounds += 1
    step_seconds = max(statistics.median(side.seconds) for side in sides)
    number = graded_steps.draw_later_number(sides[0].ran, step_seconds)
    tell("grading later steps")
    _grade_later(sides, {*sides[0].numbers, number}, step_seconds)


def _grade_later(sides: Sequence[_TimedProcess], numbers: Iterable[int], step_seconds: float) -> None:
    """Grade steps after the timed ones, as far as steps of this duration reach them in `EDIT_SECONDS`.

    Both sides grade one before the next: a command may end.
    """
    last = sides[0].ran + graded_steps.EDIT_SECONDS / step_seconds
    for number in sorted(numbers):
        if number <= last:
            for side in sides:
                side.grade(number)


def _drop_unpaired(sides: Sequence[_TimedProcess]) -> int:
    """Drop a batch that only one side ran, and return the number of rounds."""
    rounds = min(len(side.seconds) for side in sides)
    for side in sides:
        del side.seconds[rounds:]
    return rounds


def _pair_steps(original: Mapping[int, GradedStep], edited: Mapping[int, GradedStep]) -> tuple[GradedPair, ...]:
    return tuple((number, step, edited[number]) for number, step in original.items() if number in edited)


def _time_in_turns(
    original: ProgramForm, edited: ProgramForm, budget: TimingBudget, tell: Tell, edit_numbers: Sequence[int]
) -> PairResult:
    """Time processes that follow each other, two per pair."""
    medians: dict[str, list[float]] = {ORIGINAL: [], "edited": []}
    timings: dict[str, StepTiming] = {}
    graded: dict[str, dict[int, GradedStep]] = {ORIGINAL: {}, "edited": {}}
    numbers: list[int] = []
    forms = {ORIGINAL: original, "edited": edited}
    for turn in range(TURNS):
        for name in forms if turn % 2 else reversed(forms):
            tell(f"{name}, process {turn + 1} of {TURNS}")
            with forms[name].runner() as runner:
                runner.start()
                side = _TimedProcess(runner)
                is_last = turn == TURNS - 1
                side.numbers = sorted({*numbers, *edit_numbers}) if is_last else list(numbers)
                timings[name] = _time_alone(side, budget, tell)
                if is_last:
                    _grade_later((side,), side.numbers, timings[name].seconds)
            graded[name] |= side.graded
            if not numbers:  # the later processes pass about as many steps as the first
                timing_of_first = timings[name]
                timed = timing_of_first.batches * timing_of_first.steps
                numbers = graded_steps.draw_numbers(timing_of_first.warm_up, timed)
            medians[name].append(timings[name].seconds)
    return PairResult(
        _compare_times(medians["edited"], medians[ORIGINAL]), timings[ORIGINAL], timings["edited"], together=False,
        graded=_pair_steps(graded[ORIGINAL], graded["edited"]),
    )  # fmt: skip


def _warm_up(sides: tuple[_TimedProcess, ...] | list[_TimedProcess], tell: Tell) -> None:
    """Run steps until no side gets faster; both run the same number, so that their states stay alike."""
    tell("first step")
    for side in sides:
        side.first = side.batch(1)
    step_seconds = max(min(side.batch(1) for _ in range(2)) for side in sides)
    steps = max(1, min(ceil(BATCH_SECONDS / step_seconds), *(side.length // _BATCHES_IN_LENGTH for side in sides)))
    tell("warming up")
    least, most = _WARM_BATCHES
    fastest = [side.batch(steps) for side in sides]
    for batch in range(1, most):
        latest = [side.batch(steps) for side in sides]
        is_warm = all(new > (1 - _WARM_TOLERANCE) * old for new, old in zip(latest, fastest, strict=True))
        fastest = [min(pair) for pair in zip(latest, fastest, strict=True)]
        if is_warm and batch >= least:
            break
    for side in sides:
        side.steps, side.warm = steps, side.ran


def _is_done(sides: list[_TimedProcess], budget: TimingBudget, rounds: int, seconds: float) -> bool:
    if rounds >= budget.most or seconds >= budget.seconds:
        return True
    return statistics.interval_half_width(sides[1].seconds, sides[0].seconds) <= budget.width


def _compare_times(edited: list[float], original: list[float]) -> Comparison:
    return timing.compare_times(ORIGINAL, edited, original)


def _step_timing(seconds: list[float], steps: int, first: float, warm: int, peak: int) -> StepTiming:
    return StepTiming(
        seconds=statistics.median(seconds),
        spread=statistics.spread(seconds),
        batches=len(seconds),
        steps=steps,
        first_seconds=first,
        warm_up=warm,
        peak_bytes=peak or None,
    )

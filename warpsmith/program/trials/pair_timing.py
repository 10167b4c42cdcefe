"""Pair: two forms of one program, each in a process of its own, timed in turns by this process's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from warpsmith.core.evaluation import Comparison
from warpsmith.core.trial import ORIGINAL, StepTiming
from warpsmith.errors import MachineLacks
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.process.step import Program

BUDGET = TimingBudget(rounds=10, most=60, seconds=12.0, width=0.005)
"""Rounds of both sides: at least, at most, seconds for those above the least, and the width that ends it."""

BATCH_SECONDS = 0.05
"""A batch is as many steps as take this long, so that handing over costs nothing beside it."""

TURNS = 4
"""Processes of each side, one after the other, where two do not fit in the device's memory."""

_WARM_TOLERANCE = 0.05
_WARM_BATCHES = (2, 12)
_MOST_STEPS = 1000


@dataclass(frozen=True)
class ProgramForm:
    """One form of a program: what is run in place of some of its files."""

    program: Program
    """The program."""
    contents: Mapping[Path, Path] = field(default_factory=dict)
    """Files, and the copies whose content is run in their place."""
    seed: int = 0
    """Of its draws."""
    timeout: float = TIMEOUT
    """Seconds that a request may take."""
    log: Path | None = None
    """Where its output goes."""

    def runner(self) -> Runner:
        """A new process for it."""
        return Runner(self.program, self.contents, seed=self.seed, timeout=self.timeout, log=self.log)


@dataclass(frozen=True)
class PairResult:
    """What timing both sides in turns gave."""

    comparison: Comparison
    """The edited program against the original."""
    original: StepTiming
    """The original."""
    edited: StepTiming
    """The edited program."""
    together: bool = True
    """Whether both were in memory at a time."""


def time_pair(
    original: ProgramForm,
    edited: ProgramForm,
    budget: TimingBudget | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> PairResult:
    """Time both in fresh processes, in turns within pairs, until the interval is narrow enough.

    Where the two do not fit in memory together, processes take turns instead.

    Raises:
        SolutionFailed, TimedOut, MachineLacks, Misuse: as `Runner`, of either side.
    """
    try:
        return _time_together(original, edited, budget or BUDGET, tell)
    except MachineLacks:
        tell("both do not fit in memory together: they take turns")
        return _time_in_turns(original, edited, budget or BUDGET, tell)


def time_program(
    runner: Runner, budget: TimingBudget | None = None, tell: Callable[[str], None] = lambda _: None
) -> StepTiming:
    """Time one program by itself, that was started and ran no step yet; raises as `compare`."""
    side = _TimedProcess(runner)
    _warm_up((side,), tell)
    side.batches((budget or BUDGET).rounds)
    return side.timing()


class _TimedProcess:
    """One process and its times."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.first = 0.0
        self.ran = 0
        self.warm = 0
        self.steps = 1
        self.seconds: list[float] = []
        """A step's, batch by batch."""
        self.peak = 0

    def batch(self, count: int) -> float:
        """Run steps; seconds a step."""
        each = self.runner.run(count, values=False).each
        self.ran += count
        return each

    def batches(self, count: int) -> None:
        """Time that many batches."""
        for _ in range(count):
            self.seconds.append(self.batch(self.steps))
        self.peak = max(self.peak, int(self.runner.call("held")))

    def timing(self) -> StepTiming:
        """The record of it."""
        return _step_timing(self.seconds, self.steps, self.first, self.warm, self.peak)


def _time_together(
    original: ProgramForm, edited: ProgramForm, budget: TimingBudget, tell: Callable[[str], None]
) -> PairResult:
    with ExitStack() as stack:
        runners = [stack.enter_context(form.runner()) for form in (original, edited)]
        for runner in runners:
            runner.start()
        sides = [_TimedProcess(runner) for runner in runners]
        _warm_up(sides, tell)
        tell("timing both in turns")
        begin, rounds = time.monotonic(), 0
        while rounds < budget.rounds or not _is_done(sides, budget, rounds, time.monotonic() - begin):
            for side in sides if rounds % 2 else reversed(sides):  # who goes first may matter
                side.batches(1)
            rounds += 1
        return PairResult(_compare_times(sides[1].seconds, sides[0].seconds), sides[0].timing(), sides[1].timing())


def _time_in_turns(
    original: ProgramForm, edited: ProgramForm, budget: TimingBudget, tell: Callable[[str], None]
) -> PairResult:
    """Both by processes that follow each other; a pair is two of them."""
    medians: dict[str, list[float]] = {ORIGINAL: [], "edited": []}
    last: dict[str, StepTiming] = {}
    forms = {ORIGINAL: original, "edited": edited}
    for turn in range(TURNS):
        for name in forms if turn % 2 else reversed(forms):
            tell(f"{name}, process {turn + 1} of {TURNS}")
            with forms[name].runner() as runner:
                runner.start()
                last[name] = time_program(runner, budget, tell)
            medians[name].append(last[name].seconds)
    return PairResult(
        _compare_times(medians["edited"], medians[ORIGINAL]), last[ORIGINAL], last["edited"], together=False
    )  # fmt: skip


def _warm_up(sides: tuple[_TimedProcess, ...] | list[_TimedProcess], tell: Callable[[str], None]) -> None:
    """Run steps until no side gets faster; the same number of each, so that their states stay alike."""
    tell("first step")
    for side in sides:
        side.first = side.batch(1)
    near = max(min(side.batch(1) for _ in range(2)) for side in sides)
    steps = min(max(ceil(BATCH_SECONDS / near), 1), _MOST_STEPS)
    tell("warming up")
    least, most = _WARM_BATCHES
    before = [side.batch(steps) for side in sides]
    for done in range(1, most):
        now = [side.batch(steps) for side in sides]
        calm = all(one > (1 - _WARM_TOLERANCE) * other for one, other in zip(now, before, strict=True))
        before = [min(pair) for pair in zip(now, before, strict=True)]
        if calm and done >= least:
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

"""Session with scripted times, and a function that times it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import torch

from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.lab.grading.correctness import Grade, Truth
from warpsmith.lab.timing import timing
from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import JUDGED, SOLUTION, CallTime
from warpsmith.lab.timing.timing import TimingBudget


@dataclass
class ScriptedSession:
    """Session with scripted times of its sides."""

    seconds: dict[str, float]
    unseen: dict[str, float] = field(default_factory=dict)
    alone_seconds: float = 1e-4
    device: str = "cuda"
    slots: int = 16
    jitter: float = 0.01
    wrong_at: int = -1
    cold = True
    graphs: bool = True
    hidden: float = 0.0
    """Seconds per replay that only the grader's clock sees."""
    hand_over: float = 0.0
    """Seconds of an empty message."""
    short: tuple[str, ...] = ()
    """Sides whose blocks call only some of the slots."""
    failures: dict[str, str] = field(default_factory=dict)
    single_calls: list[float] = field(default_factory=list)
    """Seconds of the first single calls; the others take `alone_seconds`."""
    drawn: list[dict[str, torch.Tensor]] = field(default_factory=lambda: [{"x": torch.zeros(4)}])
    calls = 0

    def __post_init__(self) -> None:
        self._wobble = itertools.cycle((1 - self.jitter, 1.0, 1 + self.jitter))

    @property
    def sides(self) -> dict[str, object]:
        return dict.fromkeys(self.seconds)

    def capture_graphs(self) -> dict[str, str]:
        return self.failures

    def fill_inputs(self, *, quick: bool = False) -> None:
        assert quick

    def shuffled_sides(self) -> list[str]:
        return list(self.seconds)

    def time_block(self, name: str, *, fetch: bool = False, times: int = 1) -> TimedBlock:
        assert fetch is False or name in (*JUDGED, REFERENCE)
        hidden = self.hidden * times if name == SOLUTION else 0.0
        unseen = self.unseen.get(name, 1e-4) * next(self._wobble)
        return TimedBlock(self.seconds[name] * next(self._wobble), unseen + hidden)

    def time_hand_over(self, name: str) -> CallTime:
        assert name == REFERENCE
        return CallTime(self.hand_over)

    def times_every_slot(self, name: str) -> bool:
        return name not in self.short

    def pick_slot(self) -> int:
        return 0

    def chance(self, share: float) -> bool:
        return True

    def truth(self, slot: int) -> Truth:
        return Truth({}, {}, {}, {})

    def grade_last_call(self, name: str, slot: int, truth: Truth) -> Grade:
        assert name not in self.short, "a slot that it did not call has no result"
        self.calls += 1
        wrong = self.calls == self.wrong_at
        return Grade(
            Status.INCORRECT_NUMERICAL if wrong else Status.PASSED, 0.1, 0.0, detail="off" if wrong else ""
        )

    def time_random_slot(self, name: str) -> float:
        return self.single_calls.pop(0) if self.single_calls else self.alone_seconds


BUDGET = TimingBudget(rounds=8, most=30, seconds=5)


def time_session(session: ScriptedSession, budget: TimingBudget = BUDGET, gauge: object = None) -> Samples:
    samples = Samples()
    timing.time_rounds(session, samples, budget, gauge)  # type: ignore[arg-type]
    return samples

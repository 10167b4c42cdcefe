"""Repeated calls: a call on the inputs of the call before it must not save time."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from warpsmith.core import gate_rules
from warpsmith.lab.timing.session import SOLUTION, CallTime, Session

InputNames = tuple[str, ...]
"""Names of inputs."""


@dataclass
class RepeatTimes:
    """Times of calls on fresh inputs, of calls on repeated ones, and of empty messages.

    By the grader's clock the minimum of each series counts, because load only adds time. The minimum hand-over is
    subtracted, not the adjacent one: load may have stretched that one, and a call would then seem to take nothing.

    If load stretched every repeated call, a kept result would look computed. So the time that the process had a
    core for counts too, even where a call mostly waits: else a candidate would keep results and sleep. That time
    knows no least value: a call is done in half of it while nothing else shares its core's units and caches, and
    one such call would decide a minimum. So each repeated call is compared with the fresh one next to it. Where
    nothing is kept, such a share is as often too large as too small. So the geometric mean of the lower quartile
    and the upper one counts: a result that is kept in a third of the calls makes it small, but no median. The
    upper one counts up to 1, else a candidate would waste time in some of the repeated calls.
    """

    fresh: list[CallTime] = field(default_factory=list)
    """Calls on fresh inputs, including the hand-over."""
    repeated: list[CallTime] = field(default_factory=list)
    """Calls on inputs of the call before, including the hand-over."""
    hand_overs: list[CallTime] = field(default_factory=list)
    """Empty messages."""

    @property
    def share(self) -> float:
        """Time of a repeated call over that of a fresh one, by the clock that shows the larger difference."""
        fresh, repeated, hand_over = (
            min(time.seconds for time in times) for times in (self.fresh, self.repeated, self.hand_overs)
        )
        return min(_share(fresh, repeated, hand_over), self._busy_share())

    def _busy_share(self) -> float:
        """Return the share of the time that the process had a core for; infinity if that was too short."""
        fresh, repeated, hand_overs = (
            [time.busy or 0.0 for time in times] for times in (self.fresh, self.repeated, self.hand_overs)
        )
        hand_over = statistics.median(hand_overs)
        if statistics.median(fresh) - hand_over < gate_rules.BUSY_CLOCK_SECONDS:
            return float("inf")
        shares = sorted(_share(*pair, hand_over) for pair in zip(fresh, repeated, strict=True))
        quarter = (len(shares) - 1) // 4
        return math.sqrt(shares[quarter] * min(shares[-1 - quarter], 1.0))

    def conclusive(self, looks: int) -> bool:
        """Return True if this number of looks is enough."""
        least, some, most = gate_rules.REPEAT_LOOKS
        if looks < some:
            return looks >= least and self.share >= gate_rules.COMPUTED_SHARE
        return looks >= most or self.share >= gate_rules.KEPT_SHARE


def _share(fresh: float, repeated: float, hand_over: float) -> float:
    return max(repeated - hand_over, 0.0) / max(fresh - hand_over, gate_rules.REPEAT_CLOCK_TICK)


def repeat_time_share(session: Session, same: InputNames, unchanged: InputNames = ()) -> float:
    """Return the time of a repeated call over that of a fresh one.

    Args:
        session: session of the solution.
        same: inputs that a repeated call has in common with the call before it.
        unchanged: inputs that a fresh call has in common with the call before it. Work on weights may be kept, and
            is no part of what a kept result saves.
    """
    times = RepeatTimes()
    for looks in range(gate_rules.REPEAT_LOOKS[-1]):
        if times.conclusive(looks):
            break
        for _ in range(gate_rules.REPEAT_PAIRS):
            _time_pair(session, times, same, unchanged)
    return times.share


def _time_pair(session: Session, times: RepeatTimes, same: InputNames, unchanged: InputNames) -> None:
    session.fill_inputs(quick=True)
    for series, common in ((times.fresh, unchanged), (times.repeated, same)):
        if common:
            session.call_side(SOLUTION)
            shared = {name: session.drawn[0][name] for name in common}
            session.write_inputs(0, {**session.inputs.draw(quick=True), **shared})
        series.append(session.time_one_call_cold(SOLUTION))
        times.hand_overs.append(session.time_hand_over(SOLUTION))

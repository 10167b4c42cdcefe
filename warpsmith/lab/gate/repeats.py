"""Repeats: whether a call on what the call before had saves time."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpsmith.lab.timing.session import SOLUTION, Session, Took

LOOKS = (2, 5, 20)
"""Looks that are taken at least; at most, from KEPT on; and before a result is held for kept. Under load few calls
are undisturbed, and of a few looks those on fresh inputs may all have been disturbed."""

COMPUTED = 0.8
"""From this share on the least looks are enough."""

KEPT = 0.5
"""A call on inputs that the last call had, in less than this share of a fresh call's time, was not computed."""

_PAIRS = 3
"""Calls of either kind in one look."""
_CLOCK_TICK = 1e-6
_TOLD_SECONDS = 2e-4
"""A call that keeps a core for less is told by the grader's clock alone: a hand-over has one for up to 0.1 ms."""

Names = tuple[str, ...]
"""Of inputs."""


@dataclass
class Repeats:
    """Times of calls on fresh inputs and on repeated ones.

    The quickest of each count, since load makes none quicker; so does the quickest hand-over: less the one beside
    it, which load may have stretched, a call would seem to take nothing. Where every repeated call was stretched a
    kept result would look computed: so the time that the process had a core for counts too.
    """

    fresh: list[Took] = field(default_factory=list)
    """Hand-over included."""
    repeated: list[Took] = field(default_factory=list)
    """The same on what the call before had."""
    hand_overs: list[Took] = field(default_factory=list)
    """Asking for nothing."""

    @property
    def share(self) -> float:
        """Time of a repeated call over that of a fresh one, by the clock that tells the larger difference."""
        kinds = (self.fresh, self.repeated, self.hand_overs)
        seconds = [min(took.seconds for took in kind) for kind in kinds]
        busy = [min(took.busy or 0.0 for took in kind) for kind in kinds]
        told = busy[0] - busy[2] >= _TOLD_SECONDS
        return min(_share(*seconds), _share(*busy)) if told else _share(*seconds)

    def settled(self, looks: int) -> bool:
        """Whether so many looks say enough."""
        least, some, most = LOOKS
        if looks < some:
            return looks >= least and self.share >= COMPUTED
        return looks >= most or self.share >= KEPT


def _share(fresh: float, repeated: float, beside: float) -> float:
    return max(repeated - beside, 0.0) / max(fresh - beside, _CLOCK_TICK)


def share(one: Session, same: Names, known: Names = ()) -> float:
    """Time of a call that has the `same` inputs in common with the call before, over that of a call that has only
    the `known` ones: work on weights may be kept, and is no part of what a kept result saves."""
    found = Repeats()
    for look in range(LOOKS[-1]):
        if found.settled(look):
            break
        for _ in range(_PAIRS):
            _pair(one, found, same, known)
    return found.share


def _pair(one: Session, found: Repeats, same: Names, known: Names) -> None:
    one.fill(quick=True)
    for times, common in ((found.fresh, known), (found.repeated, same)):
        if common:
            one.call(SOLUTION)
            one.write(0, {**one.inputs.draw(quick=True), **{name: one.drawn[0][name] for name in common}})
        times.append(one.single(SOLUTION))
        found.hand_overs.append(one.hand_over(SOLUTION))

"""Other callers: graded calls from threads, and on memory, that a version's other calls on a CPU do not meet."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers import process
from warpsmith.lab.workers.calls.page_memory import PLACEMENTS
from warpsmith.lab.workers.side import Side, SideFailed


class Caller(NamedTuple):
    """A thread that makes a call, or the memory that its inputs lie in."""

    description: str
    """Phrase for messages."""
    settings: dict[str, float | str]
    """Arguments of `Worker.call_as`."""


_STACK: Final = Caller(
    f"from a thread with {gate_rules.CALLER_STACK >> 10} KiB of stack", {"stack": gate_rules.CALLER_STACK}
)
_REGIONS: Final = tuple(
    Caller(
        f"inside a parallel region of its caller, from thread {number} of {gate_rules.CALLER_REGION}",
        {"region": gate_rules.CALLER_REGION, "number": number},
    )
    for number in range(gate_rules.CALLER_REGION)
)
_SIGNALS: Final = Caller(
    f"with a timer's signal each {gate_rules.CALLER_SIGNALS * 1e6:.0f} us", {"interval": gate_rules.CALLER_SIGNALS}
)
_MODES: Final = Caller("with subnormal numbers flushed to zero", {"flush": 1})
_TEAMS: Final = (
    *(Caller(f"with {team} OpenMP threads", {"team": team}) for team in gate_rules.CALLER_TEAMS),
    Caller(
        f"with {gate_rules.CALLER_TEAMS[-1]} OpenMP threads, of which the library may give fewer",
        {"team": gate_rules.CALLER_TEAMS[-1], "dynamic": 1},
    ),
    Caller(
        "with {} OpenMP threads on each of {} levels".format(*gate_rules.CALLER_LEVELS),
        dict(zip(("team", "levels"), gate_rules.CALLER_LEVELS, strict=True)),
    ),
    Caller(
        "with {} OpenMP threads, of which {} may run".format(*gate_rules.CALLER_LIMIT),
        dict(zip(("team", "limit"), gate_rules.CALLER_LIMIT, strict=True)),
    ),
)
_PAGES: Final = tuple(
    Caller(f"on inputs that are read only and {phrase}", {"placement": placement})
    for placement, phrase in PLACEMENTS.items()
)

_ALIGNED: Final = {"placement": "inside"}
"""Settings of a call whose inputs lie at another address, which is as aligned as that of the call before it."""


class OtherCallers:
    """Calls of one version by other callers so far: at each size three of them, in turns."""

    def __init__(self, file: DefinitionFile, side: Side) -> None:
        """Draw the order of the callers.

        Args:
            file: the definition.
            side: the version's process.
        """
        self._file, self._side = file, side
        self._threads, self._teams, self._pages = (
            _draw_turns(callers) for callers in ((_STACK, _SIGNALS, _MODES, *_REGIONS), _TEAMS, _PAGES)
        )
        self._calls: Counter[str] = Counter()

    def check(self, session: Session) -> None:
        """Grade calls on what slot 0 holds.

        Raises:
            SideFailed: the version is wrong there, or ends.
        """
        self.check_pages(session)
        seconds = self._call(session, next(self._threads))
        if seconds <= gate_rules.CALLER_SECONDS:
            team = next(self._teams)
            self._call(session, team)
            if self._file.definition.deterministic:
                self._call_again(session, team)

    def check_pages(self, session: Session) -> None:
        """Grade a call on what slot 0 holds, with its inputs in pages of their own, in the layout that they have.

        Raises:
            SideFailed: the version is wrong there, or ends.
        """
        if sum(tensor.nbytes for tensor in session.drawn[0].values()) > gate_rules.PAGES_BYTES:
            return
        caller = next(self._pages)
        same_bits = self._file.definition.deterministic and caller.settings == _ALIGNED
        self._call_again(session, caller) if same_bits else self._call(session, caller)

    def describe(self) -> list[Check]:
        """Return a check that names the callers."""
        calls = ", ".join(f"{count} {caller}" for caller, count in self._calls.items())
        return [Check(name="other callers", ran=True, how=f"graded calls: {calls}")] if calls else []

    def _call(self, session: Session, caller: Caller) -> float:
        """Grade a call, and return its seconds of cores, which the load of others does not lengthen."""
        session.poison_outputs()
        before = process.core_seconds(self._side.pid)
        try:
            session.call_side(SOLUTION, fresh="poison", deliver=True, caller=caller.settings)
            seconds = process.core_seconds(self._side.pid) - before
            grade = session.grade_last_call(SOLUTION, 0, session.truth(0))
        except SideFailed as failure:
            raise SideFailed(failure.status, f"{caller.description}: {failure.message}") from failure
        if grade.status is not Status.PASSED and not grade.near_miss:
            raise SideFailed(grade.status, f"{grade.detail} ({caller.description})")
        self._calls[caller.description] += 1
        return seconds

    def _call_again(self, session: Session, caller: Caller) -> None:
        """Grade a call, and compare it with the one before it, bit by bit."""
        first = {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}
        self._call(session, caller)
        second = session.fetch_outputs(SOLUTION, 0)
        _, failure = correctness.compare_calls(first, second, session.truth(0), deterministic=True)
        if failure:
            raise SideFailed(Status.NOT_REPRODUCIBLE, f"{failure} ({caller.description})")


def _draw_turns(callers: tuple[Caller, ...]) -> Iterator[Caller]:
    return itertools.cycle(random.SystemRandom().sample(callers, len(callers)))

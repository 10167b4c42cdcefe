"""Calls that are made while their inputs are still being written: a solution must wait for the work ahead of
it."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.calls import late_inputs

LATE_CALLS = "inputs that arrive late"
"""Name of the check in records."""


class LateCalls:
    """The late calls of one judgement, and their entry in the record."""

    def __init__(self, device: str) -> None:
        """Take `cpu`, where no kernel can start early, or `cuda`."""
        self._on_gpu = device != "cpu"
        self._possible = self._on_gpu and late_inputs.kernels_can_start_early()
        self._workloads = 0
        self._uncaptured: list[str] = []

    def calls(self, session: Session) -> Iterator[tuple[Grade, str]]:
        """Make two late calls, one launched plainly and one from a CUDA graph; yield each grade with a
        description.

        The session's slots are filled: the solution has seen the inputs of slot 0, and nobody has seen those of
        slot 1. The latter are copied over the former late, so a result from the former was computed too early.

        Raises:
            SideFailed: the solution fails.
            MachineFailed: the kernel that copies cannot be launched.
        """
        if not self._possible:
            return
        earlier = session.drawn[0]
        for captured in (False, True):
            session.write_inputs(0, earlier)
            if reason := session.call_with_late_inputs(SOLUTION, captured=captured):
                self._uncaptured.append(reason)
                continue
            yield _grade_late_call(session, "from a CUDA graph" if captured else "on a stream")
        self._workloads += 1

    @property
    def checks(self) -> tuple[Check, ...]:
        """Entry in the record; empty without a GPU."""
        if not self._on_gpu:
            return ()
        if not self._possible:
            text = "no kernel starts before the one ahead has ended at compute capability {}.{}"
            return (Check(name=LATE_CALLS, ran=True, how=text.format(*late_inputs.compute_capability())),)
        if not self._workloads:
            return (Check(name=LATE_CALLS, ran=False, how="no workload was checked"),)
        text = f"at {self._workloads} workloads, from a CUDA graph too"
        if self._uncaptured:
            text += f" but for {len(self._uncaptured)}: {self._uncaptured[0]}"
        return (Check(name=LATE_CALLS, ran=True, how=text),)


def _grade_late_call(session: Session, launch: str) -> tuple[Grade, str]:
    """Grade a late call; if the same inputs give a wrong result in a plain call too, return that grade instead."""
    late = session.grade_last_call(SOLUTION, 0, session.truth(0))
    if late.status is not Status.PASSED:
        plain = session.call_and_grade(SOLUTION)
        if plain.status is not Status.PASSED:
            return plain, "normal inputs"
    requirement = (
        "its inputs were still being written; a kernel must be on the caller's stream, and one that starts early "
        "must wait: griddepcontrol.wait"
    )
    return late, f"called {launch} while {requirement}"

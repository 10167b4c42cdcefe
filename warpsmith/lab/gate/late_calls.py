"""Calls that are made while their inputs are still being written: does a solution wait for what is ahead of it?"""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers import late_inputs

NAME = "inputs that arrive late"
"""What records call it."""


class LateCalls:
    """Those of one exam, and what its record says of them."""

    def __init__(self, device: str) -> None:
        """`device` is `cpu`, where no kernel can start early, or `cuda`."""
        self._on_gpu = device != "cpu"
        self._possible = self._on_gpu and late_inputs.possible()
        self._made = 0
        self._uncaptured: list[str] = []

    def calls(self, one: Session) -> Iterator[tuple[Grade, str]]:
        """Two calls, launched by themselves and from a CUDA graph, and how each was made.

        The session's slots hold inputs by then: the first one's have been seen, the second one's nobody has. These
        are copied over the first ones late: what is computed from those was read too early.

        Raises:
            Failed: the solution fails.
            MachineFailed: the kernel that copies cannot be launched.
        """
        if not self._possible:
            return
        seen = one.drawn[0]
        for captured in (False, True):
            one.write(0, seen)
            if why := one.late(SOLUTION, captured=captured):
                self._uncaptured.append(why)
                continue
            yield _graded(one, "from a CUDA graph" if captured else "on a stream")
        self._made += 1

    @property
    def checks(self) -> tuple[Check, ...]:
        """What the record says; nothing where there is no GPU."""
        if not self._on_gpu:
            return ()
        if not self._possible:
            how = "no kernel starts before the one ahead has ended at compute capability {}.{}"
            return (Check(name=NAME, ran=True, how=how.format(*late_inputs.capability())),)
        if not self._made:
            return (Check(name=NAME, ran=False, how="no workload was checked"),)
        how = f"at {self._made} workloads, from a CUDA graph too"
        if self._uncaptured:
            how += f" but for {len(self._uncaptured)}: {self._uncaptured[0]}"
        return (Check(name=NAME, ran=True, how=how),)


def _graded(one: Session, where: str) -> tuple[Grade, str]:
    """The grade of a late call; where the same inputs give as wrong a result once they are there, of that."""
    late = one.graded(SOLUTION, 0, one.truth(0))
    if late.status is not Status.PASSED:
        plain = one.check(SOLUTION)
        if plain.status is not Status.PASSED:
            return plain, "normal inputs"
    how = (
        "its inputs were still being written; a kernel must be on the caller's stream, and one that starts early "
        "must wait: griddepcontrol.wait"
    )
    return late, f"called {where} while {how}"

"""Heat: one workload of a race, a session whose peers may do what their users let them do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.lab.grading import correctness, near
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator import peers
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.session import SOLUTION, Arenas, Block, Session
from warpsmith.lab.workers.fresh_memory import Fresh
from warpsmith.lab.workers.side import Failed, Side

if TYPE_CHECKING:
    import torch


class Heat(Session):
    """A session that renews what peers consume, and compares what they return by its canonical form."""

    def __init__(
        self,
        file: DefinitionFile,
        workload: Workload,
        arenas: Arenas,
        sides: dict[str, Side],
        seed: int,
        device: str,
        *,
        count: int | None = None,
    ) -> None:
        """Prepare the sides for a workload; as for a `Session`."""
        self._peers = {name: peers.of(file, name) for name in sides}
        self._consumed: set[tuple[int, str]] = set()
        """Slots and inputs that were written over."""
        self._fetched: dict[str, torch.Tensor] = {}
        super().__init__(file, workload, arenas, sides, seed, device, count=count)

    def fill(self, distribution: str | None = None, *, quick: bool = False) -> None:
        """Draw new inputs for every slot, and poison where the outputs will be."""
        super().fill(distribution, quick=quick)
        self._consumed.clear()

    def call(self, name: str, slot: int = 0, *, fresh: Fresh = "", keep: bool = False) -> float:
        """One call of a side; the grader's seconds around it, the hand-over included."""
        self._renew_for(name, [slot])
        return super().call(name, slot, fresh=fresh, keep=keep)

    def timed(self, name: str, *, fetch: bool = False, times: int = 1) -> Block:
        """Time one block of a side."""
        self._renew_for(name, range(self.slots))  # here already: on the CPU the caches are flushed next
        return super().timed(name, fetch=fetch, times=times)

    def capture(self) -> dict[str, str]:
        """Have every side record its block in a CUDA graph; by side why it cannot, empty where all can."""
        failures = super().capture()
        for name in self.sides:  # they were called to warm up
            self._consume(name, range(self.slots))
        return failures

    def repeated(self, name: str, times: int, meanwhile: Callable[[], None]) -> None:
        """Replay a side's captured block over and over, with `meanwhile` called beside it: on the same inputs, or
        on what the side makes of those that it consumes."""
        self._renew_for(name, range(self.slots))
        super().repeated(name, times, meanwhile)

    def launched(self, name: str, more: Callable[[], bool]) -> None:
        """Blocks of a side, launched call by call, one after the other for as long as `more()`.

        The next block is asked for before the last has ended, so that the device hardly waits between two.
        """
        self._renew_for(name, range(self.slots))
        side, block = self.sides[name], {"do": "block", "graph": False, "slots": list(range(self.slots))}
        side.resume()
        try:
            side.tell(block)
            while more():
                side.tell(block)
                side.answer("block")
            side.answer("block")
        finally:
            side.pause()

    def outputs(self, name: str, slot: int) -> dict[str, torch.Tensor]:
        """A slot's results in canonical form; afterwards its consumed inputs are as they were drawn."""
        found = super().outputs(name, slot)
        self._renew(slot)
        self._fetched = self._canonical(name, slot, found)
        return self._fetched

    def judged(self, name: str, slot: int) -> tuple[Grade, bool]:
        """The grade of a side's last call on a slot, and whether one that did not pass is near.

        Raises:
            Failed: wrong type, shape, strides or dtype; inputs changed; a guard band written.
        """
        truth = self.truth(slot)
        grade = self.graded(name, slot, truth)
        if grade.status is Status.PASSED or name in (SOLUTION, REFERENCE):
            return grade, False
        wide = near.widened(self.file, self.workload, self.drawn[slot], truth)
        return grade, correctness.grade(wide, self._fetched).status is Status.PASSED

    def _canonical(self, name: str, slot: int, found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        canonical = self._peers[name].canonical
        if canonical is None:
            return found
        try:
            return canonical({**self.drawn[slot], **self.file.definition.scalars(self.workload)}, found)
        except Exception as error:
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            message = f"its result has no canonical form: {why}"
            raise Failed(Status.INCORRECT_NUMERICAL, message, name) from error

    def _renew_for(self, name: str, slots: Iterable[int]) -> None:
        """Before a side is called on some slots."""
        self._renew()
        self._consume(name, slots)

    def _consume(self, name: str, slots: Iterable[int]) -> None:
        self._consumed |= {(slot, key) for slot in slots for key in self._peers[name].consumes}

    def _renew(self, slot: int | None = None) -> None:
        """Write what was drawn over what was consumed, in one slot or in all."""
        stale = sorted(one for one in self._consumed if slot is None or one[0] == slot)
        for at, key in stale:
            self._given[at][key].copy_(self.drawn[at][key])
        if stale:
            self._consumed.difference_update(stale)
            self._settle()

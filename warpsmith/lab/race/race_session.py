"""Session of a race: its peers may do what their users let them do."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.lab.grading import correctness, near
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator import peers
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.arenas import Arenas
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import Side, SideFailed

if TYPE_CHECKING:
    import torch


class RaceSession(Session):
    """A session that restores the inputs that peers overwrite, and compares results in their canonical form."""

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
        """Prepare the sides for a workload; the parameters are those of a `Session`."""
        self._peers = {name: peers.get_peer(file, name) for name in sides}
        self._consumed: set[tuple[int, str]] = set()
        """Slots and inputs that were overwritten."""
        self._fetched: dict[str, torch.Tensor] = {}
        self._host: dict[str, list[float]] = {}
        super().__init__(file, workload, arenas, sides, seed, device, count=count)

    def fill_inputs(self, distribution: str | None = None, *, quick: bool = False, slots: int = 0) -> None:
        """Draw new inputs for every slot, let peers prepare the weights, and poison the memory of the outputs."""
        super().fill_inputs(distribution, quick=quick, slots=slots)
        self._consumed.clear()
        for name, peer in self._peers.items():
            if peer.prepare is not None:
                self.ask(name, {"do": "prepare_weights"})

    def call_side(self, name: str, slot: int = 0, **options: Any) -> float:  # noqa: ANN401 - those of a session
        """Call a side once; return the grader's seconds around the call, including the hand-over."""
        self._restore_before(name, [slot])
        return super().call_side(name, slot, **options)

    def time_block(self, name: str, *, fetch: bool = False, times: int = 1) -> TimedBlock:
        """Time one block of a side."""
        self._restore_before(name, range(self.slots))  # before the caches are flushed on the CPU
        block = super().time_block(name, fetch=fetch, times=times)
        if block.host:
            self._host.setdefault(name, []).append(block.host)
        return block

    def host_seconds(self, name: str) -> float | None:
        """Return the median over a side's eager blocks of the seconds until a call returns; None on a CPU."""
        return statistics.median(self._host[name]) if name in self._host else None

    def capture_graphs(self) -> dict[str, str]:
        """Record the block of every side in a CUDA graph; return the reason for each side that cannot be."""
        failures = super().capture_graphs()
        for name in self.sides:  # warming up called them
            self._mark_consumed(name, range(self.slots))
        return failures

    def replay_block(self, name: str, times: int, meanwhile: Callable[[], None]) -> None:
        """Replay a side's captured block `times` times while `meanwhile` runs.

        The replays use the same inputs, or what the side leaves of inputs that it overwrites.
        """
        self._restore_before(name, range(self.slots))
        super().replay_block(name, times, meanwhile)

    def launch_blocks(self, name: str, more: Callable[[], bool]) -> None:
        """Launch blocks of a side call by call, one after the other, for as long as `more()` is true.

        The next block is requested before the last has ended, so that the device hardly waits between two.
        """
        self._restore_before(name, range(self.slots))
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

    def fetch_outputs(self, name: str, slot: int) -> dict[str, torch.Tensor]:
        """Return a slot's results in canonical form, and restore the inputs that the call overwrote."""
        results = super().fetch_outputs(name, slot)
        self._restore(slot)
        self._fetched = self._to_canonical(name, slot, results)
        return self._fetched

    def grade_with_near(self, name: str, slot: int) -> tuple[Grade, bool]:
        """Grade a side's last call on a slot; the bool is True if a failed one is near.

        Raises:
            SideFailed: wrong type, shape, strides or dtype; inputs changed; a guard band written.
        """
        truth = self.truth(slot)
        grade = self.grade_last_call(name, slot, truth)
        if grade.status is Status.PASSED or name in (SOLUTION, REFERENCE):
            return grade, False
        wide = near.widen_bounds(self.file, self.workload, self.drawn[slot], truth)
        return grade, correctness.grade_outputs(wide, self._fetched).status is Status.PASSED

    def _to_canonical(self, name: str, slot: int, results: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        canonical = self._peers[name].canonical
        if canonical is None:
            return results
        try:
            return canonical({**self.drawn[slot], **self.file.definition.scalars(self.workload)}, results)
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            message = f"its result has no canonical form: {reason}"
            raise SideFailed(Status.INCORRECT_NUMERICAL, message, name) from error

    def _restore_before(self, name: str, slots: Iterable[int]) -> None:
        """Restore overwritten inputs before a side is called on some slots."""
        self._restore()
        self._mark_consumed(name, slots)

    def _mark_consumed(self, name: str, slots: Iterable[int]) -> None:
        self._consumed |= {(slot, key) for slot in slots for key in self._peers[name].consumes}

    def _restore(self, slot: int | None = None) -> None:
        """Write the drawn values over inputs that were overwritten, in one slot or in all."""
        stale = sorted(pair for pair in self._consumed if slot is None or pair[0] == slot)
        for index, key in stale:
            self._views[index][key].copy_(self.drawn[index][key])
        if stale:
            self._consumed.difference_update(stale)
            self._synchronize()

"""Screen: sides that are checked and then timed side by side; one that fails is dropped, and the others go on."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Resources, Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import timing
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, allocate_arenas
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.side import SideFailed, WorkerHost
from warpsmith.languages.base import Build


@dataclass
class Screen:
    """One screen of a few sides; each of them needs a process and memory."""

    file: DefinitionFile
    """Definition of the operator."""
    host: WorkerHost
    """Source of workers."""
    device: str
    """`cpu` or `cuda`."""
    sources: Mapping[str, SideSource]
    """Side to the code that it runs."""
    anchor: str
    """Side that the others are compared with; nothing can be compared without it."""
    anchor_title: str
    """Anchor as messages name it: `The reference`."""
    checked: Sequence[Workload]
    """Workloads at which every untrusted side is graded once, on fresh inputs."""
    timed: Sequence[Workload]
    """Workloads at which the sides are timed."""
    budget: TimingBudget
    """Rounds and seconds of a workload's timing."""
    failures: dict[str, str] = field(default_factory=dict)
    """Dropped side to the reason."""
    samples: dict[str, Samples] = field(default_factory=dict)
    """Workload to its times; only of sides that were not dropped."""
    resources: dict[str, tuple[Resources, ...]] = field(default_factory=dict)
    """Side to the compiler's report after its first calls."""

    @property
    def remaining(self) -> list[str]:
        """Sides that were not dropped."""
        return [name for name in self.sources if name not in self.failures]

    def run(self) -> None:
        """Check and time the sides; again without a side that fails while others are timed.

        Raises:
            MachineFailed: the anchor fails.
        """
        while len(self.remaining) > 1:
            self.samples = {}
            try:
                self._check_and_time()
                break
            except SideFailed as failure:
                self.samples = {}
                self.drop(failure.side, failure.message)

    def drop(self, name: str | None, reason: str) -> None:
        """Leave a side out of everything that follows.

        Raises:
            MachineFailed: it is the anchor, or unknown.
        """
        if name is None or name == self.anchor:
            raise MachineFailed(f"{self.anchor_title} fails, so nothing can be compared with it: {reason}")
        self.failures[name] = reason

    def _check_and_time(self) -> None:
        sources = {name: self.sources[name] for name in self.remaining}
        arenas = allocate_arenas(self.file, self.checked, self.timed, sources, self.device)
        with Sides(self.file, self.host, arenas, sources, self.device) as sides:
            sides.start()
            for workload in self.checked:
                self._check(sides, workload)
            self._read_resources(sides)
            for workload in self.timed:
                session = sides.open_session(workload, _fresh_seed(), self.remaining)
                timing.time_rounds(session, self.samples.setdefault(workload.name, Samples()), self.budget)

    def _check(self, sides: Sides, workload: Workload) -> None:
        """Grade every untrusted side once on fresh inputs; those that compile at the first call do so
        concurrently."""
        running = {name: sides.running[name] for name in self.remaining}
        session = Session(
            self.file, workload, sides.arenas, running, _fresh_seed(), self.device, count=CHECKED_SLOTS
        )
        session.fill_inputs()
        self._make_first_calls(session)
        for name in running:
            if name not in self.failures and not self.sources[name].trusted:
                with self._drop_on_failure(name, workload):
                    grade = session.call_and_grade(name)
                    if grade.status is not Status.PASSED:
                        message = f"{grade.status} at {workload.name}: {grade.detail}"
                        raise SideFailed(grade.status, message, name)

    def _make_first_calls(self, session: Session) -> None:
        compiling = {name: side for name, side in session.sides.items() if self._compiles_at_first_call(name)}
        for side in compiling.values():
            side.tell({"do": "call", "slot": 0})
        for name, side in compiling.items():
            with self._drop_on_failure(name, session.workload):
                side.answer("call")
            side.pause()

    def _compiles_at_first_call(self, name: str) -> bool:
        code = self.sources[name].code
        return isinstance(code, Build) and code.artifact == code.source

    def _read_resources(self, sides: Sides) -> None:
        for name in self.remaining:
            code = self.sources[name].code
            if isinstance(code, Build):
                with self._drop_on_failure(name):
                    self.resources[name] = sides.running[name].resources() or code.resources
                    sides.running[name].pause()

    @contextmanager
    def _drop_on_failure(self, name: str, workload: Workload | None = None) -> Iterator[None]:
        try:
            yield
        except SideFailed as failure:
            unnamed = workload and workload.name not in failure.message
            self.drop(name, f"at {workload.name}: {failure.message}" if workload and unnamed else failure.message)


def _fresh_seed() -> int:
    return secrets.randbits(62)

"""Screen: sides that are checked and then timed side by side; one that fails is dropped, and the others go on."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import NULL, Resources, Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import timing
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, allocate_arenas
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.tuning.stopwatch import Stopwatch
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import Build

BLOCK_SECONDS = 5e-4
"""Length that a block on a GPU aims at: a quarter of a judgement's, since a screen only ranks its sides."""

_LONGEST_BLOCK = 2e-3
"""Seconds that a block of a slow side may take. Chosen."""


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
    budget: TimingBudget = field(default_factory=TimingBudget)
    """Rounds and seconds of a workload's timing in `run`."""
    null: bool = False
    """True if a null kernel is timed beside the sides."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    """Takes the seconds of each step."""
    failures: dict[str, str] = field(default_factory=dict)
    """Dropped side to the reason."""
    samples: dict[str, Samples] = field(default_factory=dict)
    """Workload to its times of the last timing; only of sides that were not dropped."""
    resources: dict[str, tuple[Resources, ...]] = field(default_factory=dict)
    """Side to the compiler's report after its first calls."""
    grades: dict[str, dict[str, Grade]] = field(default_factory=dict)
    """Checked workload to the grade of each side that passed there."""
    _sides: Sides | None = None

    def __post_init__(self) -> None:
        """Add the null kernel to the sides."""
        if self.null:
            self.sources = {**self.sources, NULL: SideSource((self.file.path, NULL))}

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_sides()

    @property
    def remaining(self) -> list[str]:
        """Sides that were not dropped."""
        return [name for name in self.sources if name not in self.failures]

    def run(self) -> None:
        """Check and time all sides, then end them; again without a side that fails while others are timed.

        Raises:
            MachineFailed: the anchor fails.
        """
        with self:
            self.check()
            self.time(self.remaining, self.budget)

    def check(self, workloads: Sequence[Workload] | None = None) -> None:
        """Start the sides, grade those that are not trusted, and read the compiler's reports.

        Args:
            workloads: some of `checked`; by default all of them.

        Raises:
            MachineFailed: the anchor fails.
        """
        chosen = self.checked if workloads is None else workloads
        self._attempt(lambda sides: self._check_all(sides, chosen))

    def time(
        self, names: Sequence[str], budget: TimingBudget, workloads: Sequence[Workload] | None = None
    ) -> None:
        """Time some of the sides, the anchor and the null kernel.

        Args:
            names: the sides.
            budget: rounds and seconds of each workload.
            workloads: some of `timed`; by default all of them.

        Raises:
            MachineFailed: the anchor fails.
        """
        chosen, timed = {*names, self.anchor, NULL}, self.timed if workloads is None else workloads
        self._attempt(lambda sides: self._time_all(sides, chosen, budget, timed))

    def drop(self, name: str | None, reason: str) -> None:
        """Leave a side out of everything that follows.

        Raises:
            MachineFailed: it is the anchor, or unknown.
        """
        if name is None or name == self.anchor:
            raise MachineFailed(f"{self.anchor_title} fails, so nothing can be compared with it: {reason}")
        self.failures[name] = reason

    def _attempt(self, step: Callable[[Sides], None]) -> None:
        """Take a step with the sides that run; after a failure with fresh ones, without the side that failed."""
        self.samples = {}
        while set(self.remaining) - {self.anchor, NULL}:
            try:
                step(self._running_sides())
                return
            except SideFailed as failure:
                self.samples = {}
                self._end_sides()
                self.drop(failure.side, failure.message)

    def _running_sides(self) -> Sides:
        if self._sides is None:
            with self.stopwatch.measure("start"):
                sources = {name: self.sources[name] for name in self.remaining}
                arenas = allocate_arenas(self.file, self.checked, self.timed, sources, self.device, BLOCK_SECONDS)
                self._sides = Sides(self.file, self.host, arenas, sources, self.device)
                self._sides.start()
        return self._sides

    def _end_sides(self) -> None:
        if self._sides is not None:
            sides, self._sides = self._sides, None
            with self.stopwatch.measure("end"):
                sides.__exit__()

    def _check_all(self, sides: Sides, workloads: Sequence[Workload]) -> None:
        with self.stopwatch.measure("check"):
            for workload in workloads:
                self._check(sides, workload)
            self._read_resources(sides)

    def _time_all(
        self, sides: Sides, names: Collection[str], budget: TimingBudget, workloads: Sequence[Workload]
    ) -> None:
        with self.stopwatch.measure("time"):
            for workload in workloads:
                chosen = [name for name in self.remaining if name in names]
                session = sides.open_session(workload, _fresh_seed(), chosen)
                session.shorten_blocks(_LONGEST_BLOCK)
                timing.time_rounds(session, self.samples.setdefault(workload.name, Samples()), budget)

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
                    self.grades.setdefault(workload.name, {})[name] = grade

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

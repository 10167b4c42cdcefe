"""A project in a temporary folder, small definitions as text, and one worker host for all tests of the lab."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab_samples import workers
from workshop import Workshop

from warpsmith import languages
from warpsmith.core.definition import Workload
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import Arenas, allocate_arenas
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.timing.timing import SOLUTION
from warpsmith.lab.workers.side import Limits, Side
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import Project


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """A fresh project."""
    (tmp_path / "warpsmith.toml").write_text("")
    return Workshop(Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs" / "knowledge"))


@pytest.fixture(scope="session")
def shared_host() -> Iterator[WorkerHost]:
    """The one worker host: starting one imports torch and triton."""
    with WorkerHost("cpu", interpret=True) as host:
        yield host


@pytest.fixture
def host(shared_host: WorkerHost) -> Iterator[WorkerHost]:
    """The shared worker host; every test must leave it without workers."""
    yield shared_host
    assert workers(shared_host) == []


@pytest.fixture
def bench(host: WorkerHost) -> Iterator[object]:
    """`bench(file, peer, limits=...)`: a session whose only side runs a peer of the definition."""
    with ExitStack() as stack:

        def make(file: DefinitionFile, peer: str = "reference", limits: Limits | None = None) -> Session:
            workload = file.definition.workloads[0]
            arenas = allocate_arenas(file, [], [workload], [peer], "cpu")
            source = SideSource((file.path, peer), limits=limits or Limits(seconds=30))
            made = stack.enter_context(Sides(file, host, arenas, {peer: source}, "cpu"))
            made.start()
            return made.open_session(workload, 7)

        yield make


@dataclass
class Seat:
    """A solution in its sandbox, ready for sessions."""

    file: DefinitionFile
    side: Side
    arenas: Arenas

    def __post_init__(self) -> None:
        self._seeds = itertools.count(1)

    def seed(self) -> int:
        """A new one."""
        return next(self._seeds)

    def session(self, workload: Workload | None = None, **options: object) -> Session:
        """A session with two slots at a workload, by default the first."""
        at = workload or self.file.definition.workloads[0]
        sides = {SOLUTION: self.side}
        return Session(self.file, at, self.arenas, sides, self.seed(), "cpu", **{"count": 2, **options})


@pytest.fixture
def seat(host: WorkerHost, workshop: Workshop, tmp_path: Path) -> Iterator[object]:
    """`seat(definition, source, language)`: the solution built and loaded as the gate does."""
    with ExitStack() as stack:

        def make(file: DefinitionFile, source: str, language: str = "cpp") -> Seat:
            candidate, definition = workshop.solution(source, language), file.definition
            build = languages.get(language).build(candidate.path, definition, tmp_path / "built")
            arenas = allocate_arenas(file, definition.workloads, definition.workloads, [SOLUTION], "cpu")
            source = SideSource(build, language, Limits(seconds=30))
            made = stack.enter_context(Sides(file, host, arenas, {SOLUTION: source}, "cpu"))
            made.start()
            return Seat(file, made.running[SOLUTION], arenas)

        yield make

"""A project in a temporary folder, small definitions as text, and one worker host for all tests of the lab."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from lab_samples import workers

from warpsmith import languages
from warpsmith.core.definition import Workload
from warpsmith.core.hardware import Ceiling, Measurement, Noise
from warpsmith.lab import definition_file, hardware, machine, session
from warpsmith.lab.definition_file import DefinitionFile
from warpsmith.lab.judge import Candidate, Request
from warpsmith.lab.session import Arenas, Session
from warpsmith.lab.side import Limits, Side, WorkerHost
from warpsmith.lab.timing import SOLUTION, Budget
from warpsmith.project import Project


@dataclass
class Workshop:
    """A project, and short ways to its parts."""

    project: Project

    def define(self, name: str, text: str) -> Path:
        """Write a definition; its file."""
        path = self.project.definition(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, name: str, text: str) -> DefinitionFile:
        """Write a definition and import it."""
        return definition_file.load(self.define(name, text))

    def solution(self, text: str, language: str = "cpp", version: str = "v1") -> Candidate:
        """Write a solution."""
        path = self.project.root / f"{version}{'.cpp' if language == 'cpp' else '.py'}"
        path.write_text(dedent(text))
        return Candidate(path, language, version)

    def measurement(self, target: str = "cpu", floor: float = 0.5) -> Measurement:
        """What a measurement of this machine might say, made up."""
        page = hardware.read(self.project, target)
        ceilings = {
            name: Ceiling(value=10.0, unit="GB/s", best=11.0, spread=0.01, how="made up")
            for name in ("copy", "read")
        }
        return Measurement(
            machine=machine.machine(page.target),
            measured="2026-01-01 00:00",
            ceilings=ceilings,
            noise=Noise(floor=floor, trials=2, how="made up"),
        )

    def request(self, file: DefinitionFile, candidate: Candidate, **changes: object) -> Request:
        """A request that is judged fast on the CPU."""
        usual = {
            "page": hardware.read(self.project, "cpu"),
            "measurement": self.measurement(),
            "budget": Budget(rounds=3, most=3, seconds=0),
        }
        return Request(project=self.project, file=file, candidate=candidate, **{**usual, **changes})


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
            arenas = session.allocate(file, [], [workload], [peer], "cpu")
            stack.callback(arenas.close)
            side = host.side(peer, limits or Limits(seconds=30), trusted=True)
            stack.callback(side.close)
            side.load(file.definition, (file.path, peer), [arenas.inputs, arenas.outputs[peer]], "cpu")
            side.answer("load")
            return Session(file, workload, arenas, {peer: side}, 7, "cpu")

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
            arenas = session.allocate(file, definition.workloads, definition.workloads, [SOLUTION], "cpu")
            stack.callback(arenas.close)
            side = host.side(SOLUTION, Limits(seconds=30))
            stack.callback(side.close)
            side.load(definition, build, [arenas.inputs, arenas.outputs[SOLUTION]], "cpu", language)
            side.answer("load")
            return Seat(file, side, arenas)

        yield make

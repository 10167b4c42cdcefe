"""The sides of one comparison: implementations in workers of their own, over memory that they share."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith.core.definition import Workload
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import Arenas
from warpsmith.lab.timing.session import Session
from warpsmith.lab.workers.side import Limits, Side
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import Build


@dataclass(frozen=True)
class SideSource:
    """Code that a side runs."""

    code: Build | tuple[Path, str]
    """A built version; or the path of a definition and the name of its reference or of a peer."""
    language: str | None = None
    """Language of a version."""
    limits: Limits = field(default_factory=Limits)
    """Time and memory that the side may take."""
    recorded_for: str = ""
    """Architecture whose compiler gets the launches of an interpreted version; empty: none are recorded."""
    counted: bool = False
    """True for a build that counts its lines."""

    @property
    def trusted(self) -> bool:
        """True for the project's own code, which runs without a sandbox."""
        return not isinstance(self.code, Build)


class Sides:
    """The sides of one comparison; closing it ends all of them."""

    def __init__(
        self,
        file: DefinitionFile,
        host: WorkerHost,
        arenas: Arenas,
        sources: Mapping[str, SideSource],
        device: str,
    ) -> None:
        """Hold the sources; no side is started yet.

        Args:
            file: the definition.
            host: supplies the workers.
            arenas: memory that all workloads fit in, with outputs for each side.
            sources: side to the code that it runs.
            device: `cpu` or `cuda`.
        """
        self.arenas, self.device = arenas, device
        self.running: dict[str, Side] = {}
        """Name to side, for the sides that run now."""
        self._file, self._host, self._sources = file, host, dict(sources)

    def __enter__(self) -> Sides:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            stack.callback(self.arenas.close)
            stack.enter_context(_close_after(self.running.values()))

    def start(self, names: Iterable[str] | None = None) -> None:
        """Load sides concurrently, each in a fresh process; by default all of them.

        Raises:
            SideFailed: a side cannot be loaded.
        """
        names = list(self._sources if names is None else names)
        random.SystemRandom().shuffle(names)
        trusted = sum(self._sources[name].trusted for name in names)
        self._host.restock(len(names) - trusted, trusted)  # they create their contexts concurrently
        with _close_after([self.running.pop(name) for name in names if name in self.running]):
            for name in names:
                self._load(name)
        for name in names:
            self.running[name].answer("load")
        for name in names:
            self.running[name].pause()  # it runs only while it is asked

    def _load(self, name: str) -> None:
        source = self._sources[name]
        side = self.running[name] = self._host.start_side(name, source.limits, trusted=source.trusted)
        _begin_load(side, self._file, source, self.arenas, self.device)

    def source(self, name: str) -> SideSource:
        """Return the code of a side."""
        return self._sources[name]

    @property
    def names(self) -> list[str]:
        """Names of all sides, running or not."""
        return list(self._sources)

    @property
    def pids(self) -> list[int]:
        """Process ids of all processes of the host, including idle workers."""
        return self._host.pids

    def close_running(self) -> None:
        """End all sides that run; they can be started again."""
        for side in self.running.values():
            side.close()

    def drop(self, name: str) -> None:
        """End a side for good, if there is one, so that `start` no longer loads it."""
        self._sources.pop(name, None)
        if name in self.running:
            self.running.pop(name).close()

    def open_session(self, workload: Workload, seed: int, names: Iterable[str] | None = None) -> Session:
        """Prepare sides for a workload with fresh inputs; by default all that run."""
        sides = self.running if names is None else {name: self.running[name] for name in names}
        return Session(self._file, workload, self.arenas, sides, seed, self.device)


def load_side(side: Side, file: DefinitionFile, source: SideSource, arenas: Arenas, device: str) -> None:
    """Make a side that is no part of a comparison load its code.

    Raises:
        SideFailed: it cannot be loaded.
    """
    _begin_load(side, file, source, arenas, device)
    side.answer("load")


def _begin_load(side: Side, file: DefinitionFile, source: SideSource, arenas: Arenas, device: str) -> None:
    shared = [arenas.inputs, arenas.outputs[side.name]]
    side.load(
        file.definition, source.code, shared, device, source.language, source.recorded_for, counted=source.counted
    )


@contextmanager
def _close_after(sides: Iterable[Side]) -> Iterator[None]:
    """Kill sides on entry and close them on exit, because the driver takes time to clear up after each."""
    with ExitStack() as stack:
        for side in sides:
            stack.callback(side.close)
            side.kill()
        yield

"""The bench: implementations in workers of their own, over the memory that they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith.core.definition import Workload
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.session import Arenas, Session
from warpsmith.lab.workers.side import Limits, Side, WorkerHost
from warpsmith.languages.base import Build


@dataclass(frozen=True)
class Source:
    """What a side runs."""

    what: Build | tuple[Path, str]
    """A built version; or a definition's file and the name of its reference or of a peer."""
    language: str | None = None
    """A version's language."""
    limits: Limits = field(default_factory=Limits)
    """What the side may take."""

    @property
    def trusted(self) -> bool:
        """Whether it is the project's own code: then nothing shuts it in."""
        return not isinstance(self.what, Build)


class Bench:
    """Sides that have loaded their sources; closed, all of them end."""

    def __init__(
        self, file: DefinitionFile, host: WorkerHost, arenas: Arenas, sources: Mapping[str, Source], device: str
    ) -> None:
        """Start no side yet.

        Args:
            file: the definition.
            host: where workers come from.
            arenas: memory that all workloads fit in, with outputs for each side.
            sources: side to what it runs.
            device: `cpu` or `cuda`.
        """
        self.arenas, self.device = arenas, device
        self.sides: dict[str, Side] = {}
        """Name to what runs now."""
        self._file, self._host, self._sources = file, host, dict(sources)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            stack.callback(self.arenas.close)
            stack.enter_context(_ending(self.sides.values()))

    def start(self, names: Iterable[str] | None = None) -> None:
        """Have these sides load their sources, side by side, each in a fresh process; all of them by default.

        Raises:
            Failed: a side cannot be loaded.
        """
        names = tuple(self._sources if names is None else names)
        trusted = sum(self._sources[name].trusted for name in names)
        self._host.restock(len(names) - trusted, trusted)  # they make their contexts side by side
        with _ending([self.sides.pop(name) for name in names if name in self.sides]):
            for name in names:
                self._load(name)
        for name in names:
            self.sides[name].answer("load")

    def _load(self, name: str) -> None:
        source = self._sources[name]
        side = self.sides[name] = self._host.side(name, source.limits, trusted=source.trusted)
        shared = [self.arenas.inputs, self.arenas.outputs[name]]
        side.load(self._file.definition, source.what, shared, self.device, source.language)

    @property
    def pids(self) -> list[int]:
        """Of all processes of the host, those that wait for work too."""
        return self._host.pids

    def drop(self, name: str) -> None:
        """End a side for good: nothing starts it again."""
        del self._sources[name]
        if name in self.sides:
            self.sides.pop(name).close()

    def session(self, workload: Workload, seed: int, names: Iterable[str] | None = None) -> Session:
        """These sides prepared for a workload, with fresh inputs; all of them by default."""
        sides = self.sides if names is None else {name: self.sides[name] for name in names}
        return Session(self._file, workload, self.arenas, sides, seed, self.device)


@contextmanager
def _ending(sides: Iterable[Side]) -> Iterator[None]:
    """Sides that die meanwhile and are gone afterwards: the driver takes its time to clear up after each."""
    with ExitStack() as stack:
        for side in sides:
            stack.callback(side.close)
            side.kill()
        yield

"""A trial: several configurations of a version, each a side of its own, checked and timed side by side."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp, fsum, log
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Aggregate, Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.judge import Request
from warpsmith.lab.gate.race import FALLBACK_FLOOR
from warpsmith.lab.timing import session, statistics, timing
from warpsmith.lab.timing.bench import Bench, Source
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.timing import Budget
from warpsmith.lab.tuning import machine_code
from warpsmith.lab.tuning import models as tuning
from warpsmith.lab.tuning.models import Config, Row, Tried, Tunable
from warpsmith.lab.workers.side import Failed, WorkerHost
from warpsmith.languages.base import Build, BuildFailed

HAND_PICKED = "hand-picked"
"""The side that runs the version as it stands: in every trial, so that trials compare."""

LOSS = 0.02
"""A configuration that is slower than the hand-picked one by more at any workload, and beyond the noise, does not
count."""

WIDTH = {"cpu": 3, "cuda": 7}
"""Configurations of one trial, by device: each holds a process and memory."""


@dataclass(frozen=True)
class Workplace:
    """What all trials of a version share."""

    request: Request
    """The version, its definition and the machine."""
    source: str
    """The version's text."""
    tunable: Tunable
    """What it declares."""
    host: WorkerHost
    """Where workers come from."""
    folder: Path
    """Where configurations are written and built."""
    device: str
    """`cpu` or `cuda`."""
    known: dict[str, Config] = field(default_factory=dict)
    """Hash of the code that was timed to its configuration."""
    _built: dict[str, Build] = field(default_factory=dict)

    @property
    def floor(self) -> float:
        """Gains up to here are noise on this machine."""
        noise = self.request.measurement.noise
        return noise.floor if noise else FALLBACK_FLOOR

    def build(self, text: str) -> Build:
        """A text of the version, built once under the version's own name; raises BuildFailed."""
        if text not in self._built:
            candidate = self.request.candidate
            path = self.folder / secrets.token_hex(6) / candidate.path.name
            files.write(path, text)
            language = languages.get(candidate.language)
            self._built[text] = language.build(path, self.request.file.definition, path.parent)
        return self._built[text]

    def budget(self, *, again: bool) -> Budget:
        """How long a workload is timed: twice as long where it counts."""
        if self.request.budget:
            return self.request.budget
        seconds = 0.4 if self.device == "cpu" else 0.1
        return Budget(
            rounds=12 if again else 6, most=40 if again else 20, seconds=2 * seconds if again else seconds
        )


class Trial:
    """One row's configurations, side by side at the row's workloads."""

    def __init__(
        self, place: Workplace, row: Row, workloads: Sequence[Workload], configs: Sequence[Config], step: str
    ) -> None:
        self._place, self._row, self._workloads, self._step = place, row, workloads, step
        self._configs = {HAND_PICKED: row.config} | {f"config-{k}": dict(c) for k, c in enumerate(configs)}
        self._notes: dict[str, str] = {}
        self._builds: dict[str, Build] = {}
        self._samples: dict[str, Samples] = {}

    def run(self) -> list[Tried]:
        """Build, check and time; the version as it stands comes first.

        Raises:
            MachineFailed: that one fails, or the machine does.
        """
        self._build()
        while len(self._alive) > 1:
            try:
                self._bench()
                break
            except Failed as failure:  # the rest goes on without it
                self._samples = {}
                self._drop(failure.side, failure.message)
        if not self._compiled_ahead:
            self._compare_code()
        return [self._tried(name) for name in self._configs]

    @property
    def _alive(self) -> list[str]:
        return [name for name in self._builds if name not in self._notes]

    @property
    def _compiled_ahead(self) -> bool:
        build = self._builds[HAND_PICKED]
        return build.artifact != build.source

    def _build(self) -> None:
        """All of them, side by side: compilers are programs of their own."""
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            made = list(pool.map(self._built, self._configs.values()))
        for name, build in zip(self._configs, made, strict=True):
            if isinstance(build, BuildFailed):
                self._drop(name, f"does not build: {str(build).splitlines()[0]}")
                continue
            self._builds[name] = build
            if build.artifact != build.source:
                self._note_code(name, machine_code.digest([build.artifact]))

    def _built(self, config: Config) -> Build | BuildFailed:
        try:
            return self._place.build(tuning.write(self._place.source, self._row, config))
        except BuildFailed as error:
            return error

    def _compare_code(self) -> None:
        """Code that is made at the first call is known when its worker has ended."""
        for name in self._alive:
            sha256 = files.sha256(self._builds[name].source)
            self._note_code(name, machine_code.digest([self._place.host.compiled / sha256]))

    def _note_code(self, name: str, code: str | None) -> None:
        """Drop a configuration whose code was timed already; one that is timed again is meant to be."""
        config = self._configs[name]
        if code is None:
            return
        key = f"{code} {self._row.line} {self._place.tunable.at_launch(config)}"
        twin = self._place.known.setdefault(key, config)
        if twin != config:
            self._notes[name] = f"the same code as {shown(twin)}"

    def _drop(self, name: str | None, why: str) -> None:
        if name is None or name == HAND_PICKED:
            raise MachineFailed(f"The version as it stands fails, so nothing can be compared with it: {why}")
        self._notes[name] = why

    def _bench(self) -> None:
        """Raises Failed where a side fails other than at its check."""
        place, request = self._place, self._place.request
        sources = {
            name: Source(self._builds[name], request.candidate.language, request.limits) for name in self._alive
        }
        arenas = session.allocate(request.file, self._workloads, self._workloads, sources, place.device)
        self._samples = {}
        with Bench(request.file, place.host, arenas, sources, place.device) as bench:
            bench.start()
            for workload in self._workloads:
                self._check(bench, workload)
            for workload in self._workloads:
                samples = self._samples.setdefault(workload.name, Samples())
                one = bench.session(workload, _seed(), self._alive)
                timing.run(one, samples, place.budget(again=self._step == "again"))

    def _check(self, bench: Bench, workload: Workload) -> None:
        """Every configuration once on fresh inputs; what is made at the first call is made side by side."""
        sides = {name: bench.sides[name] for name in self._alive}
        one = Session(
            self._place.request.file, workload, bench.arenas, sides, _seed(), self._place.device,
            count=session.CHECKED_SLOTS,
        )  # fmt: skip
        one.fill()
        if not self._compiled_ahead:
            self._first_calls(one)
        for name in [name for name in sides if name in self._alive]:
            with self._dropped(name):
                grade = one.check(name)
                if grade.status is not Status.PASSED:
                    raise Failed(grade.status, f"{grade.status} at {workload.name}: {grade.detail}", name)

    def _first_calls(self, one: Session) -> None:
        for side in one.sides.values():
            side.tell({"do": "call", "slot": 0})
        for name, side in one.sides.items():
            with self._dropped(name):
                side.answer("call")
            side.pause()

    @contextmanager
    def _dropped(self, name: str) -> Iterator[None]:
        try:
            yield
        except Failed as failure:
            self._drop(name, failure.message)

    def _tried(self, name: str) -> Tried:
        found = Tried(
            condition=self._row.condition,
            config=self._configs[name],
            step=HAND_PICKED if name == HAND_PICKED else self._step,
            note=self._notes.get(name, ""),
        )
        if any(name not in samples.seconds for samples in self._samples.values()) or not self._samples:
            return found
        times = {workload: samples.seconds for workload, samples in self._samples.items()}
        change: dict[str, object] = {"seconds": _mean({w: s[name] for w, s in times.items()})}
        if name != HAND_PICKED:
            mean = over_hand_picked(times, name)
            lost = f"slower at {mean.worst_workload}" if mean.worst < 1 - max(LOSS, self._place.floor) else ""
            change |= {"speedup": mean.speedup, "interval": mean.interval, "note": found.note or lost}
        return found.model_copy(update=change)


def over_hand_picked(times: Mapping[str, Mapping[str, list[float]]], name: str) -> Aggregate:
    """A side against the hand-picked one, over workloads; `times` in seconds by workload and side."""
    pairs = {workload: (sides[name], sides[HAND_PICKED]) for workload, sides in times.items()}
    return statistics.geometric_mean(pairs, HAND_PICKED)


def shown(config: Config) -> str:
    """A configuration on one line: `BLOCK 1024, num_warps 4`."""
    return ", ".join(f"{name} {value}" for name, value in config.items())


def _mean(times: Mapping[str, list[float]]) -> float:
    return exp(fsum(log(statistics.median(values)) for values in times.values()) / len(times))


def _seed() -> int:
    return secrets.randbits(62)

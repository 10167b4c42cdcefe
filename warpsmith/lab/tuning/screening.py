"""Screening of several configurations of a version, each a side of its own, checked and timed side by side."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import exp, fsum, log
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Aggregate
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.request import Request
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.sides import SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.tuning import machine_code
from warpsmith.lab.tuning import models as tuning
from warpsmith.lab.tuning.models import Config, ScreenedConfig, Tunable, TuningRow
from warpsmith.lab.tuning.screen import Screen
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import Build, BuildFailed

HAND_PICKED = "hand-picked"
"""Side that runs the unchanged version; it is in every screening, so that screenings compare."""

LOSS = 0.02
"""A configuration does not count if it is slower than the hand-picked one by more than this share, and beyond the
noise, at any workload."""

WIDTH = {"cpu": 3, "cuda": 7}
"""Configurations of one screening, by device: each needs a process and memory."""


@dataclass(frozen=True)
class ScreeningContext:
    """Everything that the screenings of a version share."""

    request: Request
    """Version, definition and machine."""
    source: str
    """Text of the version."""
    tunable: Tunable
    """Declarations of the version."""
    host: WorkerHost
    """Source of workers."""
    folder: Path
    """Folder in which configurations are written and built."""
    device: str
    """`cpu` or `cuda`."""
    timed_codes: dict[str, Config] = field(default_factory=dict)
    """Hash of the code that was timed to its configuration."""
    _builds: dict[str, Build] = field(default_factory=dict)

    @property
    def floor(self) -> float:
        """Noise floor of this machine; smaller gains are noise."""
        noise = self.request.measurement.noise
        return noise.floor if noise else gate_rules.FALLBACK_FLOOR

    def build(self, text: str) -> Build:
        """Build a text of the version once, under the version's own name.

        Raises:
            BuildFailed: it does not build.
        """
        if text not in self._builds:
            candidate = self.request.candidate
            path = self.folder / secrets.token_hex(6) / candidate.path.name
            files.write_file(path, text)
            language = languages.get(candidate.language)
            self._builds[text] = language.build(path, self.request.file.definition, path.parent)
        return self._builds[text]

    def budget(self, *, again: bool) -> TimingBudget:
        """Return the budget of a workload, which is twice as long with `again`, where the times decide."""
        if self.request.budget:
            return self.request.budget
        seconds = 0.4 if self.device == "cpu" else 0.1
        return TimingBudget(
            rounds=12 if again else 6, most=40 if again else 20, seconds=2 * seconds if again else seconds
        )


class Screening:
    """Configurations of one row, timed side by side at the row's workloads."""

    def __init__(
        self,
        context: ScreeningContext,
        row: TuningRow,
        workloads: Sequence[Workload],
        configs: Sequence[Config],
        step: str,
    ) -> None:
        self._context, self._row, self._workloads, self._step = context, row, workloads, step
        self._configs = {HAND_PICKED: row.config} | {f"config-{k}": dict(c) for k, c in enumerate(configs)}
        self._notes: dict[str, str] = {}
        self._builds: dict[str, Build] = {}
        self._samples: dict[str, Samples] = {}

    def run(self) -> list[ScreenedConfig]:
        """Build, check and time the configurations; the unchanged version comes first.

        Raises:
            MachineFailed: the unchanged version fails, or the machine does.
        """
        self._build_all()
        context, request = self._context, self._context.request
        remaining = [name for name in self._builds if name not in self._notes]
        screen = Screen(
            request.file,
            context.host,
            context.device,
            {n: SideSource(self._builds[n], request.candidate.language, request.limits) for n in remaining},
            HAND_PICKED,
            "The unchanged version",
            self._workloads,
            self._workloads,
            context.budget(again=self._step == "again"),
        )
        screen.run()
        self._samples = screen.samples
        self._notes |= screen.failures
        if not self._compiled_ahead:
            self._compare_code(screen.remaining)
        return [self._result(name) for name in self._configs]

    @property
    def _compiled_ahead(self) -> bool:
        build = self._builds[HAND_PICKED]
        return build.artifact != build.source

    def _build_all(self) -> None:
        """Build all configurations concurrently, because compilers are programs of their own."""
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            builds = list(pool.map(self._try_build, self._configs.values()))
        for name, build in zip(self._configs, builds, strict=True):
            if isinstance(build, BuildFailed):
                reason = f"does not build: {str(build).splitlines()[0]}"
                if name == HAND_PICKED:
                    raise MachineFailed(f"The unchanged version {reason}")
                self._notes[name] = reason
                continue
            self._builds[name] = build
            if build.artifact != build.source:
                self._note_code(name, machine_code.code_digest([build.artifact]))

    def _try_build(self, config: Config) -> Build | BuildFailed:
        try:
            return self._context.build(tuning.write_config(self._context.source, self._row, config))
        except BuildFailed as error:
            return error

    def _compare_code(self, names: Sequence[str]) -> None:
        """Compare code that is compiled at the first call, which is known once its worker has ended."""
        for name in names:
            sha256 = files.file_sha256(self._builds[name].source)
            self._note_code(name, machine_code.code_digest([self._context.host.compiled / sha256]))

    def _note_code(self, name: str, code: str | None) -> None:
        """Drop a configuration if another one with the same code was timed already."""
        config = self._configs[name]
        if code is None:
            return
        key = f"{code} {self._row.line} {self._context.tunable.at_launch(config)}"
        twin = self._context.timed_codes.setdefault(key, config)
        if twin != config:  # equal configurations are timed again on purpose
            self._notes[name] = f"the same code as {format_config(twin)}"

    def _result(self, name: str) -> ScreenedConfig:
        result = ScreenedConfig(
            condition=self._row.condition,
            config=self._configs[name],
            step=HAND_PICKED if name == HAND_PICKED else self._step,
            note=self._notes.get(name, ""),
        )
        if any(name not in samples.seconds for samples in self._samples.values()) or not self._samples:
            return result
        times = {workload: samples.seconds for workload, samples in self._samples.items()}
        changes: dict[str, object] = {"seconds": _mean_seconds({w: s[name] for w, s in times.items()})}
        if name != HAND_PICKED:
            mean = speedup_over_hand_picked(times, name)
            loss = max(LOSS, self._context.floor)
            note = f"slower at {mean.worst_workload}" if mean.worst < 1 - loss else ""
            changes |= {"speedup": mean.speedup, "interval": mean.interval, "note": result.note or note}
        return result.model_copy(update=changes)


def speedup_over_hand_picked(times: Mapping[str, Mapping[str, list[float]]], name: str) -> Aggregate:
    """Compare a side with the hand-picked one, over workloads; `times` has seconds by workload and side."""
    pairs = {workload: (sides[name], sides[HAND_PICKED]) for workload, sides in times.items()}
    return statistics.geometric_mean(pairs, HAND_PICKED)


def format_config(config: Config) -> str:
    """Format a configuration on one line: `BLOCK 1024, num_warps 4`."""
    return ", ".join(f"{name} {value}" for name, value in config.items())


def _mean_seconds(times: Mapping[str, list[float]]) -> float:
    return exp(fsum(log(statistics.median(values)) for values in times.values()) / len(times))

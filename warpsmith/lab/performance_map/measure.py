"""Measurement of a map: every version at every shape, then the fastest of a shape again in fresh processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith import languages
from warpsmith.core import gate_rules
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload, calls_by_workload
from warpsmith.core.evaluation import BEST, GATE_VERSION, TWIN
from warpsmith.core.hardware import Measurement
from warpsmith.errors import BadDefinition, MachineFailed, MachineLacks, SolutionFailed
from warpsmith.lab.grading.correctness import summarize_grades
from warpsmith.lab.machine import contention, provenance
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.performance_map import decision
from warpsmith.lab.performance_map.models import Confirmation, MapCell, MapTime, MapVersion, PerformanceMap
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.tuning.screen import Screen
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.temporary import TemporaryFolder

MOST_VERSIONS = 6
"""Versions of a map at most. Chosen: each needs a process, and a table of few versions can be explained."""

_FIRST = {
    "cpu": TimingBudget(rounds=10, most=40, seconds=0.6),
    "cuda": TimingBudget(rounds=10, most=40, seconds=0.15),
}
_SECOND = {
    "cpu": TimingBudget(rounds=20, most=200, seconds=1.0, width=0),
    "cuda": TimingBudget(rounds=20, most=200, seconds=0.25, width=0),
}
"""Rounds of a shape at least and at most, and seconds at least. Twenty rounds leave a tail for the interval of one
of 64 shapes."""

_MOST_SECONDS = 5.0
"""Seconds of a shape in the second timing at most, where the time that is left allows them."""

_FIRST_SHARE = 0.6
"""Share of the whole time after which no shape is begun in the first timing."""


@dataclass(frozen=True)
class MapRequest:
    """Versions and shapes of a map, and the conditions under which they are timed."""

    file: DefinitionFile
    """Definition of the operator."""
    page: HardwarePage
    """Page of the target."""
    measurement: Measurement
    """Measurement of this machine, with its noise floor."""
    versions: Sequence[MapVersion]
    """Accepted versions, today's best first."""
    sources: Mapping[str, Path]
    """Version to its file as it was judged."""
    workloads: Sequence[Workload]
    """Shapes."""
    hidden: Sequence[Path] = ()
    """Folders that no version may read."""
    seconds: float = 120.0
    """Wall time of everything; a shape that runs is finished."""

    @property
    def device(self) -> str:
        """Device of PyTorch, `cpu` or `cuda`."""
        return "cuda" if self.page.target.kind == "gpu" else "cpu"

    @property
    def noise_floor(self) -> float:
        """Noise floor of this machine."""
        noise = self.measurement.noise
        return noise.floor if noise else gate_rules.FALLBACK_FLOOR


class MapMeasurement:
    """One measurement in progress."""

    def __init__(self, request: MapRequest) -> None:
        """Hold the request; nothing is built yet.

        Raises:
            MachineLacks: the language of a version cannot run here.
        """
        self.request = request
        self.best, self.best_reason = request.versions[0].solution, ""
        """Best single version; today's best until all shapes were timed."""
        self.failures: dict[str, str] = {}
        """Version to the reason why it is used nowhere."""
        self.notes: list[str] = []
        self.shapes: dict[str, Workload] = {}
        """Shapes that were timed, by name."""
        self._times: dict[str, dict[str, list[float]]] = {}
        self._first: dict[str, dict[str, MapTime]] = {}
        self._second: dict[str, Confirmation] = {}
        self._builds: dict[str, Build] = {}
        self._calls = calls_by_workload(request.file.definition.select("representative", "full"))
        self._started = time.monotonic()
        for version in request.versions:
            language, kind = languages.get(version.language), request.page.target.kind
            lacks = language.missing(kind)
            if lacks or kind not in language.targets:
                raise MachineLacks(lacks or f"{language.name} cannot be timed on {request.page.target.id}.")

    def run(self, host: WorkerHost | None = None) -> Iterator[tuple[Workload, dict[str, MapTime] | Confirmation]]:
        """Yield a shape with the times of all versions, each as soon as it is known; then, once the best single
        version is chosen, shapes with their second timing.

        Raises:
            SolutionFailed: fewer than two versions are correct at every shape, or a shape could not be timed.
            MachineFailed: the machine or the worker host fails.
        """
        with ExitStack() as stack:
            request = self.request
            host = host or stack.enter_context(WorkerHost(request.device, hidden=tuple(request.hidden)))
            folder = Path(stack.enter_context(TemporaryFolder("map")))
            self._build(folder)
            self._check_idle(host)
            yield from self._time_all(host)
            if len(self.sound) < 2 or len(self.shapes) < 2:
                reasons = [*(f"{name}: {reason}" for name, reason in self.failures.items()), *self.notes]
                op, count = request.file.definition.name, len(self.shapes)
                problem = f"Fewer than two versions of {op} are correct at {count} shapes"
                if len(self.sound) > 1:
                    problem = f"Fewer than two shapes of {op} could be timed"
                raise SolutionFailed(f"{problem}: {'; '.join(reasons)}")
            self.best, self.best_reason = decision.choose_single(
                self._times, self.sound, request.versions[0].solution, self._calls, request.noise_floor
            )
            yield from self._confirm_all(host)

    @property
    def sound(self) -> list[str]:
        """Versions that were correct at every shape so far."""
        return [version.solution for version in self.request.versions if version.solution not in self.failures]

    @property
    def floor(self) -> float:
        """Gain that noise may show at one shape."""
        return decision.shape_floor(self.request.noise_floor)

    @property
    def confidence(self) -> float:
        """Confidence of the interval of one shape."""
        return decision.cell_confidence(len(self.shapes))

    def is_shown(self, confirmation: Confirmation) -> bool:
        """Return whether a second timing shows its version faster than the best single one."""
        return confirmation.interval.low > 1 + self.floor and confirmation.solution not in self.failures

    def record(self) -> PerformanceMap:
        """Return the record of a measurement that has ended."""
        request = self.request
        return PerformanceMap(
            definition=request.file.definition.name,
            target=request.page.target.id,
            definition_sha256=request.file.sha256,
            lab_sha256=provenance.lab_sha256(),
            gate_version=GATE_VERSION,
            machine=request.measurement.machine,
            measured=this_minute(),
            versions=tuple(
                version.model_copy(update={"failed": self.failures.get(version.solution, "")})
                for version in request.versions
            ),
            best=self.best,
            best_reason=self.best_reason,
            floor=self.floor,
            confidence=self.confidence,
            calls=self._calls,
            cells=tuple(map(self._cell, self.shapes.values())),
            notes=tuple(self.notes),
        )

    def _check_idle(self, host: WorkerHost) -> None:
        """Check that nobody else uses the device: note it for a processor, raise MachineFailed for a GPU."""
        measurement = self.request.measurement
        if self.request.device != "cpu":
            contention.require_idle_gpu(measurement, Gauge(measurement.machine.uuid), host.pids)
        elif load := contention.describe_cpu_load():
            self.notes.append(load)

    def _build(self, folder: Path) -> None:
        """Build all versions concurrently; one that does not build any more is used nowhere."""
        names = [version.solution for version in self.request.versions]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            builds = list(pool.map(lambda version: self._try_build(version, folder), self.request.versions))
        for name, build in zip(names, builds, strict=True):
            if isinstance(build, BuildFailed):
                self.failures[name] = f"does not build: {str(build).splitlines()[0]}"
            else:
                self._builds[name] = build

    def _try_build(self, version: MapVersion, folder: Path) -> Build | BuildFailed:
        target = folder / version.solution.replace("/", "-")
        target.mkdir()
        try:
            return languages.get(version.language).build(
                self.request.sources[version.solution], self.request.file.definition, target
            )
        except BuildFailed as error:
            return error

    def _time_all(self, host: WorkerHost) -> Iterator[tuple[Workload, dict[str, MapTime]]]:
        request, languages_by_name = self.request, {v.solution: v.language for v in self.request.versions}
        sources = {
            name: SideSource(build, languages_by_name[name], Limits()) for name, build in self._builds.items()
        }
        if len(sources) < 2:
            return
        with self._screen(host, sources, "") as screen:
            for workload in request.workloads:
                if self.shapes and self._seconds_spent > _FIRST_SHARE * request.seconds:
                    self._note_left_out(len(request.workloads) - len(self.shapes))
                    break
                if self._time_shape(screen, workload):
                    yield workload, self._first[workload.name]
                if len(self.sound) < 2:
                    break

    def _time_shape(self, screen: Screen, workload: Workload) -> bool:
        """Check and time all versions at a shape; return False if the reference cannot compute it."""
        try:
            screen.check([workload])
            screen.time(screen.remaining, _FIRST[self.request.device], [workload])
        except (BadDefinition, ValueError) as error:
            self.notes.append(f"{workload.name} was left out: {' '.join(str(error).split())[:200]}")
            return False
        finally:
            self.failures |= screen.failures
        samples = screen.samples.get(workload.name)
        if samples is None:
            return False
        seconds = {name: [*samples.seconds[name]] for name in self.sound}
        self.shapes[workload.name], self._times[workload.name] = workload, seconds
        self._first[workload.name] = {
            name: MapTime(
                solution=name,
                seconds=statistics.median(times),
                samples=len(times),
                correctness=summarize_grades([screen.grades[workload.name][name]]),
            )
            for name, times in seconds.items()
        }
        return True

    def _confirm_all(self, host: WorkerHost) -> Iterator[tuple[Workload, Confirmation]]:
        """Time the candidates of the shapes again, those of one version in one set of fresh processes."""
        shapes: dict[str, list[Workload]] = {}
        for name, workload in self.shapes.items():
            candidate = decision.fastest_candidate(self._times[name], self.sound, self.best, self.floor)
            if candidate:
                shapes.setdefault(candidate, []).append(workload)
        count = sum(map(len, shapes.values()))
        for candidate, workloads in shapes.items():
            yield from self._confirm(host, candidate, workloads, self._second_budget(count))

    def _second_budget(self, shapes: int) -> TimingBudget:
        """Return the budget of each of `shapes` in the second timing: an equal part of the time that is left."""
        budget = _SECOND[self.request.device]
        part = (self.request.seconds - self._seconds_spent) / shapes / 2  # half of it goes into grading
        return replace(budget, seconds=max(budget.seconds, min(part, _MOST_SECONDS)))

    def _confirm(
        self, host: WorkerHost, candidate: str, workloads: Sequence[Workload], budget: TimingBudget
    ) -> Iterator[tuple[Workload, Confirmation]]:
        languages_by_name = {v.solution: v.language for v in self.request.versions}
        roles = {SOLUTION: candidate, BEST: self.best, TWIN: self.best}
        sources = {
            side: SideSource(self._builds[name], languages_by_name[name], Limits()) for side, name in roles.items()
        }
        with self._screen(host, sources, BEST) as screen:
            for workload in workloads:
                if self._seconds_spent > self.request.seconds:
                    self.notes.append(
                        f"{workload.name}: no time was left to confirm {candidate}, so {self.best} runs there"
                    )
                    continue
                screen.check([workload])
                screen.time(screen.remaining, budget, [workload])
                if screen.failures:
                    self._note_failures(screen, candidate)
                    return
                confirmation = decision.confirm(candidate, screen.samples[workload.name], self.confidence)
                self._second[workload.name] = confirmation
                yield workload, confirmation

    def _note_failures(self, screen: Screen, candidate: str) -> None:
        """Note the failure of a candidate in its second timing; that of the best version's twin ends the map.

        Raises:
            MachineFailed: the twin fails, so the best single version does.
        """
        if TWIN in screen.failures:
            raise MachineFailed(f"{self.best} fails when it is timed again: {screen.failures[TWIN]}")
        self.failures[candidate] = screen.failures[SOLUTION]

    def _screen(self, host: WorkerHost, sources: Mapping[str, SideSource], anchor: str) -> Screen:
        request, shapes = self.request, [*self.shapes.values()] or self.request.workloads
        return Screen(request.file, host, request.device, sources, anchor, self.best, checked=shapes, timed=shapes)

    def _cell(self, workload: Workload) -> MapCell:
        times, second = self._times[workload.name], self._second.get(workload.name)
        first = [
            time.model_copy(
                update={
                    "comparison": None
                    if name == self.best
                    else timing.compare_times(self.best, times[name], times[self.best])
                }
            )
            for name, time in self._first[workload.name].items()
        ]
        confirmed = second if second and self.is_shown(second) else None
        return MapCell(
            workload=workload,
            times=tuple(first),
            confirmation=second,
            solution=confirmed.solution if confirmed else self.best,
        )

    def _note_left_out(self, count: int) -> None:
        shapes = "1 shape" if count == 1 else f"{count} shapes"
        self.notes.append(f"the time of {self.request.seconds:g} s did not reach {shapes}")

    @property
    def _seconds_spent(self) -> float:
        return time.monotonic() - self._started

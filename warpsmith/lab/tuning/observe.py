"""Evidence that needs no counters: times by workload, a size sweep, one thread against all, the compiler."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import ExitStack
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload
from warpsmith.core.profile import Observations, Point
from warpsmith.errors import SolutionFailed
from warpsmith.lab.gate.judge import Request
from warpsmith.lab.machine import hardware, machine
from warpsmith.lab.timing import session, statistics
from warpsmith.lab.timing.session import SOLUTION, Arenas, Session
from warpsmith.lab.workers.side import Failed, Side, WorkerHost
from warpsmith.languages.base import Build

_FRACTIONS = (4, 16)
_BLOCKS = 11
_WARM_UPS = 3


def observe(request: Request) -> Observations:
    """Observe the request's candidate, which must be correct: nothing is graded here.

    Raises:
        SolutionFailed: it does not build or run.
        MachineFailed: the worker host fails.
    """
    return _Observer(request).observations()


class _Observer:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.kind = request.page.target.kind
        self.device = "cuda" if self.kind == "gpu" else "cpu"
        self.language = languages.get(request.candidate.language)
        self.workloads = request.file.definition.select(*request.sets)
        self.largest = max(self.workloads, key=lambda w: request.file.definition.work(w).bytes)
        self.smallest = min(self.workloads, key=lambda w: request.file.definition.work(w).bytes)
        self.sweep = _fractions(self.largest, request)

    def observations(self) -> Observations:
        request = self.request
        try:
            with ExitStack() as stack:
                return self._run(stack)
        except Failed as failure:
            raise SolutionFailed(
                f"{request.candidate.version} cannot be observed: {failure.message}."
            ) from failure

    def _run(self, stack: ExitStack) -> Observations:
        request, everything = self.request, [*self.workloads, *self.sweep]
        host = stack.enter_context(WorkerHost(self.device))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpsmith-build-")))
        build = self.language.build(request.candidate.path, request.file.definition, folder)
        arenas = session.allocate(request.file, (), everything, [SOLUTION], self.device)
        stack.callback(arenas.close)
        side = self._side(stack, host, arenas, build, threads=0)
        points = tuple(self._point(side, arenas, workload) for workload in self.workloads)
        whole = next(point for point in points if point.workload == self.largest.name)
        parts = tuple(self._point(side, arenas, workload) for workload in self.sweep)
        host_seconds = self._host_seconds(side, arenas) if self.kind == "gpu" else None
        found = side.resources()
        return Observations(
            version=request.candidate.version,
            language=request.candidate.language,
            solution_sha256=files.sha256(request.candidate.path),
            kind=self.kind,
            points=points,
            sweep=(whole, *parts) if parts else (),
            cores=machine.usable_cores(),
            one_thread_seconds=self._one_thread(stack, host, arenas, build) if self.kind == "cpu" else None,
            host_seconds=host_seconds,
            resources=found or build.resources,
            measured=this_minute(),
        )

    def _side(self, stack: ExitStack, host: WorkerHost, arenas: Arenas, build: Build, threads: int) -> Side:
        side = host.side(SOLUTION, self.request.limits)
        stack.callback(side.close)
        shared = [arenas.inputs, arenas.outputs[SOLUTION]]
        side.load(self.request.file.definition, build, shared, self.device, self.language.name, threads)
        side.answer("load")
        return side

    def _session(self, side: Side, arenas: Arenas, workload: Workload) -> Session:
        self.request.tell(f"observe: {workload.name}")
        seed = secrets.randbits(62)
        return Session(self.request.file, workload, arenas, {SOLUTION: side}, seed, self.device)

    def _seconds(self, side: Side, arenas: Arenas, workload: Workload) -> float:
        one = self._session(side, arenas, workload)
        one.capture()
        seconds: list[float] = []
        for block in range(_WARM_UPS + _BLOCKS):
            one.fill(quick=True)
            found = one.timed(SOLUTION).seconds
            if block >= _WARM_UPS:
                seconds.append(found)
        return statistics.median(seconds)

    def _point(self, side: Side, arenas: Arenas, workload: Workload) -> Point:
        request = self.request
        work = request.file.definition.work(workload)
        roofline = hardware.roofline(request.project, request.page, request.measurement, work, workload.dtype)
        return Point(
            workload=workload.name,
            seconds=self._seconds(side, arenas, workload),
            floor_seconds=roofline.floor_seconds,
            memory_seconds=roofline.memory_seconds,
            compute_seconds=roofline.compute_seconds,
            bytes=work.bytes,
        )

    def _host_seconds(self, side: Side, arenas: Arenas) -> float:
        one = self._session(side, arenas, self.smallest)
        one.capture()
        one.fill(quick=True)
        return max(0.0, one.wall_seconds(SOLUTION) - one.timed(SOLUTION).seconds)

    def _one_thread(self, stack: ExitStack, host: WorkerHost, arenas: Arenas, build: Build) -> float:
        side = self._side(stack, host, arenas, build, threads=1)
        return self._seconds(side, arenas, self.largest)


def _fractions(largest: Workload, request: Request) -> list[Workload]:
    """The largest workload at parts of its first variable axis; none where callers promise anything."""
    definition = request.file.definition
    variable = [name for name, size in definition.axes.items() if isinstance(size, str)]
    if not variable or definition.constraints or request.file.inputs is not None:
        return []
    axis = variable[0]
    size = largest.axes[axis]
    return [
        largest.model_copy(
            update={"name": f"{largest.name} / {part}", "axes": {**largest.axes, axis: size // part}}
        )
        for part in _FRACTIONS
        if size // part > 0
    ]

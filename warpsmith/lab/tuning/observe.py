"""Evidence that needs no counters: times by workload, a size sweep, one thread against all, the compiler's
report."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload
from warpsmith.core.profile import Observations, Point
from warpsmith.errors import SolutionFailed
from warpsmith.lab.gate.request import Request
from warpsmith.lab.grading import free_axes
from warpsmith.lab.machine import contention, hardware, system
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.arenas import Arenas, allocate_arenas
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import Side, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import Build
from warpsmith.temporary import TemporaryFolder

_FRACTIONS = (4, 16)
_BLOCKS = 11
_WARM_UPS = 3


def observe_version(request: Request) -> Observations:
    """Observe the request's candidate, which must be correct, because nothing is graded here.

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
        except SideFailed as failure:
            raise SolutionFailed(
                f"{request.candidate.version} cannot be observed: {failure.message}."
            ) from failure

    def _run(self, stack: ExitStack) -> Observations:
        request, workloads = self.request, [*self.workloads, *self.sweep]
        load = contention.describe_cpu_load() if self.kind == "cpu" else None  # before our own processes import
        host = stack.enter_context(WorkerHost(self.device))
        folder = Path(stack.enter_context(TemporaryFolder("build")))
        build = self.language.build(request.candidate.path, request.file.definition, folder)
        arenas = allocate_arenas(request.file, (), workloads, [SOLUTION], self.device)
        stack.callback(arenas.close)
        side = self._start_side(stack, host, arenas, build, threads=0)
        points = tuple(self._observe_point(side, arenas, workload) for workload in self.workloads)
        whole = next(point for point in points if point.workload == self.largest.name)
        parts = tuple(self._observe_point(side, arenas, workload) for workload in self.sweep)
        host_seconds = self._host_seconds(side, arenas) if self.kind == "gpu" else None
        resources = side.resources()
        load = load or (contention.describe_cpu_load() if self.kind == "cpu" else None)
        return Observations(
            version=request.candidate.version,
            language=request.candidate.language,
            solution_sha256=files.file_sha256(request.candidate.path),
            kind=self.kind,
            points=points,
            sweep=(whole, *parts) if parts else (),
            cores=system.usable_cores(),
            one_thread_seconds=self._one_thread_seconds(stack, host, arenas, build)
            if self.kind == "cpu" and load is None
            else None,
            host_seconds=host_seconds,
            resources=resources or build.resources,
            load=load or "",
            measured=this_minute(),
        )

    def _start_side(self, stack: ExitStack, host: WorkerHost, arenas: Arenas, build: Build, threads: int) -> Side:
        side = host.start_side(SOLUTION, self.request.limits)
        stack.callback(side.close)
        shared = [arenas.inputs, arenas.outputs[SOLUTION]]
        side.load(self.request.file.definition, build, shared, self.device, self.language.name, threads=threads)
        side.answer("load")
        return side

    def _open_session(self, side: Side, arenas: Arenas, workload: Workload) -> Session:
        self.request.tell(f"observe: {workload.name}")
        seed = secrets.randbits(62)
        return Session(self.request.file, workload, arenas, {SOLUTION: side}, seed, self.device)

    def _median_seconds(self, side: Side, arenas: Arenas, workload: Workload) -> float:
        session = self._open_session(side, arenas, workload)
        session.capture_graphs()
        seconds: list[float] = []
        for block in range(_WARM_UPS + _BLOCKS):
            session.fill_inputs(quick=True)
            call_seconds = session.time_block(SOLUTION).seconds
            if block >= _WARM_UPS:
                seconds.append(call_seconds)
        return statistics.median(seconds)

    def _observe_point(self, side: Side, arenas: Arenas, workload: Workload) -> Point:
        request, definition = self.request, self.request.file.definition
        roofline = hardware.workload_roofline(
            request.project, request.page, request.measurement, definition, workload
        )
        return Point(
            workload=workload.name,
            seconds=self._median_seconds(side, arenas, workload),
            floor_seconds=roofline.floor_seconds,
            memory_seconds=roofline.memory_seconds,
            compute_seconds=roofline.compute_seconds,
            bytes=definition.work(workload).bytes,
        )

    def _host_seconds(self, side: Side, arenas: Arenas) -> float:
        session = self._open_session(side, arenas, self.smallest)
        session.capture_graphs()
        session.fill_inputs(quick=True)
        return max(0.0, session.wall_seconds(SOLUTION) - session.time_block(SOLUTION).seconds)

    def _one_thread_seconds(self, stack: ExitStack, host: WorkerHost, arenas: Arenas, build: Build) -> float:
        side = self._start_side(stack, host, arenas, build, threads=1)
        return self._median_seconds(side, arenas, self.largest)


def _fractions(largest: Workload, request: Request) -> list[Workload]:
    """Return the largest workload at fractions of its first variable axis; none without one."""
    variable = free_axes.variable_axes(request.file)
    if not variable:
        return []
    axis = variable[0]
    size = largest.axes[axis]
    fractions = [
        largest.model_copy(
            update={"name": f"{largest.name} / {part}", "axes": {**largest.axes, axis: size // part}}
        )
        for part in _FRACTIONS
        if size // part > 0
    ]
    return list(filter(request.file.definition.has_shapes, fractions))

"""Race of one version against the reference, `torch.compile` and the peers; each side is checked and timed.

A race gives no verdict. Every side runs in a worker of its own, interleaved as in the gate. Calls that are
launched one by one and calls from CUDA graphs are timed separately. A peer that is wrong, fails or is missing is
named, and the others go on. A peer that is near, by another honest rounding, is timed and marked.
"""

from __future__ import annotations

import itertools
import secrets
import statistics as plain
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload, calls_by_workload
from warpsmith.core.evaluation import COMPILED, GATE_VERSION, REFERENCE, Aggregate, Provenance, Status, Timing
from warpsmith.core.race import NEAR, Mode, RaceRecord, RaceResult, RaceSide
from warpsmith.core.text import PartCounter
from warpsmith.errors import MachineFailed, MachineLacks, Misuse, SolutionFailed
from warpsmith.lab.gate.request import Request
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine import contention, hardware, identity, provenance
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator import peers
from warpsmith.lab.race import race_energy
from warpsmith.lab.race.race_session import RaceSession
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, allocate_arenas
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.temporary import TemporaryFolder

PEER_LIMITS = Limits(seconds=300)
"""Limits of the project's own code; some peers tune themselves at their first call, which takes time."""

_IMPORT_ERRORS = ("ImportError: ", "ModuleNotFoundError: ")
_GRADED_CALLS = 2
_MAY_BE_BROKEN = (Status.RUNTIME_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)

T = TypeVar("T")


def list_race_sides(request: Request) -> tuple[str, ...]:
    """List the sides that a version is raced against.

    Raises:
        Misuse: a requested peer is unknown.
    """
    available = (COMPILED, *request.file.peers)
    unknown = sorted(set(request.peers) - set(available))
    if unknown:
        raise Misuse(
            f"{request.file.definition.name} has no peer {', '.join(unknown)}; it has: {', '.join(available)}."
        )
    return (REFERENCE, *(request.peers or available))


def run_race(
    request: Request,
    only: Sequence[str] = (),
    host: WorkerHost | None = None,
    keep: Callable[[RaceRecord], object] | None = None,
) -> RaceRecord:
    """Race one version at the request's workload sets.

    Args:
        request: the version and the conditions, as for the gate; no `peers` means all of them.
        only: names of workloads; by default all that are timed.
        host: a running worker host; by default one of its own.
        keep: takes the record so far after each workload but the last, so that a race that is ended keeps them.

    Raises:
        MachineLacks: the version's language cannot be timed here.
        Misuse: an unknown peer or workload.
        SolutionFailed: the version is wrong or fails.
        MachineFailed: the reference fails, or the device is busy.
    """
    language = languages.get(request.candidate.language)
    lacks = language.missing(request.page.target.kind)
    if lacks or request.page.target.kind not in language.targets:
        raise MachineLacks(lacks or f"{language.name} cannot be timed on {request.page.target.id}.")
    timed = request.file.definition.select(*request.sets)
    chosen = {name: request.file.definition.find_workload(name) for name in only}
    unknown = sorted(name for name, workload in chosen.items() if workload not in timed)
    if unknown:
        names = ", ".join(workload.name for workload in timed)
        raise Misuse(f"No timed workload is named {', '.join(unknown)}; there are: {names}.")
    raced = [workload for workload in timed if not only or workload in chosen.values()]
    return PeerRace(request, raced).run(host, keep)


class PeerRace:
    """One race in progress."""

    def __init__(self, request: Request, workloads: Sequence[Workload]) -> None:
        self.request, self.workloads = request, workloads
        self.names = list_race_sides(request)
        self.parts = PartCounter(request.tell, len(workloads) * (len(self.names) + 2))
        self.device = "cuda" if request.page.target.kind == "gpu" else "cpu"
        self.machine = identity.identify_machine(request.page.target)
        self.gauge = Gauge(self.machine.uuid)
        self.budget = request.budget or TimingBudget.for_device(self.device)
        self.seed = secrets.randbits(62)
        self.absent: dict[str, str] = {}
        self.notes: list[str] = []
        self.results: dict[str, RaceSide] = {}
        """Side to its result at the current workload."""
        self.grades: dict[str, list[tuple[Grade, bool]]] = {}
        """Side to its grades at the current workload, each with True if it is near."""
        self.samples: dict[Mode, dict[str, Samples]] = {"eager": {}, "graph": {}}
        self._seeds = itertools.count(self.seed + 1)
        self.sides: Sides

    def run(self, host: WorkerHost | None, keep: Callable[[RaceRecord], object] | None) -> RaceRecord:
        """Race at all workloads."""
        results: list[RaceResult] = []
        with ExitStack() as stack:
            project = self.request.project
            hidden = (project.kernels, project.devlog)
            host = host or stack.enter_context(WorkerHost(self.device, hidden=hidden))
            folder = Path(stack.enter_context(TemporaryFolder("build")))
            self.sides = stack.enter_context(self._prepare_sides(host, folder))
            with self._attribute_failures():
                self.sides.start((SOLUTION, REFERENCE))
            self._check_idle()
            for workload in self.workloads:
                results.append(self._race_workload(workload))
                if keep and len(results) < len(self.workloads):
                    keep(self._record(results))
        self.parts.end("race")
        return self._record(results)

    def _prepare_sides(self, host: WorkerHost, folder: Path) -> Sides:
        request, candidate = self.request, self.request.candidate
        build = languages.get(candidate.language).build(candidate.path, request.file.definition, folder)
        sources = {SOLUTION: SideSource(build, candidate.language, request.limits)}
        sources |= {name: SideSource((request.file.path, name), limits=PEER_LIMITS) for name in self.names}
        arenas = allocate_arenas(request.file, (), self.workloads, sources, self.device)
        return Sides(request.file, host, arenas, sources, self.device)

    def _race_workload(self, workload: Workload) -> RaceResult:
        """Check every side at one workload, time those that are right, and read their energy."""
        self.results, self.grades = {}, {}
        for name in (SOLUTION, *self.names):
            self.parts.begin(f"{workload.name}: checking {name}")
            self._check_side(workload, name)
        self.parts.begin(f"{workload.name}: timing")
        names = list(self.results)
        eager = self._time(workload, names, "eager")
        assert eager is not None  # only graphs may be unable to hold the version
        graph = self._time(workload, names, "graph") if self.device != "cpu" else None
        self._read_launched_energy(workload)
        return RaceResult(
            workload=workload.name, set=workload.set, sides=tuple(self.results.values()), eager=eager, graph=graph
        )

    def _check_side(self, workload: Workload, name: str) -> None:
        """Grade a side on fresh inputs; a peer that cannot be imported is absent from then on."""
        if name in self.absent:
            return
        try:
            with self._attribute_failures(name):
                if name not in self.sides.running:
                    self.sides.start((name,))
                for grade, near in self._grade_calls(workload, name):
                    self._add_grade(name, grade, near)
        except SideFailed as failure:
            self._record_failure(name, failure)

    def _grade_calls(self, workload: Workload, name: str) -> list[tuple[Grade, bool]]:
        session = self._open_session(workload, (name,), CHECKED_SLOTS)
        grades = []
        for _ in range(_GRADED_CALLS):
            session.fill_inputs()
            session.call_side(name)
            grades.append(session.grade_with_near(name, 0))
        return grades

    def _add_grade(self, name: str, grade: Grade, near: bool) -> None:
        """Add a grade to the result of a side.

        Raises:
            SideFailed: the side may not be timed.
        """
        grades = self.grades.setdefault(name, [])
        grades.append((grade, near))
        wrong = next((grade for grade, near in grades if grade.status is not Status.PASSED and not near), None)
        deviation = wrong or next((grade for grade, near in grades if near), None)
        result = self.results.get(name) or RaceSide(
            side=name, status=Status.PASSED, differs=peers.get_peer(self.request.file, name).differs
        )
        changes = {
            "status": wrong.status if wrong else NEAR if deviation else Status.PASSED,
            "message": deviation.detail if deviation else "",
            "correctness": correctness.summarize_grades([grade for grade, _ in grades]),
        }
        self.results[name] = result.model_copy(update=changes)
        if wrong:
            raise SideFailed(wrong.status, wrong.detail, name)

    def _record_failure(self, name: str, failure: SideFailed) -> None:
        """Record the failure of a peer, and end its process if that may be broken."""
        import_error = next((text for text in _IMPORT_ERRORS if failure.message.startswith(text)), None)
        if import_error:
            self.absent[name] = failure.message.removeprefix(import_error)
            self.results.pop(name, None)
        else:
            status, message = failure.status, failure.message
            result = self.results.get(name) or RaceSide(side=name, status=status, message=message)
            self.results[name] = result.model_copy(update={"status": status, "message": message})
        if failure.status in _MAY_BE_BROKEN and name in self.sides.running:
            self.sides.running.pop(name).close()

    def _time(self, workload: Workload, names: Sequence[str], mode: Mode) -> Timing | None:
        """Time interleaved rounds of the sides that may be timed; None if the version is no CUDA graph."""
        names = [name for name in names if self.results[name].timed]
        samples = self._run_with_survivors(names, lambda sides: self._time_batch(workload, sides, mode))
        if samples is None:
            return None
        self.samples[mode][workload.name] = samples
        for grade in samples.grades:
            self._add_grade(SOLUTION, grade, near=False)
        request = self.request
        roofline = hardware.workload_roofline(
            request.project,
            request.page,
            request.measurement,
            request.file.definition,
            workload,
            timing.timing_clock(samples, self.device),
        )
        return timing.summarize_samples(samples, roofline, self.device)

    def _time_batch(self, workload: Workload, names: Sequence[str], mode: Mode) -> Samples | None:
        """Time one batch of rounds.

        In the mode `graph`, only sides that a graph can hold take part, and their energy is read too.
        """
        samples, session = Samples(), self._open_session(workload, names)
        timing.time_rounds(session, samples, self.budget, self._timing_gauge, graphs=mode == "graph")
        if mode == "graph" and samples.eager:
            return self._time_captured(workload, names, samples.eager)
        if mode == "eager":
            for name in names:
                self.results[name] = self.results[name].model_copy(
                    update={"host_seconds": session.host_seconds(name)}
                )
        self._grade_timed_calls(session)
        if mode == "graph":
            self._read_graph_energy(session, samples)
        return samples

    def _time_captured(self, workload: Workload, names: Sequence[str], eager: dict[str, str]) -> Samples | None:
        """Time the rounds again without the sides that no graph can hold."""
        for name, reason in eager.items():
            self.results[name] = self.results[name].model_copy(update={"uncaptured": reason})
        if SOLUTION in eager:
            self.notes.append(f"{workload.name}: the version is no CUDA graph: {eager[SOLUTION]}")
            return None
        return self._time_batch(workload, [name for name in names if name not in eager], "graph")

    def _grade_timed_calls(self, session: RaceSession) -> None:
        """Run one more round and grade the peers' results; the version's were graded already."""
        session.fill_inputs(quick=True)
        for name in (name for name in session.shuffled_sides() if name != SOLUTION):
            with self._attribute_failures(name):
                session.time_block(name)
                grade, near = session.grade_with_near(name, session.pick_slot())
                if grade.status is not Status.PASSED:
                    grade = replace(grade, detail=f"the output of a timed call: {grade.detail}")
                self._add_grade(name, grade, near)

    def _read_graph_energy(self, session: RaceSession, samples: Samples) -> None:
        """Read the joules of a call of each side from its graph."""
        if self.gauge.joules() is None:
            return
        session.capture_graphs()  # again: the version's last graph held a single call
        for name in session.sides:
            self._read_side_energy(session, name, samples, "graph")

    def _read_launched_energy(self, workload: Workload) -> None:
        """Read the joules of a call of each side that no graph holds, from calls launched back to back."""
        samples, captured = self.samples["eager"][workload.name], self.samples["graph"].get(workload.name)
        replayed = captured.seconds if captured else {}
        launched = [name for name in samples.seconds if name not in replayed and self.results[name].timed]
        if self.device == "cpu" or not launched or self.gauge.joules() is None:
            return

        def read_energy(names: list[str]) -> None:
            session = self._open_session(workload, names)
            session.fill_inputs(quick=True)
            for name in names:
                if self.results[name].joules is None:
                    self._read_side_energy(session, name, samples, "eager")

        self._run_with_survivors(launched, read_energy)

    def _read_side_energy(self, session: RaceSession, name: str, samples: Samples, mode: Mode) -> None:
        self.request.tell(f"{session.workload.name}: energy of {name}")
        seconds = plain.median(samples.seconds[name])
        with self._attribute_failures(name):
            joules = race_energy.joules_per_call(session, name, seconds, self.gauge, mode)
        if joules is not None:
            changes = {"joules": joules, "joules_mode": mode}
            self.results[name] = self.results[name].model_copy(update=changes)

    def _run_with_survivors(self, names: Sequence[str], attempt: Callable[[list[str]], T]) -> T:
        """Run `attempt` with all sides, and again without each side that fails in it."""
        survivors = list(names)
        while True:
            try:
                with self._attribute_failures():
                    return attempt(survivors)
            except SideFailed as failure:
                name = str(failure.side)
                survivors.remove(name)
                self._record_failure(name, failure)

    @contextmanager
    def _attribute_failures(self, name: str | None = None) -> Iterator[None]:
        """Turn a failed side into its consequence.

        A failure of the version or of the reference ends the race. That of a peer is left to the caller.

        Args:
            name: the side to blame where the failure names none; by default the version.
        """
        try:
            yield
        except SideFailed as failure:
            side = failure.side or name or SOLUTION
            if side == SOLUTION:
                path = self.request.project.relative(self.request.candidate.path)
                raise SolutionFailed(
                    f"{path} failed in the race: {failure.status}: {failure.message}"
                ) from failure
            if side == REFERENCE:
                raise MachineFailed(f"The reference failed in the race: {failure.message}") from failure
            raise SideFailed(failure.status, failure.message, side) from failure

    def _open_session(self, workload: Workload, names: Sequence[str], count: int | None = None) -> RaceSession:
        """Prepare sides for a workload with fresh inputs; `count` gives the slots of a session for checks."""
        sides = {name: self.sides.running[name] for name in names}
        seed, arenas = next(self._seeds), self.sides.arenas
        return RaceSession(self.request.file, workload, arenas, sides, seed, self.device, count=count)

    @property
    def _timing_gauge(self) -> Gauge | None:
        return self.gauge if self.device != "cpu" else None

    def _check_idle(self) -> None:
        """Check that nobody else uses the device: note it for a processor, raise MachineFailed for a GPU."""
        if self.device != "cpu":
            pids = [side.pid for side in self.sides.running.values()]
            contention.require_idle_gpu(self.request.measurement, self.gauge, pids)
        elif load := contention.describe_cpu_load():
            self.notes.append(load)

    def _aggregates(self, mode: Mode, raced: Sequence[Workload]) -> tuple[Aggregate, ...]:
        """Return geometric means over workloads, against each side that was timed at all of them."""
        workloads = self.samples[mode]
        if len(workloads) < len(raced):
            return ()
        calls = calls_by_workload(raced)
        everywhere = [
            name for name in self.names if all(name in samples.seconds for samples in workloads.values())
        ]
        return tuple(
            statistics.geometric_mean(
                {workload: (s.seconds[SOLUTION], s.seconds[name]) for workload, s in workloads.items()},
                name,
                calls,
            )
            for name in everywhere
        )

    def _record(self, results: Sequence[RaceResult]) -> RaceRecord:
        request, candidate = self.request, self.request.candidate
        modes: tuple[Mode, ...] = ("eager",) if self.device == "cpu" else ("eager", "graph")
        return RaceRecord(
            definition=request.file.definition.name,
            solution=f"{candidate.language}/{candidate.version}",
            target=request.page.target.id,
            provenance=Provenance(
                solution=request.project.relative(candidate.path),
                solution_sha256=files.file_sha256(candidate.path),
                definition_sha256=request.file.sha256,
                lab_sha256=provenance.lab_sha256(),
                gate_version=GATE_VERSION,
                seed=self.seed,
                machine=self.machine,
                measured=this_minute(),
            ),
            results=tuple(results),
            aggregates={mode: self._aggregates(mode, self.workloads[: len(results)]) for mode in modes},
            absent=self.absent,
            notes=tuple(self.notes),
            unraced=tuple(workload.name for workload in self.workloads[len(results) :]),
        )

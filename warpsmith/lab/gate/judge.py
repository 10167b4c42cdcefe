"""The gate: its steps in order, stopping at the first failure."""

from __future__ import annotations

import itertools
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Objective, Thresholds
from warpsmith.core.definition import Workload, WorkloadSet
from warpsmith.core.evaluation import (
    BEST,
    GATE_VERSION,
    REFERENCE,
    Aggregate,
    Correctness,
    Decision,
    Energy,
    Evaluation,
    Provenance,
    Resources,
    Status,
    Step,
    StepName,
    Timing,
    Verdict,
    WorkloadResult,
)
from warpsmith.core.hardware import Machine, Measurement
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed, MachineLacks
from warpsmith.lab.gate import decision, lint
from warpsmith.lab.gate.decision import Standing
from warpsmith.lab.gate.exam import Exam
from warpsmith.lab.gate.probes import Probes
from warpsmith.lab.gate.race import Race
from warpsmith.lab.grading import odd
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.instrumented import sanitizers
from warpsmith.lab.machine import busy, hardware, machine, provenance
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator import peers
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import energy, session
from warpsmith.lab.timing.bench import Bench, Source
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.timing import Budget
from warpsmith.lab.workers.side import Failed, Limits, WorkerHost
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.project import Project

BEFORE_ALL = "*"
"""Stands for the workload of a failure that came before the first one."""

Tell = Callable[[str], None]
"""Takes one line about what the gate is doing."""


@dataclass(frozen=True)
class Candidate:
    """A version to be judged, or the best one before it."""

    path: Path
    """Its file."""
    language: str
    """Its language."""
    version: str
    """`v3`."""


@dataclass(frozen=True)
class Request:
    """What is judged, and how."""

    project: Project
    """The project at hand."""
    file: DefinitionFile
    """The definition."""
    candidate: Candidate
    """The version."""
    page: HardwarePage
    """The target's page."""
    measurement: Measurement
    """What was measured on this machine: ceilings and the A/A floor."""
    best: Candidate | None = None
    """The best accepted version; None at the baseline."""
    sets: tuple[WorkloadSet, ...] = ("representative",)
    """Workload sets that are timed; odd shapes are always checked."""
    timed: bool = True
    """False: a designer's quick check, which ends after the probes."""
    sanitized: bool = True
    """False: the sanitizers are left out, and the verdict says so."""
    peers: tuple[str, ...] = ()
    """Further sides to race: `torch.compile`, or peers of the definition."""
    objective: Objective = "time"
    """What a version must do better than the best one."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What the decision is made by."""
    limits: Limits = field(default_factory=Limits)
    """What the solution may take."""
    budget: Budget | None = None
    """How long each workload is timed; None: as suits the device."""
    tell: Tell = lambda _: None
    """Where progress is told."""


class _Stop(Exception):
    """A step failed: no later step runs."""


def judge(request: Request, host: WorkerHost | None = None) -> Evaluation:
    """Judge one version; the only way to a verdict. A `host` that is up already saves its start.

    A machine or a reference that fails gives an INVALID verdict, never a rollback.

    Raises:
        MachineLacks: the language cannot run here at all, or energy is to be read and cannot be.
        BadDefinition: the definition or its reference is wrong.
        Misuse: a peer that only a race can hold.
    """
    language = languages.get(request.candidate.language)
    lacks = language.missing(request.page.target.kind)
    if request.timed and request.objective == "energy":
        lacks = lacks or energy.missing(request.page.target)
    if lacks:
        raise MachineLacks(lacks)
    gate = _Gate(request, host)
    try:
        gate.run()
    except _Stop:
        pass
    except MachineFailed as error:
        gate.invalid(str(error))
    return gate.evaluation()


class _Gate:
    """One judgement in progress."""

    def __init__(self, request: Request, host: WorkerHost | None = None) -> None:
        self.request, self.host = request, host
        self.seed = secrets.randbits(62)
        self._sessions = itertools.count(1)
        self.steps: list[Step] = []
        self.trust: list[Check] = []
        self.absent: dict[str, str] = {}
        self.results: dict[str, WorkloadResult] = {}
        self.resources: tuple[Resources, ...] = ()
        self.aggregates: tuple[Aggregate, ...] = ()
        self.energy: Energy | None = None
        self.decision: Decision | None = None
        self.exam: Exam | None = None
        self.language = languages.get(request.candidate.language)
        self.device = "cuda" if request.page.target.kind == "gpu" else "cpu"
        definition = request.file.definition
        declared = definition.select("odd") or odd.derived(request.file)
        self.odd = [*declared, *odd.around(request.file, interpreted=self.interpreted)]
        self.timed = definition.select(*request.sets)
        self.machine: Machine = machine.machine(request.page.target)
        self.gauge = Gauge(self.machine.uuid)
        self.race = self._new_race()

    @property
    def interpreted(self) -> bool:
        """Whether the language only interprets here: then correctness is judged, and nothing is timed."""
        return self.request.page.target.kind not in self.language.targets

    @property
    def _untimed(self) -> str:
        """Why nothing is timed; empty where it is."""
        if self.interpreted:
            return f"{self.language.name} only interprets on {self.request.page.target.id}"
        return "" if self.request.timed else "only a check was asked for"

    def run(self) -> None:
        """All steps in order."""
        with ExitStack() as stack:
            self._lint()
            host = self.host or stack.enter_context(self._new_host())
            self._restock(host)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpsmith-build-")))
            builds = self._build(folder)
            bench = stack.enter_context(self._bench(host, builds))
            if self.host:
                stack.callback(self._restock, host)  # for the next judgement, while this one's sides end
            self._start(bench)
            if self.device != "cpu" and BEST in bench.sides:
                host.restock(2)  # a gain is looked at in fresh processes: their contexts are made meanwhile
            self.trust += [*bench.sides[SOLUTION].isolation, self._how_read(bench)]
            self.exam = Exam(
                self.request.file, bench.arenas, bench.sides[SOLUTION], self.device, self._fresh_seed,
                self.interpreted,
            )  # fmt: skip
            self._correctness(self.exam)
            self.trust += self.exam.checks
            self._probes(self.exam)
            if why := self._untimed:
                self._skip("timing", why)
                raise _Stop
            decided = self._timing(bench)
            if decided.verdict.accepted:
                self._sanitize(bench, builds[SOLUTION], self.exam.kernels)
            with self._step("decision"):
                self.aggregates, self.energy = self.race.aggregates(), self.race.energy()
                self.decision = decided

    def _new_host(self) -> WorkerHost:
        """A worker host from which candidates cannot read the project."""
        here = self.request.project
        return WorkerHost(self.device, interpret=self.interpreted, hidden=(here.kernels, here.devlog))

    def _restock(self, host: WorkerHost) -> None:
        """Idle workers for the sides of a judgement like this one."""
        host.restock(1 if self._untimed or not self.request.best else 2, trusted=0 if self._untimed else 1)

    def _lint(self) -> None:
        with self._step("lint") as notes:
            source = self.request.candidate.path.read_text(errors="replace")
            refused = lint.refusals(source)
            notes += refused or lint.findings(self.language, source)
            if refused:
                self._fail(Status.REFUSED, refused[0])

    def _build(self, folder: Path) -> dict[str, Build]:
        """The solution and the best version, ready to load."""
        request, builds = self.request, {}
        with self._step("build"):
            try:
                builds[SOLUTION] = self.language.build(request.candidate.path, request.file.definition, folder)
            except BuildFailed as error:
                self._fail(Status.COMPILE_ERROR, str(error))
            self.resources = builds[SOLUTION].resources
        if request.best is not None and not self._untimed:
            try:
                language = languages.get(request.best.language)
                builds[BEST] = language.build(request.best.path, request.file.definition, folder)
            except BuildFailed as error:
                raise MachineFailed(f"The best version does not build any more: {error}") from error
        return builds

    def _bench(self, host: WorkerHost, builds: dict[str, Build]) -> Bench:
        """Every side that this judgement needs; none is started yet."""
        request = self.request
        sources = {SOLUTION: Source(builds[SOLUTION], request.candidate.language, request.limits)}
        if request.best and BEST in builds:
            sources[BEST] = Source(builds[BEST], request.best.language, request.limits)
        if not self._untimed:
            peers.leave_inputs_alone(request.file, request.peers)
            trusted = (REFERENCE, *request.peers)
            sources |= {name: Source((request.file.path, name), limits=request.limits) for name in trusted}
        timed = () if self._untimed else self.timed
        arenas = session.allocate(request.file, [*self.odd, *self.timed], timed, sources, self.device)
        return Bench(request.file, host, arenas, sources, self.device)

    def _start(self, bench: Bench) -> None:
        """All sides in fresh processes, without the peers that cannot be started."""
        while True:
            try:
                with self._blame():
                    return bench.start()
            except Failed as failure:
                self._leave_out(bench, failure)

    def _leave_out(self, bench: Bench, failure: Failed) -> None:
        """Go on without a peer that failed: it is raced for information, and no verdict hangs on it."""
        name = str(failure.side)
        self.request.tell(f"{name} is left out: {failure.message}")
        self.absent[name] = failure.message
        bench.drop(name)

    def _correctness(self, exam: Exam) -> None:
        with self._step("correctness") as notes:
            for workload in (*self.odd, *self.timed):
                self.request.tell(f"correctness: {workload.name}")
                distrust = self._distrust(workload)
                if distrust:
                    notes.append(f"{workload.name} skipped: {distrust}")
                    continue
                with self._blame(workload):
                    exam.sit(workload, notes)
                self.results[workload.name] = self._passed(workload)
            for workload in [workload for workload in self.odd if workload.name in self.results]:
                with self._blame(workload):
                    exam.revisit(workload)
                self.results[workload.name] = self._passed(workload)

    def _probes(self, exam: Exam) -> None:
        """Whether each call is computed from its own inputs."""
        checked = [workload for workload in self.odd if workload.name in self.results]
        checked = checked or [workload for workload in self.timed if workload.name in self.results]
        if not checked:
            self._skip("probes", "no workload was checked")
            return
        found = Probes(
            self.request.file.definition,
            exam.session,
            checked,
            [] if self._untimed else self.timed,
            device=self.device,
            interpreted=self.interpreted,
        )
        with self._step("probes") as notes:
            with self._blame(found.workload):
                found.run()
            notes += found.notes
        self.trust += found.checks

    def _timing(self, bench: Bench) -> Decision:
        """Race until the decision is settled; then hold the times to what is possible."""
        request = self.request
        with self._step("timing") as notes:
            self.trust.append(self._alone(bench))
            standing = self._raced(bench)
            if self.device != "cpu":
                self._alone(bench)
                with self._blame():
                    self.resources = bench.sides[SOLUTION].resources()
                self.trust.append(self._clocks_told())
            notes += self.race.notes(request.measurement)
            decided = self._seen_again(bench, standing) if standing.twice else standing.decision
        timings = self.race.timings(request.project, request.page, request.measurement, request.file, self.device)
        self._plausible(timings)
        for workload in self.timed:
            self.results[workload.name] = self._passed(workload, timings[workload.name])
        return decided

    def _raced(self, bench: Bench) -> Standing:
        """The race of all sides; where a peer fails in it the others race anew: pairs have no gaps."""
        while True:
            try:
                return self._settled(self.race, bench)
            except Failed as failure:
                self._leave_out(bench, failure)
                self._start(bench)
                self.race = self._new_race()

    def _seen_again(self, bench: Bench, first: Standing) -> Decision:
        """A gain or a loss counts that two pairs of processes show."""

        def look() -> Standing:
            self.request.tell("timing: again in fresh processes")
            with self._blame():
                bench.start((SOLUTION, BEST))
            return self._settled(self._new_race(), bench, (SOLUTION, BEST), repeats=1)

        return decision.seen_again(first, look, first.floor)

    def _settled(
        self, race: Race, bench: Bench, names: tuple[str, ...] | None = None, repeats: int = 0
    ) -> Standing:  # fmt: skip
        request = self.request
        rivals = [name for name in (SOLUTION, BEST) if name in bench.sides]

        def time_one(workload: Workload) -> None:
            request.tell(f"timing: {workload.name}")
            with self._blame(workload):
                race.time(workload, lambda workload: bench.session(workload, self._fresh_seed(), names))
                if request.objective == "energy":
                    request.tell(f"energy: {workload.name}")
                    race.weigh(workload, lambda workload: bench.session(workload, self._fresh_seed(), rivals))

        return race.settle(time_one, request.measurement, request.thresholds, repeats, request.tell)

    def _new_race(self) -> Race:
        budget = self.request.budget or Budget.of(self.device)
        return Race(self.timed, budget, self.gauge if self.device != "cpu" else None)

    def _alone(self, bench: Bench) -> Check:
        """Whether the device is ours alone, all sides being stopped."""
        if self.device == "cpu":
            busy_cores = busy.cpu()
            how = busy_cores or "the other cores are idle"
            return Check(name="machine idle", ran=busy_cores is None, how=how)
        return Check(name="machine idle", ran=True, how=busy.gpu(self.request.measurement, self.gauge, bench.pids))

    def _clocks_told(self) -> Check:
        why = self.gauge.why
        return Check(name="GPU clocks", ran=not why, how=why or "read before and after each block")

    def _plausible(self, timings: dict[str, Timing]) -> None:
        request = self.request
        with self._step("plausibility"):
            for workload in self.timed:
                work = request.file.definition.work(workload)
                limit = hardware.speed_limit(request.project, request.page, request.measurement, work)
                seconds = timings[workload.name].seconds
                if seconds < limit:
                    self._fail(
                        Status.IMPLAUSIBLE_TIME,
                        f"{seconds * 1e6:.1f} us is under the {limit * 1e6:.1f} us that the hardware needs",
                        workload,
                    )

    def _sanitize(self, bench: Bench, build: Build, kernels: dict[str, set[str]]) -> None:
        """The sanitizers, on a version that would be accepted; a tool that fails makes the verdict INVALID."""
        request = self.request
        why = "compute-sanitizer needs an NVIDIA GPU" if self.device == "cpu" else "they were left out"
        if self.device == "cpu" or not request.sanitized:
            self.trust.append(Check(name="sanitizers", ran=False, how=why))
            self._skip("sanitizers", why)
            return
        bench.sides[SOLUTION].close()
        with self._step("sanitizers") as notes:
            chosen = sanitizers.choose(request.file.definition, [*self.odd, *self.timed], kernels)
            found = sanitizers.run(
                request.file, build, request.candidate.language, chosen, request.tell
            )  # fmt: skip
            self.trust += found.checks
            notes += [f"{check.name}: {check.how}" for check in found.checks if not check.ran]
            if found.broken:
                raise MachineFailed(found.broken)
            if found.failure:
                self._fail(Status.SANITIZER, found.failure)

    def _how_read(self, bench: Bench) -> Check:
        name = "outputs at the answer"
        if self.device != "cpu":
            return Check(
                name=name, ran=True, how="delivered inside the grader's time, against the reference's delivery"
            )
        why = bench.sides[SOLUTION].readable()
        return Check(name=name, ran=why is None, how=why or "read out of the stopped worker")

    def _passed(self, workload: Workload, found: Timing | None = None) -> WorkloadResult:
        samples = self.race.samples.get(workload.name)
        graded = self._graded(workload.name, samples.grades if samples else ())
        return WorkloadResult(workload=workload.name, status=Status.PASSED, correctness=graded, timing=found)

    def _graded(self, name: str, timed: Sequence[Grade] = ()) -> Correctness | None:
        """What was graded at a workload so far; None: nothing."""
        if self.exam is None or not (self.exam.grades[name] or timed):
            return None
        return self.exam.summary(name, timed)

    def _distrust(self, workload: Workload) -> str | None:
        return self.language.distrust(self.request.file.definition, workload) if self.interpreted else None

    def _fresh_seed(self) -> int:
        """A seed that no earlier session of this judgement had, from the judgement's nonce."""
        return self.seed + next(self._sessions)

    def _skip(self, name: StepName, why: str) -> None:
        self.steps.append(Step(name=name, state="skipped", notes=(why,), seconds=0.0))

    @contextmanager
    def _step(self, name: StepName) -> Iterator[list[str]]:
        """Time a step and keep what it notes; a failure inside is kept as `failed`."""
        self.request.tell(name)
        notes: list[str] = []
        started, state = time.monotonic(), "failed"
        try:
            yield notes
            state = "noted" if notes else "passed"
        finally:
            self.steps.append(
                Step.model_validate(
                    {"name": name, "state": state, "notes": notes, "seconds": time.monotonic() - started}
                )
            )

    @contextmanager
    def _blame(self, workload: Workload | None = None) -> Iterator[None]:
        """The solution's fault is a verdict; a best version or a reference that fails is the machine's.

        A peer's is left to whoever called, as Failed with the workload in its message.
        """
        try:
            yield
        except Failed as failure:
            if failure.side in self.request.peers:
                where = f"{workload.name}: " if workload else ""
                raise Failed(failure.status, where + failure.message, failure.side) from failure
            if failure.side not in (None, SOLUTION):
                raise MachineFailed(f"{failure.side}: {failure.message}") from failure
            self._fail(failure.status, failure.message, workload)

    def _fail(self, status: Status, message: str, workload: Workload | None = None) -> None:
        """Write the failure down and stop."""
        name = workload.name if workload else BEFORE_ALL
        samples = self.race.samples.get(name)
        found = self._graded(name, samples.grades if samples else ())
        self.results[name] = WorkloadResult(workload=name, status=status, message=message, correctness=found)
        self.decision = Decision(verdict=Verdict.ROLLBACK, reason=f"{status} at {name}: {message}"[:600])
        raise _Stop

    def invalid(self, message: str) -> None:
        """The machine failed: nothing is said of the version."""
        self.results = {}
        self.aggregates = ()
        self.decision = Decision(verdict=Verdict.INVALID, reason=message[:600])

    def evaluation(self) -> Evaluation:
        """What was found, as a record."""
        request = self.request
        if self.decision is None:
            reason = f"correct, but not timed: {self._untimed}"
            self.decision = Decision(verdict=Verdict.INVALID, reason=reason)
        return Evaluation(
            definition=request.file.definition.name,
            language=request.candidate.language,
            version=request.candidate.version,
            target=request.page.target.id,
            provenance=Provenance(
                solution=request.project.relative(request.candidate.path),
                solution_sha256=files.sha256(request.candidate.path),
                definition_sha256=request.file.sha256,
                best=request.project.relative(request.best.path) if request.best else None,
                best_sha256=files.sha256(request.best.path) if request.best else None,
                lab_sha256=provenance.lab_sha256(),
                gate_version=GATE_VERSION,
                seed=self.seed,
                machine=self.machine,
                measured=this_minute(),
            ),
            steps=tuple(self.steps),
            trust=tuple(self.trust),
            resources=self.resources,
            results=tuple(self.results.values()),
            aggregates=self.aggregates,
            energy=self.energy,
            absent=self.absent,
            noise=request.measurement.noise,
            decision=self.decision,
        )

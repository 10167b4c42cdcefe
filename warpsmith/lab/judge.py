"""The gate: lint, build, correctness, timing, plausibility, decision, stopping at the first failure."""

from __future__ import annotations

import itertools
import math
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Thresholds
from warpsmith.core.definition import Workload, WorkloadSet
from warpsmith.core.evaluation import (
    BEST,
    GATE_VERSION,
    REFERENCE,
    Aggregate,
    Comparison,
    Decision,
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
from warpsmith.errors import MachineFailed, MachineLacks
from warpsmith.lab import correctness, decision, hardware, lint, machine, provenance, session, statistics, timing
from warpsmith.lab.correctness import Grade
from warpsmith.lab.definition_file import DefinitionFile
from warpsmith.lab.hardware import HardwarePage
from warpsmith.lab.session import Arenas, Session
from warpsmith.lab.side import Failed, Limits, Side, WorkerHost
from warpsmith.lab.timing import SOLUTION, Budget, Samples
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.project import Project

BEFORE_ALL = "*"
"""Stands for the workload of a failure that came before the first one."""

FALLBACK_FLOOR = 0.02
"""The noise floor where none was measured on this machine."""

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
    """False: a designer's quick check, which ends after correctness."""
    peers: tuple[str, ...] = ()
    """Further sides to race: `torch.compile`, or peers of the definition."""
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
        MachineLacks: the language cannot run here at all.
        BadDefinition: the definition or its reference is wrong.
    """
    language = languages.get(request.candidate.language)
    lacks = language.missing(request.page.target.kind)
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
        self.results: dict[str, WorkloadResult] = {}
        self.resources: tuple[Resources, ...] = ()
        self.aggregates: tuple[Aggregate, ...] = ()
        self.decision: Decision | None = None
        self.grades: dict[str, list[Grade]] = {}
        self.samples: dict[str, Samples] = {}
        self.language = languages.get(request.candidate.language)
        self.device = "cuda" if request.page.target.kind == "gpu" else "cpu"
        definition = request.file.definition
        self.odd = definition.select("odd") or derived_odd(request.file)
        self.timed = definition.select(*request.sets)
        self.machine: Machine = machine.machine(request.page.target)

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
            host = self.host or stack.enter_context(WorkerHost(self.device, interpret=self.interpreted))
            self._lint()
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpsmith-build-")))
            builds = self._build(folder)
            bench = self._bench(stack, host, builds)
            self._correctness(bench)
            if why := self._untimed:
                self.steps.append(Step(name="timing", state="skipped", notes=(why,), seconds=0.0))
                raise _Stop
            self._timing(bench)

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
        if request.best is not None:
            try:
                language = languages.get(request.best.language)
                builds[BEST] = language.build(request.best.path, request.file.definition, folder)
            except BuildFailed as error:
                raise MachineFailed(f"The best version does not build any more: {error}") from error
        return builds

    def _bench(self, stack: ExitStack, host: WorkerHost, builds: dict[str, Build]) -> _Bench:
        """Start every side that this judgement needs."""
        request = self.request
        peers = () if self._untimed else (REFERENCE, *request.peers)
        names = [*(name for name in builds if name == SOLUTION or not self._untimed), *peers]
        arenas = session.allocate(request.file, [*self.odd, *self.timed], names, self.device)
        stack.callback(arenas.close)
        bench = _Bench(arenas, {})
        for name in names:
            side = host.side(name, request.limits)
            stack.callback(side.close)
            bench.sides[name] = side
            source = builds.get(name, (request.file.path, name))
            owner = {SOLUTION: request.candidate, BEST: request.best}.get(name)
            with self._blame():
                side.load(
                    request.file.definition, source, [arenas.inputs, arenas.outputs[name]], self.device,
                    owner.language if owner else None,
                )  # fmt: skip
        for side in bench.sides.values():
            with self._blame():
                side.answer("load")
        return bench

    def _correctness(self, bench: _Bench) -> None:
        with self._step("correctness") as notes:
            for workload in (*self.odd, *self.timed):
                self.request.tell(f"correctness: {workload.name}")
                distrust = self._distrust(workload)
                if distrust:
                    notes.append(f"{workload.name} skipped: {distrust}")
                    continue
                with self._blame(workload):
                    one = Session(
                        self.request.file, workload, bench.arenas, {SOLUTION: bench.sides[SOLUTION]},
                        self._fresh_seed(), self.device,
                    )  # fmt: skip
                    self._check(one, notes)
                self.results[workload.name] = self._passed(workload)

    def _check(self, one: Session, notes: list[str]) -> None:
        """Fresh inputs twice in the same memory; at odd shapes every adversarial distribution too."""
        workload = one.workload
        grades = self.grades.setdefault(workload.name, [])
        one.fill()
        itself = one.holds_itself()
        if itself.status is not Status.PASSED:
            raise MachineFailed(
                f"The reference misses its own bound at {workload.name} ({itself.detail}): "
                "correct the tolerance of the definition."
            )
        self._keep(grades, one.check(SOLUTION), "normal")
        one.fill()
        self._keep(grades, one.check(SOLUTION), "normal")
        for distribution in one.inputs.adversarial if workload.set == "odd" else ():
            one.fill(distribution)
            if one.holds_itself().status is Status.PASSED:
                self._keep(grades, one.check(SOLUTION), distribution)
            else:
                notes.append(
                    f"{workload.name}: {distribution} left out, the reference itself misses the bound there"
                )

    def _keep(self, grades: list[Grade], grade: Grade, distribution: str) -> None:
        grades.append(grade)
        if grade.status is not Status.PASSED:
            raise Failed(grade.status, f"{grade.detail} ({distribution} inputs)")

    def _timing(self, bench: _Bench) -> None:
        request, repeats = self.request, 0
        with self._step("timing") as notes:
            self._time_all(bench)
            standing = self._standing(repeats)
            while not standing.settled:
                repeats += 1
                request.tell(f"timing: repeat {repeats} of {request.thresholds.max_repeats}")
                self._time_all(bench)
                standing = self._standing(repeats)
            if self.device != "cpu":
                answer = bench.sides[SOLUTION].ask({"do": "resources"})["resources"]
                self.resources = tuple(Resources.model_validate(part) for part in answer)
            if request.measurement.noise is None:
                notes.append(f"no A/A floor was measured on this machine; {FALLBACK_FLOOR:.0%} assumed")
        timings = self._timings()
        self._plausible(timings)
        with self._step("decision"):
            for workload in self.timed:
                self.results[workload.name] = self._passed(workload, timings[workload.name])
            self.aggregates = self._aggregates()
            self.decision = standing.decision

    def _time_all(self, bench: _Bench) -> None:
        for workload in self.timed:
            self.request.tell(f"timing: {workload.name}")
            samples = self.samples.setdefault(workload.name, Samples())
            with self._blame(workload):
                one = Session(
                    self.request.file, workload, bench.arenas, bench.sides, self._fresh_seed(), self.device
                )  # fmt: skip
                timing.run(one, samples, self.request.budget or Budget.of(self.device))

    def _standing(self, repeats: int) -> decision.Standing:
        if self.request.best is None:
            return decision.Standing(True, decision.baseline())
        noise = self.request.measurement.noise
        return decision.decide(
            next(a for a in self._aggregates() if a.against == BEST),
            {name: _best_of(timing_) for name, timing_ in self._timings().items()},
            noise.floor if noise else FALLBACK_FLOOR,
            self.request.thresholds,
            repeats,
        )

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

    def _timings(self) -> dict[str, Timing]:
        request, found = self.request, {}
        for workload in self.timed:
            work = request.file.definition.work(workload)
            roofline = hardware.roofline(request.project, request.page, request.measurement, work, workload.dtype)
            found[workload.name] = timing.summarise(self.samples[workload.name], roofline, self.device)
        return found

    def _aggregates(self) -> tuple[Aggregate, ...]:
        sides = [name for name in next(iter(self.samples.values())).seconds if name != SOLUTION]
        return tuple(
            statistics.geometric_mean(
                {name: (s.seconds[SOLUTION], s.seconds[side]) for name, s in self.samples.items()}, side
            )
            for side in sides
        )

    def _passed(self, workload: Workload, found: Timing | None = None) -> WorkloadResult:
        timed = self.samples[workload.name].grades if workload.name in self.samples else []
        graded = correctness.summarise(self.grades[workload.name] + timed)
        return WorkloadResult(workload=workload.name, status=Status.PASSED, correctness=graded, timing=found)

    def _distrust(self, workload: Workload) -> str | None:
        return self.language.distrust(self.request.file.definition, workload) if self.interpreted else None

    def _fresh_seed(self) -> int:
        """A seed that no earlier session of this judgement had, from the judgement's nonce."""
        return self.seed + next(self._sessions)

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
        """The solution's fault is a verdict; a best version or a reference that fails is the machine's."""
        try:
            yield
        except Failed as failure:
            if failure.side not in (None, SOLUTION):
                raise MachineFailed(f"{failure.side}: {failure.message}") from failure
            self._fail(failure.status, failure.message, workload)

    def _fail(self, status: Status, message: str, workload: Workload | None = None) -> None:
        """Write the failure down and stop."""
        name = workload.name if workload else BEFORE_ALL
        graded = self.grades.get(name)
        found = correctness.summarise(graded) if graded else None
        if status is Status.INCORRECT_NUMERICAL and workload and found is None:
            found = correctness.summarise(self.samples[name].grades)
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
                lab_sha256=provenance.lab_sha256(),
                gate_version=GATE_VERSION,
                seed=self.seed,
                machine=self.machine,
                measured=this_minute(),
            ),
            steps=tuple(self.steps),
            resources=self.resources,
            results=tuple(self.results.values()),
            aggregates=self.aggregates,
            noise=request.measurement.noise,
            decision=self.decision,
        )


@dataclass(frozen=True)
class _Bench:
    arenas: Arenas
    sides: dict[str, Side]


def _best_of(found: Timing) -> Comparison:
    comparison = found.against(BEST)
    assert comparison is not None
    return comparison


def derived_odd(file: DefinitionFile) -> list[Workload]:
    """Odd shapes for a definition that declares none and binds its callers to nothing."""
    definition = file.definition
    variable = [name for name, size in definition.axes.items() if isinstance(size, str)]
    if not variable or definition.constraints or file.inputs is not None:
        return []
    smallest = min(definition.select("representative"), key=lambda w: math.prod(w.axes.values()))
    sizes = {"ones": 1, "primes": 67, "uneven": 129}
    return [
        smallest.model_copy(update={"name": f"odd-{name}", "set": "odd", "axes": dict.fromkeys(variable, size)})
        for name, size in sizes.items()
    ]

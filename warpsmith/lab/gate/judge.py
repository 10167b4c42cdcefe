"""The gate: its checks in order, stopping at the first failure."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from warpsmith import languages
from warpsmith.core import gate_rules
from warpsmith.core.definition import DECLARED, Workload, shape_class
from warpsmith.core.evaluation import (
    BEST,
    REFERENCE,
    RESTLESS,
    TWIN,
    Aggregate,
    Correctness,
    Decision,
    Energy,
    Evaluation,
    Resources,
    Status,
    Step,
    StepName,
    Timing,
    UnseenShapes,
    Verdict,
    WorkloadResult,
)
from warpsmith.core.hardware import Machine
from warpsmith.core.text import PartCounter
from warpsmith.core.trust import Check
from warpsmith.errors import CompanionFailed, MachineFailed, MachineLacks
from warpsmith.lab.gate import control, decision, incumbent, lint, unseen
from warpsmith.lab.gate.calls import bursts, conditions, leftovers, offsets
from warpsmith.lab.gate.calls.colliding_shapes import take_colliding_workloads
from warpsmith.lab.gate.calls.probes import Probes
from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate.paired_timing import PairedTiming, noise_floor
from warpsmith.lab.gate.request import Request
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.instrumented import sanitizers
from warpsmith.lab.instrumented.counted_build import COUNTED, build_with_counters, start_counts
from warpsmith.lab.machine import contention, hardware, identity
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator import peers
from warpsmith.lab.timing import energy, precompile
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.timing.stages import collect_stages
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.languages.source_numbers import read_numbers
from warpsmith.temporary import TemporaryFolder

_CONFIRMED = (SOLUTION, BEST, TWIN)

BEFORE_ALL = "*"
"""Stands for the workload of a failure that came before the first one."""


class _StepFailed(Exception):
    """A step failed, and no later step runs."""


def judge_version(request: Request, host: WorkerHost | None = None, *, last: bool = False) -> Evaluation:
    """Judge one version; this is the only way to a verdict.

    A machine or a reference that fails gives an INVALID verdict. It is a rollback only where the reference fails
    beside the candidate each time, with a best version and without one, and never without the candidate.

    Args:
        request: the version and the conditions.
        host: a running worker host, which saves its start; by default one of its own.
        last: nothing is judged after it with this host, so that no workers are prepared at the end.

    Raises:
        MachineLacks: the language cannot run here at all, or energy cannot be read.
        BadDefinition: the definition or its reference is wrong.
        Misuse: a peer that only a race can include.
    """
    language = languages.get(request.candidate.language)
    lacks = language.missing(request.page.target.kind)
    if request.timed and request.objective == "energy":
        lacks = lacks or energy.missing_energy_counter(request.page.target)
    if lacks:
        raise MachineLacks(lacks)
    gate = _Gate(request, host, last=last)
    gate.run_to_verdict()
    if gate.companion_failure and not gate.control_failure():
        gate = _Gate(request)
        gate.run_to_verdict()
        if gate.companion_failure and not gate.control_failure() and _fails_alone(request):
            gate.blame_candidate()
    return gate.evaluation()


def _fails_alone(request: Request) -> bool:
    """Return True if the reference fails beside the candidate without a best version, which may do it too."""
    gate = _Gate(replace(request, best=None, accepted=None))
    gate.run_to_verdict()
    return bool(gate.companion_failure)


class _Gate:
    """One judgement in progress."""

    def __init__(self, request: Request, host: WorkerHost | None = None, *, last: bool = False) -> None:
        self.request, self.host, self.last = request, host, last
        self.seed = secrets.randbits(62)
        self._session_numbers = itertools.count(1)
        self.steps: list[Step] = []
        self.trust: list[Check] = []
        self.absent: dict[str, str] = {}
        self.results: dict[str, WorkloadResult] = {}
        self.resources: tuple[Resources, ...] = ()
        self.aggregates: tuple[Aggregate, ...] = ()
        self.energy: Energy | None = None
        self.unseen: tuple[UnseenShapes, ...] = ()
        self.probed: Workload | None = None
        self.decision: Decision | None = None
        self.companion_failure = ""
        self.correctness: CorrectnessCheck | None = None
        self.language = languages.get(request.candidate.language)
        self.device = "cuda" if request.page.target.kind == "gpu" else "cpu"
        definition = request.file.definition
        self.timed = definition.select(*request.sets)
        self.timed_unseen: list[Workload] = []
        self._timing_parts = 2 + len(request.peers) + bool(request.best)  # about as many as sides
        self.machine: Machine = identity.identify_machine(request.page.target)
        self.gauge = Gauge(self.machine.uuid)
        self.timing = self._new_timing()

    @property
    def interpreted(self) -> bool:
        """True if the language is only interpreted here; correctness is then judged, and nothing is timed."""
        return self.request.page.target.kind not in self.language.targets

    @property
    def _untimed_reason(self) -> str:
        """Reason why nothing is timed; empty if times are taken."""
        if self.interpreted:
            return f"{self.language.name} only interprets on {self.request.page.target.id}"
        return "" if self.request.timed else "only a check was asked for"

    def run_to_verdict(self) -> None:
        """Run all checks; the verdict is INVALID if the machine fails."""
        try:
            with suppress(_StepFailed):
                self.run()
        except MachineFailed as error:
            self.companion_failure = str(error) if isinstance(error, CompanionFailed) else ""
            self.invalidate(str(error))

    def control_failure(self) -> str:
        """Return how the sides beside the candidate fail without it, in a fresh host; empty if they do not."""
        self.request.tell("what failed beside the version is called without it")
        return control.control_failure(self.request, self.request.start_host(), self.device)

    def blame_candidate(self) -> None:
        """Refuse a version beside which the reference fails, and not without it."""
        with suppress(_StepFailed):
            self._fail(Status.RUNTIME_ERROR, f"each time beside it and never without it: {self.companion_failure}")

    def run(self) -> None:
        """Run all checks in order."""
        with ExitStack() as stack:
            host = self.host or stack.enter_context(self.request.start_host())  # it imports PyTorch meanwhile
            self._draw_sizes()
            self._lint()
            self._restock(host)
            builds = self._build(Path(stack.enter_context(TemporaryFolder("build"))))
            sides = stack.enter_context(self._prepare_sides(host, builds))
            if precompile.list_compiled_ahead(sides):
                with self._step("compile") as notes:
                    notes += precompile.compile_kernels(self.request.file, host, sides, self.sizes, self.timed)
            if self.host and not self.last:
                stack.callback(self._restock, host)  # for the next judgement, while this one's sides end
            self._start(sides)
            if self.device != "cpu" and BEST in sides.running:
                host.restock(len(_CONFIRMED))  # to confirm a gain; they create their contexts meanwhile
            solution = sides.running[SOLUTION]
            self.trust += [*solution.isolation, solution.delivery_check(self.device)]
            self.correctness = CorrectnessCheck(
                self.request.file, sides.arenas, solution, self.device, self._fresh_seed, self.interpreted,
                self.request.take_launches, self.numbers, start_counts(sides))  # fmt: skip
            self._check_correctness(self.correctness)
            self.trust += [*self.correctness.end(), *unseen.missing_shapes(self.request.file, self.drawn)]
            sides.drop(COUNTED)
            self._probe(self.correctness)
            if reason := self._untimed_reason:
                self._skip("timing", reason)
                raise _StepFailed
            verdict = self._time(sides)
            if verdict.verdict.accepted:
                self._time_unseen(sides)
                self._change_conditions(host, sides)
                self._sanitize(host, builds[SOLUTION], self.correctness.kernels)
            with self._step("decision"):
                self.aggregates, self.energy = self.timing.aggregates(), self.timing.energy()
                self.decision = verdict

    def _draw_sizes(self) -> None:
        """Draw the sizes that this judgement checks and times besides the declared ones."""
        request = self.request
        self.numbers = read_numbers(request.candidate.path)
        self.odd, self.sampled = unseen.draw_workloads(
            request.file, self.timed, self.numbers, interpreted=self.interpreted, device=self.device
        )
        if self.interpreted:
            self.sampled = [w for w in self.sampled if not self.language.distrust(request.file.definition, w)]
        self.sizes = [*self.odd, *self.timed, *self.sampled]
        self.drawn = [w for w in (*self.odd, *self.sampled) if shape_class(w.name) != DECLARED]
        if request.best:
            self.timed_unseen = unseen.choose_timed(request.file.definition, self.drawn, self.device)
        timings = 0 if self._untimed_reason else self._timing_parts * (2 if request.best else 1)
        self.parts = PartCounter(request.tell, 4 + len(self.odd) + len(self.timed) * (1 + timings))

    def _restock(self, host: WorkerHost) -> None:
        """Prepare idle workers for the sides of a judgement like this one."""
        untrusted = 1 if self._untimed_reason or not self.request.best else 2
        host.restock(untrusted, trusted=0 if self._untimed_reason else 1)

    def _lint(self) -> None:
        with self._step("lint") as notes:
            source = self.request.candidate.path.read_text(errors="replace")
            refusals = lint.list_refusals(source)
            notes += refusals or lint.list_lint_notes(self.language, source)
            if refusals:
                self._fail(Status.REFUSED, refusals[0])

    def _build(self, folder: Path) -> dict[str, Build]:
        """Build the solution and the best version."""
        request, source = self.request, self.request.candidate.path
        self.parts.begin(f"building {source.name}")
        with self._step("build"):
            try:
                builds = build_with_counters(self.language, source, request.file.definition, folder)
            except BuildFailed as error:
                self._fail(Status.COMPILE_ERROR, str(error))
            self.resources = builds[SOLUTION].resources
        if request.best is not None and not self._untimed_reason:
            try:
                language = languages.get(request.best.language)
                builds[BEST] = language.build(request.best.path, request.file.definition, folder)
            except BuildFailed as error:
                raise MachineFailed(f"The best version does not build any more: {error}") from error
        return builds

    def _prepare_sides(self, host: WorkerHost, builds: dict[str, Build]) -> Sides:
        """Collect every side that this judgement needs; none is started yet."""
        request = self.request
        version = request.candidate.language, request.limits, request.recorded_for
        sources = {name: SideSource(builds[name], *version, name == COUNTED) for name in builds if name != BEST}
        if request.best and BEST in builds:
            best = SideSource(builds[BEST], request.best.language, request.limits)
            sources |= {BEST: best, TWIN: best}
        if not self._untimed_reason:
            peers.refuse_race_peers(request.file, request.peers)
            for name in (REFERENCE, *request.peers):
                sources[name] = SideSource((request.file.path, name), limits=request.limits)
        timed = () if self._untimed_reason else (*self.timed, *self.timed_unseen)
        arenas = allocate_arenas(request.file, self.sizes, timed, sources, self.device)
        return Sides(request.file, host, arenas, sources, self.device)

    def _start(self, sides: Sides) -> None:
        """Start all sides in fresh processes, without the peers that cannot be started."""
        self.parts.begin("starting the workers")
        while True:
            try:
                with self._attribute_failures():
                    return sides.start([name for name in sides.names if name != TWIN])
            except SideFailed as failure:
                self._leave_out(sides, failure)

    def _leave_out(self, sides: Sides, failure: SideFailed) -> None:
        """Go on without a peer that failed: it is timed for information, and no verdict depends on it."""
        name = str(failure.side)
        self.request.tell(f"{name} is left out: {failure.message}")
        self.absent[name] = failure.message
        sides.drop(name)

    def _check_correctness(self, check: CorrectnessCheck) -> None:
        with self._step("correctness") as notes:
            for workload in (*self.odd, *self.timed):
                self.parts.begin(f"correctness: {workload.name}")
                if reason := self.interpreted and self.language.distrust(self.request.file.definition, workload):
                    notes.append(f"{workload.name} skipped: {reason}")
                    continue
                with self._attribute_failures(workload):
                    check.check_workload(workload, notes)
                if check.grades[workload.name]:
                    self.results[workload.name] = self._passed(workload)
            for workload in (*self.odd, *self.timed):
                with self._attribute_failures(workload):
                    check.check_batches(workload)
            judged = [] if self.interpreted or not self.results else [*self.odd, *self.timed]
            for workload in take_colliding_workloads(self.request.file, judged, check.arenas, self.device):
                with self._attribute_failures(workload):
                    check.check_plain(workload)
            for workload in self.sampled:
                self.parts.begin(f"correctness: {workload.name}")
                with self._attribute_failures(workload):
                    checked = check.check_larger(workload, notes)
                if checked:
                    self.results[workload.name] = self._passed(workload)
            for workload in [workload for workload in self.odd if workload.name in self.results]:
                with self._attribute_failures(workload):
                    check.check_again(workload)
                self.results[workload.name] = self._passed(workload)

    @property
    def _checked(self) -> list[Workload]:
        """Odd workloads at which it was found correct; timed ones if there are none."""
        checked = [workload for workload in self.odd if workload.name in self.results]
        return checked or [workload for workload in self.timed if workload.name in self.results]

    def _probe(self, check: CorrectnessCheck) -> None:
        """Probe that each call is computed from its own inputs."""
        if not self._checked:
            self._skip("probes", "no workload was checked")
            return
        probes = Probes(
            self.request.file.definition,
            check.open_session,
            self._checked,
            [] if self._untimed_reason else self.timed,
            device=self.device,
            interpreted=self.interpreted,
        )
        self.probed = probes.workload
        self.parts.begin("probes")
        with self._step("probes") as notes:
            with self._attribute_failures(probes.workload):
                probes.run()
            notes += probes.notes
        self.trust += probes.checks

    def _time(self, sides: Sides) -> Decision:
        """Time the sides until the decision is settled, and check that the times are possible."""
        request = self.request
        with self._step("timing") as notes:
            self.trust.append(self._check_idle(sides))
            provisional = self._settle_with_peers(sides)
            if self.device != "cpu":
                self._check_idle(sides)
                with self._attribute_failures():
                    self.resources = sides.running[SOLUTION].resources()
                reason, description = self.gauge.unavailable, "read before and after each block"
                self.trust.append(Check(name="GPU clocks", ran=not reason, how=reason or description))
            notes += self.timing.notes(request.measurement)
            incumbent.require_accepted_speed(request.accepted, self.timing.samples, self.machine)
            verdict = provisional.decision
            if provisional.needs_confirmation:
                verdict = self._confirm(sides, provisional)
            if verdict.ambiguous and self.device == "cpu" and (load := contention.describe_cpu_load()):
                raise MachineFailed(f"The times decide nothing, and {load}. Judge again when the machine is idle.")
        timings = self.timing.timings(
            request.project, request.page, request.measurement, request.file, self.device
        )
        self._check_plausible(timings)
        for workload in self.timed:
            self.results[workload.name] = self._passed(workload, timings[workload.name])
        return verdict

    def _settle_with_peers(self, sides: Sides) -> ProvisionalDecision:
        """Settle the decision with all sides; if a peer fails, start again without it, since pairs have no
        gaps."""
        while True:
            try:
                return self._settle(self.timing, sides)
            except SideFailed as failure:
                self._leave_out(sides, failure)
                self._start(sides)
                self.timing = self._new_timing()

    def _confirm(self, sides: Sides, first: ProvisionalDecision) -> Decision:
        """Confirm a gain or a loss in another pair of processes."""

        def look() -> ProvisionalDecision:
            self.request.tell("timing: again in fresh processes")
            with self._attribute_failures():
                sides.start(_CONFIRMED)
            timing = self._new_timing()
            provisional = self._settle(timing, sides, _CONFIRMED, repeats=1)
            differences.append(timing.twin_difference())
            return provisional

        differences: list[float] = []
        verdict = decision.confirm_in_fresh_processes(first, look, first.floor)
        largest = max(differences)
        floor = noise_floor(self.request.measurement)
        if self.request.objective != "time":
            return verdict
        if largest > gate_rules.TWIN_FLOORS * floor:
            raise MachineFailed(
                f"{RESTLESS}: two processes of the best version differ by {largest:.1%}, the noise floor is "
                f"{floor:.1%}. It is measured again before the next judgement."
            )
        return decision.hold_against_twin(verdict, first, largest)

    def _settle(
        self, timing: PairedTiming, sides: Sides, names: tuple[str, ...] | None = None, repeats: int = 0
    ) -> ProvisionalDecision:  # fmt: skip
        request = self.request
        compared = [name for name in (SOLUTION, BEST) if name in sides.running]

        def time_workload(workload: Workload) -> None:
            self.parts.begin(f"timing: {workload.name}", self._timing_parts)
            with self._attribute_failures(workload):
                timing.time_workload(workload, lambda at: sides.open_session(at, self._fresh_seed(), names))
                if request.objective == "energy":
                    request.tell(f"energy: {workload.name}")
                    timing.read_energy(workload, lambda at: sides.open_session(at, self._fresh_seed(), compared))

        return timing.settle(
            time_workload, request.measurement, request.thresholds, repeats, request.tell, request.judgement
        )

    def _new_timing(self) -> PairedTiming:
        budget = self.request.budget or TimingBudget.for_device(self.device)
        return PairedTiming(self.timed, budget, self.gauge if self.device != "cpu" else None)

    def _check_idle(self, sides: Sides) -> Check:
        """Check that nobody else uses the device, while all sides are stopped."""
        return contention.check_idle(self.device, self.request.measurement, self.gauge, sides.pids)

    def _check_plausible(self, timings: dict[str, Timing]) -> None:
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

    def _time_unseen(self, sides: Sides) -> None:
        """Time a version that gains at shapes that it could not prepare for."""
        right = [workload for workload in self.drawn if workload.name in self.results]

        def open_session(workload: Workload) -> Session:
            self.parts.begin(f"timing: {workload.name}")
            return sides.open_session(workload, self._fresh_seed(), (SOLUTION, BEST))

        with self._attribute_failures():
            self.unseen = unseen.summarize_unseen(
                right, self.timed_unseen, open_session if BEST in sides.running else None
            )
        if reason := unseen.describe_large_loss(self.unseen):
            self.decision = Decision(verdict=Verdict.ROLLBACK, reason=reason, against=BEST)
            raise _StepFailed

    def _change_conditions(self, host: WorkerHost, sides: Sides) -> None:
        """Call a version that gains in another environment, and beyond the reach of 32-bit offsets."""
        source, file, path = sides.source(SOLUTION), self.request.file, self.request.candidate.path
        sizes = [self.probed or self.timed[0], *self._checked, *self.timed]
        with self._step("conditions"), self._attribute_failures(sizes[0]):
            leftovers.require_same_state(sides.running[SOLUTION])
            leftovers.require_few_leftovers(sides.running[SOLUTION])
            leftovers.require_own_exit_code(sides.running[SOLUTION])
            sides.close_running()
            other = conditions.check_conditions(file, host, source, sizes, self.device, self.interpreted, path)
            self.trust.append(other)
            self.request.tell("conditions: 64-bit offsets")
            self.trust.append(offsets.check_offsets(file, host, source, self.timed, self.device))
            gain = next((each.speedup for each in self.timing.aggregates() if each.against == BEST), 0.0)
            if gain and self.device == "cpu" and self.request.objective == "time":
                self.trust.append(bursts.check_bursts(file, host, sides, self.timed, gain))

    def _sanitize(self, host: WorkerHost, build: Build, kernels: dict[str, set[str]]) -> None:
        """Run the sanitizers on a version that would be accepted; a tool that fails makes the verdict INVALID."""
        request = self.request
        if self.device == "cpu" or not request.sanitized:
            reason = "compute-sanitizer needs an NVIDIA GPU" if self.device == "cpu" else "they were left out"
            self.trust.append(Check(name="sanitizers", ran=False, how=reason))
            self._skip("sanitizers", reason)
            return
        with self._step("sanitizers") as notes:
            file, sizes, compiled = request.file, [*self.odd, *self.timed], host.compiled_kernels(build)
            chosen = sanitizers.choose_sanitized_workloads(file.definition, sizes, kernels)
            outcome = sanitizers.run_sanitizers(file, build, self.language.name, chosen, request.tell, compiled)
            self.trust += outcome.checks
            notes += [f"{check.name}: {check.how}" for check in outcome.checks if not check.ran]
            if outcome.broken:
                raise MachineFailed(outcome.broken)
            if outcome.failure:
                self._fail(Status.SANITIZER, outcome.failure)

    def _passed(self, workload: Workload, timing: Timing | None = None) -> WorkloadResult:
        samples = self.timing.samples.get(workload.name)
        correctness = self._summarize(workload.name, samples.grades if samples else ())
        return WorkloadResult(workload=workload.name, status=Status.PASSED, correctness=correctness, timing=timing)

    def _summarize(self, name: str, timed: Sequence[Grade] = ()) -> Correctness | None:
        """Summarize the grades of a workload so far; None if nothing was graded."""
        if self.correctness is None or not (self.correctness.grades[name] or timed):
            return None
        return self.correctness.summary(name, timed)

    def _fresh_seed(self) -> int:
        """Return a seed that no earlier session of this judgement had, derived from its nonce."""
        return self.seed + next(self._session_numbers)

    def _skip(self, name: StepName, reason: str) -> None:
        self.steps.append(Step(name=name, state="skipped", notes=(reason,), seconds=0.0))

    @contextmanager
    def _step(self, name: StepName) -> Iterator[list[str]]:
        """Time a step and record its notes; a failure inside is recorded as `failed`."""
        self.request.tell(name)
        notes: list[str] = []
        started, state = time.monotonic(), "failed"
        with collect_stages() as spent:
            try:
                yield notes
                state = "noted" if notes else "passed"
            finally:
                facts = {"name": name, "state": state, "notes": notes, "stages": spent}
                self.steps.append(Step.model_validate({**facts, "seconds": time.monotonic() - started}))

    @contextmanager
    def _attribute_failures(self, workload: Workload | None = None) -> Iterator[None]:
        """Turn a failed side into its consequence.

        The solution's failure ends the judgement with a verdict. A failure of the best version or of the reference
        is the machine's. That of a peer is left to the caller, as SideFailed with the workload in its message.
        """
        try:
            yield
        except SideFailed as failure:
            if failure.side in self.request.peers:
                prefix = f"{workload.name}: " if workload else ""
                raise SideFailed(failure.status, prefix + failure.message, failure.side) from failure
            if failure.side not in (None, SOLUTION, COUNTED):
                raise control.attribute_failure(failure) from failure
            self._fail(failure.status, failure.message, workload)

    def _fail(self, status: Status, message: str, workload: Workload | None = None) -> None:
        """Record the failure and stop."""
        name = workload.name if workload else BEFORE_ALL
        samples = self.timing.samples.get(name)
        correctness = self._summarize(name, samples.grades if samples else ())
        self.results[name] = WorkloadResult(workload=name, status=status, message=message, correctness=correctness)
        self.decision = Decision(verdict=Verdict.ROLLBACK, reason=f"{status} at {name}: {message}"[:600])
        raise _StepFailed

    def invalidate(self, message: str) -> None:
        """Record that the machine failed, which says nothing about the version."""
        self.results = {}
        self.aggregates = ()
        self.decision = Decision(verdict=Verdict.INVALID, reason=message[:600])

    def _representative(self) -> tuple[str, ...]:
        """Return the names of the representative workloads if others are timed as well."""
        names = tuple(workload.name for workload in self.request.file.definition.select("representative"))
        return names if set(names) < {workload.name for workload in self.timed} else ()

    def evaluation(self) -> Evaluation:
        """Return the record of the judgement."""
        request = self.request
        if self.aggregates or (self._untimed_reason and self.results):
            self.parts.end("decision")
        if self.decision is None:
            reason = f"correct, but not timed: {self._untimed_reason}"
            self.decision = Decision(verdict=Verdict.INVALID, reason=reason)
        return Evaluation(
            definition=request.file.definition.name,
            language=request.candidate.language,
            version=request.candidate.version,
            target=request.page.target.id,
            provenance=request.provenance(self.seed, self.machine),
            steps=tuple(self.steps),
            trust=tuple(self.trust),
            resources=self.resources,
            results=tuple(self.results.values()),
            representative=self._representative(),
            aggregates=self.aggregates,
            energy=self.energy,
            unseen=self.unseen,
            absent=self.absent,
            noise=request.measurement.noise,
            decision=self.decision,
        )

"""The contest: one version beside the reference, torch.compile and the peers, each checked, timed and weighed.

It gives no verdict. Every side runs in a worker of its own, interleaved as in the gate; eager calls and calls out
of CUDA graphs are timed apart. A peer that is wrong, fails or is missing is said to be so; the others go on. One
that is near, by another honest rounding, is timed and marked.
"""

from __future__ import annotations

import itertools
import secrets
import statistics as plain
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import COMPILED, GATE_VERSION, REFERENCE, Aggregate, Provenance, Status, Timing
from warpsmith.core.race import NEAR, Mode, RaceRecord, RaceResult, RaceSide
from warpsmith.errors import MachineFailed, MachineLacks, Misuse, SolutionFailed
from warpsmith.lab.gate.judge import Request
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine import busy, hardware, machine, provenance
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator import peers
from warpsmith.lab.timing import energy, session, statistics, timing
from warpsmith.lab.timing.bench import Bench, Source
from warpsmith.lab.timing.heat import Heat
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import CHECKED_SLOTS, SOLUTION
from warpsmith.lab.timing.timing import Budget
from warpsmith.lab.workers.side import Failed, Limits, WorkerHost

PEER_LIMITS = Limits(seconds=300)
"""The project's own code may take its time: some peers tune themselves at their first call."""

_MISSING = ("ImportError: ", "ModuleNotFoundError: ")
_GRADES = 2
_MAY_BE_BROKEN = (Status.RUNTIME_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)

T = TypeVar("T")


def sides(request: Request) -> tuple[str, ...]:
    """Every side that a definition can be raced against; raises Misuse where a wanted one is none of them."""
    known = (COMPILED, *request.file.peers)
    unknown = sorted(set(request.peers) - set(known))
    if unknown:
        raise Misuse(
            f"{request.file.definition.name} has no peer {', '.join(unknown)}; it has: {', '.join(known)}."
        )
    return (REFERENCE, *(request.peers or known))


def hold(request: Request, only: Sequence[str] = (), host: WorkerHost | None = None) -> RaceRecord:
    """Race one version, at the request's workload sets.

    Args:
        request: as for the gate; no `peers` means all of them.
        only: names of workloads; by default all that are timed.
        host: a worker host that is up already.

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
    unknown = sorted(set(only) - {workload.name for workload in timed})
    if unknown:
        known = ", ".join(workload.name for workload in timed)
        raise Misuse(f"No timed workload is named {', '.join(unknown)}; there are: {known}.")
    return _Contest(request, [workload for workload in timed if not only or workload.name in only]).run(host)


class _Contest:
    """One race in progress."""

    def __init__(self, request: Request, workloads: Sequence[Workload]) -> None:
        self.request, self.workloads = request, workloads
        self.names = sides(request)
        self.device = "cuda" if request.page.target.kind == "gpu" else "cpu"
        self.machine = machine.machine(request.page.target)
        self.gauge = Gauge(self.machine.uuid)
        self.budget = request.budget or Budget.of(self.device)
        self.seed = secrets.randbits(62)
        self.absent: dict[str, str] = {}
        self.notes: list[str] = []
        self.found: dict[str, RaceSide] = {}
        """Of the workload at hand, and what its grades and their nearness were."""
        self.graded: dict[str, list[tuple[Grade, bool]]] = {}
        self.samples: dict[Mode, dict[str, Samples]] = {"eager": {}, "graph": {}}
        self._seeds = itertools.count(self.seed + 1)
        self.bench: Bench

    def run(self, host: WorkerHost | None) -> RaceRecord:
        """All workloads."""
        with ExitStack() as stack:
            here = self.request.project
            host = host or stack.enter_context(WorkerHost(self.device, hidden=(here.kernels, here.devlog)))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpsmith-build-")))
            self.bench = stack.enter_context(self._bench(host, folder))
            with self._blame():
                self.bench.start((SOLUTION, REFERENCE))
            self._alone()
            results = [self._result(workload) for workload in self.workloads]
        return self._record(tuple(results))

    def _bench(self, host: WorkerHost, folder: Path) -> Bench:
        request, candidate = self.request, self.request.candidate
        build = languages.get(candidate.language).build(candidate.path, request.file.definition, folder)
        sources = {SOLUTION: Source(build, candidate.language, request.limits)}
        sources |= {name: Source((request.file.path, name), limits=PEER_LIMITS) for name in self.names}
        arenas = session.allocate(request.file, (), self.workloads, sources, self.device)
        return Bench(request.file, host, arenas, sources, self.device)

    def _result(self, workload: Workload) -> RaceResult:
        """One workload: check every side, time those that are right, weigh them."""
        self.found, self.graded = {}, {}
        for name in (SOLUTION, *self.names):
            self.request.tell(f"{workload.name}: checking {name}")
            self._check(workload, name)
        self.request.tell(f"{workload.name}: timing")
        racing = list(self.found)
        eager = self._time(workload, racing, "eager")
        assert eager is not None  # only a graph can fail to hold the version
        graph = self._time(workload, racing, "graph") if self.device != "cpu" else None
        self._weigh_launched(workload)
        return RaceResult(
            workload=workload.name, set=workload.set, sides=tuple(self.found.values()), eager=eager, graph=graph
        )

    def _check(self, workload: Workload, name: str) -> None:
        """Grade a side on fresh inputs; a peer that cannot be imported is absent from here on."""
        if name in self.absent:
            return
        try:
            with self._blame(name):
                if name not in self.bench.sides:
                    self.bench.start((name,))
                for grade, near in self._graded(workload, name):
                    self._keep(name, grade, near)
        except Failed as failure:
            self._lost(name, failure)

    def _graded(self, workload: Workload, name: str) -> list[tuple[Grade, bool]]:
        opened = self._open(workload, (name,), CHECKED_SLOTS)
        grades = []
        for _ in range(_GRADES):
            opened.fill()
            opened.call(name)
            grades.append(opened.judged(name, 0))
        return grades

    def _keep(self, name: str, grade: Grade, near: bool) -> None:
        """Add a grade to what is known of a side; raises Failed where it may not be timed."""
        known = self.graded.setdefault(name, [])
        known.append((grade, near))
        wrong = next((grade for grade, near in known if grade.status is not Status.PASSED and not near), None)
        off = wrong or next((grade for grade, near in known if near), None)
        before = self.found.get(name) or RaceSide(
            side=name, status=Status.PASSED, differs=peers.of(self.request.file, name).differs
        )
        changes = {
            "status": wrong.status if wrong else NEAR if off else Status.PASSED,
            "message": off.detail if off else "",
            "correctness": correctness.summarise([grade for grade, _ in known]),
        }
        self.found[name] = before.model_copy(update=changes)
        if wrong:
            raise Failed(wrong.status, wrong.detail, name)

    def _lost(self, name: str, failure: Failed) -> None:
        """A peer that failed: what is said of it here, and a fresh process for what comes."""
        missing = next((text for text in _MISSING if failure.message.startswith(text)), None)
        if missing:
            self.absent[name] = failure.message.removeprefix(missing)
            self.found.pop(name, None)
        else:
            before = self.found.get(name) or RaceSide(side=name, status=failure.status, message=failure.message)
            self.found[name] = before.model_copy(update={"status": failure.status, "message": failure.message})
        if failure.status in _MAY_BE_BROKEN and name in self.bench.sides:
            self.bench.sides.pop(name).close()

    def _time(self, workload: Workload, racing: Sequence[str], mode: Mode) -> Timing | None:
        """Interleaved rounds of the sides that may be timed; None where the version is no CUDA graph."""
        racing = [name for name in racing if self.found[name].timed]
        samples = self._survivors(racing, lambda names: self._timed(workload, names, mode))
        if samples is None:
            return None
        self.samples[mode][workload.name] = samples
        for grade in samples.grades:
            self._keep(SOLUTION, grade, near=False)
        request, work = self.request, self.request.file.definition.work(workload)
        roofline = hardware.roofline(request.project, request.page, request.measurement, work, workload.dtype)
        return timing.summarise(samples, roofline, self.device)

    def _timed(self, workload: Workload, names: Sequence[str], mode: Mode) -> Samples | None:
        """One batch of rounds; out of graphs only with the sides that one can hold, and then they are weighed."""
        samples, opened = Samples(), self._open(workload, names)
        timing.run(opened, samples, self.budget, self._reader, graphs=mode == "graph")
        if mode == "graph" and samples.eager:
            return self._without(workload, names, samples.eager)
        self._check_timed(opened)
        if mode == "graph":
            self._weigh(opened, samples)
        return samples

    def _without(self, workload: Workload, names: Sequence[str], eager: dict[str, str]) -> Samples | None:
        """The rounds again without the sides that no graph can hold."""
        for name, why in eager.items():
            self.found[name] = self.found[name].model_copy(update={"uncaptured": why})
        if SOLUTION in eager:
            self.notes.append(f"{workload.name}: the version is no CUDA graph: {eager[SOLUTION]}")
            return None
        return self._timed(workload, [name for name in names if name not in eager], "graph")

    def _check_timed(self, opened: Heat) -> None:
        """One more round, in which the peers' results of timed calls are graded; the version's were already."""
        opened.fill(quick=True)
        for name in (name for name in opened.order() if name != SOLUTION):
            with self._blame(name):
                opened.timed(name)
                grade, near = opened.judged(name, opened.pick())
                if grade.status is not Status.PASSED:
                    grade = replace(grade, detail=f"the output of a timed call: {grade.detail}")
                self._keep(name, grade, near)

    def _weigh(self, opened: Heat, samples: Samples) -> None:
        """Joules of a call of each side, out of its graph."""
        if self.gauge.joules() is None:
            return
        opened.capture()  # anew: the version's last graph held a single call
        for name in opened.sides:
            self._weigh_one(opened, name, samples, "graph")

    def _weigh_launched(self, workload: Workload) -> None:
        """Joules of a call of each side that no graph holds, from calls launched back to back."""
        samples, captured = self.samples["eager"][workload.name], self.samples["graph"].get(workload.name)
        replayed = captured.seconds if captured else {}
        left = [name for name in samples.seconds if name not in replayed and self.found[name].timed]
        if self.device == "cpu" or not left or self.gauge.joules() is None:
            return

        def weigh(names: list[str]) -> None:
            opened = self._open(workload, names)
            opened.fill(quick=True)
            for name in names:
                if self.found[name].joules is None:
                    self._weigh_one(opened, name, samples, "eager")

        self._survivors(left, weigh)

    def _weigh_one(self, opened: Heat, name: str, samples: Samples, mode: Mode) -> None:
        self.request.tell(f"{opened.workload.name}: energy of {name}")
        with self._blame(name):
            joules = energy.a_call(opened, name, plain.median(samples.seconds[name]), self.gauge, mode)
        if joules is not None:
            self.found[name] = self.found[name].model_copy(update={"joules": joules, "joules_mode": mode})

    def _survivors(self, names: Sequence[str], attempt: Callable[[list[str]], T]) -> T:
        """`attempt` with all sides, and again without those that fail in it."""
        left = list(names)
        while True:
            try:
                with self._blame():
                    return attempt(left)
            except Failed as failure:
                name = str(failure.side)
                left.remove(name)
                self._lost(name, failure)

    @contextmanager
    def _blame(self, name: str | None = None) -> Iterator[None]:
        """A peer that fails is left to whoever called; the version or the reference ends the race.

        `name`: whose failure it is where that is not said.
        """
        try:
            yield
        except Failed as failure:
            side = failure.side or name or SOLUTION
            if side == SOLUTION:
                path = self.request.project.relative(self.request.candidate.path)
                raise SolutionFailed(
                    f"{path} failed in the race: {failure.status}: {failure.message}"
                ) from failure
            if side == REFERENCE:
                raise MachineFailed(f"The reference failed in the race: {failure.message}") from failure
            raise Failed(failure.status, failure.message, side) from failure

    def _open(self, workload: Workload, names: Sequence[str], count: int | None = None) -> Heat:
        """These sides prepared for a workload, with fresh inputs; `count`: the slots where it is only checked."""
        of = {name: self.bench.sides[name] for name in names}
        seed = next(self._seeds)
        return Heat(self.request.file, workload, self.bench.arenas, of, seed, self.device, count=count)

    @property
    def _reader(self) -> Gauge | None:
        return self.gauge if self.device != "cpu" else None

    def _alone(self) -> None:
        """Whether the device is ours; a note where a processor is not, MachineFailed where a GPU is not."""
        if self.device != "cpu":
            busy.gpu(self.request.measurement, self.gauge, [side.pid for side in self.bench.sides.values()])
        elif others := busy.cpu():
            self.notes.append(others)

    def _aggregates(self, mode: Mode) -> tuple[Aggregate, ...]:
        """Over the workloads, against each side that was timed at all of them."""
        raced = self.samples[mode]
        if len(raced) < len(self.workloads):
            return ()
        everywhere = [name for name in self.names if all(name in samples.seconds for samples in raced.values())]
        return tuple(
            statistics.geometric_mean(
                {workload: (one.seconds[SOLUTION], one.seconds[name]) for workload, one in raced.items()}, name
            )
            for name in everywhere
        )

    def _record(self, results: tuple[RaceResult, ...]) -> RaceRecord:
        request, candidate = self.request, self.request.candidate
        modes: tuple[Mode, ...] = ("eager",) if self.device == "cpu" else ("eager", "graph")
        return RaceRecord(
            definition=request.file.definition.name,
            solution=f"{candidate.language}/{candidate.version}",
            target=request.page.target.id,
            provenance=Provenance(
                solution=request.project.relative(candidate.path),
                solution_sha256=files.sha256(candidate.path),
                definition_sha256=request.file.sha256,
                lab_sha256=provenance.lab_sha256(),
                gate_version=GATE_VERSION,
                seed=self.seed,
                machine=self.machine,
                measured=this_minute(),
            ),
            results=results,
            aggregates={mode: self._aggregates(mode) for mode in modes},
            absent=self.absent,
            notes=tuple(self.notes),
        )

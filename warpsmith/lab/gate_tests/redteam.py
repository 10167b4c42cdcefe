"""The red team's runs: the gate judges every candidate, and what it did to each is held against the header."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, Self

from warpsmith import files, languages
from warpsmith.core import trust
from warpsmith.core.base import this_minute
from warpsmith.core.evaluation import GATE_VERSION, Evaluation, Status, StepName, Verdict
from warpsmith.core.hardware import Machine, Measurement, Target
from warpsmith.core.trust import Check
from warpsmith.errors import WarpsmithError
from warpsmith.lab.calibration import measurement
from warpsmith.lab.gate.judge import Candidate, Request, judge
from warpsmith.lab.gate_tests import unfinished
from warpsmith.lab.gate_tests.cases import Case
from warpsmith.lab.gate_tests.models import Header, Need, Outcome, RedTeamReport, Result, count
from warpsmith.lab.instrumented import sanitizers
from warpsmith.lab.machine import hardware, machine, provenance
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.timing import Budget
from warpsmith.lab.workers import late_inputs, process
from warpsmith.lab.workers.side import Limits, WorkerHost
from warpsmith.project import Project

Tell = Callable[[str], None]
Measure = Callable[[Target], Measurement]

_ON_GPU = frozenset(("gpu", "early start"))
_CPU = "cpu"
_AFTER_TIMING: frozenset[StepName] = frozenset(("timing", "plausibility", "sanitizers", "decision"))
_SANITIZERS = frozenset(("sanitizers", *sanitizers.TOOLS))
"""Names that an evaluation's trust has for the sanitizers."""

_BRIEF = Budget(rounds=3, most=3, seconds=0.0)
_PAIRED = Budget(rounds=8, most=8, seconds=0.0)
_HANG_SECONDS = 5.0
_PLAIN = "control_plain"
"""The honest version of each definition that the sanitizers run, beside the attacks that they must catch."""
_BOMB_BYTES = 2 << 30
_PR_SET_PDEATHSIG = 1


class _Place(NamedTuple):
    """Where a candidate is judged."""

    target: Target
    interpreted: bool

    @property
    def host(self) -> tuple[str, bool]:
        """What a worker host for it is started with."""
        return "cuda" if self.target.kind == "gpu" else "cpu", self.interpreted


class RedTeam:
    """Judges candidates; worker hosts and definitions are kept between them.

    Those whose judgement ends before anything is timed share the machine with each other; others have it alone.
    """

    def __init__(
        self, project: Project, target: Target, measure: Measure | None = None, tell: Tell = lambda _: None
    ) -> None:
        """`measure` gives a machine's ceilings and A/A floor; by default what the project has, or measures now."""
        self._project, self._target, self._tell = project, target, tell
        self._measure = measure or (lambda target: measurement.ensure(project, target, tell))
        self._measured: dict[str, Measurement] = {}
        self._hosts: dict[tuple[str, bool], WorkerHost] = {}
        self._definitions: dict[Path, DefinitionFile] = {}
        self._missing: dict[str, Check] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker hosts."""
        with ExitStack() as stack:
            for host in self._hosts.values():
                stack.callback(host.close)
        self._hosts.clear()

    @cached_property
    def machine(self) -> Machine:
        """The machine at hand, as it was at the first look."""
        return machine.machine(self._target)

    def earlier(self, path: Path, cases: Sequence[Case]) -> tuple[tuple[Result, ...], str]:
        """What an unfinished record at `path` knows of these candidates; or nothing, and why in a few words.

        A candidate at which the machine failed is not known.
        """
        about = {case.name: self._about(case) for case in cases}

        def unlike(found: RedTeamReport) -> str:
            for result in found.results:
                if result.file not in about:
                    return f"{result.file} is not among the candidates"
                if any(getattr(result, name) != value for name, value in about[result.file].items()):
                    return f"{result.file}, its definition or what it is raced against has changed since"
            return ""

        found, why = unfinished.read(path, RedTeamReport, self.machine, unlike)
        if found is None:
            return (), why
        self._missing.update((check.name, check) for check in found.not_in_force)
        return tuple(result for result in found.results if result.outcome is not Outcome.MACHINE_FAILED), ""

    def run(self, cases: Sequence[Case], jobs: int = 1) -> Iterator[Result]:
        """Judge them, one result after the other.

        Args:
            cases: the candidates.
            jobs: processes for those that are not going to be timed.

        Raises:
            BadDefinition: a definition or its reference is wrong.
        """
        together = [case for case in cases if jobs > 1 and self._untimed(case)]
        apart = [case for case in cases if case not in together]
        done = 0
        for result in self._together(together, jobs):
            done += 1
            self._tell(f"{done} of {len(cases)}: {result.file}")
            yield result
        for number, case in enumerate(apart, done + 1):
            at = f"{number} of {len(cases)}: {case.name}"
            self._tell(at)
            yield self._result(case, partial(self._say, at))

    def _untimed(self, case: Case) -> bool:
        """Whether its judgement ends before timing, and nothing that it does reaches another."""
        if "isolation" in case.header.needs:
            return False
        return self._place(case).interpreted or not (
            case.header.kind == "control" or case.best or _AFTER_TIMING & set(case.header.caught)
        )

    def _together(self, cases: Sequence[Case], jobs: int) -> Iterator[Result]:
        if not cases:
            return
        self._measured_of(self._target)  # once, before the others look for it
        share = partial(_shared, self._project, self._target)
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent) as pool:
            parts = [pool.submit(share, case) for case in cases]
            try:
                for part in as_completed(parts):
                    result, missing = part.result()
                    self._missing.update((check.name, check) for check in missing)
                    yield result
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    @property
    def missing(self) -> tuple[Check, ...]:
        """What was not in force at any of them."""
        return tuple(self._missing.values())

    def report(self, results: Iterable[Result], finished: bool = True) -> RedTeamReport:
        """What was found, as a record; not `finished`: there is more to come."""
        results = tuple(sorted(results, key=lambda result: (result.definition, result.file)))
        return RedTeamReport(
            gate_version=GATE_VERSION,
            lab_sha256=provenance.lab_sha256(),
            measured=this_minute(),
            machine=self.machine,
            results=results,
            not_in_force=self.missing,
            attacks=count(results, "attack"),
            controls=count(results, "control"),
            finished=finished,
        )

    def _say(self, at: str, said: str) -> None:
        self._tell(f"{at}: {said}")

    def _result(self, case: Case, tell: Tell) -> Result:
        file, place, about = self._definition(case), self._place(case), self._about(case)
        if lacks := self._lacks(case, place):
            return Result.model_validate({**about, "outcome": Outcome.NOT_RUN, "message": lacks})
        started = time.monotonic()
        try:
            evaluation = self._judged(case, file, place, tell)
        except WarpsmithError:
            raise
        except Exception as error:  # a candidate that breaks the grader is a finding, and not the end of the run
            broken = f"the gate itself broke: {type(error).__name__}: {error}"
            return Result.model_validate(
                {**about,
                 "outcome": Outcome.MACHINE_FAILED, "message": broken, "target": place.target.id,
                 "seconds": time.monotonic() - started}
            )  # fmt: skip
        what, why = outcome(case.header, evaluation)
        for folder in (self._project.root, sysconfig.get_path("purelib")):
            why = why.replace(f"{folder}/", "")  # where the project and its libraries lie is nobody's business
        missing = trust.missing(evaluation.trust)
        self._missing.update((check.name, check) for check in missing)
        return Result.model_validate(
            {**about,
             "outcome": what, "message": why, "target": place.target.id, "step": refused_at(evaluation),
             "status": evaluation.status, "verdict": evaluation.decision.verdict,
             "seconds": time.monotonic() - started, "without": tuple(check.name for check in missing)}
        )  # fmt: skip

    def _about(self, case: Case) -> dict[str, object]:
        """What a result says of its candidate: the same again, and the result stands for it."""
        return {
            "definition": case.definition, "file": case.name, "header": case.header,
            "sha256": files.sha256(case.path),
            "definition_sha256": definition_file.digest(case.path.parent.parent / "definition.py"),
            "against_sha256": files.sha256(case.best) if case.best else None,
        }  # fmt: skip

    def _place(self, case: Case) -> _Place:
        """The target, or the CPU where the candidate's language has no other."""
        targets = languages.get(case.language).targets
        target = hardware.read(self._project, _CPU).target if targets == (_CPU,) else self._target
        return _Place(target, interpreted=target.kind not in targets)

    def _lacks(self, case: Case, place: _Place) -> str:
        """What this machine lacks for a candidate; empty: nothing."""
        if _ON_GPU.intersection(case.header.needs) and place.target.kind != "gpu":
            return "no GPU"
        if "early start" in case.header.needs and not late_inputs.possible():
            return "no kernel starts early on this GPU"
        if lacks := languages.get(case.language).missing(place.target.kind):
            return lacks
        if "isolation" in case.header.needs:
            return _lacking("isolation", trust.missing(self._isolation(place)))
        return ""

    def _isolation(self, place: _Place) -> tuple[Check, ...]:
        """What holds a worker: asked before anything is let in that relies on it."""
        side = self._host(place).side("probe", Limits())
        try:
            return side.isolation
        finally:
            side.close()

    def _judged(self, case: Case, file: DefinitionFile, place: _Place, tell: Tell) -> Evaluation:
        """The evaluation. Where the machine failed, once more on a fresh host: the candidate before may be to
        blame."""
        request = self._request(case, file, place.target, tell)
        found = judge(request, self._host(place))
        if _failed(found):
            self._hosts.pop(place.host).close()
            if Status.MACHINE_FAILED not in case.header.status:
                found = judge(request, self._host(place))
        return found

    def _request(self, case: Case, file: DefinitionFile, target: Target, tell: Tell) -> Request:
        on_gpu = target.kind == "gpu"
        return Request(
            project=self._project,
            file=file,
            candidate=Candidate(case.path, case.language, case.path.stem),
            page=hardware.read(self._project, target.id),
            measurement=self._measured_of(target),
            best=Candidate(case.best, case.language, case.best.stem) if case.best else None,
            sets=("representative", "full") if on_gpu else ("representative",),
            limits=_limits(case.header),
            budget=None if on_gpu else _PAIRED if case.best else _BRIEF,
            sanitized="sanitizer" in case.header.needs or case.path.stem == _PLAIN,
            tell=tell,
        )

    def _measured_of(self, target: Target) -> Measurement:
        if target.id not in self._measured:
            self._measured[target.id] = self._measure(target)
        return self._measured[target.id]

    def _definition(self, case: Case) -> DefinitionFile:
        path = case.path.parent.parent / "definition.py"
        if path not in self._definitions:
            self._definitions[path] = definition_file.load(path)
        return self._definitions[path]

    def _host(self, place: _Place) -> WorkerHost:
        if place.host not in self._hosts:
            self._hosts[place.host] = WorkerHost(*place.host)
        return self._hosts[place.host]


_team: list[RedTeam] = []


def _end_with_parent() -> None:
    """In a process of the pool: where the command is killed, nothing of it disturbs the next one."""
    process.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() != parent.pid:
        os._exit(1)


def _shared(project: Project, target: Target, case: Case) -> tuple[Result, tuple[Check, ...]]:
    """In a process of the pool, whose own red team keeps its worker hosts until it ends."""
    if not _team:
        _team.append(RedTeam(project, target))
        atexit.register(_team[0].__exit__)
    (result,) = _team[0].run([case])
    return result, _team[0].missing


def outcome(header: Header, evaluation: Evaluation) -> tuple[Outcome, str]:
    """Whether the gate was right about a candidate, and why it was refused or is left open."""
    decision = evaluation.decision
    if _failed(evaluation):
        expected = header.kind == "attack" and Status.MACHINE_FAILED in header.status
        return (Outcome.CAUGHT if expected else Outcome.MACHINE_FAILED), decision.reason
    refused = decision.verdict is Verdict.ROLLBACK
    if header.kind == "control":
        if refused:
            return Outcome.REFUSED, decision.reason
        return (Outcome.CORRECT if _untimed(evaluation) else Outcome.ACCEPTED), ""
    if refused:
        return Outcome.CAUGHT, decision.reason
    unchecked = [check for check in trust.missing(evaluation.trust) if check.name in _SANITIZERS]
    if unchecked and "sanitizer" in header.needs:
        return Outcome.NOT_RUN, _lacking("sanitizer", unchecked)
    if _untimed(evaluation) and _AFTER_TIMING & set(header.caught):
        return Outcome.NOT_RUN, "nothing is timed where the language only interprets"
    return Outcome.GOT_THROUGH, decision.reason


def refused_at(evaluation: Evaluation) -> StepName | None:
    """The step that refused a version; None: it was not refused."""
    if evaluation.decision.verdict is not Verdict.ROLLBACK:
        return None
    return next((step.name for step in evaluation.steps if step.state == "failed"), "decision")


def _untimed(evaluation: Evaluation) -> bool:
    """Whether it was right everywhere and could not be timed here."""
    return evaluation.correct and any(s.name == "timing" and s.state == "skipped" for s in evaluation.steps)


def _failed(evaluation: Evaluation) -> bool:
    return evaluation.decision.verdict is Verdict.INVALID and not _untimed(evaluation)


def _lacking(need: Need, checks: Iterable[Check]) -> str:
    """What is missing of a need, in words; empty: nothing."""
    names = ", ".join(check.name for check in checks)
    return f"no {need} ({names})" if names else ""


def _limits(header: Header) -> Limits:
    """Short where a hang is to be seen, tight where memory is to run out."""
    hangs = "hang" in header.family or Status.TIMEOUT in header.status
    bomb = "memory bomb" in header.family or Status.OUT_OF_MEMORY in header.status
    return Limits(seconds=_HANG_SECONDS if hangs else Limits.seconds, memory_bytes=_BOMB_BYTES if bomb else 0)

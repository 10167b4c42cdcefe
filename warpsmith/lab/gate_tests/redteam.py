"""Red team runs: the gate judges every case, and the outcome is compared with the case's header."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import re
import signal
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, Self

from warpsmith import files, languages
from warpsmith.core import trust
from warpsmith.core.base import this_minute
from warpsmith.core.evaluation import GATE_VERSION, Evaluation, Status, StepName, Verdict
from warpsmith.core.hardware import Machine, Measurement, Target
from warpsmith.core.text import PartCounter, Tell
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed, WarpsmithError
from warpsmith.lab.calibration import measurement
from warpsmith.lab.gate.judge import judge_version
from warpsmith.lab.gate.request import Candidate, Request
from warpsmith.lab.gate_tests import unfinished
from warpsmith.lab.gate_tests.cases import RedTeamCase
from warpsmith.lab.gate_tests.models import (
    CaseHeader,
    CaseOutcome,
    Need,
    RedTeamReport,
    RedTeamResult,
    count_outcomes,
)
from warpsmith.lab.instrumented import sanitizers
from warpsmith.lab.instrumented.counted_build import UNRUN_LINES
from warpsmith.lab.machine import hardware, identity, provenance
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers import process
from warpsmith.lab.workers.calls import late_inputs
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import Project

Measure = Callable[[Target], Measurement]
"""Returns the measurement of a machine."""

_ON_GPU = frozenset(("gpu", "early start"))
_CPU = "cpu"
_AFTER_TIMING: frozenset[StepName] = frozenset(("timing", "plausibility", "sanitizers", "decision"))
_SANITIZERS = frozenset(("sanitizers", *sanitizers.TOOLS))
"""Names of the sanitizers in the trust of an evaluation."""

_BRIEF = TimingBudget(rounds=3, most=3, seconds=0.0)
_PAIRED = TimingBudget(rounds=8, most=8, seconds=0.0)
_HANG_SECONDS = 5.0
_PLAIN = "control_plain"
"""The honest version of each definition that the sanitizers run, in addition to the attacks that they must
catch."""
_HANGS = re.compile(r"\bhangs?\b")
_BOMB_BYTES = 2 << 30
_PR_SET_PDEATHSIG = 1


class _Venue(NamedTuple):
    """Device on which a case is judged."""

    target: Target
    interpreted: bool

    @property
    def host_key(self) -> tuple[str, bool]:
        """Arguments with which its worker host is started."""
        return "cuda" if self.target.kind == "gpu" else "cpu", self.interpreted


class RedTeam:
    """Judges cases, and reuses worker hosts and definitions between them.

    Cases whose judgement ends before anything is timed share the machine with each other; others have it alone.
    """

    def __init__(
        self,
        project: Project,
        target: Target,
        measure: Measure | None = None,
        tell: Tell = lambda _: None,
        *,
        poor: bool = False,
    ) -> None:
        """Prepare a run.

        Args:
            project: the project at hand.
            target: the device kind.
            measure: returns the measurement of a target; by default the project's, or measures now.
            tell: takes lines of progress.
            poor: leave each definition two timed sizes and no odd ones.
        """
        self._project, self._target, self._tell, self._poor = project, target, tell, poor
        self._measure = measure or (lambda target: measurement.ensure_measurement(project, target, tell))
        self._measurements: dict[str, Measurement] = {}
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
        """This machine, as it was when first read."""
        return identity.identify_machine(self._target)

    def earlier_results(self, path: Path, cases: Sequence[RedTeamCase]) -> tuple[tuple[RedTeamResult, ...], str]:
        """Read the results of these cases from an unfinished record at `path`.

        Cases at which the machine failed are left out.

        Returns:
            The results, or none with the reason in a few words.
        """
        identities = {case.name: self._identity(case) for case in cases}

        def find_difference(record: RedTeamReport) -> str:
            if record.poor is not self._poor:
                return "its definitions have other workloads"
            for result in record.results:
                if result.file not in identities:
                    return f"{result.file} is not among the candidates"
                if any(getattr(result, name) != value for name, value in identities[result.file].items()):
                    return f"{result.file}, its definition or the version that it is compared with has changed"
            return ""

        record, reason = unfinished.read_unfinished(path, RedTeamReport, self.machine, find_difference)
        if record is None:
            return (), reason
        self._missing.update((check.name, check) for check in record.not_in_force)
        results = (result for result in record.results if result.outcome is not CaseOutcome.MACHINE_FAILED)
        return tuple(results), ""

    def run(self, cases: Sequence[RedTeamCase], jobs: int = 1) -> Iterator[RedTeamResult]:
        """Judge the cases, and yield one result after the other.

        Args:
            cases: the cases.
            jobs: processes for cases that are not timed.

        Raises:
            BadDefinition: a definition or its reference is wrong.
            MachineFailed: this process lost the GPU, so that no later case can be judged in it.
        """
        concurrent = [case for case in cases if jobs > 1 and self._is_untimed(case)]
        sequential = [case for case in cases if case not in concurrent]
        finished, parts = 0, PartCounter(self._tell, len(cases) + 1)
        parts.begin("starting")
        for result in self._run_concurrently(concurrent, jobs):
            finished += 1
            parts.begin(f"{finished} of {len(cases)}: {result.file}")
            yield result
        for number, case in enumerate(sequential, finished + 1):
            progress = f"{number} of {len(cases)}: {case.name}"
            parts.begin(progress)
            yield self._judge_case(case, partial(self._tell_within, progress))
        parts.end(f"{len(cases)} of {len(cases)}")

    def _is_untimed(self, case: RedTeamCase) -> bool:
        """Return True if the case's judgement ends before timing and it cannot affect another case."""
        if "isolation" in case.header.needs:
            return False
        return self._venue(case).interpreted or not (
            case.header.kind == "control" or case.best or _AFTER_TIMING & set(case.header.caught)
        )

    def _run_concurrently(self, cases: Sequence[RedTeamCase], jobs: int) -> Iterator[RedTeamResult]:
        if not cases:
            return
        self._measurement_of(self._target)  # once, before the pool's processes look for it
        judge_case = partial(_judge_in_pool, self._project, self._target, self._poor)
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent) as pool:
            futures = [pool.submit(judge_case, case) for case in cases]
            try:
                for future in as_completed(futures):
                    result, missing = future.result()
                    self._missing.update((check.name, check) for check in missing)
                    yield result
            except BrokenProcessPool as error:
                raise MachineFailed(
                    "A process that judges candidates was ended from outside, likely for want of memory; the same"
                    " command with `--jobs 1` goes on from the last result."
                ) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    @property
    def missing(self) -> tuple[Check, ...]:
        """Defences that were not in force at some case."""
        return tuple(self._missing.values())

    def report(self, results: Iterable[RedTeamResult], finished: bool = True) -> RedTeamReport:
        """Return the record of the results; with `finished` false more are to come."""
        results = tuple(sorted(results, key=lambda result: (result.definition, result.file)))
        return RedTeamReport(
            gate_version=GATE_VERSION,
            lab_sha256=provenance.lab_sha256(),
            measured=this_minute(),
            machine=self.machine,
            results=results,
            not_in_force=self.missing,
            attacks=count_outcomes(results, "attack"),
            controls=count_outcomes(results, "control"),
            poor=self._poor,
            finished=finished,
        )

    def _tell_within(self, progress: str, line: str) -> None:
        self._tell(f"{progress}: {line}")

    def _judge_case(self, case: RedTeamCase, tell: Tell) -> RedTeamResult:
        file, venue, case_identity = self._definition(case), self._venue(case), self._identity(case)
        if lacks := self._lacks(case, venue):
            return RedTeamResult.model_validate(
                {**case_identity, "outcome": CaseOutcome.NOT_RUN, "message": lacks}
            )
        started = time.monotonic()
        try:
            evaluation = self._evaluate(case, file, venue, tell)
        except WarpsmithError:
            raise
        except Exception as error:  # a case that breaks the grader is a finding, and not the end of the run
            _check_context(venue)
            message = f"the gate itself broke: {type(error).__name__}: {error}"
            return RedTeamResult.model_validate(
                {**case_identity,
                 "outcome": CaseOutcome.MACHINE_FAILED, "message": message, "target": venue.target.id,
                 "seconds": time.monotonic() - started}
            )  # fmt: skip
        outcome, reason = classify_outcome(case.header, evaluation)
        for folder in (self._project.root, sysconfig.get_path("purelib")):
            reason = reason.replace(f"{folder}/", "")  # records do not tell where the project or its libraries lie
        missing = tuple(check for check in trust.missing(evaluation.trust) if check.name != UNRUN_LINES)
        self._missing.update((check.name, check) for check in missing)
        return RedTeamResult.model_validate(
            {**case_identity,
             "outcome": outcome, "message": reason, "target": venue.target.id, "step": refusing_step(evaluation),
             "status": evaluation.status, "verdict": evaluation.decision.verdict,
             "seconds": time.monotonic() - started, "without": tuple(check.name for check in missing)}
        )  # fmt: skip

    def _identity(self, case: RedTeamCase) -> dict[str, object]:
        """Return the fields of a result that identify its case; a result with the same ones stays valid."""
        return {
            "definition": case.definition, "file": case.name, "header": case.header,
            "sha256": files.file_sha256(case.path),
            "definition_sha256": definition_file.definition_sha256(case.path.parent.parent / "definition.py"),
            "against_sha256": files.file_sha256(case.best) if case.best else None,
        }  # fmt: skip

    def _venue(self, case: RedTeamCase) -> _Venue:
        """Return the target, or the CPU if the case's language has no other."""
        targets = languages.get(case.language).targets
        target = hardware.read_target_page(self._project, _CPU).target if targets == (_CPU,) else self._target
        return _Venue(target, interpreted=target.kind not in targets)

    def _lacks(self, case: RedTeamCase, venue: _Venue) -> str:
        """Describe what this machine lacks for a case; empty if nothing."""
        if _ON_GPU.intersection(case.header.needs) and venue.target.kind != "gpu":
            return "no GPU"
        if "early start" in case.header.needs and not late_inputs.kernels_can_start_early():
            return "no kernel starts early on this GPU"
        if lacks := languages.get(case.language).missing(venue.target.kind):
            return lacks
        if "isolation" in case.header.needs:
            return _describe_missing("isolation", trust.missing(self._isolation(venue)))
        return ""

    def _isolation(self, venue: _Venue) -> tuple[Check, ...]:
        """Return the isolation of a worker, read before a case that relies on it is run."""
        side = self._host(venue).start_side("probe", Limits())
        try:
            return side.isolation
        finally:
            side.close()

    def _evaluate(self, case: RedTeamCase, file: DefinitionFile, venue: _Venue, tell: Tell) -> Evaluation:
        """Judge a case; if the machine failed, once more on a fresh host, since the case before may be to
        blame."""
        request = self._request(case, file, venue.target, tell)
        evaluation = judge_version(request, self._host(venue))
        if _machine_failed(evaluation):
            _check_context(venue)
            self._hosts.pop(venue.host_key).close()
            if Status.MACHINE_FAILED not in case.header.status:
                evaluation = judge_version(request, self._host(venue))
        return evaluation

    def _request(self, case: RedTeamCase, file: DefinitionFile, target: Target, tell: Tell) -> Request:
        on_gpu = target.kind == "gpu"
        return Request(
            project=self._project,
            file=file,
            candidate=Candidate(case.path, case.language, case.path.stem),
            page=hardware.read_target_page(self._project, target.id),
            measurement=self._measurement_of(target),
            best=Candidate(case.best, case.language, case.best.stem) if case.best else None,
            sets=("representative", "full") if on_gpu else ("representative",),
            limits=_limits(case.header),
            budget=None if on_gpu else _PAIRED if case.best else _BRIEF,
            sanitized="sanitizer" in case.header.needs or case.path.stem == _PLAIN,
            tell=tell,
        )

    def _measurement_of(self, target: Target) -> Measurement:
        if target.id not in self._measurements:
            self._measurements[target.id] = self._measure(target)
        return self._measurements[target.id]

    def _definition(self, case: RedTeamCase) -> DefinitionFile:
        path = case.path.parent.parent / "definition.py"
        if path not in self._definitions:
            file = definition_file.load_definition(path)
            self._definitions[path] = _impoverish(file) if self._poor else file
        return self._definitions[path]

    def _host(self, venue: _Venue) -> WorkerHost:
        if venue.host_key not in self._hosts:
            self._hosts[venue.host_key] = WorkerHost(*venue.host_key)
        return self._hosts[venue.host_key]


def _check_context(venue: _Venue) -> None:
    """Raise MachineFailed if this process can use its GPU no more: after an assertion on it, no call succeeds."""
    import torch

    if venue.target.kind != "gpu" or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise MachineFailed(
            f"The red team lost the GPU: {reason}. Run the same command again: it goes on where it ended."
        ) from error


def _impoverish(file: DefinitionFile) -> DefinitionFile:
    """Return the definition with its first two timed workloads only."""
    timed = file.definition.select("representative", "full")[:2]
    return replace(file, definition=file.definition.model_copy(update={"workloads": tuple(timed)}))


_team: list[RedTeam] = []


def _end_with_parent() -> None:
    """End a process of the pool with the command, so that it does not disturb the next one."""
    process.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() != parent.pid:
        os._exit(1)


def _judge_in_pool(
    project: Project, target: Target, poor: bool, case: RedTeamCase
) -> tuple[RedTeamResult, tuple[Check, ...]]:
    """Judge a case in a process of the pool, whose own red team keeps its worker hosts until it ends."""
    if not _team:
        _team.append(RedTeam(project, target, poor=poor))
        atexit.register(_team[0].__exit__)
    (result,) = _team[0].run([case])
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()  # what long calls took: other processes of the pool need it
    return result, _team[0].missing


def classify_outcome(header: CaseHeader, evaluation: Evaluation) -> tuple[CaseOutcome, str]:
    """Return the outcome of a case, and the reason why it was refused or is undecided."""
    decision = evaluation.decision
    if _lacked_memory(header, evaluation):
        return CaseOutcome.MACHINE_FAILED, decision.reason
    if _machine_failed(evaluation):
        expected = header.kind == "attack" and Status.MACHINE_FAILED in header.status
        return (CaseOutcome.CAUGHT if expected else CaseOutcome.MACHINE_FAILED), decision.reason
    refused = decision.verdict is Verdict.ROLLBACK
    if header.kind == "control":
        if refused:
            return CaseOutcome.REFUSED, decision.reason
        return (CaseOutcome.CORRECT if _was_untimed(evaluation) else CaseOutcome.ACCEPTED), ""
    if refused:
        by_time_alone = refusing_step(evaluation) == "decision" and "decision" not in header.caught
        return (CaseOutcome.REFUSED_FOR_NOISE if by_time_alone else CaseOutcome.CAUGHT), decision.reason
    unchecked = [check for check in trust.missing(evaluation.trust) if check.name in _SANITIZERS]
    if unchecked and "sanitizer" in header.needs:
        return CaseOutcome.NOT_RUN, _describe_missing("sanitizer", unchecked)
    if _was_untimed(evaluation) and _AFTER_TIMING & set(header.caught):
        return CaseOutcome.NOT_RUN, "nothing is timed where the language only interprets"
    return CaseOutcome.GOT_THROUGH, decision.reason


def refusing_step(evaluation: Evaluation) -> StepName | None:
    """Return the step that refused a version, or None if none did."""
    if evaluation.decision.verdict is not Verdict.ROLLBACK:
        return None
    return next((step.name for step in evaluation.steps if step.state == "failed"), "decision")


def _was_untimed(evaluation: Evaluation) -> bool:
    """Return True if a version was right everywhere and could not be timed here."""
    return evaluation.correct and any(s.name == "timing" and s.state == "skipped" for s in evaluation.steps)


def _machine_failed(evaluation: Evaluation) -> bool:
    return evaluation.decision.verdict is Verdict.INVALID and not _was_untimed(evaluation)


def _lacked_memory(header: CaseHeader, evaluation: Evaluation) -> bool:
    """Return True if a case found no memory and should have: others held it, and no check refused the case."""
    return evaluation.status is Status.OUT_OF_MEMORY and Status.OUT_OF_MEMORY not in header.status


def _describe_missing(need: Need, checks: Iterable[Check]) -> str:
    """Describe the checks that a need lacks; empty if none."""
    names = ", ".join(check.name for check in checks)
    return f"no {need} ({names})" if names else ""


def _limits(header: CaseHeader) -> Limits:
    """Return limits that are short for a case that hangs, and tight for one that exhausts memory."""
    hangs = _HANGS.search(header.family) is not None or Status.TIMEOUT in header.status
    bomb = "memory bomb" in header.family or Status.OUT_OF_MEMORY in header.status
    return Limits(seconds=_HANG_SECONDS if hangs else Limits.seconds, memory_bytes=_BOMB_BYTES if bomb else 0)

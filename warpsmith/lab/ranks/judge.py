"""Judgement of a version over ranks: correctness on all ranks, then paired times, then the gate's decision."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import (
    BEST,
    GATE_VERSION,
    TWIN,
    Decision,
    Provenance,
    Status,
    Verdict,
    WorkloadResult,
)
from warpsmith.core.text import Tell
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.grading import correctness
from warpsmith.lab.machine import hardware, identity, provenance
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.ranks import correctness_check, rank_host
from warpsmith.lab.ranks.correctness_check import WrongOnRank
from warpsmith.lab.ranks.group import RankGroup
from warpsmith.lab.ranks.models import RankEvaluation
from warpsmith.lab.ranks.multicast import refuse_multicast
from warpsmith.lab.ranks.timing import RankTimes
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import Project

_ISOLATION = Check(
    name="isolation",
    ran=False,
    how="ranks reach each other over loopback, so they run without the sandbox: a version may read and write "
    "what its user may; judge code that you trust",
)
_DELIVERY = Check(
    name="outputs at the answer", ran=True, how="all ranks are stopped before their outputs are read"
)

TRUST = {
    "cpu": (
        _ISOLATION,
        Check(name="clock", ran=True, how="the grader's, from before the first request to the last rank's answer"),
        _DELIVERY,
        Check(
            name="arrival",
            ran=True,
            how="in each graded block a rank is late, or stopped within its calls, each rank in turn",
        ),
    ),
    "cuda": (
        _ISOLATION,
        Check(
            name="clock",
            ran=False,
            how="the GPUs' own, between events that each rank's process reads: a version may change what it reads;"
            " judge code that you trust",
        ),
        _DELIVERY,
        Check(
            name="arrival",
            ran=True,
            how="in each graded block a rank's host or GPU is late, or held within its calls, each rank in turn",
        ),
        Check(
            name="multicast off", ran=True, how="set in every rank before anything is loaded, and none is named"
        ),
    ),
}
"""Protections of every judgement over ranks, by device."""

_Contents = dict[Path, bytes]
"""Versions as they were when the judgement began; every process gets these."""


@dataclass(frozen=True)
class RankRequest:
    """A version over ranks, and the conditions of its judgement."""

    project: Project
    """Project that paths in the record are relative to."""
    file: DefinitionFile
    """Definition of the operator."""
    source: Path
    """File of the version."""
    against: Path | None = None
    """File of the version that it must beat."""
    target: str = "cpu"
    """Id of the target that the host runs on."""
    timed: bool = True
    """False for correctness alone."""
    judgement: int = 1
    """Number of this judgement among its campaign's comparisons; the later it is, the clearer a gain must be."""
    limits: Limits = field(default_factory=Limits)
    """Time for one block of calls on all ranks, and memory for each rank."""
    tell: Tell = lambda _: None
    """Takes lines of progress."""


def judge_ranks(request: RankRequest, host: WorkerHost) -> RankEvaluation:
    """Judge a version over ranks, on the host's device."""
    seed, results = secrets.randbits(62), list[WorkloadResult]()
    contents = {path: path.read_bytes() for path in (request.source, request.against) if path}
    times, verdict = RankTimes(request.file, secrets.randbits(62), request.tell), None
    on_gpus, facts = host.device != "cpu", _RankDevices()
    for path, content in contents.items() if on_gpus else ():
        refuse_multicast(path.name, content.decode(errors="replace"))
    uuids = rank_host.leased_uuids() if on_gpus else ()
    try:
        _check(request, contents, host, seed, results, facts)
        if request.timed:
            verdict = _time(request, contents, host, times)
    except SideFailed as failure:
        verdict = _failed(failure, results)
    except MachineFailed as failure:
        verdict = Decision(verdict=Verdict.INVALID, reason=str(failure)[:600])
        results = results or [WorkloadResult(workload="*", status=Status.MACHINE_FAILED, message=str(failure))]
    right = all(result.status is Status.PASSED for result in results)
    timed = right and times.seconds and verdict is not None and verdict.verdict is not Verdict.INVALID
    compared = bool(timed and request.against)
    return RankEvaluation(
        definition=request.file.definition.name,
        ranks=request.file.definition.ranks,
        backend="nccl" if on_gpus else "gloo",
        devices=facts.devices,
        uuids=uuids,
        nccl=facts.nccl,
        link=rank_host.describe_link(uuids) if on_gpus else "",
        provenance=_provenance(request, contents, seed),
        trust=TRUST[host.device],
        results=tuple(results),
        times=times.summarize() if timed else {},
        aggregate=times.mean(SOLUTION, BEST) if compared else None,
        floor=times.floor if compared else None,
        decision=verdict,
    )


@dataclass
class _RankDevices:
    """Devices and NCCL, as the ranks report them."""

    devices: tuple[str, ...] = ()
    nccl: str = ""


def _check(
    request: RankRequest,
    contents: _Contents,
    host: WorkerHost,
    seed: int,
    results: list[WorkloadResult],
    facts: _RankDevices,
) -> None:
    """Add a result for each workload.

    Raises:
        SideFailed: the version failed; the last result says so.
    """
    workloads, name = correctness_check.list_rank_workloads(request.file, seed), "*"
    try:
        with RankGroup(
            SOLUTION, request.file.definition, workloads, request.source, contents[request.source], host,
            request.limits,
        ) as group:  # fmt: skip
            facts.devices, facts.nccl = group.devices, group.nccl
            for number, workload in enumerate(workloads):
                name = workload.name
                request.tell(f"correctness at {name} on {request.file.definition.ranks} ranks")
                graded = correctness_check.check_rank_workload(request.file, workload, group, seed + number)
                results.append(WorkloadResult(workload=name, status=Status.PASSED, correctness=graded))
    except SideFailed as failure:
        results.append(_failed_result(name, failure))
        raise


def _time(request: RankRequest, contents: _Contents, host: WorkerHost, times: RankTimes) -> Decision:
    """Time the version, and a gain or a loss once more in fresh processes."""
    definition, thresholds, later = request.file.definition, Thresholds(), list[RankTimes]()
    sides = {SOLUTION: request.source}
    if request.against is not None:
        sides |= {BEST: request.against, TWIN: request.against}

    def look(into: RankTimes) -> ProvisionalDecision:
        with ExitStack() as stack:
            groups = {
                name: stack.enter_context(
                    RankGroup(
                        name, definition, definition.workloads, source, contents[source], host, request.limits
                    )
                )
                for name, source in sides.items()
            }
            return into.settle(groups, thresholds, request.judgement)

    def look_again() -> ProvisionalDecision:
        later.append(RankTimes(request.file, secrets.randbits(62), request.tell))
        return look(later[-1])

    first = look(times)
    if not first.needs_confirmation:
        return first.decision
    confirmed = decision.confirm_in_fresh_processes(first, look_again, times.floor)
    difference = max(abs(each.mean(TWIN, BEST).speedup - 1) for each in (times, *later))
    return decision.hold_against_twin(confirmed, first, difference)


def _failed(failure: SideFailed, results: list[WorkloadResult]) -> Decision:
    """Return the verdict on a failure; one of the version in a timed call becomes a result as well."""
    if failure.side in (BEST, TWIN):
        return Decision(
            verdict=Verdict.INVALID, reason=f"the version to beat fails: {failure.status}: {failure.message}"[:600]
        )
    if all(result.status is Status.PASSED for result in results):
        results.append(_failed_result("*", failure))
    return Decision(
        verdict=Verdict.ROLLBACK, reason=f"{results[-1].workload}: {failure.status}: {failure.message}"[:600]
    )


def _failed_result(workload: str, failure: SideFailed) -> WorkloadResult:
    grades = [failure.grade] if isinstance(failure, WrongOnRank) else []
    return WorkloadResult(
        workload=workload,
        status=failure.status,
        message=failure.message[:600],
        correctness=correctness.summarize_grades(grades) if grades else None,
    )


def _provenance(request: RankRequest, contents: _Contents, seed: int) -> Provenance:
    against = request.against
    return Provenance(
        solution=request.project.relative(request.source.resolve()),
        solution_sha256=sha256(contents[request.source]).hexdigest(),
        definition_sha256=request.file.sha256,
        best=request.project.relative(against.resolve()) if against else None,
        best_sha256=sha256(contents[against]).hexdigest() if against else None,
        lab_sha256=provenance.lab_sha256(),
        gate_version=GATE_VERSION,
        seed=seed,
        machine=identity.identify_machine(hardware.read_target_page(request.project, request.target).target),
        measured=this_minute(),
    )

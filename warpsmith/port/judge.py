"""Judgement of a version for a device that is not here: by the interpreter, the target's compiler and a model.

Nothing is timed, so the verdict is UNTIMED, or ROLLBACK for a version that is wrong or does not compile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith import languages
from warpsmith.core.definition import Workload, WorkloadSet
from warpsmith.core.evaluation import Decision, Evaluation, Status, Step, Verdict, WorkloadResult
from warpsmith.core.port.check import InterpretedKernel, KernelLaunch, PortCheck
from warpsmith.core.text import Tell
from warpsmith.core.trust import Check
from warpsmith.errors import MachineLacks
from warpsmith.lab.calibration import measurement
from warpsmith.lab.gate import judge
from warpsmith.lab.gate.request import Candidate, Request
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import BuildFailed, ReplaysLaunches
from warpsmith.port import sizes
from warpsmith.port.changes import compare_figures
from warpsmith.port.compile import describe_notices, first_lines, launch_figures
from warpsmith.port.devices import PortDevice, find_device
from warpsmith.port.model_time import model_times
from warpsmith.port.numerics import NOTHING_INTERPRETED, count_skipped
from warpsmith.port.obstacle import port_obstacle
from warpsmith.port.sizes import RowLimit
from warpsmith.profiling.assembly import inspect
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder

_OTHERS = "other sizes or layouts"
_COMPILED_AT_ONCE = 8
"""Kernels for one process of the compiler, which has a time limit."""

NOT_JUDGED = "not judged: speed"
"""Last words of each UNTIMED verdict."""


@dataclass(frozen=True)
class PortJudgement:
    """A version of a port campaign, and what its judgement needs."""

    project: Project
    """Project of the version."""
    file: DefinitionFile
    """Definition of the operator."""
    candidate: Candidate
    """Version that is judged."""
    page: HardwarePage
    """Page of the target."""
    sets: tuple[WorkloadSet, ...] = ("representative",)
    """Workload sets that are interpreted beside the odd workloads; the representative one is compiled."""
    before: PortCheck | None = None
    """Compiler's evidence on the version that the campaign goes on from; None at the baseline."""
    tell: Tell = lambda _: None
    """Takes lines of progress."""


def judge_port(judgement: PortJudgement, host: WorkerHost | None = None) -> Evaluation:
    """Judge one version: its numbers by the interpreter, then what that launched by the target's compiler.

    Args:
        judgement: the version, and what its judgement needs.
        host: a running worker host that interprets, which saves its start; by default one of its own.

    Raises:
        MachineLacks: the language, its interpreter or its compiler cannot run here.
        BadDefinition: the definition or its reference is wrong.
    """
    project, candidate = judgement.project, judgement.candidate
    if obstacle := port_obstacle(candidate.language, judgement.page):
        raise MachineLacks(obstacle)
    language = languages.get(candidate.language)
    assert isinstance(language, ReplaysLaunches)
    device = find_device(project, judgement.page.target.id, language.port_architectures())
    launches: dict[str, tuple[KernelLaunch, ...]] = {}
    others: list[KernelLaunch] = []

    def take_launches(workload: Workload | None, launched: Sequence[KernelLaunch]) -> None:
        if workload is not None and workload.set == "representative":
            launches[workload.name] = tuple(launched)
        else:
            others.extend(launched)

    page = hardware.read_target_page(project, "cpu")
    request = Request(
        project=project,
        file=judgement.file,
        candidate=candidate,
        page=page,
        measurement=measurement.stored_measurement(project, page.target),
        sets=judgement.sets,
        timed=False,
        recorded_for=device.arch,
        take_launches=take_launches,
        tell=judgement.tell,
    )
    with ExitStack() as stack:
        host = host or stack.enter_context(request.start_host())
        limits = sizes.limit_rows(request, host)
        request = replace(request, file=sizes.shorten_workloads(judgement.file, limits))
        evaluation = judge.judge_version(request, host).model_copy(
            update={"target": judgement.page.target.id, "noise": None}
        )
    if not evaluation.correct:
        return _unchecked(evaluation)
    judgement.tell(f"compiling for {device.arch}")
    started = time.monotonic()
    check, failure = _compile_launches(judgement, language, device, launches, limits)
    failure = failure or _compile_others(judgement, language, device, launches, others)
    step = Step(
        name="compile",
        state="failed" if failure else "noted" if check.notes else "passed",
        notes=(failure,) if failure else check.notes,
        seconds=time.monotonic() - started,
    )
    results = evaluation.results
    if failure:
        results = (
            *results,
            WorkloadResult(workload=judge.BEFORE_ALL, status=Status.COMPILE_ERROR, message=failure),
        )
        reason = f"{Status.COMPILE_ERROR} for {device.arch}: {failure}"
        decision = Decision(verdict=Verdict.ROLLBACK, reason=reason[:600])
    else:
        decision = Decision(verdict=Verdict.UNTIMED, reason=_describe(evaluation, check))
    changes = {
        "steps": (*evaluation.steps, step),
        "trust": (*evaluation.trust, *_port_checks(launches, check)),
        "results": results,
        "port": check,
        "decision": decision,
    }
    return Evaluation.model_validate({**dict(evaluation), **changes})


def _unchecked(evaluation: Evaluation) -> Evaluation:
    """Return the verdict on a version that the interpreter did not find correct."""
    if evaluation.decision.verdict is not Verdict.INVALID or evaluation.results:
        return evaluation
    if not count_skipped(evaluation):
        return evaluation
    nothing = Decision(verdict=Verdict.INVALID, reason=NOTHING_INTERPRETED)
    return evaluation.model_copy(update={"decision": nothing})


def _compile_launches(
    judgement: PortJudgement,
    language: ReplaysLaunches,
    device: PortDevice,
    launches: Mapping[str, Sequence[KernelLaunch]],
    limits: Mapping[str, RowLimit],
) -> tuple[PortCheck, str]:
    """Compile what the interpreter ran; return the check, and why the version fails it or an empty string."""
    source, definition = judgement.candidate.path, judgement.file.definition
    nothing = PortCheck(arch=device.arch)
    if empty := [name for name, launched in launches.items() if not launched]:
        return nothing, f"run launched no kernel at {empty[0]}"
    for name, limit in limits.items():
        if name in launches and (kernel := limit.left_out(launches[name])):
            return nothing, f"{kernel}: at all rows of {name} it is launched as it was not with fewer"
    launches = {name: limits[name].launches if name in limits else each for name, each in launches.items()}
    with TemporaryFolder() as folder:
        try:
            listings = language.assemble_launches(source, definition, launches, device.arch, Path(folder))
        except BuildFailed as error:
            return nothing, first_lines(error)
        compiled = [inspect.read_assembly(listing, source, judgement.project) for listing in listings]
        notes = describe_notices(compiled, listings, judgement.candidate.language, device.arch, definition)
    kernels = tuple(
        InterpretedKernel(
            name=kernel.name,
            variant=kernel.variant,
            blocks=dict(listing.blocks),
            figures=launch_figures(kernel, device),
            instructions=kernel.instructions,
        )
        for kernel, listing in zip(compiled, listings, strict=True)
    )
    times = model_times(judgement.project, judgement.page, definition, kernels)
    check = PortCheck(
        arch=device.arch,
        kernels=kernels,
        times=times,
        fewer_rows=tuple(limit.fewer for limit in limits.values()),
        figures=compare_figures(judgement.before, kernels, times),
        notes=tuple(notes),
    )
    obstacles = (f"{kernel.name}: {kernel.figures.obstacle}" for kernel in kernels if kernel.figures.obstacle)
    return check, next(obstacles, "")


def _compile_others(
    judgement: PortJudgement,
    language: ReplaysLaunches,
    device: PortDevice,
    launches: Mapping[str, Sequence[KernelLaunch]],
    others: Sequence[KernelLaunch],
) -> str:
    """Compile the kernels that only other layouts and sizes launch; return why one fails, or an empty string."""
    compiled = sizes.kernels_of([launch for each in launches.values() for launch in each])
    new = {key: launch for launch in others for key in sizes.kernels_of([launch]) - compiled}
    kernels = list(new.values())
    for first in range(0, len(kernels), _COMPILED_AT_ONCE):
        some = kernels[first : first + _COMPILED_AT_ONCE]
        with TemporaryFolder() as folder:
            try:
                listings = language.assemble_launches(
                    judgement.candidate.path, judgement.file.definition, {_OTHERS: some}, device.arch, Path(folder)
                )
            except BuildFailed as error:
                return f"at {_OTHERS}: {first_lines(error)}"
            for listing in listings:
                kernel = inspect.read_assembly(listing, judgement.candidate.path, judgement.project)
                if obstacle := launch_figures(kernel, device).obstacle:
                    return f"at {_OTHERS}: {kernel.name}: {obstacle}"
    return ""


def _port_checks(launches: Mapping[str, Sequence[KernelLaunch]], check: PortCheck) -> tuple[Check, ...]:
    count = len({launch for launched in launches.values() for launch in launched})
    means = f"the compiler got the code, types and constants of the {count} launches that the interpreter ran"
    fewer = ", ".join(each.text for each in check.fewer_rows)
    return (
        *([Check(name="whole workloads", ran=False, how=f"interpreted in part: {fewer}")] if fewer else []),
        Check(name="launches", ran=True, how=means),
        Check(name="compiled numerics", ran=False, how="the compiled kernels ran nowhere: that needs a device"),
    )


def _describe(evaluation: Evaluation, check: PortCheck) -> str:
    """Return the reason of an UNTIMED verdict."""
    worst = max(result.correctness.worst for result in evaluation.results if result.correctness)
    figures = ", ".join(figure.text for figure in check.figures)
    skipped = count_skipped(evaluation)
    others = f", {skipped} more not interpreted" if skipped else ""
    fewer = f", of them {', '.join(each.text for each in check.fewer_rows)}" if check.fewer_rows else ""
    where = f"{len(evaluation.results)} workloads{fewer}{others}, worst error {worst:.2g} of its bound"
    text = f"correct by the interpreter at {where}; {check.arch}: {figures}"
    return f"{text[: 600 - len(NOT_JUDGED) - 2]}; {NOT_JUDGED}"

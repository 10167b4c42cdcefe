"""Numerics of a port: the gate's own check, by the interpreter on the CPU."""

from __future__ import annotations

from warpsmith import languages
from warpsmith.core.evaluation import Evaluation, Status, Verdict
from warpsmith.core.text import Tell
from warpsmith.lab.calibration import measurement
from warpsmith.lab.gate import judge
from warpsmith.lab.gate.request import Candidate, Request
from warpsmith.lab.machine import hardware
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.port.models import Numerics
from warpsmith.port.versions import PortVersion
from warpsmith.project import Project


def check_numerics(project: Project, file: DefinitionFile, version: PortVersion, tell: Tell) -> Numerics:
    """Check a version as `warpsmith judge --check --target cpu` does; nothing is timed, and there is no verdict.

    Where the language is not interpreted, nothing is checked, and the reason says why.
    """
    if lack := languages.get(version.language).missing("cpu"):
        return Numerics(state="unchecked", reason=lack.removesuffix("."))
    page = hardware.read_target_page(project, "cpu")
    request = Request(
        project=project,
        file=file,
        candidate=Candidate(path=version.path, language=version.language, version=version.version),
        page=page,
        measurement=measurement.stored_measurement(project, page.target),
        timed=False,
        tell=tell,
    )
    return summarize_check(judge.judge_version(request))


NOTHING_INTERPRETED = "no workload is of a type that the interpreter computes as GPUs do"
"""Reason why nothing was checked where the interpreter was there."""


def count_skipped(evaluation: Evaluation) -> int:
    """Return the number of workloads at which the interpreter's result proves nothing."""
    notes = [note for step in evaluation.steps if step.name == "correctness" for note in step.notes]
    return sum(" skipped: " in note for note in notes)


def summarize_check(evaluation: Evaluation) -> Numerics:
    """Summarize an untimed judgement."""
    skipped = count_skipped(evaluation)
    names = tuple(result.workload for result in evaluation.results if result.status is Status.PASSED)
    if evaluation.correct:
        return Numerics(state="correct", workloads=names, skipped=skipped)
    if not evaluation.results:
        reason = NOTHING_INTERPRETED if skipped else evaluation.decision.reason
        return Numerics(state="unchecked", reason=reason, skipped=skipped)
    # The interpreter runs blocks one after another: a kernel whose blocks wait for each other never ends there.
    late = any(result.status is Status.TIMEOUT for result in evaluation.results)
    unknown = late or evaluation.decision.verdict is Verdict.INVALID
    return Numerics(
        state="unchecked" if unknown else "failed",
        workloads=names,
        reason=evaluation.decision.reason,
        skipped=skipped,
    )

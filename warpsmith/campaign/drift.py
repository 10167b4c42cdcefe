"""Drift: claims of the best versions under the libraries that are here."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.campaign import rerun
from warpsmith.campaign.evidence import evidence_check, stored_evaluations, toolchain
from warpsmith.core.base import Model
from warpsmith.core.evidence import Claim
from warpsmith.core.text import Tell
from warpsmith.errors import WarpsmithError
from warpsmith.execution.contexts import LOCAL
from warpsmith.project import Project


class Drift(Model):
    """Claim of one best version after it was judged under other libraries."""

    solution: str
    """Path of the version's file in the project."""
    record: str
    """Path of the record that was judged again."""
    differences: str
    """Libraries of then, and of now in brackets."""
    claim: Claim
    """Result for the claim."""
    reason: str
    """Reason in one sentence."""


def measure_drift(project: Project, target: str, tell: Tell = lambda _: None) -> Iterator[Drift]:
    """Judge each campaign's best version on a target again whose libraries differ, and yield what changed.

    A version that cannot be judged here is UNKNOWN, and the others go on.
    """
    judged, _ = stored_evaluations.list_evaluations(project)
    for stored in evidence_check.best_rounds(judged):
        differences = toolchain.differing_libraries(stored.evaluation)
        if stored.evaluation.target != target or not differences:
            continue
        try:
            _, result, _ = rerun.rerun_record(project, stored.path, target, tell, LOCAL)
            claim, reason = result.claim, result.reason
        except WarpsmithError as error:
            claim, reason = Claim.UNKNOWN, str(error)
        yield Drift(
            solution=stored.evaluation.provenance.solution,
            record=project.relative(stored.path.parent),
            differences=toolchain.describe_differences(differences),
            claim=claim,
            reason=reason,
        )

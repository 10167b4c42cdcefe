"""Regions of a project that have a definition, and those of them that have an accepted kernel."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.core.hardware import Target
from warpsmith.core.trial import TrialVerdict
from warpsmith.errors import CorruptRecord, MissingInput
from warpsmith.lab.machine import hardware
from warpsmith.program.operators import extraction_file
from warpsmith.program.operators.models import CALLS_FILE, Extraction
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project


def region_extractions(project: Project) -> Iterator[Extraction]:
    """Yield the calls of each region that has a definition; a file that does not read is left out."""
    for path in sorted(project.kernels.glob(f"*/{CALLS_FILE}")):
        try:
            extraction = extraction_file.read_extraction(project, path.parent.name)
        except (CorruptRecord, MissingInput):
            continue  # the command that uses it says so
        if extraction.region is not None:
            yield extraction


def list_definitions(project: Project) -> dict[str, str]:
    """Return the names of the project's definitions that are regions, by digest."""
    return {item.region.digest: item.op for item in region_extractions(project) if item.region is not None}


def list_accepted(project: Project) -> list[str]:
    """List the regions with an accepted version that the last trial of the whole step did not refuse."""
    from warpsmith.use import choice  # `program next` often needs none of it

    return [
        extraction.op
        for extraction in region_extractions(project)
        if choice.rank_versions(project, extraction.op) and not _was_refused(project, extraction)
    ]


def local_target(project: Project, device: str) -> Target | None:
    """Return the target of a device that a step was recorded on, `cpu` or a GPU's name, if it is here."""
    if device != "cpu":
        return hardware.find_local_target(project)
    from warpsmith.use import choice

    return choice.target_of_device(project, None)


def integration_entry(op: str) -> str:
    """Return the name of the trial that integrates a definition."""
    return f"integrate-{op}"


def _was_refused(project: Project, extraction: Extraction) -> bool:
    """Return whether the last trial of a region in its program was not kept."""
    records = Trials(project, extraction.program.name).records()
    verdicts = [
        record.decision.verdict
        for _, record in sorted(records.items())
        if record.plan.entry == integration_entry(extraction.op)
    ]
    return bool(verdicts) and verdicts[-1] is not TrialVerdict.KEPT

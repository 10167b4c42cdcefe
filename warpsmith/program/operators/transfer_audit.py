"""Transfer audit: the value of a kernel's gain in one program, measured call by call and for the whole step."""

from __future__ import annotations

import contextlib

from pydantic import ValidationError

from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import REFERENCE, Evaluation
from warpsmith.core.text import Tell
from warpsmith.program.operators import kernel_override, operator_calls
from warpsmith.program.operators.models import Extraction
from warpsmith.program.operators.transfer_record import Transfer, WorkloadTransfer
from warpsmith.program.process.runner import Runner
from warpsmith.project import Project
from warpsmith.use.choice import BestVersion

_COUNTED_STEPS = 3

TRANSFER_FILE = "transfer.json"
"""File next to the record of a trial."""


def audit_transfer(
    project: Project, runner: Runner, extraction: Extraction, version: BestVersion, tell: Tell
) -> Transfer:
    """Measure the kernel at the workloads that a program calls; `runner` is started without this kernel enabled.

    Raises:
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    tell("auditing the kernel's gain")
    rows = runner.call(
        "transfer", op=extraction.op, definition=str(project.definition_path(extraction.op)),
        workloads=[calls.workload for calls in extraction.called],
        device=kernel_override.extraction_device(extraction), compiled=extraction.region is not None,
    )  # fmt: skip
    gains, calls = _judged_gains(version), {item.workload: item.calls for item in extraction.called}
    return Transfer(
        op=extraction.op,
        operator=extraction.operator,
        solution=version.solution,
        device=extraction.device,
        region=extraction.region.digest if extraction.region is not None else "",
        step_seconds=operator_calls.measure_step_seconds(runner),
        workloads=tuple(
            WorkloadTransfer.model_validate(
                {**item, "calls": calls[item["workload"]], "judged": gains.get(item["workload"])}
            )
            for item in rows
        ),
    )


def count_hits(runner: Runner, transfer: Transfer, tell: Tell) -> Transfer:
    """Add the calls of a region's kernel per step; `runner` is started with the kernel enabled.

    Raises:
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    tell("counting the kernel's calls in the compiled step")
    counted = runner.call("region_hits", op=transfer.op, steps=_COUNTED_STEPS)
    return transfer.model_copy(update={"hits": counted["hits"] / _COUNTED_STEPS, "places": counted["places"]})


def _judged_gains(version: BestVersion) -> dict[str, float]:
    """Return the gain of a call by workload from the version's record; empty if the record is of another kind."""
    try:
        text = version.record.read_bytes()
    except OSError:
        return {}
    evaluation: Evaluation | None = None
    with contextlib.suppress(ValidationError):
        evaluation = Evaluation.model_validate_json(text)
    with contextlib.suppress(ValidationError):
        evaluation = RoundRecord.model_validate_json(text).evaluation
    timed = evaluation.timed if evaluation else {}
    return {
        name: against.other_seconds - timing.seconds
        for name, timing in timed.items()
        if (against := timing.against(REFERENCE)) is not None
    }

"""Fusion ledger of a program: each region with its share, its kernel, both gains, and why it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from warpsmith.core.trial import TrialRecord, TrialVerdict
from warpsmith.program.analysis import region_file
from warpsmith.program.compiled.models import RegionRow, StepRegions
from warpsmith.program.operators import accepted_regions
from warpsmith.program.operators.transfer_audit import TRANSFER_FILE
from warpsmith.program.operators.transfer_record import Transfer
from warpsmith.program.trials.trial_store import Trials
from warpsmith.reporting import format
from warpsmith.reporting.format import Md
from warpsmith.use import choice

_LEAST_SHARE = 0.01
"""Share of the step below which a region without a definition is left out."""


_OUTCOMES = {
    TrialVerdict.KEPT: "kept",
    TrialVerdict.RESTORED: "refused",
    TrialVerdict.INCONCLUSIVE: "nothing shown",
}


@dataclass(frozen=True)
class FusionLedger:
    """Regions of a program for its page."""

    regions: StepRegions
    """The list that the rows come from."""
    rows: tuple[Md, ...]
    """A table row for each region."""


def read_ledger(trials: Trials) -> FusionLedger | None:
    """Read the ledger of a program; None if its regions were never listed. Raises CorruptRecord."""
    regions = region_file.read_regions(trials.project, trials.name)
    if regions is None:
        return None
    definitions = accepted_regions.list_definitions(trials.project)
    integrations = dict(_integrations(trials))
    rows = [
        _ledger_row(trials, row, definitions.get(row.digest), integrations.get(row.digest))
        for row in regions.rows
        if row.share >= _LEAST_SHARE or row.digest in definitions
    ]
    return FusionLedger(regions, tuple(rows))


@dataclass(frozen=True)
class _IntegratedRegion:
    number: int
    record: TrialRecord
    transfer: Transfer


def _integrations(trials: Trials) -> Iterator[tuple[str, _IntegratedRegion]]:
    """Yield digest and trial of each region whose kernel was tried in the whole step, in order."""
    for number, record in sorted(trials.records().items()):
        path = trials.folder / f"{number:03d}" / TRANSFER_FILE
        try:
            transfer = Transfer.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue  # it is no trial of a kernel
        if transfer.region:
            yield transfer.region, _IntegratedRegion(number, record, transfer)


def _ledger_row(trials: Trials, row: RegionRow, op: str | None, tried: _IntegratedRegion | None) -> Md:
    kernel, alone, hits, gained, outcome = Md(format.ABSENT), format.ABSENT, format.ABSENT, format.ABSENT, ""
    if op is not None:
        accepted = [
            version for versions in choice.rank_versions(trials.project, op).values() for version in versions
        ]
        kernel = format.code(f"{op} {accepted[0].solution}" if accepted else op)
        outcome = "accepted, not tried in the step" if accepted else "no version is accepted"
    if tried is not None:
        audit = tried.transfer
        kernel = format.code(f"{audit.op} {audit.solution}")
        alone = _signed_seconds(audit.real.seconds)
        hits = f"{audit.hits:g}" if audit.hits is not None else format.ABSENT
        if audit.measured is not None and audit.measured_seconds is not None:
            gained = f"{_signed_seconds(audit.measured_seconds)}, {format.speedup(audit.measured)}"
        link = format.link(f"{tried.number:03d}", f"trials/{tried.number:03d}/record.json", ".")
        outcome = (
            f"{_OUTCOMES[tried.record.decision.verdict]} in {link}: {format.inline(tried.record.decision.reason)}"
        )
    if row.refusal:
        outcome = f"it {format.inline(row.refusal)}"
    way = "backward" if row.backward else "forward"
    cells = (
        format.code(row.digest or format.ABSENT),
        f"{format.inline(row.kind or ', '.join(row.operators))}, {way}",
        f"{row.calls:g}",
        f"{row.share:.1%}",
        format.factor(row.ceiling),
        kernel,
        alone,
        hits,
        gained,
        outcome or "no definition yet",
    )
    return Md(" | ".join(cells))


def _signed_seconds(seconds: float) -> str:
    return f"{'-' if seconds < 0 else ''}{format.seconds(abs(seconds))}"


def describe_regions(ledger: FusionLedger) -> Sequence[Md]:
    """Return the sentences above the table."""
    regions = ledger.regions
    return (
        Md(
            f"Listed {regions.measured} UTC on {format.inline(regions.device)} with PyTorch"
            f" {format.inline(regions.torch)}, without accepted kernels:"
            f" {format.count_noun(regions.graphs, 'compiled graph')}, whose generated kernels take"
            f" {format.seconds(regions.kernel_seconds)} of {format.seconds(regions.step_seconds)} per step."
        ),
        Md(
            "Gain alone: what all calls of a step gain over Inductor's own kernel for the region, measured call"
            " by call. Gain in the step: what the step gains, which also counts the fusion with its surroundings"
            " that Inductor loses. Shares of a region and of a chain that contains it do not add up."
        ),
    )

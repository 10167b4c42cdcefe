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
class LedgerRow:
    """A region with its kernel and its last trial in the whole step."""

    region: RegionRow
    """The region."""
    kernel: str
    """Definition, with the version that was tried or is the best; empty without a definition."""
    is_accepted: bool
    """True if a version of the definition is accepted."""
    number: int | None = None
    """Number of the trial; None if the kernel was not tried."""
    record: TrialRecord | None = None
    """Record of the trial."""
    transfer: Transfer | None = None
    """Audit of the trial."""

    @property
    def alone(self) -> str:
        """Gain of all calls of a step alone: `800 us`, `-3 us`."""
        return format.ABSENT if self.transfer is None else _signed_seconds(self.transfer.real.seconds)

    @property
    def gained(self) -> str:
        """Gain of the step, without the speedup: `680 us`."""
        seconds = self.transfer.measured_seconds if self.transfer is not None else None
        return format.ABSENT if seconds is None else _signed_seconds(seconds)

    @property
    def outcome(self) -> str:
        """Outcome in a word or a few, without the reason of a verdict."""
        if self.region.refusal:
            return f"it {self.region.refusal}"
        if self.record is not None:
            return _OUTCOMES[self.record.decision.verdict]
        if not self.kernel:
            return "no definition yet"
        return "accepted, not tried in the step" if self.is_accepted else "no version is accepted"


@dataclass(frozen=True)
class FusionLedger:
    """Regions of a program for its page."""

    regions: StepRegions
    """The list that the rows come from."""
    entries: tuple[LedgerRow, ...]
    """The regions, the largest first."""

    @property
    def rows(self) -> tuple[Md, ...]:
        """Return a table row for each region."""
        return tuple(map(_format_row, self.entries))


def read_ledger(trials: Trials) -> FusionLedger | None:
    """Read the ledger of a program; None if its regions were never listed. Raises CorruptRecord."""
    regions = region_file.read_regions(trials.project, trials.name)
    if regions is None:
        return None
    definitions = accepted_regions.list_definitions(trials.project)
    integrations = dict(_integrations(trials))
    entries = [
        _ledger_row(trials, row, definitions.get(row.digest), integrations.get(row.digest))
        for row in regions.rows
        if row.share >= _LEAST_SHARE or row.digest in definitions
    ]
    return FusionLedger(regions, tuple(entries))


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


def _ledger_row(trials: Trials, row: RegionRow, op: str | None, tried: _IntegratedRegion | None) -> LedgerRow:
    accepted = (
        [version for versions in choice.rank_versions(trials.project, op).values() for version in versions]
        if op is not None
        else []
    )
    if tried is None:
        kernel = f"{op} {accepted[0].solution}" if accepted else op or ""
        return LedgerRow(row, kernel, bool(accepted))
    kernel = f"{tried.transfer.op} {tried.transfer.solution}"
    return LedgerRow(row, kernel, bool(accepted), tried.number, tried.record, tried.transfer)


def _format_row(entry: LedgerRow) -> Md:
    row, audit, hits, gained, outcome = entry.region, entry.transfer, format.ABSENT, entry.gained, entry.outcome
    if audit is not None and audit.hits is not None:
        hits = f"{audit.hits:g}"
    if audit is not None and audit.measured is not None and audit.measured_seconds is not None:
        gained = f"{gained}, {format.speedup(audit.measured)}"
    outcome = format.inline(outcome)
    if entry.record is not None and not row.refusal:
        link = format.link(f"{entry.number:03d}", f"trials/{entry.number:03d}/record.json", ".")
        outcome = Md(f"{outcome} in {link}: {format.inline(entry.record.decision.reason)}")
    way = "backward" if row.backward else "forward"
    cells = (
        format.code(row.digest or format.ABSENT),
        f"{format.inline(row.kind or ', '.join(row.operators))}, {way}",
        f"{row.calls:g}",
        f"{row.share:.1%}",
        format.factor(row.ceiling),
        format.code(entry.kernel) if entry.kernel else Md(format.ABSENT),
        entry.alone,
        hits,
        gained,
        outcome,
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

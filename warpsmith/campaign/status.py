"""Status of a campaign, for `warpsmith status`."""

from __future__ import annotations

from warpsmith.campaign import firewall
from warpsmith.campaign.calibration import Calibration, calibrate
from warpsmith.campaign.history import stopping
from warpsmith.campaign.rounds.due_phase import find_due_phase
from warpsmith.campaign.rounds.state import PARTS, CampaignState
from warpsmith.core import trust
from warpsmith.core.base import Model
from warpsmith.core.campaign import Objective, Stagnation
from warpsmith.core.spend import Spent


class RoundLine(Model):
    """Summary of one closed round."""

    round: int
    """Number of the round."""
    solution: str
    """Name of the version, such as `triton/v3`."""
    category: str
    """Category of the change."""
    verdict: str
    """Verdict of the lab."""
    gain: float | None
    """Gain over the best version before it; null if it was not measured."""
    attempts: int
    """Files of the version that were judged, those that did not build included."""
    masked: bool
    """True if planning does not see the round."""
    struck: str | None
    """Reason why its version left the lineage later; null if it did not."""


class CampaignStatus(Model):
    """Summary of a campaign."""

    campaign: str
    """Name of the campaign."""
    op: str
    """The operator."""
    target: str
    """The kind of device."""
    objective: Objective
    """Objective of the campaign: time or energy."""
    port: bool
    """True for a port campaign, whose versions are never timed."""
    rounds: tuple[RoundLine, ...]
    """Closed rounds in order."""
    best: str | None
    """Name of the best version, such as `triton/v3`."""
    ceiling_share: float | None
    """Share of the ceiling that it reaches: geometric mean of floor over time."""
    measured: str | None
    """Time in UTC at which that share was measured."""
    trust: str | None
    """Level of trust in that measurement, with the protections that were not in force."""
    open: tuple[str, ...]
    """Finished parts of the open round."""
    invalid: int
    """Attempts at its verdict that failed because of the machine."""
    attempts: int
    """Attempts at its verdict whose version did not build; they cost no round."""
    phase: str
    """Phase that is due."""
    stop: str | None
    """Stop condition that holds, in words; null if none does."""
    contaminated: tuple[str, ...]
    """Files that were read although the campaign hides them; empty if none was seen to be."""
    stagnation: Stagnation
    """Demands on the next plan."""
    calibration: Calibration
    """Predicted and measured gains of the rounds that planning sees."""
    spent: Spent | None
    """Cost of its agents, those of the open round included; null if `warpsmith optimize` ran none."""


def campaign_status(state: CampaignState) -> CampaignStatus:
    """Summarize a campaign."""
    manifest, visible = state.campaign.manifest, {record.round for record in state.visible}
    return CampaignStatus(
        campaign=state.campaign.name,
        op=manifest.target_op,
        target=manifest.target,
        objective=manifest.objective,
        port=manifest.port,
        rounds=tuple(
            RoundLine(
                round=record.round,
                solution=record.solution,
                category=record.plan.category,
                verdict=record.outcome.verdict,
                gain=record.outcome.gain,
                attempts=record.attempts,
                masked=record.round not in visible,
                struck=record.struck.reason if record.struck else None,
            )
            for record in state.records
        ),
        best=state.best_name,
        ceiling_share=stopping.mean_ceiling_share(state.best.evaluation) if state.best else None,
        measured=state.best.evaluation.provenance.measured if state.best else None,
        trust=trust.short_text(state.best.evaluation.trust) if state.best else None,
        open=tuple(name for name in PARTS if getattr(state.open, name) is not None),
        invalid=len(state.open.invalid),
        attempts=state.open.attempt_count,
        phase=find_due_phase(state).phase,
        stop=state.stop,
        contaminated=tuple(read.path for read in firewall.read_reads(state.campaign.folder)),
        stagnation=state.stagnation,
        calibration=calibrate(state.visible),
        spent=Spent.of(state.spent) if state.spent else None,
    )

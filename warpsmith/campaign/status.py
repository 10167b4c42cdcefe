"""Status: a campaign at a glance, for `warpsmith status`."""

from __future__ import annotations

from warpsmith.campaign.calibration import Calibration, calibrate
from warpsmith.campaign.history import stopping
from warpsmith.campaign.rounds.due_phase import due_phase
from warpsmith.campaign.rounds.state import PARTS, CampaignState
from warpsmith.core.base import Model
from warpsmith.core.campaign import Objective, Stagnation
from warpsmith.core.spend import Spent


class RoundLine(Model):
    """One closed round."""

    round: int
    """Its number."""
    solution: str
    """The version, as `language/v3`."""
    category: str
    """The kind of change."""
    verdict: str
    """The lab's."""
    gain: float | None
    """Over the best version before; null where not measured."""
    masked: bool
    """Whether planning does not see it."""
    struck: str | None
    """Why its version left the lineage later; null: it did not."""


class CampaignStatus(Model):
    """Where a campaign stands."""

    campaign: str
    """Which."""
    op: str
    """The operator."""
    target: str
    """The device kind."""
    objective: Objective
    """What decides over a version: time or energy."""
    rounds: tuple[RoundLine, ...]
    """The closed ones in order."""
    best: str | None
    """The best version, as `language/v3`."""
    ceiling_share: float | None
    """What it reaches of the ceiling: geometric mean of floor over time."""
    open: tuple[str, ...]
    """Finished steps of the open round."""
    invalid: int
    """Attempts at its verdict that the machine failed."""
    phase: str
    """What is due."""
    stop: str | None
    """The stop condition that holds."""
    stagnation: Stagnation
    """What the next plan must do."""
    calibration: Calibration
    """Predicted against measured gains of the rounds that planning sees."""
    spent: Spent | None
    """What its agents cost, the open round's included; null where none was asked by `warpsmith optimize`."""


def campaign_status(state: CampaignState) -> CampaignStatus:
    """The campaign at a glance."""
    manifest, visible = state.campaign.manifest, {record.round for record in state.visible}
    return CampaignStatus(
        campaign=state.campaign.name,
        op=manifest.target_op,
        target=manifest.target,
        objective=manifest.objective,
        rounds=tuple(
            RoundLine(
                round=record.round,
                solution=record.solution,
                category=record.plan.category,
                verdict=record.outcome.verdict,
                gain=record.outcome.gain,
                masked=record.round not in visible,
                struck=record.struck.reason if record.struck else None,
            )
            for record in state.records
        ),
        best=state.best_name,
        ceiling_share=stopping.mean_ceiling_share(state.best.evaluation) if state.best else None,
        open=tuple(name for name in PARTS if getattr(state.open, name) is not None),
        invalid=len(state.open.invalid),
        phase=due_phase(state).phase,
        stop=state.stop,
        stagnation=state.stagnation,
        calibration=calibrate(state.visible),
        spent=Spent.of(state.spent) if state.spent else None,
    )

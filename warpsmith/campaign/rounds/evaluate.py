"""EVALUATE: the outcome of a verdict for the campaign, computed from the evaluation and the profiles alone."""

from __future__ import annotations

from warpsmith.campaign.history import forecast, stopping
from warpsmith.campaign.rounds import stagnation
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.campaign import Movement, Plan, RoundOutcome
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.metrics import COUNTED
from warpsmith.core.profile import Profile


def evaluate_outcome(
    state: CampaignState,
    evaluation: Evaluation,
    plan: Plan,
    profile_before: Profile | None,
    profile_after: Profile | None,
) -> RoundOutcome:
    """Compute the outcome of the open round.

    Args:
        state: state of the campaign before it.
        evaluation: its evaluation.
        plan: its hypothesis.
        profile_before: profile of the best version before; None at the baseline.
        profile_after: profile of the new version; None if it did not pass.
    """
    verdict = evaluation.decision.verdict
    best_before = state.best.evaluation if state.best else None
    verdicts = [record.verdict for record in state.visible]
    return RoundOutcome(
        verdict=verdict,
        best=f"{evaluation.language}/{evaluation.version}" if verdict.stands else state.best_name,
        gain=evaluation.gain.speedup - 1 if evaluation.gain else None,
        predicted_gain=plan.predicted_gain,
        movement=metric_movement(plan, profile_before, profile_after)
        if profile_before
        else _port_movement(plan, evaluation),
        stop=stopping.stop_reason(
            state.campaign.manifest,
            evaluation if verdict.stands else best_before,
            len(state.rounds) + 1,
        )
        or _poor_return(state, evaluation),
        stagnation=stagnation.assess_stagnation([*verdicts, verdict]),
    )


def _poor_return(state: CampaignState, evaluation: Evaluation) -> str | None:
    """Describe why another round does not pay; None if it does, or if the campaign sets no minimum."""
    manifest = state.campaign.manifest
    if manifest.minimum_gain is None:
        return None
    expected = forecast.forecast_round(state.campaign, state.records, evaluation)
    return expected.stop_reason(manifest) if expected else None


def are_comparable(metric: str, before: Profile, after: Profile) -> bool:
    """Return whether a metric of two profiles compares: counters are read at one workload."""
    return metric not in COUNTED or before.workload == after.workload


def metric_movement(plan: Plan, before: Profile | None, after: Profile | None) -> Movement:
    """Compare the change of the plan's metric with the prediction: same direction, and at least half as far."""
    alike = before is not None and after is not None and are_comparable(plan.metric, before, after)
    first = before.value(plan.metric) if before else None
    second = after.value(plan.metric) if after and alike else None
    return _movement(plan, first, second)


_PORT_FIGURES = {
    "spill_bytes": "spill bytes",
    "registers_per_thread": "registers",
    "shared_bytes": "shared bytes",
}
"""Figure of a port by the metric that a plan may name."""


def _port_movement(plan: Plan, evaluation: Evaluation) -> Movement | None:
    """Return the movement of a metric that the target's compiler states; None for others, and at a baseline."""
    figures = evaluation.port.figures if evaluation.port else ()
    figure = next((each for each in figures if each.name == _PORT_FIGURES.get(plan.metric)), None)
    return None if figure is None or figure.before is None else _movement(plan, figure.before, figure.after)


def _movement(plan: Plan, first: float | None, second: float | None) -> Movement:
    predicted = plan.expected_change
    as_predicted = None
    if first is not None and second is not None and predicted:
        as_predicted = (second - first) / predicted >= 0.5
    return Movement(metric=plan.metric, before=first, after=second, predicted=predicted, as_predicted=as_predicted)

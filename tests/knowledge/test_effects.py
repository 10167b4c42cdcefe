"""Effects of entries: differences between campaigns that saw an entry and campaigns that did not."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from scipy import stats

from warpsmith.core.evaluation import Interval
from warpsmith.core.knowledge import EFFECT_AFTER, Effect, HitRate
from warpsmith.knowledge.effects import FEWEST, EffectSamples, t_quantile

NUMBERS = count()


def record(gain: float | None, verdict: str = "ACCEPT", *, shown: bool = True, **changes: Any) -> dict[str, Any]:
    """A round of a campaign of its own, unless one is named."""
    ids = ["split"]
    return {
        "campaign": f"c{next(NUMBERS)}",
        "plan": {"category": "memory"},
        "evaluation": {"decision": {"verdict": verdict}},
        "outcome": {"gain": gain},
        "draw": {"shown": ids if shown else [], "withheld": [] if shown else ids},
        **changes,
    }


def effect(shown: list[float], withheld: list[float]) -> Effect:
    samples = EffectSamples()
    for gains, visible in ((shown, True), (withheld, False)):
        for gain in gains:
            samples.add(record(gain, shown=visible), struck=False)
    return samples.effects()["split"]


def test_the_effect_is_the_difference_with_welchs_interval():
    shown, withheld = [0.2, 0.0, 0.1, 0.3, 0.15], [0.0, 0.05, 0.1, 0.0]
    result = effect(shown, withheld)
    interval = stats.ttest_ind(shown, withheld, equal_var=False).confidence_interval(0.95)
    assert result.interval is not None
    assert (result.shown, result.withheld, result.gain) == (5, 4, pytest.approx(0.1125))
    assert (result.interval.low, result.interval.high) == pytest.approx((interval.low, interval.high), rel=5e-3)


def test_a_campaign_counts_once():
    samples = EffectSamples()
    for gain in (0.1, 0.3):
        samples.add(record(gain, campaign="long"), struck=False)
    samples.add(record(0.1, shown=False), struck=False)
    result = samples.effects()["split"]
    assert (result.shown, result.gain, result.interval) == (1, pytest.approx(0.1), None)


@pytest.mark.parametrize(
    ("gain", "verdict", "struck"), [(0.5, "ROLLBACK", False), (None, "ROLLBACK", False), (0.5, "ACCEPT", True)]
)
def test_a_version_that_is_not_kept_gains_nothing(gain, verdict, struck):
    samples = EffectSamples()
    samples.add(record(gain, verdict), struck=struck)
    samples.add(record(0.0, shown=False), struck=False)
    assert samples.effects()["split"].gain == 0


def test_baselines_and_rounds_without_a_draw_are_left_out():
    samples = EffectSamples()
    samples.add(record(0.1, plan={"category": "baseline"}), struck=False)
    samples.add(record(0.1, draw=None), struck=False)
    samples.add(record(0.1, shown=False), struck=False)
    assert samples.effects() == {}


def test_few_campaigns_give_no_interval():
    assert effect([0.1] * FEWEST, [0.1] * (FEWEST - 1)).interval is None
    assert effect([0.1] * FEWEST, [0.1] * FEWEST).interval == Interval(low=0, high=0)


@pytest.mark.parametrize("degrees", [3, 3.5, 5, 10, 100])
def test_the_quantile_is_students(degrees):
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=2e-3)


@pytest.mark.parametrize(
    ("campaigns", "high", "demoted"),
    [(EFFECT_AFTER, 0.019, True), (EFFECT_AFTER, 0.02, False), (EFFECT_AFTER - 1, 0.019, False)],
)
def test_an_entry_without_effect_is_demoted(campaigns, high, demoted):
    shown = Effect(shown=campaigns, withheld=EFFECT_AFTER, gain=0.0, interval=Interval(low=-0.03, high=high))
    rate = HitRate.of([], shown)
    assert bool(rate.demoted) is demoted
    assert "-3.0 %" in rate.text

"""Results of rows: figures that agree, and losses that were not excluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from warpsmith.core.evaluation import Verdict
from warpsmith.core.repo import RepoBaseline, RepoSettings
from warpsmith.repo import judge, row_results
from warpsmith.repo.benchmark import BenchmarkRow

SETTINGS = RepoSettings.model_validate(
    {
        "kernel": ["k.py"],
        "test": "t",
        "benchmark": "b",
        "keys": ["n"],
        "metrics": {"ms": "lower"},
        "quick": {"environment": "ROWS"},
        "repeats": 5,
    }
)
BASELINE = RepoBaseline(representative={"n=1": {"n": "1"}, "n=2": {"n": "2"}}, floor=0.01, quick_floor=0.01)


@pytest.mark.parametrize("count", [3, 4])
def test_times_of_a_row_have_the_ratio_of_its_speedup(count: int):
    candidate, base = [2.0, 1.0, 8.0, 3.0][:count], [3.0, 4.0, 4.0, 3.3][:count]
    row = next(iter(row_results.list_row_results(SETTINGS, {("n=1", "ms"): (candidate, base)})))
    assert row.before / row.after == pytest.approx(row.speedup)


def test_a_rate_keeps_its_direction():
    settings = SETTINGS.model_copy(update={"metrics": {"rate": "higher"}})
    row = next(iter(row_results.list_row_results(settings, {("n=1", "rate"): ([0.25, 0.25], [0.5, 0.5])})))
    assert (row.before, row.after, row.speedup) == pytest.approx((2.0, 4.0, 2.0))


@dataclass
class ScriptedRunner:
    """Runner whose benchmark prints scripted times, batch by batch."""

    batches: list[dict[str, list[float]]]
    """Times of the candidate by row, for each batch; the base always takes 1."""
    settings: RepoSettings = SETTINGS
    keys: dict[str, dict[str, str]] = field(default_factory=lambda: dict(BASELINE.representative))
    requests: list[tuple[str, ...]] = field(default_factory=list)
    calls: int = 0

    def benchmark(self, side: str, level: str, chosen: Mapping[str, dict[str, str]]) -> dict[str, BenchmarkRow]:
        batch, number = divmod(self.calls, 2 * self.settings.repeats)
        self.calls += 1
        if number == 0:
            self.requests.append(tuple(chosen))
        times = self.batches[min(batch, len(self.batches) - 1)]
        return {
            name: BenchmarkRow(name, keys, {"ms": times[name][number // 2] if side == "candidate" else 1.0})
            for name, keys in chosen.items()
        }


STEADY = [0.5] * 5
WILD = [0.8, 0.9, 1.3, 0.85, 1.4]


def decide(runner: ScriptedRunner):
    question = (("n=1", "n=2"), 0.01, "the best version")
    return judge._measure_until_settled(runner, "quick", BASELINE, question)[1]  # type: ignore[arg-type]


def test_rows_in_doubt_are_repeated_alone_and_cleared():
    runner = ScriptedRunner([{"n=1": STEADY, "n=2": WILD}, {"n=1": STEADY, "n=2": [0.8] * 5}])
    decided = decide(runner)
    assert runner.requests[0] == ("n=1", "n=2")
    assert set(runner.requests[1:]) == {("n=2",)}
    assert decided.verdict is Verdict.ACCEPT
    assert "could be" not in decided.reason


def test_rows_in_doubt_are_measured_one_by_one():
    names = ("n=1", "n=2", "n=3")
    chosen = {name: {"n": name[2:]} for name in names}
    baseline = BASELINE.model_copy(update={"representative": chosen})
    doubtful = {"n=1": [0.2] * 5, "n=2": WILD, "n=3": WILD}
    runner = ScriptedRunner([doubtful, dict.fromkeys(names, STEADY)], keys=chosen)
    judge._measure_until_settled(runner, "quick", baseline, (names, 0.01, "the best version"))  # type: ignore[arg-type]
    assert runner.requests[:3] == [names, ("n=2",), ("n=3",)]


def test_doubt_that_stays_is_named_within_a_bound():
    runner = ScriptedRunner([{"n=1": STEADY, "n=2": WILD}])
    decided = decide(runner)
    assert decided.verdict is Verdict.ACCEPT_WITH_NOTE
    assert "none shown slower; could be up to" in decided.reason
    assert decided.reason.endswith("rows n=2")
    assert len(runner.requests) == 1 + SETTINGS.thresholds.max_repeats


def test_without_a_way_to_ask_for_rows_all_are_repeated():
    quick = SETTINGS.quick.model_copy(update={"environment": None, "benchmark": "few"}) if SETTINGS.quick else None
    runner = ScriptedRunner([{"n=1": STEADY, "n=2": WILD}], SETTINGS.model_copy(update={"quick": quick}))
    decide(runner)
    assert set(runner.requests) == {("n=1", "n=2")}


def test_rows_that_are_not_in_doubt_are_not_repeated():
    runner = ScriptedRunner([{"n=1": STEADY, "n=2": STEADY}])
    assert "every workload faster" in decide(runner).reason
    assert len(runner.requests) == 1


def test_a_loss_within_the_noise_is_repeated_before_it_rolls_back():
    loss = [1.07, 1.06, 1.08, 1.07, 1.06]
    noisy = BASELINE.model_copy(update={"quick_floor": 0.2})
    question = (("n=1", "n=2"), 0.2, "the best version")
    for later, verdict in (([0.9] * 5, Verdict.ACCEPT), (loss, Verdict.ROLLBACK)):
        runner = ScriptedRunner([{"n=1": STEADY, "n=2": loss}, *[{"n=1": STEADY, "n=2": later}] * 3])
        assert judge._measure_until_settled(runner, "quick", noisy, question)[1].verdict is verdict  # type: ignore[arg-type]
        assert set(runner.requests[1:]) == {("n=2",)}

"""The order and the winner of the search, with scripted times."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from lab_samples import SQUARE

from warpsmith.core.evaluation import Interval
from warpsmith.lab.tuning import tune
from warpsmith.lab.tuning.models import ScreenedConfig

SOURCE = """\
#include <warpsmith.hpp>
// tune: BLOCK in 1, 2, 4, 8, 16
// tuned: begin
constexpr struct { int BLOCK; } CONFIGS[] = {
    {.BLOCK = 2},  // for n <= 1000
    {.BLOCK = 2},  // for any
};
// tuned: end
extern "C" void run(const Tensor& x, Tensor& y) {}
"""


@pytest.fixture
def search(workshop, monkeypatch):
    """`search(speedups, again=...)`: the screenings' steps and configurations at the first row, and the result."""

    def run(speedups, again=None, width=0.01, seconds=1000.0):
        asked = []

        class Scripted:
            def __init__(self, place, row, workloads, configs, step):
                asked.append((row.condition, step, [config["BLOCK"] for config in configs]))
                self.row, self.configs, self.step = row, configs, step

            def run(self):
                base = ScreenedConfig(condition="", config=self.row.config, step="hand-picked", seconds=1.0)
                known = (again or speedups) if self.step == "again" else speedups
                return [base, *(self._tried(config, known[config["BLOCK"]]) for config in self.configs)]

            def _tried(self, config, speedup):
                interval = Interval(low=speedup - width, high=speedup + width)
                return ScreenedConfig(condition="", config=config, step=self.step, seconds=1.0, speedup=speedup,
                             interval=interval)  # fmt: skip

        monkeypatch.setattr(tune, "Screening", Scripted)
        file = workshop.load("square", SQUARE)
        request = workshop.request(file, workshop.solution(SOURCE), measurement=workshop.measurement(floor=0.02))
        found, text = tune.tune_version(request, seconds, SimpleNamespace(restock=lambda count: None))
        mine = [(step, blocks) for condition, step, blocks in asked if condition == "any"]
        return mine, found, text

    return run


def test_slope_then_the_nearest_to_the_best_then_again(search):
    steps, found, text = search({1: 0.9, 4: 1.2, 8: 1.3, 16: 1.1})
    assert steps == [("slope", [1, 4]), ("search", [8, 16]), ("again", [16, 4, 8])]
    assert found.rows[1].config == {"BLOCK": 8}
    assert "{.BLOCK = 8},  // for n <= 1000\n    {.BLOCK = 8},  // for any" in text


def test_what_is_not_seen_again_does_not_win(search):
    lucky = {1: 0.9, 4: 1.2, 8: 1.3, 16: 1.1}
    _, found, _ = search(lucky, again={4: 1.1, 8: 1.0, 16: 1.05})
    assert found.rows[1].config == {"BLOCK": 4}
    _, found, text = search(lucky, again={4: 1.025, 8: 1.0, 16: 1.0})
    assert found.rows[1].config == {"BLOCK": 2}
    assert text == SOURCE, "a gain whose low end is within the noise changes nothing"


def test_a_flat_slope_is_no_reason_to_search(search):
    steps, found, _ = search({1: 1.01, 4: 0.99, 8: 9.0, 16: 9.0})
    assert steps == [("slope", [1, 4])]
    assert found.left == 4


def test_nothing_faster_is_not_timed_again(search):
    steps, _, text = search({1: 0.9, 4: 0.8, 8: 0.7, 16: 0.6})
    assert steps == [("slope", [1, 4]), ("search", [8, 16])]
    assert text == SOURCE


def test_without_time_there_is_the_slope_and_what_it_showed_again(search):
    steps, found, _ = search({1: 0.9, 4: 1.2, 8: 1.3, 16: 1.1}, seconds=1e-9)
    assert steps == [("slope", [1, 4]), ("again", [4])]
    assert found.rows[1].config == {"BLOCK": 4}

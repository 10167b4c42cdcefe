"""Charts: positions on axes, marks for every version, and nothing above its ceiling that is not."""

from __future__ import annotations

import re

import pytest
import record_kit as kit

from warpsmith.campaign.calibration import calibrate
from warpsmith.site.charts.axes import MARKS, Axis, marker, padded_axis, spread_labels
from warpsmith.site.charts.bars import Bar, BarGroup, draw_bars
from warpsmith.site.charts.history import HistoryPoint, draw_history
from warpsmith.site.charts.roofline import RooflinePoint, draw_roofline
from warpsmith.site.charts.scatter import ScatterPoint, draw_scatter
from warpsmith.site.citation import Citation

CITED = Citation("devlog/a/record.json", "a" * 64, "records/devlog/a/record.json")


def attribute(tag, name, text):
    return [float(value) for value in re.findall(rf'<{tag}[^>]* {name}="([-\d.]+)"', text)]


def points(rounds):
    return [HistoryPoint(record, CITED, f"round-{record.round}", 0) for record in rounds]


def test_a_logarithmic_axis_places_equal_ratios_at_equal_distances():
    axis = Axis(1, 100, 0, 200)
    assert [axis.position(value) for value in (1, 10, 100, 1000, 0.1)] == pytest.approx([0, 100, 200, 200, 0])
    assert axis.ticks() == [1, 2, 5, 10, 20, 50, 100]
    assert padded_axis([1.0, 1.5], 0, 1).ticks() == [1, 1.2, 1.5]


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-3.2, 0.1), (0, 0.002)])
def test_a_linear_axis_has_round_ticks_inside(low, high):
    ticks = Axis(low, high, 0, 100, logarithmic=False).ticks()
    assert 2 <= len(ticks) <= 8
    assert all(low <= tick <= high * 1.000001 for tick in ticks)


def test_labels_are_moved_apart_in_their_order():
    assert spread_labels([10, 0, 11], 11) == [11, 0, 22]
    assert spread_labels([], 11) == []


@pytest.mark.parametrize("shape", MARKS)
def test_every_mark_is_drawn_around_its_position(shape):
    numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", marker(shape, 100, 100))]
    assert all(4 <= number <= 107 for number in numbers)


def test_a_history_has_every_version_with_its_fate_and_record():
    rounds = kit.campaign_of_three()
    judged = kit.evaluation(
        "v4", results=[kit.passed(reference=2.0)], aggregates=[kit.aggregate("reference", 2.0)]
    )
    rounds.append(kit.strike(kit.record(4, judged)))
    chart = draw_history(points(rounds))
    fates = [re.findall(rf"mark ({fate})\"", chart) for fate in ("accepted", "rolled-back", "struck")]
    assert [len(found) for found in fates] == [2, 1, 1]
    assert chart.count('href="#round-') == 4
    assert re.findall(r'data-value="([^"]*)"', chart) == ["1.2", "1.83", "2.0"]
    assert "no result" in chart


def test_a_point_at_half_of_its_ceiling_is_below_the_roof():
    rounds = [record for record in kit.campaign_of_three() if record.evaluation.timed]
    timed = [RooflinePoint(p, p.record.evaluation.timed["64x64"], 0) for p in points(rounds)]
    chart = draw_roofline("64x64", timed)
    (x,), ys = set(attribute("circle", "cx", chart)), attribute("circle", "cy", chart)
    x1, x2, y1, y2 = (
        float(re.search(rf'class="roof"[^>]* {name}="([-\d.]+)"', chart)[1]) for name in ("x1", "x2", "y1", "y2")
    )
    roof = y1 + (y2 - y1) * (x - x1) / (x2 - x1)
    assert all(y > roof for y in ys)  # downwards
    assert ys[1] < ys[0]  # the later version is the faster one
    assert len(re.search(r'class="path" points="([^"]*)"', chart)[1].split()) == 2


def test_a_bar_leads_to_its_record_and_ends_at_its_speedup():
    mean = CITED.quote(
        {"means": [kit.evaluation(aggregates=[kit.aggregate("vllm", 2.0)]).aggregates[0]]}, "means", 0
    )
    group = BarGroup("norm", "triton/v1, h200", "operators/norm.html", [Bar("peer", "vllm", mean, ("near",))])
    chart = draw_bars([group, BarGroup("other", "no version, cpu", "o.html", [])], "../")
    assert 'href="../record.html#records/devlog/a/record.json"' in chart
    assert 'data-at="/means/0/speedup"' in chart
    assert "2.00x vllm (near)" in chart
    assert "no comparison recorded" in chart
    assert draw_bars([], "") == ""


def test_predictions_are_drawn_where_they_are():
    rounds = [kit.record(2, outcome=kit.won() | {"gain": gain, "predicted_gain": 0.1}) for gain in (0.1, -0.05)]
    rounds = [r.model_copy(update={"plan": r.plan.model_copy(update={"predicted_gain": 0.1})}) for r in rounds]
    calibrated = calibrate(rounds).predictions
    chart = draw_scatter([ScatterPoint(p, 0, CITED, "c.html#r") for p in calibrated])
    xs, ys = attribute("circle", "cx", chart), attribute("circle", "cy", chart)
    assert xs[0] == xs[1]
    assert ys[0] < ys[1]  # a loss is further down

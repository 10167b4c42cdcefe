"""Plots: the same bytes for the same records, and every round and workload in them."""

import xml.etree.ElementTree as ElementTree

import pytest

from warpsmith.campaign.calibration import calibrate
from warpsmith.core.evaluation import Evaluation
from warpsmith.reporting import plots

pytest.importorskip("matplotlib")


def words(svg):
    return " ".join(text for text in ElementTree.fromstring(svg).itertext() if text.strip())


def test_trend_is_deterministic_and_marks_verdicts(make):
    import matplotlib as mpl

    svg = plots.trend_plot(make.campaign_of_three())
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "mine"}):
        assert plots.trend_plot(make.campaign_of_three()) == svg
    assert "ACCEPT" in words(svg)
    assert "ROLLBACK" not in words(svg)  # it was not timed: a dotted line, no marker
    assert "speedup over PyTorch eager" in words(svg)


def test_trend_without_any_timing(make):
    assert b"<svg" in plots.trend_plot(make.campaign_of_three()[1:2])
    assert b"<svg" in plots.trend_plot([])


def test_roofline_names_workloads_and_ceilings(make):
    svg = plots.roofline_plot(make.campaign_of_three()[2].evaluation)
    assert svg == plots.roofline_plot(make.campaign_of_three()[2].evaluation)
    assert "128x64: 70.0%" in words(svg)
    assert "bytes: 3.21 TB/s" in words(svg)
    assert "operations" not in words(svg)


def test_a_compute_bound_workload_adds_a_flat_ceiling(make):
    bound = make.passed("gemm", share=0.5)
    bound["timing"] |= {"rate": 400e12, "bandwidth": 1e12}
    judged: Evaluation = make.evaluation(results=[make.passed(), bound])
    assert "operations: 800 TFLOP/s" in words(plots.roofline_plot(judged))


def test_hostile_workload_names(make):
    judged = make.evaluation(results=[make.passed(f"$\\frac$ {make.HOSTILE}")])
    assert "alert" not in [node.tag for node in ElementTree.fromstring(plots.roofline_plot(judged)).iter()]


def test_operators_without_arithmetic(make):
    copied = make.passed()
    copied["timing"] |= {"rate": 0.0}
    assert b"<svg" in plots.roofline_plot(make.evaluation(results=[copied]))


def test_calibration_names_the_categories(make):
    found = calibrate([make.record(2), make.record(3, outcome=make.won() | {"gain": -0.2})])
    svg = plots.calibration_plot(found)
    assert svg == plots.calibration_plot(found)
    assert "memory" in words(svg)
    assert "predicted gain, %" in words(svg)
    assert b"<svg" in plots.calibration_plot(calibrate([]))

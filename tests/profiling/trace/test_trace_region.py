"""Which part of a trace is analysed: the script's steps without the first, else everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_kit import DATA, device, host, launched, save, step

from warpsmith.errors import Misuse
from warpsmith.profiling.trace import script as trace


def us(microseconds: float):
    return pytest.approx(microseconds * 1e-6, abs=1e-12)


def test_a_step_lasts_from_its_first_kernel_to_the_next_steps_though_launches_run_ahead():
    found = trace.analyze_trace_file(DATA / "steps.json")
    steps = found.region.steps
    assert steps is not None
    assert (steps.range, steps.ignored, steps.count) == ("step", 1, 3)
    # Steps begin at 300, 400 and 500 on the device, long after the CPU is through; the last ends at 580.
    assert (found.region.begin_seconds, found.region.seconds) == (us(200), us(280))
    assert (steps.fastest_seconds, steps.median_seconds, steps.slowest_seconds) == (us(80), us(100), us(100))
    assert (steps.median_busy_seconds, found.busy_seconds) == (us(80), us(240))
    assert found.region.words == "steps `step` 2 to 4 of 4, what runs between them included"


def test_totals_are_of_the_steps_that_count():
    found = trace.analyze_trace_file(DATA / "steps.json")
    assert [(k.calls, k.seconds) for k in found.kernels] == [(3, us(120)), (3, us(60)), (3, us(60))]
    assert (found.launches, found.repetitions, found.script) == (9, 3, "train.py --steps 4")
    (row,) = (row for row in found.ranking if row.kind == "fusable")
    assert row.seconds == us(3 * 20)


def test_without_steps_everything_counts_and_the_text_says_that_warm_up_is_in_it(tmp_path: Path):
    found = trace.analyze_trace_file(save(tmp_path, [host("aten::empty", 0, 5), device("k", 100, 110)]))
    assert (found.region.begin_seconds, found.region.seconds, found.region.steps) == (0, us(110), None)
    assert "warm-up included" in found.region.words
    assert "record_function" in found.region.words


def test_the_start_can_be_left_out(tmp_path: Path):
    path = save(tmp_path, [device("a", 0, 60), device("b", 100, 150)])
    found = trace.analyze_trace_file(path, skip_seconds=50e-6)
    assert (found.region.begin_seconds, found.region.seconds, found.busy_seconds) == (us(50), us(100), us(60))
    assert [(k.name, k.calls, k.seconds) for k in found.kernels] == [("b", 1, us(50)), ("a", 0, us(10))]


def test_leaving_out_everything_is_misuse(tmp_path: Path):
    with pytest.raises(Misuse, match=r"Skipping 1 s leaves nothing of .*trace\.json: it has 0\.00011 s"):
        trace.analyze_trace_file(save(tmp_path, [device("a", 0, 60), device("b", 100, 110)]), skip_seconds=1)


def test_steps_that_begin_too_early_are_left_out(tmp_path: Path):
    events = [
        event
        for i in range(5)
        for event in (step(100 * i, 100 * i + 90), host("aten::add", 100 * i, 100 * i + 50))
    ]
    path = save(tmp_path, events)
    steps = trace.analyze_trace_file(path, skip_seconds=150e-6).region.steps
    assert steps is not None
    assert (steps.ignored, steps.count) == (2, 3)
    with pytest.raises(Misuse, match="none of the 5 steps"):
        trace.analyze_trace_file(path, skip_seconds=449e-6)


def test_the_only_step_counts(tmp_path: Path):
    region = trace.analyze_trace_file(save(tmp_path, [step(0, 100), host("aten::add", 10, 50)])).region
    assert region.steps is not None
    assert (region.steps.ignored, region.steps.count) == (0, 1)
    assert region.words == "the only step `step`, warm-up included"


def test_a_step_in_which_nothing_ran_is_none(tmp_path: Path):
    """The last step of a profiler's schedule is empty."""
    events = [step(100 * i, 100 * i + 100, f"ProfilerStep#{i}") for i in range(3)]
    for i in range(2):
        events += launched("k", 100 * i + 1, 100 * i + 10, 100 * i + 60, i)
    steps = trace.analyze_trace_file(save(tmp_path, events)).region.steps
    assert steps is not None
    assert (steps.range, steps.ignored, steps.count) == ("ProfilerStep#", 1, 1)


def test_the_scripts_own_steps_come_before_the_schedules_and_inner_ones_do_not_count(tmp_path: Path):
    events = [step(40 * i, 40 * i + 40, f"ProfilerStep#{i}") for i in range(10)]
    for i in range(4):
        events += [step(100 * i, 100 * i + 90, f"step {i}"), step(100 * i + 5, 100 * i + 20, "step")]
        events.append(host("aten::add", 100 * i + 10, 100 * i + 50))
    steps = trace.analyze_trace_file(save(tmp_path, events)).region.steps
    assert steps is not None
    assert (steps.range, steps.ignored, steps.count) == ("step", 1, 3)

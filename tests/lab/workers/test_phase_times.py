"""Phases from stamps: their order, lengths, spread and shares."""

from __future__ import annotations

import pytest
import torch

from warpsmith.lab.workers.phase_times import summarise_stamps


def table(*blocks: dict[int, tuple[int, int, int]]) -> torch.Tensor:
    """Stamps of blocks: phase to nanoseconds, cycles and unit."""
    rows = torch.zeros((len(blocks), 4, 3), dtype=torch.int64)
    for row, stamps in enumerate(blocks):
        for phase, values in stamps.items():
            rows[row, phase] = torch.tensor(values)
    return rows


def test_cycles_give_lengths_and_both_clocks_their_rate() -> None:
    """Two cycles are a nanosecond; the clock in nanoseconds ticks too coarsely to tell the phases apart."""
    block = {1: (1000, 50_000, 3), 0: (1000, 50_200, 3), 2: (1500, 51_000, 3)}
    other = {1: (2000, 90_000, 7), 0: (2000, 90_400, 7), 2: (2500, 91_000, 7)}
    times = summarise_stamps(table(block, other, {0: (5, 5, 5)}, {}), ["work", "load", "end"])
    assert times.units == 2
    load, work = times.phases
    assert (load.name, work.name) == ("load", "work")
    assert load.blocks == work.blocks == 2
    assert load.start == 0
    assert load.low == pytest.approx(110)
    assert load.median == pytest.approx(150)
    assert load.high == pytest.approx(190)
    assert load.share == pytest.approx(0.3)
    assert work.median == pytest.approx(350)
    assert work.share == pytest.approx(0.7)


def test_a_block_that_skips_a_phase_counts_for_the_others() -> None:
    times = summarise_stamps(
        table({0: (10, 10, 0), 1: (20, 20, 0), 2: (40, 40, 0)}, {0: (10, 10, 1), 2: (50, 50, 1)}),
        ["a", "b", "end"],
    )
    assert [(phase.name, phase.blocks) for phase in times.phases] == [("a", 2), ("b", 1)]


def test_one_stamp_a_block_is_no_phase() -> None:
    with pytest.raises(ValueError, match="two stamps"):
        summarise_stamps(table({0: (1, 1, 0)}), ["a"])

"""Times of a kernel's phases, from the stamps that its blocks stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from warpsmith.core.base import Model

if TYPE_CHECKING:
    import torch


class PhaseTime(Model):
    """One phase of a kernel, over all blocks that passed its stamp and a later one."""

    name: str
    """Name in the stamp."""
    blocks: int = Field(ge=1)
    """Blocks, or threads on a CPU, over all calls."""
    start: float
    """Median nanoseconds from the block's first stamp to this one."""
    median: float
    """Median nanoseconds from this stamp to the block's next one."""
    low: float
    """Their 10th percentile."""
    high: float
    """Their 90th percentile."""
    share: float
    """Share of all time between the blocks' first and last stamps."""


class PhaseTimes(Model):
    """Phases of one kernel file at one workload, in the order in which they begin."""

    phases: tuple[PhaseTime, ...]
    """Phases; the last stamp ends the one before it and is none itself."""
    units: int
    """Multiprocessors that the blocks ran on; threads on a CPU."""


def summarise_stamps(stamps: torch.Tensor, names: Sequence[str]) -> PhaseTimes:
    """Summarise the stamps of all blocks.

    Cycles give the differences within a block, because the clock in nanoseconds ticks coarsely on a GPU. Their
    rate is that of both clocks over all blocks, from each one's first stamp to its last.

    Args:
        stamps: int64 of (blocks, phases, 3): nanoseconds, cycles and unit; zero nanoseconds if there is none.
        names: names of the phases.

    Raises:
        ValueError: no block passed two stamps.
    """
    import torch

    stamps = stamps[(stamps[:, :, 0] != 0).sum(1) >= 2][:, : len(names)].cpu()
    if not len(stamps):
        raise ValueError("no block passed two stamps: set one where each phase begins, and one at the end")
    passed = stamps[:, :, 0] != 0
    far = torch.iinfo(torch.int64).max
    cycles, order = torch.where(passed, stamps[:, :, 1], far).sort(1)
    valid = passed.gather(1, order)
    last = (valid.sum(1) - 1)[:, None]
    nanoseconds = stamps[:, :, 0].gather(1, order)
    whole = (cycles.gather(1, last) - cycles[:, :1]).double()
    elapsed = float((nanoseconds.gather(1, last) - nanoseconds[:, :1]).sum())
    scale = elapsed / max(float(whole.sum()), 1.0)
    parts = torch.where(valid[:, 1:], cycles[:, 1:] - cycles[:, :-1], 0).double() * scale
    starts = torch.where(valid, cycles - cycles[:, :1], 0).double() * scale
    phases = []
    for number, name in enumerate(names):
        chosen = (order[:, :-1] == number) & valid[:, 1:]
        if chosen.any():
            times = parts[chosen]
            low, median, high = (float(v) for v in torch.quantile(times, torch.tensor((0.1, 0.5, 0.9)).double()))
            share = float(times.sum()) / max(float(whole.sum()) * scale, 1e-9)
            begin = float(starts[:, :-1][chosen].median())
            phases.append(
                PhaseTime(
                    name=name, blocks=len(times), start=begin, median=median, low=low, high=high, share=share
                )
            )
    units = len(set(stamps[:, :, 2][passed].tolist()))
    return PhaseTimes(phases=tuple(sorted(phases, key=lambda phase: phase.start)), units=units)

"""Choice of the candidate among contenders, by the times of screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.core.campaign import ScreenedSpeedup

MOST_RACED = 3
"""Contenders that are raced on one device at most, as `warpsmith tune` times three again."""


def choose_raced(times: Mapping[int, ScreenedSpeedup]) -> list[int]:
    """Choose who is timed again side by side: the fastest, and those whose interval reaches into its own."""
    if not times:
        return []
    ranked = sorted(times, key=lambda number: (-times[number].speedup, number))
    least = times[ranked[0]].interval.low
    return [number for number in ranked if times[number].interval.high >= least][:MOST_RACED]


def share_out(numbers: Sequence[int], devices: int) -> list[list[int]]:
    """Share contenders out among devices in turn; no share is empty."""
    shares = [list(numbers[start::devices]) for start in range(devices)]
    return [share for share in shares if share]

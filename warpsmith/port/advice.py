"""Advice on constants for a target, from the figures of its own compiler: nothing here was timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpsmith.core.port.check import LaunchFigures

_LOW = 0.25
"""Share of the resident warps below which latency is hard to hide."""


def advise_constants(
    own: LaunchFigures, changed: Sequence[LaunchFigures], most_warps: int | None
) -> Iterator[str]:
    """Yield constants to try: launch options that improve a figure and worsen none before it, then block sizes.

    The order of the figures is: it launches, it spills less, its loads are wider, more blocks are resident. Warps
    are no measure, since a block's tile stays the same: more warps of as many blocks have no more loads in flight.
    """
    better = [(figures, gains) for figures in changed if (gains := _gains(own, figures, most_warps))]
    for figures, gains in better:
        yield f"{_change(own, figures)}: {', '.join(gains)}"
    launchable = [figures for figures in (own, *changed) if not figures.obstacle]
    if not launchable:
        yield f"smaller blocks: no tried setting launches, {own.obstacle}"
    elif least := min(figures.spill_bytes for figures in launchable):
        yield f"smaller blocks: registers spill at every setting that launches, {least} bytes a thread or more"
    elif not better and most_warps and 0 < (own.resident_warps or 0) < _LOW * most_warps:
        yield f"smaller blocks: no more than {own.resident_warps} of {most_warps} resident warps, by {own.limit}"


def _gains(own: LaunchFigures, figures: LaunchFigures, most_warps: int | None) -> list[str]:
    """Return what a setting improves; empty if it worsens a figure that comes before."""
    if figures.obstacle:
        return []
    gains = ["launches"] if own.obstacle else []
    if figures.spill_bytes > own.spill_bytes and not gains:
        return []
    if figures.spill_bytes < own.spill_bytes:
        gains.append(f"{figures.spill_bytes or 'no'} spilled bytes instead of {own.spill_bytes}")
    bits, own_bits = figures.load_bits or 0, own.load_bits or 0
    if bits < own_bits and not gains:
        return []
    if bits > own_bits:
        gains.append(f"loads of {bits} bits instead of {own_bits}")
    blocks, own_blocks = figures.resident_blocks or 0, own.resident_blocks or 0
    if blocks > own_blocks and figures.num_stages == own.num_stages:  # fewer stages hide less latency themselves
        before = ("", "") if own.obstacle else (f" instead of {own_blocks}", f" instead of {own.resident_warps}")
        noun = "block" if blocks == 1 else "blocks"
        warps = f"{figures.resident_warps} of {most_warps} warps{before[1]}"
        gains.append(f"{blocks} resident {noun}{before[0]} ({warps})")
    return gains


def _change(own: LaunchFigures, figures: LaunchFigures) -> str:
    if figures.num_stages != own.num_stages:
        return f"num_stages {figures.num_stages}"
    return f"num_warps {figures.num_warps}"

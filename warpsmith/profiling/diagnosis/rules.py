"""Rules over timings of a GPU version: a measured value past a threshold suggests an optimization."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from warpsmith.core.profile import Metric, Opportunity

Values = Mapping[str, float]

MOST = 3
"""Largest number of opportunities in one profile."""

LEAST_PERCENT = 1.0
"""Percent of the time below which a saving is not worth an opportunity."""


class Rule(NamedTuple):
    """One rule that suggests an optimization."""

    metric: str
    """Name of the metric that triggers the rule."""
    holds: Callable[[Values], bool]
    """Function that returns whether the rule applies; the values contain the metric."""
    entry: str
    """Id of the knowledge entry to apply."""
    name: str
    """The optimization, in a few words."""
    saves: Callable[[Values], float]
    """Function that returns the largest share of the time that it could save, 0 to 1."""


def _headroom(values: Values, most: float = 1.0) -> float:
    """Return the share of the time above the ceiling, at most what the mechanism can give."""
    return min(most, max(0.0, 1 - values["ceiling_pct"] / 100))


GPU_RULES: tuple[Rule, ...] = (
    Rule(
        "spill_bytes",
        lambda v: v.get("spill_bytes", 0) > 0,
        "register-spills", "cut the block or add warps until nothing spills",
        lambda v: _headroom(v, 0.5),
    ),
    Rule(
        "small_ceiling_pct",
        lambda v: v["small_ceiling_pct"] < 60 and v["small_time_us"] > 10,
        "split-reduction", "split the rows: too few blocks for the device at the small batches",
        lambda v: _headroom({"ceiling_pct": v["small_ceiling_pct"]}, 0.6),
    ),
    Rule(
        "host_overhead_us",
        lambda v: v.get("host_overhead_us", 0) > v["small_time_us"],
        "cuda-graphs-for-launch-bound", "capture the call: the host takes longer than the kernel",
        lambda v: 0.05,
    ),
    Rule(
        "size_slope",
        lambda v: v.get("size_slope", 1.0) < 0.8 and v["dram_pct"] < 90,
        "persistent-grid", "fewer, longer-lived blocks: small problems pay a larger share for ramp and tail",
        lambda v: _headroom(v, 0.15),
    ),
    Rule(
        "dram_pct",
        lambda v: v["dram_pct"] < 60,
        "single-pass-online-reduction", "read the row from memory once",
        lambda v: _headroom(v, 0.5),
    ),
    Rule(
        "dram_pct",
        lambda v: 60 <= v["dram_pct"] < 92,
        "triton-num-warps-by-row-length", "more bytes in flight: warps and elements a thread by row length",
        lambda v: _headroom(v, 0.3),
    ),
    Rule(
        "worst_ceiling_pct",
        lambda v: v["worst_ceiling_pct"] < 0.85 * v["ceiling_pct"],
        "row-in-registers", "the worst workload is far behind: keep its row on chip between the passes",
        lambda v: _headroom({"ceiling_pct": v["worst_ceiling_pct"]}, 0.4),
    ),
)  # fmt: skip
"""All rules; those that save the same keep this order."""


def suggest_opportunities(values: Values) -> tuple[Opportunity, ...]:
    """Return the opportunities that the timings of a GPU version suggest, ranked."""
    return rank_opportunities(
        opportunity(rule.name, rule.saves(values), rule.metric, values[rule.metric], rule.entry)
        for rule in GPU_RULES
        if rule.metric in values and rule.holds(values)
    )


def opportunity(name: str, saves: float, metric: str, value: float, entry: str) -> Opportunity:
    """Return an opportunity that saves a share of the time, 0 to 1, with the value that suggests it."""
    trigger = Metric(name=metric, value=round(value, 3))
    return Opportunity(name=name, gain_pct=round(100 * max(0.0, saves), 1), trigger=trigger, entry=entry)


def rank_opportunities(candidates: Iterable[Opportunity]) -> tuple[Opportunity, ...]:
    """Return at most three opportunities, ranked by what they could save, one for each entry and metric."""
    best: dict[tuple[str | None, str], Opportunity] = {}
    for candidate in candidates:
        cause = candidate.entry, candidate.trigger.name
        rival = best.get(cause)
        if candidate.gain_pct >= LEAST_PERCENT and (rival is None or rival.gain_pct < candidate.gain_pct):
            best[cause] = candidate
    return tuple(sorted(best.values(), key=lambda candidate: -candidate.gain_pct)[:MOST])

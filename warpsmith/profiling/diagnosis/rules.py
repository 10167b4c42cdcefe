"""Rules over timings: a measured value past a threshold suggests an optimization.

Each rule has a trigger, the knowledge entry to apply, and the largest share of the time that it could save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from warpsmith.core.profile import Metric, Opportunity

Values = Mapping[str, float]


class Rule(NamedTuple):
    """One rule that suggests an optimization."""

    kind: Literal["cpu", "gpu"]
    """Kind of target that the rule applies to."""
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


RULES: tuple[Rule, ...] = (
    Rule(
        "cpu", "thread_scaling",
        lambda v: v["cores"] > 1 and v["thread_scaling"] < 0.7 * v["cores"] and v["dram_pct"] < 70,
        "openmp-row-parallelism", "give every core its own rows",
        lambda v: 1 - v["thread_scaling"] / v["cores"],
    ),
    Rule(
        "cpu", "vectorized_loops",
        lambda v: v.get("vectorized_loops", 1) == 0,
        "cpp-omp-simd-reduction", "let the compiler vectorise the loops, the reduction above all",
        lambda v: _headroom(v, 0.75),
    ),
    Rule(
        "cpu", "missed_loops",
        lambda v: v.get("missed_loops", 0) > 0 and v.get("vectorized_loops", 0) > 0 and v["dram_pct"] < 80,
        "simd-vectorization", "vectorise the loops that the compiler gave up on",
        lambda v: _headroom(v, 0.4),
    ),
    Rule(
        "cpu", "dram_pct",
        lambda v: 45 <= v["dram_pct"] < 95,
        "cpp-streaming-stores", "write results past the caches: a plain store reads the line first",
        lambda v: _headroom(v, 1 / 3),
    ),
    Rule(
        "cpu", "dram_pct",
        lambda v: v["dram_pct"] < 60,
        "cpp-two-rows-or-fused-pass-in-cache", "keep the row in cache between the passes over it",
        lambda v: _headroom(v, 0.5),
    ),
    Rule(
        "gpu", "spill_bytes",
        lambda v: v.get("spill_bytes", 0) > 0,
        "register-spills", "cut the block or add warps until nothing spills",
        lambda v: _headroom(v, 0.5),
    ),
    Rule(
        "gpu", "small_ceiling_pct",
        lambda v: v["small_ceiling_pct"] < 60 and v["small_time_us"] > 10,
        "split-reduction", "split the rows: too few blocks for the device at the small batches",
        lambda v: _headroom({"ceiling_pct": v["small_ceiling_pct"]}, 0.6),
    ),
    Rule(
        "gpu", "host_overhead_us",
        lambda v: v.get("host_overhead_us", 0) > v["small_time_us"],
        "cuda-graphs-for-launch-bound", "capture the call: the host takes longer than the kernel",
        lambda v: 0.05,
    ),
    Rule(
        "gpu", "size_slope",
        lambda v: v.get("size_slope", 1.0) < 0.8 and v["dram_pct"] < 90,
        "persistent-grid", "fewer, longer-lived blocks: small problems pay a larger share for ramp and tail",
        lambda v: _headroom(v, 0.15),
    ),
    Rule(
        "gpu", "dram_pct",
        lambda v: v["dram_pct"] < 60,
        "single-pass-online-reduction", "read the row from memory once",
        lambda v: _headroom(v, 0.5),
    ),
    Rule(
        "gpu", "dram_pct",
        lambda v: 60 <= v["dram_pct"] < 92,
        "triton-num-warps-by-row-length", "more bytes in flight: warps and elements a thread by row length",
        lambda v: _headroom(v, 0.3),
    ),
    Rule(
        "gpu", "worst_ceiling_pct",
        lambda v: v["worst_ceiling_pct"] < 0.85 * v["ceiling_pct"],
        "row-in-registers", "the worst workload is far behind: keep its row on chip between the passes",
        lambda v: _headroom({"ceiling_pct": v["worst_ceiling_pct"]}, 0.4),
    ),
)  # fmt: skip
"""All rules; those that save the same keep this order."""


def suggest_opportunities(kind: str, values: Values) -> tuple[Opportunity, ...]:
    """Return at most three opportunities, ranked by what they could save, one for each entry."""
    best: dict[str, Opportunity] = {}
    for rule in RULES:
        if rule.kind == kind and rule.metric in values and rule.holds(values):
            percent = round(100 * rule.saves(values), 1)
            trigger = Metric(name=rule.metric, value=values[rule.metric])
            if percent > 0 and (rule.entry not in best or best[rule.entry].gain_pct < percent):
                best[rule.entry] = Opportunity(
                    name=rule.name, gain_pct=percent, trigger=trigger, entry=rule.entry
                )  # fmt: skip
    ranked = sorted(best.values(), key=lambda opportunity: -opportunity.gain_pct)
    return tuple(ranked[:3])

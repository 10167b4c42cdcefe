"""Rules for a CPU version: what its code shows and what was timed suggest an optimization.

An estimate is the share of the time that the cause can explain, and never more than the gap to the ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from warpsmith.core.profile import Opportunity
from warpsmith.profiling.diagnosis.cpu_code import CodeFacts
from warpsmith.profiling.diagnosis.rules import Values, opportunity, rank_opportunities

ALONE = 1.2
"""Time on one thread over time on all, below which a version without a known source counts as serial."""

UNEVEN = 0.5
"""Share of the cores that threads must be worth; below it, their work is badly shared."""

MEMORY_BUSY = 70.0
"""Percent of the copy ceiling from which on more cores hardly help."""

_SHOWN = 4


@dataclass(frozen=True)
class DataSizes:
    """Sizes in bytes at the workload that loses the most time, and the caches; 0 where unknown."""

    row: float = 0
    """Largest last axis of an input."""
    inputs: float = 0
    """All inputs."""
    outputs: float = 0
    """All outputs."""
    core_cache: float = 0
    """Largest cache that one core has for itself."""
    all_caches: float = 0
    """All caches from the second level up."""


@dataclass(frozen=True)
class CpuFacts:
    """Facts that the rules read."""

    values: Values
    """Measured values by metric name."""
    code: CodeFacts | None = None
    """Facts of the code; None if it is unknown."""
    sizes: DataSizes = DataSizes()
    """Sizes of the data and the caches."""

    @property
    def gap(self) -> float:
        """Share of the time above the roofline floor, 0 to 1."""
        return min(1.0, max(0.0, 1 - self.values["ceiling_pct"] / 100))

    def share(self, cause: str) -> float:
        """Return the share of the time that a cause in the code can explain; all of it if that is unknown."""
        return self.code.shares.get(cause, 1.0) if self.code else 0.0


class CpuRule(NamedTuple):
    """One rule that suggests an optimization for a CPU."""

    metric: str
    """Name of the metric that triggers the rule."""
    holds: Callable[[CpuFacts, CodeFacts], bool]
    """Function that returns whether the rule applies; the values contain the metric."""
    entry: str
    """Id of the knowledge entry to apply."""
    action: str
    """The optimization, in a few words."""
    finding: Callable[[CpuFacts, CodeFacts], str]
    """Function that returns what was found, with names, lines and sizes."""
    saves: Callable[[CpuFacts, CodeFacts], float]
    """Function that returns the share of the time that the cause can explain, 0 to 1."""


class CpuFinding(NamedTuple):
    """A rule that applies to a version."""

    text: str
    """Finding, with names, lines and sizes."""
    opportunity: Opportunity
    """The optimization that follows."""


def _line_list(lines: Iterable[int]) -> str:
    """Write line numbers in words: `line 3`, `lines 3 and 4`, `lines 3, 4, 5, 6 and 2 more`."""
    names = [str(line) for line in lines]
    names = names[:_SHOWN] + ([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])
    text = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"line{'s' if len(names) > 1 else ''} {text}"


def _calls_text(facts: CpuFacts, code: CodeFacts) -> str:
    names = ", ".join(f"{name} x{count}" for name, count in list(code.calls.items())[:_SHOWN])
    return f"scalar calls in the innermost loops: {names}, {_line_list(code.call_lines)}"


def _missed_text(facts: CpuFacts, code: CodeFacts) -> str:
    line, reason = next(iter(sorted(code.missed.items())))
    more = f", and {len(code.missed) - 1} more" if len(code.missed) > 1 else ""
    return f"the compiler did not vectorise line {line} ({reason}){more}"


def _kib(size: float) -> str:
    return f"{size / 1024:.0f} KiB"


def _again(facts: CpuFacts, times: int) -> float:
    """Return the share of the time in which `times` more readings of the inputs come from memory."""
    whole = facts.sizes.inputs + facts.sizes.outputs
    return times * facts.sizes.inputs / whole * facts.values["dram_pct"] / 100 if whole else 0.0


def _idle_cores(facts: CpuFacts, code: CodeFacts) -> float:
    return 1 - facts.values.get("thread_scaling", 1.0) / facts.values["cores"]


CPU_RULES = (
    CpuRule(
        "scalar_calls",
        lambda facts, code: bool(code.calls),
        "cpp-vector-math-calls", "write the function inline, as a polynomial that omp simd vectorises",
        _calls_text,
        lambda facts, code: facts.share("calls"),
    ),
    CpuRule(
        "serial_loops",
        lambda facts, code: bool(code.serial_lines),
        "cpp-omp-simd-reduction", "reduce in several lanes with omp simd reduction",
        lambda facts, code: f"one number after another in the reduction at {_line_list(code.serial_lines)}",
        lambda facts, code: facts.share("serial"),
    ),
    CpuRule(
        "scan_loops",
        lambda facts, code: bool(code.scan_lines),
        "parallel-scan",
        "run several rows side by side, or add shifted copies inside a register",
        lambda facts, code: f"a scan at {_line_list(code.scan_lines)}: each result needs the one before",
        lambda facts, code: facts.share("scan"),
    ),
    CpuRule(
        "missed_loops",
        lambda facts, code: bool(code.missed),
        "simd-vectorization", "rewrite the loop",
        _missed_text,
        lambda facts, code: facts.share("missed"),
    ),
    CpuRule(
        "row_passes",
        lambda facts, code: code.passes > 1 and facts.sizes.row > facts.sizes.core_cache > 0,
        "single-pass-online-reduction", "read the row fewer times",
        lambda facts, code: (
            f"{code.passes} passes over rows of {_kib(facts.sizes.row)}, "
            f"more than a core's own cache of {_kib(facts.sizes.core_cache)}"
        ),
        lambda facts, code: _again(facts, code.passes - 1),
    ),
    CpuRule(
        "data_sweeps",
        lambda facts, code: code.sweeps > 1 and facts.sizes.inputs > facts.sizes.all_caches > 0,
        "cpp-two-rows-or-fused-pass-in-cache", "finish each row while it is in the cache",
        lambda facts, code: (
            f"{code.sweeps} loops over all {_kib(facts.sizes.inputs)}, "
            f"more than the caches of {_kib(facts.sizes.all_caches)} hold"
        ),
        lambda facts, code: _again(facts, code.sweeps - 1),
    ),
    CpuRule(
        "dram_pct",
        lambda facts, code: (
            45 <= facts.values["dram_pct"] < 95
            and not code.streams
            and facts.sizes.outputs > facts.sizes.all_caches > 0
        ),
        "cpp-streaming-stores", "write results past the caches",
        lambda facts, code: "each plain store to memory reads the line first",
        lambda facts, code: facts.sizes.outputs / (facts.sizes.inputs + 2 * facts.sizes.outputs),
    ),
    CpuRule(
        "parallel_regions",
        lambda facts, code: code.parallel_regions == 0 and facts.values.get("thread_scaling", 1.0) < ALONE,
        "openmp-row-parallelism", "give every core its own rows",
        lambda facts, code: f"nothing in the source starts threads on {facts.values['cores']:.0f} cores",
        _idle_cores,
    ),
    CpuRule(
        "thread_scaling",
        lambda facts, code: (
            code.parallel_regions > 0
            and facts.values["thread_scaling"] < UNEVEN * facts.values["cores"]
            and facts.values["dram_pct"] < MEMORY_BUSY
        ),
        "openmp-row-parallelism", "share the work evenly among the threads",
        lambda facts, code: (
            f"the threads on {facts.values['cores']:.0f} cores do the work of {facts.values['thread_scaling']:.1f}"
        ),
        _idle_cores,
    ),
)  # fmt: skip
"""All rules; of those that save the same the first comes first."""


def code_values(code: CodeFacts) -> dict[str, float]:
    """Return what the code shows as metrics."""
    return {
        "scalar_calls": float(sum(code.calls.values())),
        "serial_loops": float(len(code.serial_lines)),
        "scan_loops": float(len(code.scan_lines)),
        "row_passes": float(code.passes),
        "data_sweeps": float(code.sweeps),
        "parallel_regions": float(code.parallel_regions),
    }


def find_cpu_findings(facts: CpuFacts) -> tuple[CpuFinding, ...]:
    """Return at most three findings, ranked by what their cures could save; none if the code is unknown."""
    if facts.code is None:
        return ()
    findings = {finding.opportunity: finding for finding in _findings(facts, facts.code)}
    return tuple(findings[item] for item in rank_opportunities(findings))


def _findings(facts: CpuFacts, code: CodeFacts) -> Iterator[CpuFinding]:
    for rule in CPU_RULES:
        if rule.metric in facts.values and rule.holds(facts, code):
            text, saves = rule.finding(facts, code), min(facts.gap, rule.saves(facts, code))
            value = facts.values[rule.metric]
            yield CpuFinding(text, opportunity(f"{rule.action}: {text}", saves, rule.metric, value, rule.entry))

"""Summary of an AMD profile: for each kernel the bottleneck's name, its sentence, and what is UNKNOWN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from pydantic import Field

from warpsmith.core.base import Model, Sha256
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.formula import derive_values
from warpsmith.profiling.rocprof.metrics import TABLE
from warpsmith.profiling.rocprof.shares import BANDWIDTH, BYTES, SECONDS, SHARES
from warpsmith.profiling.rocprof.symptoms import RED, SYMPTOMS, AmdSymptom

UNKNOWN = "UNKNOWN"
"""Bottleneck of a kernel for which no rule could be evaluated."""

NONE = "none named"
"""Bottleneck of a kernel for which no evaluated rule applies."""

_PEAK = "the peak bandwidth: no hardware page has the device's name"
_TRACED = "a thread trace (--att)"


class AmdFinding(Model):
    """One symptom that is present."""

    id: str
    """Name of the rule."""
    bottleneck: str
    """Name of the bottleneck."""
    metric: str
    """Name of the share."""
    value: float
    """Value of the share."""
    condition: str
    """The rule in words."""
    source: str
    """Source of the threshold."""
    sentence: str
    """The cause in one sentence."""
    action: str
    """The cure, in one line."""
    entry: str
    """Id of the knowledge entry with instructions."""


class UnknownSymptom(Model):
    """One symptom that could not be evaluated."""

    bottleneck: str
    """Name of the bottleneck that remains UNKNOWN."""
    collect: str
    """Counters, or whatever else, to collect."""


class KernelSummary(Model):
    """One kernel with one configuration."""

    kernel: str
    """Name of the kernel."""
    launches: int = Field(ge=1)
    """Number of launches."""
    seconds: float = Field(gt=0)
    """Time of all launches, in seconds, while they were profiled."""
    bottleneck: str
    """Name of the bottleneck; `UNKNOWN` or `none named` if there is none."""
    sentence: str
    """Cause in one sentence, or the reason why none is named."""
    findings: tuple[AmdFinding, ...]
    """Symptoms that are present, the bottleneck first."""
    unknown: tuple[UnknownSymptom, ...]
    """Symptoms that were not evaluated."""
    values: dict[str, float]
    """Every value by name, of the median launch."""


class AmdSummary(Model):
    """Summary of one report."""

    tool: str
    """Profiler that wrote the report."""
    report: str
    """Path of the report."""
    sha256: Sha256
    """SHA-256 of its files."""
    device: str
    """Name of the device as the tool gives it; empty if it gives none."""
    architecture: str
    """Architecture such as `gfx942`; empty if the tool gives none."""
    kernels: tuple[KernelSummary, ...]
    """Kernels, the most time first."""


def summarize_report(counters: Counters, peak: float | None = None) -> AmdSummary:
    """Summarize a report.

    Args:
        counters: the report.
        peak: bandwidth of the device's HBM in GB/s, where the report gives none; None if it is not known.
    """

    def configuration(launch: Launch) -> tuple[object, ...]:
        return launch.kernel, launch.grid, launch.block

    grouped = groupby(sorted(counters.launches, key=configuration), configuration)
    kernels = [_kernel(list(launches), peak) for _, launches in grouped]
    hottest = counters.hottest
    return AmdSummary(
        tool=counters.tool,
        report=counters.report,
        sha256=counters.sha256,
        device=hottest.device,
        architecture=hottest.architecture,
        kernels=tuple(sorted(kernels, key=lambda kernel: -kernel.seconds)),
    )


def _kernel(launches: Sequence[Launch], peak: float | None) -> KernelSummary:
    median = sorted(launches, key=lambda launch: launch.seconds)[(len(launches) - 1) // 2]
    values = _with_peak(median, peak)
    evaluated = [symptom for symptom in SYMPTOMS if symptom.holds(values) is not None]
    present = [symptom for symptom in evaluated if symptom.holds(values)]
    findings = tuple(_finding(symptom, values) for symptom in sorted(present, key=lambda s: _rank(s, values)))
    return KernelSummary(
        kernel=median.kernel,
        launches=len(launches),
        seconds=sum(launch.seconds for launch in launches),
        bottleneck=findings[0].bottleneck if findings else NONE if evaluated else UNKNOWN,
        sentence=findings[0].sentence if findings else _without_finding(evaluated, values),
        findings=findings,
        unknown=tuple(_unknown(symptom, values) for symptom in SYMPTOMS if symptom not in evaluated),
        values={name: round(value, 3) for name, value in values.items()},
    )


def _with_peak(launch: Launch, peak: float | None) -> dict[str, float]:
    """Return the launch's values, with the share of HBM's bandwidth if the peak is known."""
    if peak is None or "hbm_pct" in launch.values:
        return launch.values
    share = derive_values(
        {"hbm_pct": SHARES["hbm_pct"]}, {**launch.values, BANDWIDTH: peak, SECONDS: launch.seconds}
    )
    return launch.values | share[0]


def _rank(symptom: AmdSymptom, values: Mapping[str, float]) -> tuple[int, float]:
    """Return the place of a symptom: causes before general waiting, and a share near 100 % before all others."""
    value = values[symptom.metric]
    if symptom.general:
        return 2, 0.0
    if symptom.below or not symptom.metric.endswith("_pct"):
        return 1, 0.0
    return (0 if value >= RED else 1), -value


def _finding(symptom: AmdSymptom, values: Mapping[str, float]) -> AmdFinding:
    value = values[symptom.metric]
    return AmdFinding(
        id=symptom.id,
        bottleneck=symptom.bottleneck,
        metric=symptom.metric,
        value=round(value, 3),
        condition=symptom.condition,
        source=symptom.source,
        sentence=symptom.sentence.format(value=f"{value:.3g}"),
        action=symptom.action,
        entry=symptom.entry,
    )


def _without_finding(evaluated: Sequence[AmdSymptom], values: Mapping[str, float]) -> str:
    if not evaluated:
        return "The report has no counter that a rule reads."
    shares = {s.metric: values[s.metric] for s in evaluated if not s.below and s.metric.endswith("_pct")}
    if not shares:
        return f"None of the {len(evaluated)} evaluated rules applies."
    highest = max(shares, key=lambda name: shares[name])
    return (
        f"None of the {len(evaluated)} evaluated rules applies; the highest share is "
        f"{highest}={shares[highest]:.3g}."
    )


def _unknown(symptom: AmdSymptom, values: Mapping[str, float]) -> UnknownSymptom:
    missing = [need for need in symptom.needs if need not in values]
    return UnknownSymptom(
        bottleneck=symptom.bottleneck, collect=", ".join(_collect(need, values) for need in missing)
    )


def _collect(metric: str, values: Mapping[str, float]) -> str:
    """Return the counters of a metric's first formula, or what else measures it."""
    if metric == "hbm_pct":
        return _PEAK if BYTES in values else " ".join(TABLE[BYTES][0].needs)
    if metric == "blocks_per_unit":
        return "*_agent_info.csv"
    formulas = SHARES.get(metric) or TABLE.get(metric)
    if not formulas:
        return _TRACED
    needs = formulas[0].needs
    return " ".join(needs) + (" in one pass" if len(needs) > 1 else "")

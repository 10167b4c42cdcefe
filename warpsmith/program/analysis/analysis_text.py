"""Text of an analysis: input of the autopilot, and the record's page."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.profiling.trace.text import format_duration
from warpsmith.program.analysis import throughput
from warpsmith.program.analysis.models import Analysis, Recommendation
from warpsmith.program.analysis.ranks import format_ranks

_NAME_WIDTH = 44
_HOTSPOTS = 5
_LINES = 12


def format_analysis(analysis: Analysis) -> str:
    """Format the bottleneck, evidence, kernels and recommendations, as the autopilot reads them."""
    return (
        "\n".join(
            [
                *_format_head(analysis),
                *_format_hotspots(analysis),
                *(format_ranks(analysis.ranks, analysis.facts) if analysis.ranks else ()),
                *_format_findings(analysis),
                *_format_lines(analysis),
                *_format_recommendations(analysis),
            ]
        )
        + "\n"
    )


def _format_head(analysis: Analysis) -> Iterator[str]:
    subject, facts, trace = analysis.subject, analysis.facts, analysis.trace
    step = f", step {subject.step}" if subject.step else ""
    yield f"Program: {subject.label}{step} on {facts.device}, PyTorch {facts.torch}"
    yield f"Step: {format_duration(analysis.step_seconds)}, {trace.region.words}"
    yield f"Throughput: {throughput.format_rates(analysis.step_seconds, analysis.work)}"
    yield f"Share of the limit: {_format_limit(analysis)}"
    yield f"Primary bottleneck: {analysis.bound}"
    kernels = ""
    if trace.launches:
        launches = trace.launches / trace.repetitions
        kernels = (
            f"; {launches:.0f} kernels per step, half of them under {format_duration(trace.median_kernel_seconds)}"
        )
    yield f"Evidence: {analysis.why}{kernels}"
    idle = "device idle" if trace.evidence == "gpu" else "outside of operators"
    yield f"Idle share: {analysis.idle_share:.0%} ({idle})"
    yield f"Precision: {_format_precision(analysis)}"
    yield f"Data: {_format_data(analysis)}"
    yield f"Memory: {facts.memory_peak / 1e9:.3g} GB of {facts.memory_total / 1e9:.3g} GB"


def _format_limit(analysis: Analysis) -> str:
    limit = analysis.limit
    if limit is None:
        return "unknown: no step was watched"
    flops = f"{limit.flops / 1e9:.3g} GFLOP in products per step"
    if limit.seconds is None:
        return f"unknown: {limit.source}; {flops}"
    return f"{limit.seconds / analysis.step_seconds:.1%}, from {flops} at {limit.source}"


def _format_precision(analysis: Analysis) -> str:
    facts, observed = analysis.facts, analysis.facts.observed
    parameters = ", ".join(facts.parameter_dtypes) or "no parameters"
    if observed is None or not observed.products:
        return f"parameters {parameters}"
    products = ", ".join(f"{count} in {dtype}" for dtype, count in observed.products.items())
    tf32 = "" if not facts.gpu else f", TF32 {'on' if facts.tf32_products else 'off'}"
    return f"parameters {parameters}; products and convolutions per step: {products}{tf32}"


def _format_data(analysis: Analysis) -> str:
    facts, observed = analysis.facts, analysis.facts.observed
    loaders = [
        f"{loader.workers} workers, {'pinned' if loader.pin_memory else 'not pinned'}" for loader in facts.loaders
    ]
    if not loaders:
        return "no DataLoader"
    waited = f"; {observed.loader_seconds / observed.seconds:.0%} of the observed step" if observed else ""
    return f"DataLoader with {' and '.join(loaders)}{waited}"


def _format_hotspots(analysis: Analysis) -> Iterator[str]:
    kind = "Kernel" if analysis.trace.evidence == "gpu" else "Operator, self time"
    yield ""
    yield f"| {kind} | Calls per step | Time per step | Share | Speedup at most |"
    yield "| --- | --- | --- | --- | --- |"
    for spot in analysis.hotspots[:_HOTSPOTS]:
        name = spot.name[:_NAME_WIDTH].replace("|", "/")
        most = "-" if spot.ceiling is None else f"{spot.ceiling:.3g}x"
        yield f"| {name} | {spot.calls:.4g} | {format_duration(spot.seconds)} | {spot.share:.0%} | {most} |"
    yield ""


def _format_findings(analysis: Analysis) -> Iterator[str]:
    if analysis.findings:
        yield "Findings:"
        yield from (f"- {finding}" for finding in analysis.findings)


def _format_lines(analysis: Analysis) -> Iterator[str]:
    if analysis.lines:
        yield "Lines:"
    for line in analysis.lines[:_LINES]:
        share = "" if line.share is None else f", {line.share:.0%} of the step"
        yield f"- {line.location} [{line.kind}{share}] {line.operation}: {line.cause}; {line.remedy}"
        if line.code:
            yield f"  {line.code}"
    if len(analysis.lines) > _LINES:
        yield f"- and {len(analysis.lines) - _LINES} more in the record"


def _format_recommendations(analysis: Analysis) -> Iterator[str]:
    yield "Recommendations:"
    for number, recommendation in enumerate(analysis.recommendations, 1):
        yield from _format_recommendation(number, recommendation)
    if not analysis.recommendations:
        yield "none: no rule applies to at least 1 % of the step."


def _format_recommendation(number: int, recommendation: Recommendation) -> Iterator[str]:
    entry = f" ({recommendation.entry})" if recommendation.entry else ""
    most = (
        "for memory"
        if not recommendation.share
        else "at most " + ("all" if recommendation.ceiling is None else f"{recommendation.ceiling:.3g}x")
    )
    title = f"[{recommendation.impact}] {recommendation.title}{entry}"
    yield (
        f"{number}. {title}: {recommendation.share:.0%} of the step, {most}; effort {recommendation.effort}, "
        f"risk {recommendation.risk}; specialist {recommendation.specialist}"
    )
    yield f"   Evidence: {recommendation.evidence}."
    yield f"   To do: {recommendation.task}"
    if recommendation.lacks:
        yield f"   Cannot be applied: {recommendation.lacks}."

"""An analysis as text: what the autopilot reads, and the record's page."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.profiling.trace.text import duration
from warpsmith.program.analysis.models import Analysis, Recommendation

_NAME_WIDTH = 44
_HOTSPOTS = 5


def format_analysis(analysis: Analysis) -> str:
    """Bottleneck, evidence, kernels and recommendations, in the form that the autopilot takes as input."""
    return (
        "\n".join(
            [
                *_format_head(analysis),
                *_format_hotspots(analysis),
                *_format_findings(analysis),
                *_format_recommendations(analysis),
            ]
        )
        + "\n"
    )


def _format_head(analysis: Analysis) -> Iterator[str]:
    subject, facts, trace = analysis.subject, analysis.facts, analysis.trace
    step = f", step {subject.step}" if subject.step else ""
    yield f"Program: {subject.label}{step} on {facts.device}, PyTorch {facts.torch}"
    yield f"Step: {duration(analysis.step_seconds)}, {trace.region.words}"
    yield f"Primary bottleneck: {analysis.bound}"
    kernels = ""
    if trace.launches:
        each = trace.launches / trace.repetitions
        kernels = f"; {each:.0f} kernels a step, half of them under {duration(trace.median_kernel_seconds)}"
    yield f"Evidence: {analysis.why}{kernels}"
    idle = "device idle" if trace.evidence == "gpu" else "outside of operators"
    yield f"Idle share: {analysis.idle_share:.0%} ({idle})"
    yield f"Precision: {_format_precision(analysis)}"
    yield f"Data: {_format_data(analysis)}"
    yield f"Memory: {facts.memory_peak / 1e9:.3g} GB of {facts.memory_total / 1e9:.3g} GB"


def _format_precision(analysis: Analysis) -> str:
    facts, seen = analysis.facts, analysis.facts.observed
    parameters = ", ".join(facts.parameter_dtypes) or "no parameters"
    if seen is None or not seen.products:
        return f"parameters {parameters}"
    products = ", ".join(f"{count} in {dtype}" for dtype, count in seen.products.items())
    tf32 = "" if not facts.gpu else f", TF32 {'on' if facts.tf32_products else 'off'}"
    return f"parameters {parameters}; products and convolutions a step: {products}{tf32}"


def _format_data(analysis: Analysis) -> str:
    facts, seen = analysis.facts, analysis.facts.observed
    loaders = [f"{one.workers} workers, {'pinned' if one.pin_memory else 'not pinned'}" for one in facts.loaders]
    if not loaders:
        return "no DataLoader"
    waited = f"; {seen.loader_seconds / seen.seconds:.0%} of the observed step" if seen else ""
    return f"DataLoader with {' and '.join(loaders)}{waited}"


def _format_hotspots(analysis: Analysis) -> Iterator[str]:
    kind = "Kernel" if analysis.trace.evidence == "gpu" else "Operator, self time"
    yield ""
    yield f"| {kind} | Calls a step | Time a step | Share | Speedup at most |"
    yield "| --- | --- | --- | --- | --- |"
    for spot in analysis.hotspots[:_HOTSPOTS]:
        name = spot.name[:_NAME_WIDTH].replace("|", "/")
        most = "-" if spot.ceiling is None else f"{spot.ceiling:.3g}x"
        yield f"| {name} | {spot.calls:.4g} | {duration(spot.seconds)} | {spot.share:.0%} | {most} |"
    yield ""


def _format_findings(analysis: Analysis) -> Iterator[str]:
    if analysis.findings:
        yield "Findings:"
        yield from (f"- {finding}" for finding in analysis.findings)


def _format_recommendations(analysis: Analysis) -> Iterator[str]:
    yield "Recommendations:"
    for number, one in enumerate(analysis.recommendations, 1):
        yield from _format_recommendation(number, one)
    if not analysis.recommendations:
        yield "none: nothing that the rules know attacks a hundredth of the step."


def _format_recommendation(number: int, one: Recommendation) -> Iterator[str]:
    entry = f" ({one.entry})" if one.entry else ""
    most = (
        "for memory" if not one.share else "at most " + ("all" if one.ceiling is None else f"{one.ceiling:.3g}x")
    )
    yield (
        f"{number}. [{one.impact}] {one.title}{entry}: {one.share:.0%} of the step, {most}; effort {one.effort}, "
        f"risk {one.risk}; specialist {one.specialist}"
    )
    yield f"   Evidence: {one.evidence}."
    yield f"   To do: {one.task}"
    if one.lacks:
        yield f"   Cannot be applied: {one.lacks}."

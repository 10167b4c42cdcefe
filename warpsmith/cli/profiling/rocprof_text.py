"""Text of an AMD profile's summary for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.profiling.rocprof.summary import AmdSummary, KernelSummary
from warpsmith.reporting import format

KERNELS, MORE = 6, 2
"""Slowest kernels, and further findings of the slowest one, that are printed; `--json` has all."""

_NAME = 60
_HEAD = "| Kernel | Duration | MFMA% | HBM% | Occ% | Bottleneck |\n" + "| --- " * 6 + "|"
_COLUMNS = ("mfma_pct", "hbm_pct", "resident_pct")


def describe_amd_summary(summary: AmdSummary) -> str:
    """Describe a summary as Markdown: the kernels, the slowest one's bottleneck, and what is UNKNOWN."""
    hottest = summary.kernels[0]
    sections = [
        f"Evidence: {summary.report}, read as {summary.tool} output; this reader has not run on an AMD machine.",
        f"## Profile: {summary.device or 'unknown device'} ({summary.architecture or 'unknown architecture'})",
        "\n".join([_HEAD, *map(_row, summary.kernels[:KERNELS])]),
        f"**Bottleneck: {hottest.bottleneck}.** {format.inline(_name(hottest))}: {hottest.sentence}",
        "\n".join(_findings(hottest)),
        "\n".join(_unknown(hottest)),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _row(kernel: KernelSummary) -> str:
    shares = (kernel.values.get(name) for name in _COLUMNS)
    cells = ("UNKNOWN" if share is None else f"{share:.1f}".removesuffix(".0") for share in shares)
    row = (format.inline(_name(kernel)), format.seconds(kernel.seconds), *cells, kernel.bottleneck)
    return f"| {' | '.join(row)} |"


def _name(kernel: KernelSummary) -> str:
    name = format.plain(kernel.kernel, _NAME)
    return f"{name} x{kernel.launches}" if kernel.launches > 1 else name


def _findings(kernel: KernelSummary) -> Iterator[str]:
    """Yield the cure of each finding, and after the first the sentence that the heading does not have."""
    for index, finding in enumerate(kernel.findings[: 1 + MORE]):
        because = f"{finding.bottleneck}: {finding.sentence} " if index else ""
        yield f"- {because}Try: {finding.action}; entry {finding.entry}"
        yield f"  ({finding.metric}={finding.value:g}; rule: {finding.condition}; {finding.source})"


def _unknown(kernel: KernelSummary) -> Iterator[str]:
    """Yield what was not measured, on one line for each thing that measures it."""
    by_need: dict[str, list[str]] = {}
    for symptom in kernel.unknown:
        by_need.setdefault(symptom.collect, []).append(symptom.bottleneck)
    if by_need:
        yield "UNKNOWN, with what measures it:"
    for need, bottlenecks in by_need.items():
        yield f"- {'; '.join(bottlenecks)}: {need}"

"""Hotspot: what a kernel's warps wait for, and the source line where they wait most, from ncu's samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from warpsmith.core.base import Model
from warpsmith.errors import MissingInput
from warpsmith.profiling.ncu import report as ncu_report

REASONS = 3
"""Stall reasons, and instructions of the hottest line, that a hotspot has at most."""

_SELECTED = "selected"
"""State of a warp that issues, which is no stall."""


class StallShare(Model):
    """One reason for which warps wait."""

    reason: str
    """Name in ncu, such as `long_scoreboard`."""
    share: float
    """Share of all samples of the kernel."""


class HotInstruction(Model):
    """One machine instruction that warps wait at."""

    text: str
    """Disassembly."""
    share: float
    """Share of all samples of the kernel."""
    reason: str
    """Stall reason of most of its samples; empty if its warps never stall."""


class StallHotspot(Model):
    """Place of a kernel where its warps spend most of their time."""

    kernel: str
    """Name of the kernel with the most samples in the report."""
    samples: int
    """Its samples."""
    stalls: tuple[StallShare, ...]
    """Largest stall reasons, the largest first."""
    file: str
    """File of the hottest line as the compiler names it; empty if the code has no line information."""
    line: int
    """Number of the hottest line; 0 if the code has no line information."""
    share: float
    """Share of all samples that fall on the line, or on the hottest instruction where no line is known."""
    instructions: tuple[HotInstruction, ...]
    """Instructions of the line with the most samples, the hottest first."""


def read_hotspot(path: Path) -> StallHotspot:
    """Read the hotspot of a report; works without a GPU.

    Args:
        path: path of the `.ncu-rep` file, collected with the section `SourceCounters`.

    Raises:
        MissingInput: there is no such file, or it has no samples.
        Misuse: it is not an ncu report, or is damaged.
        MachineLacks: ncu-report is not installed or does not load.
    """
    launches = ncu_report.read_raw_launches(path, samples=True)
    kernel, samples = max(
        ((raw["kernel"], [_Sample(**each) for each in raw["samples"]]) for raw in launches),
        key=lambda launch: sum(sample.hits for sample in launch[1]),
        default=("", []),
    )
    total = sum(sample.hits for sample in samples)
    if not total:
        raise MissingInput(f"{path} has no samples of the warps: profile with `--section SourceCounters`.")
    lines = Counter[tuple[str, int]]()
    for sample in samples:
        lines[sample.file, sample.line] += sample.hits
    by_line = {line: count for line, count in lines.items() if line[1]}
    file, line = max(by_line, key=by_line.__getitem__) if by_line else ("", 0)
    own = [sample for sample in samples if (sample.file, sample.line) == (file, line)]
    hottest = sorted(own, key=lambda sample: -sample.hits)[: REASONS if by_line else 1]
    stalls = Counter[str]()
    for sample in samples:
        stalls.update(sample.stalls)
    return StallHotspot(
        kernel=kernel,
        samples=total,
        stalls=tuple(StallShare(reason=name, share=count / total) for name, count in _largest(stalls)),
        file=file,
        line=line,
        share=(by_line[file, line] if by_line else hottest[0].hits) / total,
        instructions=tuple(
            HotInstruction(
                text=" ".join(sample.sass.split()),
                share=sample.hits / total,
                reason=next((name for name, _ in _largest(sample.stalls)), ""),
            )
            for sample in hottest
        ),
    )


def format_hotspot(hotspot: StallHotspot, sources: Sequence[Path]) -> str:
    """Format a hotspot as lines of text; the hottest line is quoted if one of the files has its name."""
    stalls = ", ".join(f"{stall.reason} {_percent(stall.share)}" for stall in hotspot.stalls)
    where = f"{hotspot.file}:{hotspot.line}" if hotspot.line else "an instruction without line information"
    quote = f": {text}" if (text := _source_line(hotspot, sources)) else ""
    lines = [f"  stalls: {stalls}", f"  hottest: {_percent(hotspot.share)} at {where}{quote}"]
    width = max((len(each.reason) for each in hotspot.instructions), default=0)
    lines += [
        f"    {_percent(each.share):>6}  {each.reason.ljust(width)}  {each.text}" for each in hotspot.instructions
    ]
    return "\n".join(lines)


class _Sample(NamedTuple):
    """Samples of one instruction, as `ncu_dump` prints them."""

    sass: str
    file: str
    line: int
    hits: int
    stalls: dict[str, int]


def _largest(stalls: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the largest stall reasons with their samples; equal ones keep their order."""
    waiting = [(name, count) for name, count in stalls.items() if count and name != _SELECTED]
    return sorted(waiting, key=lambda stall: -stall[1])[:REASONS]


def _source_line(hotspot: StallHotspot, sources: Sequence[Path]) -> str:
    """Return the text of the hottest line from a file of the same name; empty if there is none."""
    for path in sources:
        if hotspot.line and path.name == Path(hotspot.file).name:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            return lines[hotspot.line - 1].strip() if hotspot.line <= len(lines) else ""
    return ""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

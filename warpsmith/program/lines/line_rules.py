"""Rules that make findings of the counts by line, the largest share of a step first."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from warpsmith.program.lines.models import LineFinding
from warpsmith.program.lines.raw_lines import MANY_CALLS, LineCounts, LoopCounts, SiteLine, WatchedLines
from warpsmith.program.models import CompileEvent

SMALL_BYTES = 262_144
"""Mean bytes of an operator's tensors, results included, up to which its call costs more than its work. Chosen."""

LEAST_COPY_BYTES = 65_536
"""Bytes per step below which copies at a line are not reported. Chosen."""

_CODE_LENGTH = 100
_BYTE_UNITS = {0: "B", 3: "kB", 6: "MB", 9: "GB"}
_ORDER = ("loop", "copy", "wait", "graph break", "recompilation")

_WAIT_REMEDIES = {
    "host-read": "keep the value a tensor, and read it every few steps",
    "truth": "torch.where, or decide every few steps",
    "print": "print every few steps",
    "to-host": "copy it every few steps, or with non_blocking=True and read it later",
    "data-shape": "a fixed size: torch.where, a mask as a factor, topk",
    "synchronize": "remove it from the step",
    "error-check": "the _ex variant with check_errors=False",
}
_BATCHED = "one batched call over all iterations, on stacked tensors or with torch.vmap"
_COMPILED = "torch.compile for the loop, or a library's call for the whole recurrence"
_UNCOPIED = "keep the layout that its reader needs, or let the next operator take strides"


def find_lines(
    watched: WatchedLines, folder: Path, *, copy_share: float, gpu: bool, compiled: Sequence[CompileEvent] = ()
) -> tuple[LineFinding, ...]:
    """Make findings of the counts by line.

    Args:
        watched: the counts.
        folder: folder that paths of the program's files are relative to.
        copy_share: share of a step that all copies take; it is divided in proportion to their bytes.
        gpu: true if the program uses a GPU.
        compiled: graph breaks and recompilations.
    """
    findings = [
        *_find_loops(watched, folder),
        *_find_copies(watched, folder, copy_share),
        *_find_waits(watched, folder, gpu),
        *_find_compile_events(compiled, folder),
    ]
    return tuple(sorted(findings, key=lambda item: (-(item.share or 0), _ORDER.index(item.kind), -item.calls)))


def is_small_loop(site: LineCounts) -> bool:
    """Return true if a timed loop calls one small operator many times at the line."""
    small = (count >= MANY_CALLS and site.bytes[name] <= SMALL_BYTES for name, count in site.operators.items())
    return site.loop is not None and site.loop.share is not None and any(small)


def operator_locations(watched: WatchedLines, folder: Path, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """List the lines that call these operators, the most calls first, each with the package that it belongs to."""
    distinct = set(names)
    counts = [(sum(site.operators.get(name, 0) for name in distinct), site) for site in watched.sites]
    chosen = sorted((item for item in counts if item[0]), key=lambda item: -item[0])
    return tuple((format_location(site, folder), site.package) for _, site in chosen)


def format_location(site: SiteLine, folder: Path) -> str:
    """Return a line as `train.py:12`; a library's with the line of the program's that leads to it."""
    caller = f", called from {_caller(site, folder)}" if site.caller_line else ""
    return f"{shorten_path(site.file, site.package, folder)}:{site.line}{caller}"


def _find_loops(watched: WatchedLines, folder: Path) -> Iterator[LineFinding]:
    groups: dict[LoopCounts, list[LineCounts]] = defaultdict(list)
    for site in watched.sites:
        if site.loop and is_small_loop(site):
            groups[site.loop].append(site)
    for loop, sites in groups.items():
        operators: defaultdict[str, float] = defaultdict(float)
        for site in sites:
            for name, count in site.operators.items():
                operators[name] += count if count >= MANY_CALLS else 0
        names = sorted((name for name in operators if operators[name]), key=lambda name: -operators[name])
        calls = sum(operators.values())
        busiest = max(sites, key=lambda site: sum(site.operators.values()))
        sequential = max(site.depth for site in sites) >= max(operators.values()) / 2
        inside = loop.file == busiest.file and loop.first <= busiest.line <= loop.last
        is_library = bool(busiest.package)
        each = ", ".join(f"{operators[name]:.0f} {name}" for name in names[:3])
        size = max(site.bytes[name] for site in sites for name in names if name in site.bytes)
        yield LineFinding(
            kind="loop",
            file=shorten_path(loop.file, "" if not inside else busiest.package, folder),
            line=loop.line,
            function=loop.function,
            code=_read_code(busiest.file, busiest.line),
            package=busiest.package if inside else "",
            caller=_caller(busiest, folder) if is_library and inside else "",
            operation=f"{calls:.0f} small operators a step ({each})"
            + f" at {shorten_path(busiest.file, busiest.package, folder)}:{busiest.line}",
            calls=calls,
            share=loop.share,
            operators=tuple(names),
            sequential=sequential,
            cause=f"a call handles at most {_format_bytes(size)}, and costs more than its work",
            remedy=_COMPILED if sequential else _BATCHED,
        )


def _find_copies(watched: WatchedLines, folder: Path, copy_share: float) -> Iterator[LineFinding]:
    for site in watched.sites:
        if site.copied_bytes < LEAST_COPY_BYTES:
            continue
        count = sum(site.copies.values())
        names = ", ".join(f"`{name}`" for name in site.copies)
        yield LineFinding(
            **_fields(site, folder),
            kind="copy",
            operation=f"{names} copies {_format_bytes(site.copied_bytes)} a step",
            calls=count,
            bytes=site.copied_bytes,
            share=min(1.0, copy_share * site.copied_bytes / watched.copied_bytes),
            cause="the tensor is strided, and the copy only puts it in order",
            remedy=_UNCOPIED,
        )


def _find_waits(watched: WatchedLines, folder: Path, gpu: bool) -> Iterator[LineFinding]:
    for wait in watched.waits:
        yield LineFinding(
            **_fields(wait, folder),
            kind="wait",
            operation=f"{wait.description}, {_format_times(wait.count)} a step",
            calls=wait.count,
            cause="the host waits for the device" if gpu else "the host would wait for the device on a GPU",
            remedy=_WAIT_REMEDIES[wait.kind],
        )


def _find_compile_events(events: Sequence[CompileEvent], folder: Path) -> Iterator[LineFinding]:
    groups: dict[tuple[str, str, int], list[CompileEvent]] = defaultdict(list)
    for event in events:
        groups[event.kind, event.file, event.line].append(event)
    for (kind, file, line), group in groups.items():
        reason, function = group[-1].reason, group[-1].function
        breaks = kind == "graph break"
        yield LineFinding(
            kind=group[0].kind,
            file=shorten_path(file, "", folder),
            line=line,
            function=function,
            code=_read_code(file, line),
            operation="torch.compile breaks the graph"
            if breaks
            else f"compiled again, {_format_times(len(group))} so far",
            calls=len(group),
            cause=reason,
            remedy="move it out of the compiled function, or write it with tensors"
            if breaks
            else "keep that value the same, or mark its size as dynamic",
        )


def _fields(site: SiteLine, folder: Path) -> dict[str, object]:
    return {
        "file": shorten_path(site.file, site.package, folder),
        "line": site.line,
        "function": site.function,
        "code": _read_code(site.file, site.line),
        "package": site.package,
        "caller": _caller(site, folder),
    }


def _caller(site: SiteLine, folder: Path) -> str:
    return f"{shorten_path(site.caller_file, '', folder)}:{site.caller_line}" if site.caller_line else ""


def _read_code(file: str, line: int) -> str:
    return linecache.getline(file, line).strip()[:_CODE_LENGTH]


def shorten_path(file: str, package: str, folder: Path) -> str:
    """Return a path relative to the program's folder, or from the name of its package on."""
    path = Path(file)
    if package and package in path.parts:
        return str(Path(*path.parts[path.parts.index(package) :]))
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file


def _format_times(count: float) -> str:
    return f"{count:g} {'time' if count == 1 else 'times'}"


def _format_bytes(count: float) -> str:
    """Return bytes as text: `3.1 kB`."""
    power = next((power for power in (9, 6, 3) if count >= 10**power), 0)
    return f"{count / 10**power:.3g} {_BYTE_UNITS[power]}"

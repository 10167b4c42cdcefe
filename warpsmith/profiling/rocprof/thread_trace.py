"""Reads what rocprofv3's thread trace (ATT) says of each instruction into shares of a wave's cycles.

A wave's time is the sum of Latency (stall and issue) and Idle. What the documentation leaves open stays open: Idle
mixes arbitration, register dependencies and instruction fetch, so no name takes it. Never run on an AMD machine.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from warpsmith.errors import Misuse

STATS = "stats_ui_output_agent_*_dispatch_*.csv"
"""Names of its CSV files."""

CODE = "ui_output_agent_*_dispatch_*/code.json"
"""Names of its JSON files: the same numbers."""

_DISPATCH = re.compile(r"_dispatch_(\d+)")
_VECTOR_MEMORY = ("global_", "buffer_", "flat_", "scratch_", "tbuffer_", "image_")
_VECTOR_WAITS = frozenset({"vmcnt", "vscnt", "loadcnt", "storecnt", "samplecnt", "bvhcnt"})
_COUNTER = re.compile(r"(?<![a-z])(?!wait)[a-z]+cnt")
_PENDING = {
    "ds_": "shared",
    "s_load": "scalar",
    "s_buffer_load": "scalar",
    "s_sendmsg": "message",
    "flat_": "flat",
}
"""What counts into lgkmcnt, by the start of an instruction."""
_TITLES = ("instruction", "hitcount", "latency", "stall", "idle", "source")
_UNCLEAR = 0.01
"""Share of all time that waits of unclear cause may take before no share of waits is given."""


class Line(NamedTuple):
    """One instruction, summed over the traced waves; times in cycles."""

    text: str
    """Its assembly."""
    hits: int
    """How often it ran."""
    latency: int
    """Stall and issue."""
    stall: int
    """Time in which it could not issue, the unit being busy."""
    idle: int
    """Time since the instruction before was done."""


class Trace(NamedTuple):
    """One dispatch."""

    dispatch: int
    """Its number."""
    kernels: frozenset[str]
    """Its kernel's names, mangled and plain; empty where the file has none."""
    lines: tuple[Line, ...]
    """The instructions in the order of their addresses."""

    def fits(self, kernel: str) -> bool:
        """Whether it may be of this kernel; rocprofv3 gives names whole or cut, as its options say."""
        return not self.kernels or any(kernel in name or name in kernel for name in self.kernels)

    @property
    def stalls(self) -> dict[str, float]:
        """Shares of the waves' cycles by name of the vocabulary; empty where nothing was traced."""
        whole = sum(line.latency + line.idle for line in self.lines)
        if not whole:
            return {}
        waits, unclear = _waits(self.lines)
        found = {
            "barrier_stall_pct": sum(x.latency for x in self.lines if x.text.startswith("s_barrier")),
            "lg_throttle_pct": _stalls(self.lines, *_VECTOR_MEMORY),
            "mio_throttle_pct": _stalls(self.lines, "ds_"),
            "math_throttle_pct": _stalls(self.lines, "v_"),
            **(waits if unclear <= _UNCLEAR * whole else {}),
        }
        return {name: 100 * cycles / whole for name, cycles in found.items()}


def reports(folder: Path) -> tuple[Path, ...]:
    """The files under `folder`, one a traced dispatch: the CSV file where it has both."""
    found = {_dispatch(path): path for kind in (CODE, STATS) for path in sorted(folder.rglob(kind))}
    return tuple(found[number] for number in sorted(found))


def read(path: Path) -> Trace:
    """One dispatch.

    Raises:
        Misuse: the file lacks columns, or holds what is no number.
    """
    return _json(path) if path.suffix == ".json" else _csv(path)


def _waits(lines: Iterable[Line]) -> tuple[dict[str, int], int]:
    """Cycles in waits for vector memory and for shared memory; and those in waits whose cause is not clear."""
    cycles = {"long_scoreboard_pct": 0, "short_scoreboard_pct": 0, "": 0, "?": 0}
    pending: set[str] = set()
    for line in lines:
        if not line.text.startswith(("s_waitcnt", "s_wait_")) or "_alu" in line.text or "_depctr" in line.text:
            pending |= {kind for opcode, kind in _PENDING.items() if line.text.startswith(opcode)}
            continue
        counters = set(_COUNTER.findall(line.text))
        cycles[_cause(counters, pending)] += line.latency
        if "lgkmcnt" in counters:
            pending.clear()
    cycles.pop("")
    return cycles, cycles.pop("?")


def _cause(counters: set[str], pending: set[str]) -> str:
    """What a wait is for: empty for scalar loads, which have none; `?` where it may be several."""
    if counters and counters <= _VECTOR_WAITS:
        return "long_scoreboard_pct"
    if counters == {"dscnt"} or (counters == {"lgkmcnt"} and pending == {"shared"}):
        return "short_scoreboard_pct"
    return "" if counters == {"kmcnt"} or (counters == {"lgkmcnt"} and pending == {"scalar"}) else "?"


def _stalls(lines: Iterable[Line], *opcodes: str) -> int:
    return sum(line.stall for line in lines if line.text.startswith(opcodes))


def _csv(path: Path) -> Trace:
    with path.open(newline="", errors="replace") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        return _trace(path, header, rows)


def _json(path: Path) -> Trace:
    try:
        content = json.loads(path.read_bytes())
        header, rows = content["header"].split(", "), content["code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Misuse(f"{path} is no thread trace of rocprofv3: trace again.") from None
    return _trace(path, header, rows)


def _trace(path: Path, header: list[str], rows: Iterable[Sequence[object]]) -> Trace:
    """The same table from both files, whose headers differ in spelling; an empty file is of no traced wave."""
    if not header:
        return Trace(_dispatch(path), frozenset(), ())
    names = {"ISA": "instruction", "Hit": "hitcount"}
    at = {names.get(title, title.lower()): place for place, title in enumerate(header)}
    lacks = [title for title in _TITLES if title not in at]
    if lacks:
        raise Misuse(f"{path} lacks the columns {', '.join(lacks)}: it is no thread trace of rocprofv3.")
    kernels: set[str] = set()
    lines: list[Line] = []
    try:
        for row in rows:
            text = str(row[at["instruction"]])
            if text.startswith(";"):  # a kernel's first line: its names
                kernels |= {text.removeprefix("; "), str(row[at["source"]])}
            else:
                lines.append(Line(text, *_numbers(row, at)))
    except (ValueError, IndexError, TypeError, csv.Error):
        raise Misuse(f"{path} is cut short or damaged after {len(lines)} instructions: trace again.") from None
    return Trace(_dispatch(path), frozenset(kernels), tuple(lines))


def _numbers(row: Sequence[object], at: dict[str, int]) -> Iterator[int]:
    return (int(str(row[at[title]])) for title in ("hitcount", "latency", "stall", "idle"))


def _dispatch(path: Path) -> int:
    """From the file's name, or its folder's."""
    numbers = _DISPATCH.findall(f"{path.parent.name}/{path.name}")
    return int(numbers[-1])

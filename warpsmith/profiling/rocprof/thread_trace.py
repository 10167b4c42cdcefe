"""Read rocprofv3's thread traces (ATT) into shares of a wave's cycles.

A wave's time is the sum of Latency (stall and issue) and Idle. Idle mixes arbitration, register dependencies and
instruction fetch, which the documentation does not separate,
so no metric uses it. It has never run on an AMD machine.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from warpsmith.errors import Misuse
from warpsmith.profiling.rocprof.wave_states import read_wave_states

STATS = "stats_ui_output_agent_*_dispatch_*.csv"
"""Pattern of the CSV files' names."""

CODE = "ui_output_agent_*_dispatch_*/code.json"
"""Pattern of the JSON files' names; they contain the same numbers."""

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
"""Kind of operation that lgkmcnt counts, by the start of an instruction."""
_TITLES = ("instruction", "hitcount", "latency", "stall", "idle", "source")
_MAX_UNCLEAR = 0.01
"""Share of all time in waits of unclear cause above which no share of waits is reported."""


class TracedInstruction(NamedTuple):
    """One instruction, summed over the traced waves; times in cycles."""

    text: str
    """Assembly text."""
    hits: int
    """Number of executions."""
    latency: int
    """Cycles of stall and issue."""
    stall: int
    """Cycles in which it could not issue because the unit was busy."""
    idle: int
    """Cycles since the end of the previous instruction."""


class ThreadTrace(NamedTuple):
    """Thread trace of one dispatch."""

    dispatch: int
    """Number of the dispatch."""
    kernels: frozenset[str]
    """Names of the kernel, mangled and plain; empty if the file has none."""
    lines: tuple[TracedInstruction, ...]
    """Instructions in the order of their addresses."""
    states: dict[str, float] = {}
    """Percent of the waves' cycles in waits and in stalls of any cause, by name; empty if that was not written."""

    def fits(self, kernel: str) -> bool:
        """Return whether the trace may belong to this kernel; rocprofv3 writes names in full or truncated."""
        return not self.kernels or any(kernel in name or name in kernel for name in self.kernels)

    @property
    def stalls(self) -> dict[str, float]:
        """Percent of the waves' cycles by metric name; empty if nothing was traced."""
        whole = sum(line.latency + line.idle for line in self.lines)
        if not whole:
            return self.states
        waits, unclear = _waits(self.lines)
        cycles_by_metric = {
            "barrier_stall_pct": sum(x.latency for x in self.lines if x.text.startswith("s_barrier")),
            "lg_throttle_pct": _stalls(self.lines, *_VECTOR_MEMORY),
            "mio_throttle_pct": _stalls(self.lines, "ds_"),
            "math_throttle_pct": _stalls(self.lines, "v_"),
            **(waits if unclear <= _MAX_UNCLEAR * whole else {}),
        }
        return self.states | {name: 100 * cycles / whole for name, cycles in cycles_by_metric.items()}


def trace_files(folder: Path) -> tuple[Path, ...]:
    """Return the trace files under `folder`, one for each dispatch: the CSV file if there are both."""
    files = {_dispatch(path): path for kind in (CODE, STATS) for path in sorted(folder.rglob(kind))}
    return tuple(files[number] for number in sorted(files))


def read_thread_trace(path: Path) -> ThreadTrace:
    """Read the trace of one dispatch.

    Raises:
        Misuse: the file lacks columns, or has a value that is not a number.
    """
    trace = _json(path) if path.suffix == ".json" else _csv(path)
    return trace._replace(states=read_wave_states(wave_state_folder(path)))


def wave_state_folder(path: Path) -> Path:
    """Return the folder with the wave states of a trace file."""
    return path.parent if path.suffix == ".json" else path.with_name(path.stem.removeprefix("stats_"))


def _waits(lines: Iterable[TracedInstruction]) -> tuple[dict[str, int], int]:
    """Return cycles in waits for vector memory and shared memory, and cycles in waits of unclear cause."""
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
    """Return the metric of a wait: empty for scalar loads, which have none; `?` if the cause is ambiguous."""
    if counters and counters <= _VECTOR_WAITS:
        return "long_scoreboard_pct"
    if counters == {"dscnt"} or (counters == {"lgkmcnt"} and pending == {"shared"}):
        return "short_scoreboard_pct"
    return "" if counters == {"kmcnt"} or (counters == {"lgkmcnt"} and pending == {"scalar"}) else "?"


def _stalls(lines: Iterable[TracedInstruction], *opcodes: str) -> int:
    return sum(line.stall for line in lines if line.text.startswith(opcodes))


def _csv(path: Path) -> ThreadTrace:
    with path.open(newline="", errors="replace") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        return _trace(path, header, rows)


def _json(path: Path) -> ThreadTrace:
    try:
        content = json.loads(path.read_bytes())
        header, rows = content["header"].split(", "), content["code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Misuse(f"{path} is not a rocprofv3 thread trace: trace again.") from None
    return _trace(path, header, rows)


def _trace(path: Path, header: list[str], rows: Iterable[Sequence[object]]) -> ThreadTrace:
    """Parse the table of either file, whose headers differ in spelling; an empty file has no traced wave."""
    if not header:
        return ThreadTrace(_dispatch(path), frozenset(), ())
    names = {"ISA": "instruction", "Hit": "hitcount"}
    columns = {names.get(title, title.lower()): index for index, title in enumerate(header)}
    missing = [title for title in _TITLES if title not in columns]
    if missing:
        raise Misuse(f"{path} lacks the columns {', '.join(missing)}: it is not a rocprofv3 thread trace.")
    kernels: set[str] = set()
    lines: list[TracedInstruction] = []
    try:
        for row in rows:
            text = str(row[columns["instruction"]])
            if text.startswith(";"):  # a kernel's first line contains its names
                kernels |= {text.removeprefix("; "), str(row[columns["source"]])}
            else:
                lines.append(TracedInstruction(text, *_numbers(row, columns)))
    except (ValueError, IndexError, TypeError, csv.Error):
        raise Misuse(f"{path} is truncated or damaged after {len(lines)} instructions: trace again.") from None
    return ThreadTrace(_dispatch(path), frozenset(kernels), tuple(lines))


def _numbers(row: Sequence[object], columns: dict[str, int]) -> Iterator[int]:
    return (int(str(row[columns[title]])) for title in ("hitcount", "latency", "stall", "idle"))


def _dispatch(path: Path) -> int:
    """Return the number of the dispatch from the file's name, or its folder's."""
    numbers = _DISPATCH.findall(f"{path.parent.name}/{path.name}")
    return int(numbers[-1])

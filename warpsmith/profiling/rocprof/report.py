"""Reads rocprofv3's files (AMD) into counters: counter collection, kernel trace, agent info and thread trace.

Built from AMD's documentation and source code; never run on an AMD machine.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from warpsmith import files
from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.formula import derive_values
from warpsmith.profiling.report_file import report_path
from warpsmith.profiling.rocprof import thread_trace as rocprof_att
from warpsmith.profiling.rocprof.metrics import BLOCKS, COLUMNS, TABLE, THREADS

COUNTERS, KERNELS, AGENTS = "counter_collection.csv", "kernel_trace.csv", "agent_info.csv"
"""What the names of its CSV files end in."""

_COLLECT = "`rocprofv3 --kernel-trace --pmc COUNTER... --output-format csv -- PROGRAM`"
_PASS = re.compile(r"(pmc|pass)_\d+")
_AGENT = re.compile(r"(?:Agent )?(\d+)")
_START, _END = "Start_Timestamp", "End_Timestamp"

Row = dict[str, str]
"""One row of a CSV file, by column."""

Key = tuple[int, str]
"""A launch: number of the dispatch, and the kernel's name."""


class _Seen(NamedTuple):
    """What the files say of one launch."""

    key: Key
    """Which."""
    counted: list[Row]
    """One row a counter; empty where only a thread trace saw it."""
    timed: Row | None
    """The kernel trace's row."""
    stalls: dict[str, float]
    """From the thread trace, by name of the vocabulary."""


class _Run(NamedTuple):
    """What the files of one run say."""

    path: Path
    """What was asked for."""
    counters: tuple[Path, ...]
    """One file a pass."""
    kernels: tuple[Path, ...]
    """Kernel traces: times and extents."""
    agents: tuple[Path, ...]
    """The devices."""
    traces: tuple[Path, ...]
    """Thread traces, one a dispatch."""


def read(path: Path, project_root: Path | None = None) -> Counters:
    """The launches of one run, merged over its passes (folders `pmc_1`, `pmc_2`... or `pass_1`...).

    Args:
        path: a folder that rocprofv3 wrote, or one `*_counter_collection.csv`, read with the files of its prefix.
        project_root: what the report's name is made relative to, where it lies in it.

    Raises:
        MissingInput: there is no such file or folder, or neither counters nor a thread trace in it.
        Misuse: a file lacks columns or times, holds what is no number, or the folder holds several runs.
    """
    run = _run(path)
    seen = _seen(run)
    if not seen:
        raise MissingInput(f"{path} holds no counters: collect them with {_COLLECT}.")
    gpus = _gpus(run)
    return Counters(
        tool="rocprofv3",
        report=report_path(path, project_root),
        sha256=_hash(run),
        launches=tuple(_launch(index, one, gpus, path) for index, one in enumerate(seen)),
    )


def _run(path: Path) -> _Run:
    if not path.exists():
        raise MissingInput(f"{path} is not there: give a folder that rocprofv3 wrote.")
    if path.is_file() and not path.name.endswith(COUNTERS):
        raise Misuse(f"{path} is no *{COUNTERS}: give that file, or the folder that rocprofv3 wrote.")
    if path.is_file():
        prefix = path.name.removesuffix(COUNTERS)
        beside = (path.with_name(prefix + kind) for kind in (KERNELS, AGENTS))
        kernels, agents = (tuple(file for file in (name,) if file.is_file()) for name in beside)
        return _Run(path, (path,), kernels, agents, rocprof_att.reports(path.parent))
    counters, kernels, agents = (tuple(sorted(path.rglob(f"*{kind}"))) for kind in (COUNTERS, KERNELS, AGENTS))
    _one_run(path, counters or kernels)
    return _Run(path, counters, kernels, agents, rocprof_att.reports(path))


def _one_run(path: Path, reports: tuple[Path, ...]) -> None:
    """Every process writes its own file: one to a folder, or one to each pass."""
    places = [report.parent for report in reports]
    passes = [any(_PASS.fullmatch(part) for part in place.relative_to(path).parts) for place in places]
    if len(set(places)) < len(places) or (len(places) > 1 and not all(passes)):
        names = ", ".join(str(report.relative_to(path)) for report in reports)
        raise Misuse(f"{path} holds several runs or processes: name one of {names}.")


def _seen(run: _Run) -> list[_Seen]:
    """The launches that were counted or traced, in the order of their dispatch."""
    counted, timed = _counted(run), _timed(run)
    stalls = _stalls(run, [*counted, *timed])
    return [
        _Seen(key, counted.get(key, []), timed.get(key), stalls.get(key, {}))
        for key in sorted({*counted, *stalls})
    ]


def _key(row: Row) -> Key:
    return int(row["Dispatch_Id"]), row["Kernel_Name"]


def _counted(run: _Run) -> dict[Key, list[Row]]:
    texts = ("Agent_Id", "Kernel_Name", "Counter_Name")
    found: dict[Key, list[Row]] = {}
    for file in run.counters:
        for row in _rows(file, texts, ("Dispatch_Id", "Grid_Size", "Workgroup_Size", "Counter_Value")):
            found.setdefault(_key(row), []).append(row)
    return found


def _timed(run: _Run) -> dict[Key, Row]:
    extents = tuple(f"{what}_Size_{axis}" for what in ("Grid", "Workgroup") for axis in "XYZ")
    found: dict[Key, Row] = {}
    for file in run.kernels:
        for row in _rows(file, ("Agent_Id", "Kernel_Name"), ("Dispatch_Id", _START, _END, *extents)):
            found.setdefault(_key(row), row)
    return found


def _stalls(run: _Run, launches: Iterable[Key]) -> dict[Key, dict[str, float]]:
    """What thread traces say: of the dispatch that they name, else, from a run of its own, of the same kernel."""
    known = tuple(dict.fromkeys(launches))
    found: dict[Key, dict[str, float]] = {}
    for trace in map(rocprof_att.read, run.traces):
        fits = [key for key in known if trace.fits(key[1])]
        same = [key for key in fits if key[0] == trace.dispatch] or (fits if trace.kernels else [])
        if not same:
            raise Misuse(f"{run.path} traces dispatch {trace.dispatch} but has no time of it: add --kernel-trace.")
        found[same[0]] = trace.stalls
    return found


def _gpus(run: _Run) -> list[Row]:
    rows = (row for file in run.agents for row in _rows(file, ("Agent_Type", "Name", "Logical_Node_Id"), ()))
    return [row for row in rows if row["Agent_Type"] == "GPU"]


def _launch(index: int, seen: _Seen, gpus: list[Row], path: Path) -> Launch:
    row = seen.timed or seen.counted[0]
    grid, block = _extents(row)
    reading = {name: float(row[name]) for name in COLUMNS if row.get(name)}
    reading |= {BLOCKS: float(math.prod(grid)), THREADS: float(math.prod(block))}
    for counter in seen.counted:
        reading.setdefault(counter["Counter_Name"], float(counter["Counter_Value"]))
    values = (
        seen.stalls | derive_values(TABLE, reading)[0]
    )  # a thread trace is of one compute unit, a counter of all
    gpu = _gpu(row["Agent_Id"], gpus)
    return Launch(
        index=index,
        kernel=row["Kernel_Name"],
        device=gpu.get("Product_Name", ""),
        architecture=gpu.get("Name", ""),
        grid=grid,
        block=block,
        seconds=_seconds(row, path),
        values=values,
        absent=tuple(name for name in TABLE if name not in values),
    )


def _extents(row: Row) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Blocks and threads in each direction; a grid is given in threads, by the counters' file as one product."""
    if "Grid_Size_X" not in row:
        threads = int(row["Workgroup_Size"])
        return (math.ceil(int(row["Grid_Size"]) / threads), 1, 1), (threads, 1, 1)
    x, y, z = (int(row[f"Workgroup_Size_{axis}"]) for axis in "XYZ")
    columns, rows, planes = (int(row[f"Grid_Size_{axis}"]) for axis in "XYZ")
    return (math.ceil(columns / x), math.ceil(rows / y), math.ceil(planes / z)), (x, y, z)


def _seconds(row: Row, path: Path) -> float:
    if not row.get(_START) or not row.get(_END):
        raise Misuse(f"{path} has no times of `{row['Kernel_Name']}`: collect with {_COLLECT}.")
    nanoseconds = int(row[_END]) - int(row[_START])
    if nanoseconds <= 0:
        raise Misuse(f"{path} says that `{row['Kernel_Name']}` took {nanoseconds} ns: profile again.")
    return nanoseconds / 1e9


def _gpu(agent: str, gpus: list[Row]) -> Row:
    """The device of an `Agent_Id`; empty where several differ and the number does not say which."""
    if len({(gpu["Name"], gpu.get("Product_Name")) for gpu in gpus}) == 1:
        return gpus[0]
    number = _AGENT.fullmatch(agent)
    return next((gpu for gpu in gpus if number and gpu["Logical_Node_Id"] == number[1]), {})


def _rows(file: Path, texts: tuple[str, ...], numbers: tuple[str, ...]) -> Iterator[Row]:
    """The rows of a CSV file that has these columns, the last ones numbers."""
    with file.open(newline="", errors="replace") as lines:
        reader = csv.DictReader(lines)
        header = reader.fieldnames or ()
        lacks = [column for column in (*texts, *numbers) if column not in header]
        if lacks:
            raise Misuse(f"{file} lacks the columns {', '.join(lacks)}: it is no file of rocprofv3, or cut short.")
        checked = {*numbers, *(column for column in (*COLUMNS, _START, _END) if column in header)}
        try:
            for row in reader:
                _check(row, checked)
                yield row
        except (csv.Error, ValueError):
            raise Misuse(f"{file} is damaged at line {reader.line_num}: profile again.") from None


def _check(row: Row, columns: Iterable[str]) -> None:
    """Raises ValueError where a row has not the columns of the header, or one that is no number or no extent."""
    if None in row or None in row.values():
        raise ValueError(row)
    for column in columns:
        number = float(row[column]) if column == "Counter_Value" else int(row[column])
        if column.startswith("Workgroup_Size") and number < 1:
            raise ValueError(column)


def _hash(run: _Run) -> str:
    """The file's own hash; of several, the hash of their hashes."""
    hashes = [files.file_sha256(file) for file in (*run.counters, *run.kernels, *run.agents, *run.traces)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()

"""Read rocprofv3's files (AMD) into counters: counter collection, kernel trace, agent info and thread trace.

It was written from AMD's documentation and source code and has never run on an AMD machine.
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
from warpsmith.profiling.rocprof import thread_trace
from warpsmith.profiling.rocprof.metrics import BLOCKS, COLUMNS, TABLE, THREADS

COUNTERS, KERNELS, AGENTS = "counter_collection.csv", "kernel_trace.csv", "agent_info.csv"
"""Endings of the names of its CSV files."""

_COLLECT = "`rocprofv3 --kernel-trace --pmc COUNTER... --output-format csv -- PROGRAM`"
_PASS = re.compile(r"(pmc|pass)_\d+")
_AGENT = re.compile(r"(?:Agent )?(\d+)")
_START, _END = "Start_Timestamp", "End_Timestamp"

CsvRow = dict[str, str]
"""One row of a CSV file, by column."""

LaunchKey = tuple[int, str]
"""Key of a launch: number of the dispatch, and the kernel's name."""


class _LaunchData(NamedTuple):
    """Data of one launch from all files."""

    key: LaunchKey
    """Key of the launch."""
    counted: list[CsvRow]
    """Rows of the counters; empty if only a thread trace contains the launch."""
    timed: CsvRow | None
    """Row of the kernel trace."""
    stalls: dict[str, float]
    """Stalls from the thread trace, by metric name."""


class _RunFiles(NamedTuple):
    """Files of one run."""

    path: Path
    """Path that the user gave."""
    counters: tuple[Path, ...]
    """Counter files, one for each pass."""
    kernels: tuple[Path, ...]
    """Kernel traces, with times and extents."""
    agents: tuple[Path, ...]
    """Files that describe the devices."""
    traces: tuple[Path, ...]
    """Thread traces, one for each dispatch."""


def read_rocprof_report(path: Path, project_root: Path | None = None) -> Counters:
    """Read the launches of one run, merged over its passes (folders `pmc_1`, `pmc_2`... or `pass_1`...).

    Args:
        path: a folder that rocprofv3 wrote, or one `*_counter_collection.csv`, read with the files of its prefix.
        project_root: folder that the report's path is made relative to if it lies inside.

    Raises:
        MissingInput: there is no such file or folder, or it contains neither counters nor a thread trace.
        Misuse: a file lacks columns or times, has a value that
        is not a number, or the folder contains several runs.
    """
    run = _run(path)
    launches = _launch_data(run)
    if not launches:
        raise MissingInput(f"{path} contains no counters: collect them with {_COLLECT}.")
    gpus = _gpus(run)
    return Counters(
        tool="rocprofv3",
        report=report_path(path, project_root),
        sha256=_hash(run),
        launches=tuple(_launch(index, data, gpus, path) for index, data in enumerate(launches)),
    )


def _run(path: Path) -> _RunFiles:
    if not path.exists():
        raise MissingInput(f"{path} does not exist: give a folder that rocprofv3 wrote.")
    if path.is_file() and not path.name.endswith(COUNTERS):
        raise Misuse(f"{path} is not a *{COUNTERS} file: give that file, or the folder that rocprofv3 wrote.")
    if path.is_file():
        prefix = path.name.removesuffix(COUNTERS)
        siblings = (path.with_name(prefix + kind) for kind in (KERNELS, AGENTS))
        kernels, agents = (tuple(file for file in (name,) if file.is_file()) for name in siblings)
        return _RunFiles(path, (path,), kernels, agents, thread_trace.trace_files(path.parent))
    counters, kernels, agents = (tuple(sorted(path.rglob(f"*{kind}"))) for kind in (COUNTERS, KERNELS, AGENTS))
    _check_single_run(path, counters or kernels)
    return _RunFiles(path, counters, kernels, agents, thread_trace.trace_files(path))


def _check_single_run(path: Path, reports: tuple[Path, ...]) -> None:
    """Raise Misuse for several runs: every process writes one file to a folder, or one to each pass."""
    folders = [report.parent for report in reports]
    passes = [any(_PASS.fullmatch(part) for part in folder.relative_to(path).parts) for folder in folders]
    if len(set(folders)) < len(folders) or (len(folders) > 1 and not all(passes)):
        names = ", ".join(str(report.relative_to(path)) for report in reports)
        raise Misuse(f"{path} contains several runs or processes: name one of {names}.")


def _launch_data(run: _RunFiles) -> list[_LaunchData]:
    """Return the launches that were counted or traced, in the order of their dispatch."""
    counted, timed = _counted(run), _timed(run)
    stalls = _stalls(run, [*counted, *timed])
    return [
        _LaunchData(key, counted.get(key, []), timed.get(key), stalls.get(key, {}))
        for key in sorted({*counted, *stalls})
    ]


def _key(row: CsvRow) -> LaunchKey:
    return int(row["Dispatch_Id"]), row["Kernel_Name"]


def _counted(run: _RunFiles) -> dict[LaunchKey, list[CsvRow]]:
    texts = ("Agent_Id", "Kernel_Name", "Counter_Name")
    rows: dict[LaunchKey, list[CsvRow]] = {}
    for file in run.counters:
        for row in _rows(file, texts, ("Dispatch_Id", "Grid_Size", "Workgroup_Size", "Counter_Value")):
            rows.setdefault(_key(row), []).append(row)
    return rows


def _timed(run: _RunFiles) -> dict[LaunchKey, CsvRow]:
    extents = tuple(f"{extent}_Size_{axis}" for extent in ("Grid", "Workgroup") for axis in "XYZ")
    rows: dict[LaunchKey, CsvRow] = {}
    for file in run.kernels:
        for row in _rows(file, ("Agent_Id", "Kernel_Name"), ("Dispatch_Id", _START, _END, *extents)):
            rows.setdefault(_key(row), row)
    return rows


def _stalls(run: _RunFiles, launches: Iterable[LaunchKey]) -> dict[LaunchKey, dict[str, float]]:
    """Return the stalls of thread traces, for the dispatch that
    they name or, in a separate run, for the same kernel."""
    keys = tuple(dict.fromkeys(launches))
    stalls: dict[LaunchKey, dict[str, float]] = {}
    for trace in map(thread_trace.read_thread_trace, run.traces):
        fits = [key for key in keys if trace.fits(key[1])]
        same = [key for key in fits if key[0] == trace.dispatch] or (fits if trace.kernels else [])
        if not same:
            raise Misuse(
                f"{run.path} traces dispatch {trace.dispatch} but has no time for it: add --kernel-trace."
            )
        stalls[same[0]] = trace.stalls
    return stalls


def _gpus(run: _RunFiles) -> list[CsvRow]:
    rows = (row for file in run.agents for row in _rows(file, ("Agent_Type", "Name", "Logical_Node_Id"), ()))
    return [row for row in rows if row["Agent_Type"] == "GPU"]


def _launch(index: int, data: _LaunchData, gpus: list[CsvRow], path: Path) -> Launch:
    row = data.timed or data.counted[0]
    grid, block = _extents(row)
    reading = {name: float(row[name]) for name in COLUMNS if row.get(name)}
    reading |= {BLOCKS: float(math.prod(grid)), THREADS: float(math.prod(block))}
    for counter in data.counted:
        reading.setdefault(counter["Counter_Name"], float(counter["Counter_Value"]))
    values = data.stalls | derive_values(TABLE, reading)[0]  # stalls are from one compute unit, counters from all
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


def _extents(row: CsvRow) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return blocks and threads in each dimension; the files give a grid in threads, some only as a product."""
    if "Grid_Size_X" not in row:
        threads = int(row["Workgroup_Size"])
        return (math.ceil(int(row["Grid_Size"]) / threads), 1, 1), (threads, 1, 1)
    x, y, z = (int(row[f"Workgroup_Size_{axis}"]) for axis in "XYZ")
    columns, rows, planes = (int(row[f"Grid_Size_{axis}"]) for axis in "XYZ")
    return (math.ceil(columns / x), math.ceil(rows / y), math.ceil(planes / z)), (x, y, z)


def _seconds(row: CsvRow, path: Path) -> float:
    if not row.get(_START) or not row.get(_END):
        raise Misuse(f"{path} has no times for `{row['Kernel_Name']}`: collect with {_COLLECT}.")
    nanoseconds = int(row[_END]) - int(row[_START])
    if nanoseconds <= 0:
        raise Misuse(f"{path} says that `{row['Kernel_Name']}` took {nanoseconds} ns: profile again.")
    return nanoseconds / 1e9


def _gpu(agent: str, gpus: list[CsvRow]) -> CsvRow:
    """Return the device of an `Agent_Id`; empty if several differ and the number does not identify one."""
    if len({(gpu["Name"], gpu.get("Product_Name")) for gpu in gpus}) == 1:
        return gpus[0]
    number = _AGENT.fullmatch(agent)
    return next((gpu for gpu in gpus if number and gpu["Logical_Node_Id"] == number[1]), {})


def _rows(file: Path, texts: tuple[str, ...], numbers: tuple[str, ...]) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file after checking its columns, the last ones for numbers."""
    with file.open(newline="", errors="replace") as lines:
        reader = csv.DictReader(lines)
        header = reader.fieldnames or ()
        missing = [column for column in (*texts, *numbers) if column not in header]
        if missing:
            raise Misuse(
                f"{file} lacks the columns {', '.join(missing)}: it is not a rocprofv3 file, or is truncated."
            )
        checked = {*numbers, *(column for column in (*COLUMNS, _START, _END) if column in header)}
        try:
            for row in reader:
                _check(row, checked)
                yield row
        except (csv.Error, ValueError):
            raise Misuse(f"{file} is damaged at line {reader.line_num}: profile again.") from None


def _check(row: CsvRow, columns: Iterable[str]) -> None:
    """Raise ValueError for a row that does not match the header, or with an invalid number or extent."""
    if None in row or None in row.values():
        raise ValueError(row)
    for column in columns:
        number = float(row[column]) if column == "Counter_Value" else int(row[column])
        if column.startswith("Workgroup_Size") and number < 1:
            raise ValueError(column)


def _hash(run: _RunFiles) -> str:
    """Return the file's own hash; of several files, the hash of their hashes."""
    hashes = [files.file_sha256(file) for file in (*run.counters, *run.kernels, *run.agents, *run.traces)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()

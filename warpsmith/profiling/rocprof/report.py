"""Read AMD's profiles into counters: CSV files, JSON, database and thread trace of rocprofv3, and files of
rocprof-compute.

It was written from AMD's documentation, source code and published files, and has never run on an AMD machine.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from warpsmith import files
from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.formula import derive_values
from warpsmith.profiling.report_file import report_path
from warpsmith.profiling.rocprof import database, results_json, shares, thread_trace, unread, workload
from warpsmith.profiling.rocprof.metrics import BLOCKS, COLUMNS, TABLE, THREADS
from warpsmith.profiling.rocprof.tables import END, START, CsvRow, Tables, csv_rows
from warpsmith.profiling.rocprof.wave_states import state_files

COUNTERS, KERNELS, AGENTS = "counter_collection.csv", "kernel_trace.csv", "agent_info.csv"
"""Endings of the names of rocprofv3's CSV files."""

DATABASE = ".db"
"""Ending of the name of rocprofv3's database."""

RESULTS = "results.json"
"""Ending of the name of rocprofv3's JSON file."""

_PASS = re.compile(r"(pmc|pass)_\d+")
_AGENT = re.compile(r"(?:Agent )?(\d+)")

LaunchKey = tuple[int, str]
"""Key of a launch: number of the dispatch, and the kernel's name."""


class _LaunchData(NamedTuple):
    """Data of one launch from all files."""

    key: LaunchKey
    """Key of the launch."""
    counted: list[CsvRow]
    """Rows of the counters; empty if only a thread trace or a kernel trace contains the launch."""
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
    databases: tuple[Path, ...] = ()
    """Databases, which contain all of it but thread traces."""
    results: tuple[Path, ...] = ()
    """JSON files, one for each pass; each contains all of it but thread traces."""
    workloads: tuple[Path, ...] = ()
    """Counter files of rocprof-compute."""


def read_rocprof_report(path: Path, project_root: Path | None = None) -> Counters:
    """Read the launches of one run, merged over its passes (folders `pmc_1`, `pmc_2`... or `pass_1`...).

    Args:
        path: a folder that rocprofv3 or rocprof-compute wrote; one `*_counter_collection.csv` or
            `*_kernel_trace.csv`, read with the files of its prefix; a JSON file; a database; or a `pmc_perf.csv`.
        project_root: folder that the report's path is made relative to if it lies inside.

    Raises:
        MissingInput: there is no such file or folder, or it contains neither launches nor a thread trace.
        Misuse: a file lacks columns or times, has a value that
        is not a number, or the folder contains several runs.
    """
    run = _run(path)
    tables = _tables(run)
    launches = _launch_data(run, tables)
    if not launches:
        others = unread.describe_unread_files(path) if path.is_dir() else ""
        instead = f" ({others})" if others else ""
        raise MissingInput(f"{path} contains no times of kernels{instead}: collect them with {unread.ASK_FOR}.")
    gpus = [row for row in tables.agents if row["Agent_Type"] == "GPU"]
    return Counters(
        tool="rocprof-compute" if run.workloads else "rocprofv3",
        report=report_path(path, project_root),
        sha256=_hash(run),
        launches=tuple(_launch(index, data, gpus, path) for index, data in enumerate(launches)),
    )


def _run(path: Path) -> _RunFiles:
    if not path.exists():
        raise MissingInput(f"{path} does not exist: give a folder that rocprofv3 wrote.")
    if path.is_file():
        return _run_of_file(path)
    counters, kernels, agents = (tuple(sorted(path.rglob(f"*{kind}"))) for kind in (COUNTERS, KERNELS, AGENTS))
    databases = () if counters or kernels else tuple(sorted(path.rglob(f"*{DATABASE}")))
    results = () if counters or kernels or databases else tuple(sorted(path.rglob(f"*{RESULTS}")))
    others = counters or kernels or databases or results
    workloads = () if others else tuple(sorted(path.rglob(workload.COUNTERS)))
    _check_single_run(path, others or workloads)
    traces = thread_trace.trace_files(path)
    return _RunFiles(path, counters, kernels, agents, traces, databases, results, workloads)


def _run_of_file(path: Path) -> _RunFiles:
    """Return the file with those that belong to it."""
    if path.suffix == DATABASE:
        return _RunFiles(path, (), (), (), (), databases=(path,))
    if path.suffix == ".json":
        return _RunFiles(path, (), (), (), thread_trace.trace_files(path.parent), results=(path,))
    if path.name == workload.COUNTERS:
        return _RunFiles(path, (), (), (), (), workloads=(path,))
    kind = next((kind for kind in (COUNTERS, KERNELS) if path.name.endswith(kind)), None)
    if kind is None:
        kind = unread.describe_unread(path) or "is no file of AMD's profilers that is known here"
        raise Misuse(
            f"{path} {kind}: give a *{COUNTERS}, *{KERNELS}, *{RESULTS}, *{DATABASE} or {workload.COUNTERS} file,"
            f" or the folder that {unread.ASK_FOR} wrote."
        )
    prefix = path.name.removesuffix(kind)
    siblings = (path.with_name(prefix + other) for other in (COUNTERS, KERNELS, AGENTS))
    counters, kernels, agents = (tuple(file for file in (name,) if file.is_file()) for name in siblings)
    return _RunFiles(path, counters, kernels, agents, thread_trace.trace_files(path.parent))


def _check_single_run(path: Path, reports: tuple[Path, ...]) -> None:
    """Raise Misuse for several runs: every process writes one file to a folder, or one to each pass."""
    folders = [report.parent for report in reports]
    passes = [any(_PASS.fullmatch(part) for part in folder.relative_to(path).parts) for folder in folders]
    if len(set(folders)) < len(folders) or (len(folders) > 1 and not all(passes)):
        names = ", ".join(str(report.relative_to(path)) for report in reports)
        raise Misuse(f"{path} contains several runs or processes: name one of {names}.")


def _tables(run: _RunFiles) -> Tables:
    """Return the rows of all files of a run."""
    read = [
        *map(database.read_database, run.databases),
        *map(results_json.read_results_json, run.results),
        *map(workload.read_workload, run.workloads),
        Tables(_counter_rows(run), _kernel_rows(run), _agent_rows(run)),
    ]
    return Tables(*([row for rows in column for row in rows] for column in zip(*read, strict=True)))


def _launch_data(run: _RunFiles, tables: Tables) -> list[_LaunchData]:
    """Return the launches that were counted or traced, else those that were only timed, in order of dispatch."""
    counted: dict[LaunchKey, list[CsvRow]] = {}
    for row in tables.counters:
        counted.setdefault(_key(row), []).append(row)
    timed = {_key(row): row for row in reversed(tables.kernels)}
    stalls = _stalls(run, [*counted, *timed])
    return [
        _LaunchData(key, counted.get(key, []), timed.get(key), stalls.get(key, {}))
        for key in sorted({*counted, *stalls} or timed)
    ]


def _key(row: CsvRow) -> LaunchKey:
    return int(row["Dispatch_Id"]), row["Kernel_Name"]


def _counter_rows(run: _RunFiles) -> list[CsvRow]:
    texts = ("Agent_Id", "Kernel_Name", "Counter_Name")
    numbers = ("Dispatch_Id", "Grid_Size", "Workgroup_Size", "Counter_Value")
    return [row for file in run.counters for row in csv_rows(file, texts, numbers)]


def _kernel_rows(run: _RunFiles) -> list[CsvRow]:
    extents = tuple(f"{extent}_Size_{axis}" for extent in ("Grid", "Workgroup") for axis in "XYZ")
    numbers = ("Dispatch_Id", START, END, *extents)
    return [row for file in run.kernels for row in csv_rows(file, ("Agent_Id", "Kernel_Name"), numbers)]


def _agent_rows(run: _RunFiles) -> list[CsvRow]:
    columns = ("Agent_Type", "Name", "Logical_Node_Id")
    return [row for file in run.agents for row in csv_rows(file, columns, ())]


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


def _launch(index: int, data: _LaunchData, gpus: list[CsvRow], path: Path) -> Launch:
    row = data.timed or data.counted[0]
    grid, block = _extents(row)
    seconds, gpu = _seconds(row, path), _gpu(row["Agent_Id"], gpus)
    reading = {name: float(row[name]) for name in COLUMNS if row.get(name)}
    reading |= {BLOCKS: float(math.prod(grid)), THREADS: float(math.prod(block))}
    for counter in data.counted:
        reading.setdefault(counter["Counter_Name"], float(counter["Counter_Value"]))
    values = data.stalls | derive_values(TABLE, reading)[0]  # stalls are from one compute unit, counters from all
    device = {name: float(gpu[name]) for name in shares.MACHINE if gpu.get(name)}
    values |= shares.share_values(reading | values | device | {shares.SECONDS: seconds})
    return Launch(
        index=index,
        kernel=row["Kernel_Name"],
        device=gpu.get("Product_Name", ""),
        architecture=gpu.get("Name", ""),
        grid=grid,
        block=block,
        seconds=seconds,
        values=values,
        absent=tuple(name for name in (*TABLE, *shares.SHARES) if name not in values),
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
    if not row.get(START) or not row.get(END):
        raise Misuse(f"{path} has no times for `{row['Kernel_Name']}`: collect with {unread.ASK_FOR}.")
    nanoseconds = int(row[END]) - int(row[START])
    if nanoseconds <= 0:
        raise Misuse(f"{path} says that `{row['Kernel_Name']}` took {nanoseconds} ns: profile again.")
    return nanoseconds / 1e9


def _gpu(agent: str, gpus: list[CsvRow]) -> CsvRow:
    """Return the device of an `Agent_Id`; empty if several differ and the number does not identify one."""
    if len({(gpu["Name"], gpu.get("Product_Name")) for gpu in gpus}) == 1:
        return gpus[0]
    number = _AGENT.fullmatch(agent)
    return next((gpu for gpu in gpus if number and gpu["Logical_Node_Id"] == number[1]), {})


def _hash(run: _RunFiles) -> str:
    """Return the file's own hash; of several files, the hash of their hashes."""
    states = (file for trace in run.traces for file in state_files(thread_trace.wave_state_folder(trace)))
    hashes = [
        files.file_sha256(file)
        for file in (
            *run.counters,
            *run.kernels,
            *run.agents,
            *run.traces,
            *run.databases,
            *run.results,
            *run.workloads,
            *states,
        )
    ]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()

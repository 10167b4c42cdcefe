"""Read the folder of a `rocprof-compute profile` run: `pmc_perf.csv`, and the device in `sysinfo.csv`.

One row of `pmc_perf.csv` is one launch, with every counter in a column. Columns such as `TCC_HIT[3]` are channels
of the L2 and are left out: their sum has a column of its own.
"""

from __future__ import annotations

import csv
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.profiling.rocprof.tables import END, START, CsvRow, Tables

COUNTERS, SYSTEM = "pmc_perf.csv", "sysinfo.csv"
"""Names of its files."""

_NAME = "Kernel_Name"
_LAUNCH = {
    "Dispatch_ID": "Dispatch_Id", "GPU_ID": "Agent_Id", "Grid_Size": "Grid_Size",
    "Workgroup_Size": "Workgroup_Size", "LDS_Per_Workgroup": "LDS_Block_Size",
    "Scratch_Per_Workitem": "Scratch_Size", "Arch_VGPR": "VGPR_Count",
    "Accum_VGPR": "Accum_VGPR_Count", _NAME: _NAME, START: START, END: END,
}  # fmt: skip
_DEVICE = {"gpu_arch": "Name", "gpu_model": "Product_Name", "cu_per_gpu": "Cu_Count", "num_xcd": "Num_Xcc",
           "hbm_bw": "Hbm_Bandwidth", "max_sclk": "Max_Engine_Clk_Fcompute"}  # fmt: skip


def read_workload(path: Path) -> Tables:
    """Read the launches of a `pmc_perf.csv` and the device from the `sysinfo.csv` next to it.

    Raises:
        Misuse: a column is missing, or a launch has a value that is not a number.
    """
    counters: list[CsvRow] = []
    for line, row in enumerate(_csv(path, tuple(_LAUNCH)), 2):
        try:
            launch = _launch(row)
            counters += [launch | counter for counter in _counters(row)]
        except ValueError:
            raise Misuse(f"{path} is damaged at line {line}: profile again.") from None
    system = path.with_name(SYSTEM)
    agents = _csv(system, ("gpu_arch",)) if system.is_file() else []
    return Tables(counters, [], [_device(row) for row in agents])


def _csv(path: Path, columns: tuple[str, ...]) -> list[CsvRow]:
    with path.open(newline="", errors="replace") as lines:
        reader = csv.DictReader(lines)
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise Misuse(f"{path} lacks the columns {', '.join(missing)}: rocprof-compute did not write it.")
        return list(reader)


def _launch(row: CsvRow) -> CsvRow:
    """Return the columns of a launch; raise ValueError if the row does not match the header or a number is bad."""
    if None in row or None in row.values():
        raise ValueError(row)
    numbers = {title: str(_integer(row[name])) for name, title in _LAUNCH.items() if title != _NAME}
    if int(numbers["Workgroup_Size"]) < 1:
        raise ValueError(row)
    return numbers | {_NAME: row[_NAME]}


def _counters(row: CsvRow) -> list[CsvRow]:
    """Return one row for each counter; an empty cell is a counter that was not read."""
    return [
        {"Counter_Name": name, "Counter_Value": str(float(value))}
        for name, value in row.items()
        if value and name not in _LAUNCH and name.partition("_")[0].isupper() and "[" not in name
    ]


def _integer(text: str) -> int:
    """Return a whole number, also one that was written as `16384.0`."""
    return int(text) if text.isdigit() else int(float(text))


def _device(row: CsvRow) -> CsvRow:
    device = {title: row[name] for name, title in _DEVICE.items() if row.get(name)}
    return device | {"Agent_Type": "GPU", "Logical_Node_Id": ""}

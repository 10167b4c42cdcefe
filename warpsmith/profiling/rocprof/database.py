"""Read rocprofv3's database (`*_results.db`, the rocpd format in SQLite) into the rows of its CSV files.

The columns are those of the views `kernels` and `counters_collection` and of the table `rocpd_info_agent` in
rocprofiler-sdk's schema (source/share/rocprofiler-sdk-rocpd). The database adds up a counter over its instances.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from warpsmith.errors import Misuse
from warpsmith.profiling.rocprof.tables import END, START, CsvRow, Tables

_LAUNCH = {"Dispatch_Id": "dispatch_id", "Agent_Id": "agent_log_index", START: "start", END: "end"}
_REGISTERS = {"VGPR_Count": "vgpr_count", "Accum_VGPR_Count": "accum_vgpr_count"}
_COUNTER = {
    **_LAUNCH, **_REGISTERS,
    "Kernel_Name": "kernel_name", "Counter_Name": "counter_name", "Counter_Value": "value",
    "Grid_Size": "grid_size", "Workgroup_Size": "workgroup_size", "LDS_Block_Size": "lds_block_size",
    "Scratch_Size": "scratch_size",
}  # fmt: skip
_KERNEL = {
    **_LAUNCH, "Kernel_Name": "name", "LDS_Block_Size": "lds_size", "Scratch_Size": "scratch_size",
    **{f"Grid_Size_{axis.upper()}": f"grid_{axis}" for axis in "xyz"},
    **{f"Workgroup_Size_{axis.upper()}": f"workgroup_{axis}" for axis in "xyz"},
}  # fmt: skip
_AGENT = {
    "Agent_Type": "type",
    "Name": "name",
    "Product_Name": "product_name",
    "Logical_Node_Id": "logical_index",
}


def read_database(path: Path) -> Tables:
    """Read all launches, their counters and the devices.

    Raises:
        Misuse: the file is no such database, is damaged, or was written with another schema.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            return Tables(
                list(_rows(database, "counters_collection", _COUNTER)),
                list(_rows(database, "kernels", {**_KERNEL, **_present(database, "kernels", _REGISTERS)})),
                [_agent(row) for row in database.execute("SELECT * FROM rocpd_info_agent")],
            )
    except (sqlite3.Error, IndexError, ValueError) as error:
        raise Misuse(f"{path} is not a database that rocprofv3 wrote, or is damaged ({error}).") from None


def _rows(database: sqlite3.Connection, view: str, columns: Mapping[str, str]) -> Iterator[CsvRow]:
    """Yield the rows of a view, without empty registers; raise ValueError for another column without a value."""
    for row in database.execute(f"SELECT * FROM {view}"):
        if any(row[name] is None for title, name in columns.items() if title not in _REGISTERS):
            raise ValueError(f"a row of {view} has an empty column")
        yield {title: str(row[name]) for title, name in columns.items() if row[name] is not None}


def _present(database: sqlite3.Connection, view: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return those columns that the view has: older schemas have no registers there."""
    names = {row[1] for row in database.execute(f"PRAGMA table_info({view})")}
    return {title: name for title, name in columns.items() if name in names}


def _agent(row: sqlite3.Row) -> CsvRow:
    """Return a device with the properties in its JSON column, such as `cu_count`."""
    properties: dict[str, Any] = json.loads(row["extdata"] or "{}")
    more = {"_".join(map(str.capitalize, name.split("_"))): str(value) for name, value in properties.items()}
    return more | {title: str(row[name]) for title, name in _AGENT.items() if row[name] is not None}

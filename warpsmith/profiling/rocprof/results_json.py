"""Read rocprofv3's JSON (`*_results.json`) into the rows of its CSV files.

The fields are those of rocprofiler-sdk's serialization (include/rocprofiler-sdk/cxx/serialization/save.hpp,
lib/output/generateJSON.cpp). As in the CSV, a counter is added up over its instances, and LDS is rounded up.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warpsmith.errors import Misuse
from warpsmith.profiling.rocprof.tables import END, START, CsvRow, Tables

_TOOL = "rocprofiler-sdk-tool"
"""Key of the processes."""

_TYPES = {1: "CPU", 2: "GPU"}
"""Kinds of agents, as rocprofiler-sdk numbers them."""

_LDS_BYTES = 512
"""LDS is handed out in pieces of this size."""


def read_results_json(path: Path) -> Tables:
    """Read all launches, their counters and the devices.

    Raises:
        Misuse: the file is no such JSON, is damaged, or is of several processes.
    """
    try:
        processes = json.loads(path.read_bytes())[_TOOL]
        if isinstance(processes, list) and len(processes) != 1:
            raise Misuse(
                f"{path} is of {len(processes)} processes: profile one, with `--output-file NAME_%pid%`, and give"
                " its file."
            )
        process = _Process(processes[0] if isinstance(processes, list) else processes)
        return Tables(list(process.counter_rows()), list(process.kernel_rows()), list(process.agent_rows()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise Misuse(f"{path} is not a JSON file that rocprofv3 wrote, or is damaged ({reason}).") from None


class _Process:
    """One process of a file."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._agents: list[dict[str, Any]] = data["agents"]
        self._nodes = {agent["id"]["handle"]: agent["logical_node_id"] for agent in self._agents}
        self._kernels = {kernel["kernel_id"]: kernel for kernel in data["kernel_symbols"]}
        self._counters = {counter["id"]["handle"]: counter["name"] for counter in data["counters"]}
        self._counted: list[dict[str, Any]] = data["callback_records"]["counter_collection"]
        self._dispatched: list[dict[str, Any]] = data["buffer_records"]["kernel_dispatch"]

    def agent_rows(self) -> Iterator[CsvRow]:
        """Yield a row for each device."""
        for agent in self._agents:
            numbers = {name: value for name, value in agent.items() if type(value) in (int, float, str)}
            row = {"_".join(map(str.capitalize, name.split("_"))): str(value) for name, value in numbers.items()}
            yield row | {"Agent_Type": _TYPES.get(agent["type"], ""), "Name": str(agent["name"])}

    def kernel_rows(self) -> Iterator[CsvRow]:
        """Yield a row for each launch."""
        for record in self._dispatched:
            info = record["dispatch_info"]
            sizes = {"Grid": info["grid_size"], "Workgroup": info["workgroup_size"]}
            extents = {
                f"{name}_Size_{axis}": _whole(size[axis.lower()], least=1)
                for name, size in sizes.items()
                for axis in "XYZ"
            }
            yield self._launch_row(record, info) | extents

    def counter_rows(self) -> Iterator[CsvRow]:
        """Yield a row for each counter of each launch."""
        for record in self._counted:
            dispatch = record["dispatch_data"]
            info = dispatch["dispatch_info"]
            row = self._launch_row(dispatch, info)
            for name, size in {"Grid_Size": "grid_size", "Workgroup_Size": "workgroup_size"}.items():
                row[name] = str(_product(info[size]))
            values: defaultdict[str, float] = defaultdict(float)
            for value in record["records"]:
                values[self._counters[value["counter_id"]["handle"]]] += float(value["value"])
            yield from (
                {**row, "Counter_Name": name, "Counter_Value": str(value)} for name, value in values.items()
            )

    def _launch_row(self, times: Mapping[str, Any], info: Mapping[str, Any]) -> CsvRow:
        """Return what launches and counters have in common."""
        kernel = self._kernels[info["kernel_id"]]
        return {
            "Dispatch_Id": _whole(info["dispatch_id"]),
            "Agent_Id": str(self._nodes[info["agent_id"]["handle"]]),
            "Kernel_Name": str(kernel["formatted_kernel_name"]),
            START: _whole(times["start_timestamp"]),
            END: _whole(times["end_timestamp"]),
            "LDS_Block_Size": str(-(-int(kernel["group_segment_size"]) // _LDS_BYTES) * _LDS_BYTES),
            "Scratch_Size": _whole(info["private_segment_size"]),
            "VGPR_Count": _whole(kernel["arch_vgpr_count"]),
            "Accum_VGPR_Count": _whole(kernel["accum_vgpr_count"]),
        }


def _whole(value: object, least: int = 0) -> str:
    """Return an integer as text; raises ValueError for other values, and for smaller ones."""
    if type(value) is not int or value < least:
        raise ValueError(f"{value!r} is no number of this kind")
    return str(value)


def _product(size: Mapping[str, int]) -> int:
    x, y, z = (int(_whole(size[axis], least=1)) for axis in "xyz")
    return x * y * z

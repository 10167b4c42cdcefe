"""The reader of rocprofv3's JSON, on the hand-written CSV samples in the structure of AMD's serialization."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.rocprof import report

PASSES = Path(__file__).parents[2] / "data" / "rocprof" / "passes"
AGENT_TYPES = {"CPU": 1, "GPU": 2}
HANDLE = 7000
"""Handles of agents are no numbers of nodes."""


def rows(name: str) -> list[dict[str, str]]:
    with (PASSES / "pmc_1" / f"218_{name}.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def sizes(values: list[int]) -> dict[str, int]:
    return dict(zip("xyz", values, strict=True))


def dispatch_info(row: dict[str, str], grid: list[int], workgroup: list[int]) -> dict[str, Any]:
    node = int(row["Agent_Id"].removeprefix("Agent "))
    return {
        "agent_id": {"handle": HANDLE + node}, "queue_id": {"handle": 1}, "kernel_id": int(row["Kernel_Id"]),
        "dispatch_id": int(row["Dispatch_Id"]), "private_segment_size": int(row["Scratch_Size"]),
        "group_segment_size": int(row["LDS_Block_Size"]), "workgroup_size": sizes(workgroup),
        "grid_size": sizes(grid),
    }  # fmt: skip


def agent(row: dict[str, str]) -> dict[str, Any]:
    numbers = {name.lower(): int(value) for name, value in row.items() if value.isdigit()}
    texts = {name: row[name.title()] for name in ("name", "product_name", "vendor_name")}
    return {
        **numbers,
        **texts,
        "type": AGENT_TYPES[row["Agent_Type"]],
        "id": {"handle": HANDLE + int(row["Node_Id"])},
    }


def make_process() -> dict[str, Any]:
    """The first pass of the sample as one process of the JSON."""
    kernels, counted = rows("kernel_trace"), rows("counter_collection")
    names = sorted({row["Counter_Name"] for row in counted})
    symbols = {
        int(row["Kernel_Id"]): {
            "kernel_id": int(row["Kernel_Id"]), "kernel_name": "_Z", "formatted_kernel_name": row["Kernel_Name"],
            "group_segment_size": int(row["LDS_Block_Size"]) - 1, "arch_vgpr_count": int(row["VGPR_Count"]),
            "accum_vgpr_count": int(row["Accum_VGPR_Count"]),
        }
        for row in kernels
    }  # fmt: skip
    extents = {
        row["Dispatch_Id"]: [[int(row[f"{kind}_Size_{axis}"]) for axis in "XYZ"] for kind in ("Grid", "Workgroup")]
        for row in kernels
    }
    records: dict[str, dict[str, Any]] = {}
    for row in counted:
        times = {f"{end}_timestamp": int(row[f"{end.title()}_Timestamp"]) for end in ("start", "end")}
        info = dispatch_info(row, *extents[row["Dispatch_Id"]])
        record = records.setdefault(
            row["Dispatch_Id"], {"dispatch_data": {**times, "dispatch_info": info}, "records": []}
        )
        half = float(row["Counter_Value"]) / 2  # of each of two instances
        number = {"handle": names.index(row["Counter_Name"])}
        record["records"] += [{"counter_id": number, "value": half}] * 2
    return {
        "metadata": {"pid": 218},
        "agents": [agent(row) for row in rows("agent_info")],
        "counters": [{"id": {"handle": index}, "name": name} for index, name in enumerate(names)],
        "kernel_symbols": list(symbols.values()),
        "callback_records": {"counter_collection": list(records.values())},
        "buffer_records": {
            "kernel_dispatch": [
                {
                    "start_timestamp": int(row["Start_Timestamp"]), "end_timestamp": int(row["End_Timestamp"]),
                    "dispatch_info": dispatch_info(row, *extents[row["Dispatch_Id"]]),
                }
                for row in kernels
            ],
        },
    }  # fmt: skip


def write(path: Path, *processes: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"rocprofiler-sdk-tool": list(processes)}))
    return path


def test_it_says_the_same_as_the_csv_of_the_run(tmp_path):
    path = write(tmp_path / "218_results.json", make_process())
    expected = report.read_rocprof_report(PASSES / "pmc_1")
    for given in (path, tmp_path):
        counters = report.read_rocprof_report(given)
        assert counters.launches == expected.launches
        assert len(counters.launches) == 3
        assert counters.launches[0].architecture == "gfx942"
    other = make_process()
    other["kernel_symbols"][0]["arch_vgpr_count"] += 1
    before = report.read_rocprof_report(path).sha256
    assert report.read_rocprof_report(write(path, other)).sha256 != before


def test_passes_are_merged_and_files_of_one_folder_are_runs(tmp_path):
    whole = report.read_rocprof_report(PASSES / "pmc_1").launches[1].values
    for number in (1, 2):
        process = make_process()
        for record in process["callback_records"]["counter_collection"]:
            record["records"] = record["records"][number - 1 :: 2]
        folder = tmp_path / f"pmc_{number}"
        folder.mkdir()
        write(folder / f"{number}_results.json", process)
    assert set(report.read_rocprof_report(tmp_path).launches[1].values) == set(whole)
    write(tmp_path / "pmc_1" / "3_results.json", make_process())
    with pytest.raises(Misuse, match="several runs or processes"):
        report.read_rocprof_report(tmp_path)


def test_without_counters_there_are_times(tmp_path):
    process = make_process()
    process["callback_records"]["counter_collection"] = []
    launches = report.read_rocprof_report(write(tmp_path / "results.json", process)).launches
    assert [launch.seconds for launch in launches] == pytest.approx([50e-6, 400e-6, 52e-6])
    assert "instructions" in launches[0].absent


def test_csv_beside_it_comes_first(tmp_path):
    write(tmp_path / "218_results.json", make_process())
    (tmp_path / "218_kernel_trace.csv").write_bytes((PASSES / "pmc_1" / "218_kernel_trace.csv").read_bytes())
    assert "instructions" in report.read_rocprof_report(tmp_path).launches[0].absent


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"rocprofiler-sdk-tool": [3]}', '{"rocprofiler-sdk-tool": [{}]}', "[" * 100_000],
)
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(Misuse, match="not a JSON file that rocprofv3 wrote"):
        report.read_rocprof_report(tmp_path / "results.json")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("start_timestamp", "soon"),
        ("start_timestamp", -1),
        ("end_timestamp", 1.5),
        ("dispatch_info", {}),
        ("grid_size", {"x": 0, "y": 1, "z": 1}),
        ("kernel_id", 99),
        ("agent_id", {"handle": 1}),
    ],
)
def test_a_damaged_launch_is_refused(tmp_path, place, value):
    process = make_process()
    launch = process["buffer_records"]["kernel_dispatch"][1]
    (launch if place in launch else launch["dispatch_info"])[place] = value
    with pytest.raises(Misuse, match="is damaged"):
        report.read_rocprof_report(write(tmp_path / "results.json", process))


def test_several_processes_are_told_apart(tmp_path):
    with pytest.raises(Misuse, match="of 2 processes"):
        report.read_rocprof_report(write(tmp_path / "results.json", make_process(), make_process()))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("7_hip_api_trace.csv", "no times of kernels"),
        ("7_memory_copy_trace.csv", "no times of kernels"),
        ("7_marker_api_trace.csv", "no times of kernels"),
        ("7_kernel_stats.csv", "sums over launches"),
        ("7_agent_info.csv", "devices alone"),
        ("7_results.pftrace", "Perfetto"),
        ("7_results.otf2", "OTF2"),
        ("1_shader_engine_0_2.att", "raw thread trace"),
        ("7_pc_sampling_host_trap.csv", "samples"),
        ("results.csv", "older `rocprof`"),
        ("notes.txt", "no file of AMD's profilers"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_it_is_and_which_command_writes_others(tmp_path, name, words):
    (tmp_path / name).write_bytes((PASSES / "pmc_1" / "218_agent_info.csv").read_bytes())
    with pytest.raises(Misuse, match=f"{words}.*--output-format csv"):
        report.read_rocprof_report(tmp_path / name)
    with pytest.raises(MissingInput, match=r"no times of kernels.*--output-format csv") as error:
        report.read_rocprof_report(tmp_path)
    assert (name in str(error.value)) == (name != "notes.txt")

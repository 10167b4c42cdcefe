"""Shares of waits and stalls in the wave states of a thread trace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from warpsmith.errors import Misuse
from warpsmith.profiling.rocprof.report import read_rocprof_report
from warpsmith.profiling.rocprof.summary import summarize_report
from warpsmith.profiling.rocprof.wave_states import read_wave_states

TRACE = Path(__file__).parents[2] / "data" / "rocprof" / "trace"
FOLDER = "ui_output_agent_4_dispatch_2"


def write_state(folder: Path, number: int, times: list[int], waves: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"wstates{number}.json").write_text(json.dumps({"name": "w", "time": times, "state": waves}))


def test_cycles_are_waves_times_their_time(tmp_path: Path):
    write_state(tmp_path, 0, [0, 1000], [9, 0])  # empty slots are no waves
    write_state(tmp_path, 2, [0, 10, 20], [2, 1, 0])  # 20 + 10 cycles
    write_state(tmp_path, 3, [10, 40], [2, 0])  # 60
    write_state(tmp_path, 4, [40, 50], [1, 0])  # 10; no wave was idle
    assert read_wave_states(tmp_path) == {"traced_wait_pct": 60, "traced_stall_pct": 10}


def test_without_files_or_waves_there_is_no_share(tmp_path: Path):
    assert read_wave_states(tmp_path) == {}
    write_state(tmp_path, 3, [10], [0])
    assert read_wave_states(tmp_path) == {}


@pytest.mark.parametrize(
    "content", ["", "{}", '{"time": [1, 2], "state": [1]}', '{"time": [1, "x"], "state": [1, 0]}']
)
def test_a_damaged_file(tmp_path: Path, content: str):
    (tmp_path / "wstates3.json").write_text(content)
    with pytest.raises(Misuse, match=r"wstates3.json is not the wave states"):
        read_wave_states(tmp_path)


@pytest.mark.parametrize("stats", [True, False], ids=["csv", "json"])
def test_a_launch_has_the_states_of_its_trace(tmp_path: Path, stats: bool):
    shutil.copytree(TRACE, tmp_path, dirs_exist_ok=True)
    if not stats:
        (tmp_path / f"stats_{FOLDER}.csv").unlink()
    before = read_rocprof_report(tmp_path).sha256
    write_state(tmp_path / FOLDER, 2, [0, 10], [4, 0])
    write_state(tmp_path / FOLDER, 3, [0, 10], [6, 0])
    report = read_rocprof_report(tmp_path)
    (launch,) = report.launches
    assert report.sha256 != before
    assert (launch.values["traced_wait_pct"], launch.values["traced_stall_pct"]) == (60, 0)
    assert "barrier_stall_pct" in launch.values


def test_a_trace_without_clear_causes_still_says_that_waves_wait(tmp_path: Path):
    shutil.copytree(TRACE, tmp_path, dirs_exist_ok=True)
    for file in (tmp_path / f"stats_{FOLDER}.csv", tmp_path / FOLDER / "code.json"):
        file.write_text(file.read_text().replace("s_waitcnt vmcnt(0)", "s_waitcnt 0"))
    write_state(tmp_path / FOLDER, 2, [0, 10], [4, 0])
    write_state(tmp_path / FOLDER, 3, [0, 10], [6, 0])
    (kernel,) = summarize_report(read_rocprof_report(tmp_path)).kernels
    assert kernel.bottleneck == "latency: traced waves wait"
    assert "latency: vector memory" in {item.bottleneck for item in kernel.unknown}

"""Device calls: budgets hold, results come back, and `warpsmith` is a command in the plugin's arms alone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from uplift_samples import MakeCell

from warpsmith.errors import MissingInput
from warpsmith.uplift import device, layout, submission
from warpsmith.uplift.models import Budget


def request_run(folder: Path, script: str) -> str:
    """The result of a request."""
    (folder / device.REQUEST).write_text(script)
    (folder / device.READY).touch()
    device.run_request(folder)
    assert not (folder / device.READY).exists()
    return sorted((folder / "device").glob("result-*.txt"))[-1].read_text()


def test_a_request_runs_in_its_folder(make_cell: MakeCell):
    folder = make_cell()
    text = request_run(folder, "pwd; cat cell.json; echo kept > device/out/a.txt; exit 3")
    assert str(folder) in text
    assert '"arm": "bare"' in text
    assert "exit status 3" in text
    assert "2 device calls left" in text
    assert (folder / "device/out/a.txt").read_text() == "kept\n"
    (call,) = device.read_calls(folder)
    assert call.status == 3


def test_a_request_that_hangs_is_killed_with_all_that_it_started(make_cell: MakeCell):
    folder = make_cell(budget=Budget(call_seconds=0.5))
    text = request_run(folder, "echo before; (sleep 2; touch late) & sleep 60")
    assert "before" in text
    assert f"exit status {device.KILLED}" in text
    time.sleep(2)
    assert not (folder / "late").exists()


def test_no_call_beyond_the_budget_runs(make_cell: MakeCell):
    folder = make_cell(budget=Budget(calls=1))
    request_run(folder, "echo one >> ran")
    assert "refused" in request_run(folder, "echo two >> ran")
    assert (folder / "ran").read_text() == "one\n"
    assert len(device.read_calls(folder)) == 1


def test_an_agent_that_removes_its_log_gets_no_further_call(make_cell: MakeCell):
    folder = make_cell(budget=Budget(calls=1))
    request_run(folder, "echo one >> ran")
    (folder / device.CALLS).unlink()
    assert "refused" in request_run(folder, "echo two >> ran")
    assert (folder / "ran").read_text() == "one\n"


def test_a_new_cell_in_the_same_place_has_its_calls(make_cell: MakeCell):
    folder = make_cell(budget=Budget(calls=1))
    request_run(folder, "true")
    cell = submission.read_cell(folder)
    shutil.rmtree(folder)
    layout.lay_out_cell(cell, folder)
    assert device.read_calls(folder) == []


@pytest.mark.parametrize(("arm", "status"), [("bare", 1), ("knowledge", 1), ("plugin", 0)])
def test_only_the_plugin_has_the_command(make_cell: MakeCell, arm: str, status: int, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    text = request_run(make_cell(arm), "command -v warpsmith")
    assert f"exit status {status}" in text


def test_long_output_keeps_its_ends(make_cell: MakeCell):
    text = request_run(make_cell(), "echo first; seq 100000; echo last")
    assert text.startswith("first")
    assert "last" in text
    assert "characters are left out" in text
    assert len(text) < 25_000


def test_ready_without_a_request_is_refused(make_cell: MakeCell):
    folder = make_cell()
    (folder / device.READY).touch()
    assert device.pending_cells([folder]) == [folder]
    with pytest.raises(MissingInput, match=r"request\.sh"):
        device.run_request(folder)

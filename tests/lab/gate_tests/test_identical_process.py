"""Processes that judge at once, each on its device: what they report, and one that fails; nothing is timed."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from warpsmith.core.text import NoticeLine
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate_tests.identical_process import judge_on_devices
from warpsmith.lab.machine import hardware

FAKE = '''
"""Stands in for the judgements of the process that imports it: those on GPU-b fail at the second one."""
import os
import warpsmith.lab.gate_tests.identical_judgements as module
from warpsmith.core.hardware import Machine
from warpsmith.core.text import NoticeLine
from warpsmith.errors import MachineFailed

def judge(project, target, device, runs, tell):
    tell("starts")
    tell(NoticeLine("waits"))
    machine = Machine(id="h200-0", target=target.id, device="H200", uuid=device, processor="a", libraries={})
    for run in range(runs):
        if device == "GPU-b" and run == 1:
            raise MachineFailed("it fell off the bus")
        if device == "GPU-c":
            os.abort()
        yield module.DeviceJudgement(machine=machine, floor=0.002, how="y = x", outcome="none", gain=run / 1000)

module.judge_on_device = judge
'''


@pytest.fixture(autouse=True)
def fake_judgements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process of this test's imports the stand-in first."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, sys.path)]))


def test_judgements_of_all_devices_arrive_although_two_fail(workshop):
    target = hardware.read_target_page(workshop.project, "h200").target
    lines: list[str] = []
    shares = {"GPU-a": 3, "GPU-b": 3, "GPU-c": 1}
    judgements = judge_on_devices(workshop.project, target, shares, lines.append)
    made = [next(judgements) for _ in range(4)]
    with pytest.raises(MachineFailed) as failure:
        next(judgements)
    assert Counter(each.machine.uuid for each in made) == {"GPU-a": 3, "GPU-b": 1}
    assert str(failure.value).startswith("3 A/A judgements were not made: GPU-b: it fell off the bus; GPU-c: ")
    assert "GPU-a: starts" in lines
    assert [line for line in lines if isinstance(line, NoticeLine) and "GPU-a" in line] == ["GPU-a: waits"]


def test_all_judgements(workshop):
    target = hardware.read_target_page(workshop.project, "h200").target
    made = list(judge_on_devices(workshop.project, target, {"GPU-a": 2, "GPU-d": 1}))
    assert sorted((each.machine.uuid, each.gain) for each in made) == [
        ("GPU-a", 0.0),
        ("GPU-a", 0.001),
        ("GPU-d", 0.0),
    ]

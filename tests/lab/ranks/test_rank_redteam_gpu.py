"""The red team on GPUs, where this machine has two of one kind: symmetric memory, NCCL, streams."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest
import torch

from warpsmith.core.evaluation import Status
from warpsmith.core.hardware import Target
from warpsmith.lab.gate_tests.models import parse_header
from warpsmith.lab.machine import hardware
from warpsmith.lab.ranks import judge, timing
from warpsmith.lab.ranks.rank_host import open_rank_host
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import SHIPPED, find_project

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs")]

_spec = importlib.util.spec_from_file_location("ranks_redteam", SHIPPED / "benchmarks" / "ranks_redteam.py")
assert _spec
assert _spec.loader
ranks_redteam = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ranks_redteam)

CASES = sorted(ranks_redteam.CASES.glob("*.py"))


@pytest.fixture(scope="module")
def target() -> Target:
    return hardware.require_local_target(find_project())


@pytest.fixture(scope="module")
def gpus(target: Target) -> Iterator[WorkerHost]:
    with open_rank_host(target, 2) as host:
        yield host


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_attacks_on_gpus_are_caught_and_controls_accepted(path, gpus, target, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # an attack leaves a file beside the ranks' folder
    monkeypatch.setattr(timing, "TIMING_SECONDS", 0.1)
    header = parse_header(path.read_text())
    hangs, timed = Status.TIMEOUT in header.status, "timing" in header.caught
    request = judge.RankRequest(
        find_project(), ranks_redteam.small_definition(2), path, target=target.id, timed=timed,
        limits=Limits(seconds=3 if hangs else 30),
    )  # fmt: skip
    row = ranks_redteam.describe_case(path.stem, header, judge.judge_ranks(request, gpus), 0)
    assert row["right"], row

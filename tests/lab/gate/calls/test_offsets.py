"""Offsets: sizes beyond the reach of 32 bits, and when they are judged."""

from __future__ import annotations

from math import prod

import pytest
import torch
from lab_samples import SQUARE

from warpsmith import languages
from warpsmith.core.evaluation import Status
from warpsmith.errors import CompanionFailed
from warpsmith.lab.gate.calls import offsets
from warpsmith.lab.gate.calls.offsets import check_offsets
from warpsmith.lab.grading import shapes
from warpsmith.lab.operator import input_rules
from warpsmith.lab.timing.sides import SideSource
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost

TRITON = """\
import torch
import triton
import triton.language as tl

@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.{index}) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * x, mask=at < n)

def run(x):
    y = torch.empty_like(x)
    square[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""


@pytest.mark.parametrize("limit", input_rules.OFFSET_LIMITS)
def test_the_largest_tensor_is_beyond_the_limit(workshop, limit):
    text = SQUARE.replace('shape=("n",)', 'shape=("n", 40)')
    file = workshop.load("square", text)
    workload = shapes.lengthen_beyond(file, file.definition.workloads[0], "n", limit)
    assert limit < prod(file.definition.shape(file.definition.outputs["y"], workload)) < 1.1 * limit
    assert workload.name in ("beyond 2^31", "beyond 2^32")
    assert workload.set == "full"


def test_a_cpu_judges_none(workshop):
    file = workshop.load("square", SQUARE)
    check = check_offsets(file, None, None, file.definition.workloads, "cpu")
    assert not check.ran
    assert "too long on a CPU" in check.how


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('flops="n",', 'flops="n", constraints=("n is short",),'),
        ("return x * x", "return x * x.mean()"),
    ],
)
def test_a_reference_without_plain_rows_is_not_judged(workshop, old, new):
    file = workshop.load("square", SQUARE.replace(old, new))
    check = check_offsets(file, None, None, file.definition.workloads, "cuda")
    assert not check.ran
    assert "row by row" in check.how


@pytest.mark.gpu
@pytest.mark.parametrize("index", ["int64", "int32", "uint32"])
def test_a_version_with_short_offsets_is_wrong(workshop, tmp_path, index):
    file = workshop.load("square", SQUARE)
    solution = workshop.solution(TRITON.format(index=index), "triton")
    build = languages.get("triton").build(solution.path, file.definition, tmp_path / "built")
    source = SideSource(build, "triton", Limits(seconds=60))
    with WorkerHost("cuda") as host:
        if index == "int64":
            assert check_offsets(file, host, source, file.definition.workloads, "cuda").ran
            return
        with pytest.raises(SideFailed) as caught:
            raise AssertionError(check_offsets(file, host, source, file.definition.workloads, "cuda").how)
    assert caught.value.status in (Status.INCORRECT_NUMERICAL, Status.RUNTIME_ERROR)


@pytest.mark.gpu
def test_memory_that_is_too_small_is_said(workshop, monkeypatch):
    monkeypatch.setattr(input_rules, "OFFSET_MEMORY_SHARE", 0.0)
    file = workshop.load("square", SQUARE)
    check = offsets.check_offsets(file, None, None, file.definition.workloads, "cuda")
    assert not check.ran
    assert "GiB" in check.how


@pytest.mark.parametrize("error", [CompanionFailed("no memory left for inputs"), torch.OutOfMemoryError("none")])
def test_a_smaller_call_is_made_where_the_grader_has_no_room(workshop, monkeypatch, error):
    file = workshop.load("square", SQUARE)
    beyond = [shapes.lengthen_beyond(file, file.definition.workloads[0], "n", limit) for limit in (200, 100)]
    calls = []

    def grade_rows(_file, _host, _source, workload, *_):
        calls.append(workload.axes["n"])
        if len(calls) == 1:
            raise error

    monkeypatch.setattr(offsets, "_grade_rows", grade_rows)
    monkeypatch.setattr(offsets, "_wait_for_memory", lambda _: 1 << 40)
    check = offsets._check_first_that_fits(file, None, None, beyond, "n", "cuda")
    assert check.ran
    assert check.how == f"sampled rows of a call {beyond[1].name} elements"
    assert calls[0] > calls[1]


@pytest.mark.parametrize(
    ("free", "waits", "room"),
    [([10, 10, 60], 2, 48), ([60], 0, 48), ([10], 0, 8)],
    ids=["others give some back", "enough", "never enough"],
)
def test_a_call_waits_for_memory_that_others_hold(monkeypatch, free, waits, room):
    naps = []
    total, needed = (100, 40) if len(free) > 1 or free[0] > 50 else (30, 40)
    readings = iter(free)
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (next(readings) if emptied else 0, total))
    monkeypatch.setattr(offsets.time, "sleep", naps.append)
    assert offsets._wait_for_memory(needed) == room
    assert len(naps) == waits

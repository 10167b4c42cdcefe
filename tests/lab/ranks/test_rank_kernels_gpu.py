"""The lab's kernels on one GPU: it waits at the gate, and is held for as long as asked."""

from __future__ import annotations

import time

import pytest
import torch

from warpsmith.lab.ranks import gpu_kernels
from warpsmith.lab.ranks.start_gate import PAGE_BYTES, GatePage, StartGate

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def context() -> None:
    torch.empty(1, device="cuda")


def test_a_gpu_begins_when_the_gate_opens() -> None:
    gpu_kernels.load_kernels()
    gate = StartGate(1)
    page = GatePage(gate.file)
    word = gpu_kernels.map_host_memory(page.address, PAGE_BYTES)
    behind = torch.cuda.Event()
    for _ in range(3):
        block = gate.shut()
        gpu_kernels.await_start(word, block)
        behind.record()
        page.report_arrival(0, block)
        page.report_issue(0, block)
        time.sleep(0.01)
        assert not behind.query()
        gate.look()
        behind.synchronize()
    gate.close()


def test_a_stream_is_held() -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    gpu_kernels.hold_stream(1e-4)
    start.record()
    gpu_kernels.hold_stream(5e-3)
    end.record()
    torch.cuda.synchronize()
    assert 4.9 < start.elapsed_time(end) < 10


def test_a_jam_takes_the_gpu_as_often_as_it_says() -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.Stream(priority=-1)
    gpu_kernels.jam_device(stream)
    start.record(stream)
    gpu_kernels.jam_device(stream)
    end.record(stream)
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > gpu_kernels.JAMS * gpu_kernels.JAM_SECONDS[1] * 1e3

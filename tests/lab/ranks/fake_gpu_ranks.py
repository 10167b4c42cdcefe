"""Ranks that take the GPU's path on a processor: gloo, clocks of the host, and a gate that no kernel waits at."""

from __future__ import annotations

import os
import time

import torch

from warpsmith.lab.ranks import gpu_kernels, rank
from warpsmith.lab.ranks.gpu_rank import GpuRank
from warpsmith.lab.ranks.multicast import MULTICAST_OFF
from warpsmith.lab.ranks.start_gate import GatePage
from warpsmith.lab.workers.channel import Channel, Message

pages: list[GatePage] = []
blocks: list[int] = []


class HostEvent:
    """Event whose clock is the host's."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, _: object) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until the gate is open, behind which the last event stands."""
        while pages[-1].opened < blocks[-1]:
            time.sleep(1e-4)

    def elapsed_time(self, other: HostEvent) -> float:
        return (other.seconds - self.seconds) * 1e3


def serve_rank(channel: Channel) -> None:
    """Serve the grader as a rank on a GPU does."""
    os.environ.update(MULTICAST_OFF)
    gpu_kernels.await_start = lambda _, block: blocks.append(block)
    gpu_kernels.hold_stream = time.sleep
    gpu_kernels.jam_device = lambda _: None
    GpuRank.connect = _connect
    rank.serve_rank(channel)


def _connect(self: GpuRank, message: Message, files: list[int]) -> Message:
    rank.Rank.connect(self, message, files)
    self.rank, self.device = message["rank"], torch.device("cpu")
    self.event, self.synchronize, self.set_stream = HostEvent, lambda: None, lambda _: None
    self.stream = self.jam_stream = None
    self.gate, self.gate_address = GatePage(files[2]), 0
    pages.append(self.gate)
    return {"device": "NVIDIA Fake", "nccl": "2.0"}

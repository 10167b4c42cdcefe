"""Hosts of ranks' processes: on a processor, or on as many leased GPUs of this machine as there are ranks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from warpsmith.core.hardware import Target
from warpsmith.core.text import Tell
from warpsmith.lab.machine import device_lease, identity
from warpsmith.lab.machine.environment import changed_environment
from warpsmith.lab.ranks.multicast import MULTICAST_OFF
from warpsmith.lab.workers.worker_host import WorkerHost

_SMI_SECONDS = 20


@contextmanager
def open_rank_host(target: Target, ranks: int, tell: Tell = lambda _: None) -> Iterator[WorkerHost]:
    """Start a host for the ranks on a target: every process sees one GPU for each rank, and no NVLink multicast.

    Raises:
        MachineLacks: the target is a GPU, and fewer of its kind are here.
    """
    if target.kind == "cpu":
        with WorkerHost("cpu") as host:
            yield host
        return
    with (
        device_lease.lease_devices(target, ranks, tell),
        changed_environment(MULTICAST_OFF),
        WorkerHost("cuda") as host,
    ):
        yield host


def leased_uuids() -> tuple[str, ...]:
    """Return the UUIDs of the leased GPUs, by rank."""
    return tuple(filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")))


@cache
def describe_link(uuids: tuple[str, ...]) -> str:
    """Return the kinds of links between the GPUs, as `nvidia-smi topo -m` abbreviates them (`NV18`); empty if it
    does not say."""
    indices = {uuid: index for index, uuid, _ in identity.list_gpus()}
    rows = [f"GPU{indices[uuid]}" for uuid in uuids if uuid in indices]
    if shutil.which("nvidia-smi") is None or len(rows) != len(uuids):
        return ""
    command = ["nvidia-smi", "topo", "-m"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return parse_topology(ended.stdout, rows)


def parse_topology(text: str, names: Sequence[str]) -> str:
    """Return the kinds of links between the named GPUs in the matrix of `nvidia-smi topo -m`."""
    lines = [line.replace("\x1b[4m", "").replace("\x1b[0m", "").split() for line in text.splitlines()]
    head = next((words for words in lines if words[:1] == ["GPU0"]), [])
    links = {
        words[1 + head.index(other)]
        for words in lines
        if words and words[0] in names and words is not head
        for other in names
        if other != words[0] and other in head and len(words) > 1 + head.index(other)
    }
    return ", ".join(sorted(links))

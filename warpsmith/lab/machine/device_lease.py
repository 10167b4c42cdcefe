"""Leases of devices: one job at a time on each GPU, and on the CPU, among those of a user on a machine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from warpsmith.core.hardware import Target
from warpsmith.core.text import Tell
from warpsmith.errors import MachineLacks
from warpsmith.lab.machine import identity
from warpsmith.user_state import user_state_folder

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_CPU = "cpu"
_POLL_SECONDS = 0.2


@contextmanager
def lease_device(target: Target, tell: Tell = lambda _: None) -> Iterator[str]:
    """Hold a free device of a target; yield its UUID, or `cpu`. A GPU becomes the only one that CUDA sees.

    It waits until a device is free. The lease ends with this process at the latest.

    Raises:
        MachineLacks: the target is a GPU, and this machine has none of its kind.
    """
    devices = _matching_gpus(target) if target.kind == "gpu" else [_CPU]
    device, lock = _first_free(devices, tell)
    visible = os.environ.get(_VISIBLE)
    if device != _CPU:
        os.environ[_VISIBLE] = device
    try:
        yield device
    finally:
        lock.release()
        if device != _CPU:
            os.environ.pop(_VISIBLE, None)
            os.environ.update({} if visible is None else {_VISIBLE: visible})


def _first_free(devices: list[str], tell: Tell) -> tuple[str, FileLock]:
    folder = user_state_folder() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    waited = False
    while True:
        for device in devices:
            lock = FileLock(folder / f"{device}.lock", thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            return device, lock
        if not waited:
            tell(f"waiting until another judgement ends on {' or '.join(devices)}")
            waited = True
        time.sleep(_POLL_SECONDS)


def _matching_gpus(target: Target) -> list[str]:
    """List the UUIDs of the GPUs of this target that `CUDA_VISIBLE_DEVICES` leaves visible."""
    gpus = _list_gpus()
    visible = os.environ.get(_VISIBLE)
    chosen = None if visible is None else {part.strip() for part in visible.split(",")}
    uuids = [
        uuid
        for index, uuid, name in gpus
        if identity.matches_target(target, name) and (chosen is None or chosen & {index, uuid})
    ]
    if not uuids:
        names = ", ".join(sorted({name for _, _, name in gpus})) or "none"
        raise MachineLacks(f"This machine has no GPU of the target `{target.id}`; it has: {names}.")
    return uuids


def _list_gpus() -> list[tuple[str, str, str]]:
    """List index, UUID and name of every GPU that NVIDIA's driver reports."""
    command = ["nvidia-smi", "--query-gpu=index,uuid,name", "--format=csv,noheader"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [tuple(part.strip() for part in line.split(",", 2)) for line in output.splitlines()]
    return [(row[0], row[1], row[2]) for row in rows if len(row) == 3]

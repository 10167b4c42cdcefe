"""Leases of devices: one timing at a time on each GPU, and on the CPU, among those of a user on a machine."""

from __future__ import annotations

import fcntl
import itertools
import os
import platform
import random
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from warpsmith.core.hardware import Target
from warpsmith.core.text import NoticeLine, Tell
from warpsmith.errors import MachineLacks
from warpsmith.lab.machine import identity
from warpsmith.lab.machine.environment import changed_environment
from warpsmith.user_state import user_state_folder

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_CPU = "cpu"
_POLL_SECONDS = 0.2
_last_device: list[str] = []
"""Device of this process's last lease: a process that has used CUDA cannot move to another GPU."""


@contextmanager
def lease_device(target: Target, tell: Tell = lambda _: None, *, shared: bool = False) -> Iterator[str]:
    """Hold a free device of a target; yield its UUID, or `cpu`. A GPU becomes the only one that CUDA sees.

    It waits until a device is free. The lease ends with this process at the latest.

    Args:
        target: kind of device.
        tell: receives a line if it waits.
        shared: True for work that times nothing, which others of that kind do not disturb.

    Raises:
        MachineLacks: the target is a GPU, and this machine has none of its kind.
    """
    device, lock = _first_free(_usable_devices(target), tell, shared)
    if device != _CPU:
        _last_device[:] = [device]
    try:
        with show_device(device):
            yield device
    finally:
        _unlock([lock])


@contextmanager
def show_device(device: str) -> Iterator[None]:
    """Make a GPU the only one that CUDA and a lease see, or several by commas; nothing changes for `cpu`."""
    with changed_environment({} if device == _CPU else {_VISIBLE: device}):
        yield


@contextmanager
def lease_devices(target: Target, count: int, tell: Tell = lambda _: None) -> Iterator[list[str]]:
    """Hold several free GPUs of a target; yield their UUIDs, sorted. CUDA sees these alone, in this order.

    It waits until as many are free at once, and holds none meanwhile: two commands cannot block each other.

    Raises:
        MachineLacks: the target is no GPU, or fewer of its kind are visible.
    """
    if target.kind != "gpu":
        raise MachineLacks(f"`{target.id}` is no GPU; name the target of this machine's GPUs.")
    gpus = sorted(_matching_gpus(target))
    if len(gpus) < count:
        raise MachineLacks(
            f"{count} GPUs of `{target.id}` are needed, and {len(gpus)} is visible here; ask for fewer ranks."
        )
    locks = _lock_together(gpus, count, tell)
    try:
        with show_device(",".join(locks)):
            yield list(locks)
    finally:
        _unlock(locks.values())


def list_devices(target: Target) -> list[str]:
    """List the devices of a target that new processes can lease: UUIDs of GPUs, or `cpu`; raises as
    `lease_device`."""
    return _matching_gpus(target) if target.kind == "gpu" else [_CPU]


def count_devices(target: Target) -> int:
    """Count the devices of a target that new processes can lease at once; raises as `lease_device`."""
    return len(list_devices(target))


def _lock_together(devices: list[str], count: int, tell: Tell) -> dict[str, int]:
    """Lock so many of the devices at once; return device to lock."""
    waited = False
    while True:
        locks: dict[str, int] = {}
        for device in devices:
            if len(locks) < count and (lock := _try_lock(_lock_path(device), fcntl.LOCK_EX)) is not None:
                locks[device] = lock
        if len(locks) == count:
            return locks
        _unlock(locks.values())
        if not waited:
            tell(NoticeLine(f"waiting until {count} of {', '.join(devices)} are free at once"))
            waited = True
        time.sleep(random.uniform(0.5, 1.5) * _POLL_SECONDS)  # two that try in step would go on so


def _unlock(locks: Iterable[int]) -> None:
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_UN)  # a process that was forked meanwhile has it too
        os.close(lock)


def _lock_path(device: str) -> Path:
    folder = user_state_folder() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{device}-{platform.node()}.lock"  # a home folder may be that of many machines


def _first_free(devices: list[str], tell: Tell, shared: bool) -> tuple[str, int]:
    waited = False
    modes = (fcntl.LOCK_EX, fcntl.LOCK_SH) if shared else (fcntl.LOCK_EX,)  # first one that nobody uses
    while True:
        for mode, device in itertools.product(modes, devices):
            lock = _try_lock(_lock_path(device), mode)
            if lock is not None and (not shared or _set_mode(lock, fcntl.LOCK_SH)):
                return device, lock
        if not waited:
            tell(NoticeLine(f"waiting until another judgement ends on {' or '.join(devices)}"))
            waited = True
        time.sleep(_POLL_SECONDS)


def _try_lock(path: Path, mode: int) -> int | None:
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    return lock if _set_mode(lock, mode) else None


def _set_mode(lock: int, mode: int) -> bool:
    """Take a lock, or change its mode; a lock that another process has taken is closed."""
    try:
        fcntl.flock(lock, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    return True


def _usable_devices(target: Target) -> list[str]:
    """List the devices of a target; only its own one where this process has used CUDA."""
    gpus = list_devices(target)
    if target.kind != "gpu" or not _has_used_cuda():
        return gpus
    first = identity.visible_gpu()
    own = _last_device or ([first.uuid] if first else [])
    return [gpu for gpu in gpus if gpu in own] or gpus


def _has_used_cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def _matching_gpus(target: Target) -> list[str]:
    """List the UUIDs of the GPUs of this target that `CUDA_VISIBLE_DEVICES` leaves visible."""
    visible = os.environ.get(_VISIBLE)
    chosen = None if visible is None else {part.strip() for part in visible.split(",")}
    uuids = [
        uuid
        for index, uuid, name in identity.list_gpus()
        if identity.matches_target(target, name) and (chosen is None or chosen & {index, uuid})
    ]
    return uuids or [identity.require_gpu(target).uuid]  # a part of a GPU, which the driver's list lacks

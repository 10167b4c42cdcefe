"""The host system: its processor, usable cores, caches and C++ compiler."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from warpsmith.languages.shared import cxx_compiler

find_cxx_compiler = cxx_compiler.find_cxx_compiler
"""Returns the command of the C++ compiler."""

_CPUS = Path("/sys/devices/system/cpu")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_SIZES = {"K": 2**10, "M": 2**20, "G": 2**30}


def processor_model() -> str:
    """Return the processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next((name for name in names if name), platform.processor() or platform.machine())


def boot_id() -> str:
    """Return the kernel's id of this start of the machine; empty where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def usable_cores() -> int:
    """Return the number of cores that this process may keep busy.

    It is the affinity, or the quota of the control groups if that is lower.
    """
    quota = min(_quotas(), default=math.inf)
    return max(1, int(min(len(os.sched_getaffinity(0)), quota)))


def cache_bytes() -> int | None:
    """Return the total size of the distinct caches, from the second level up, that the usable cores reach; None
    if unknown."""
    return sum(size for (level, _), size in _caches().items() if level >= 2) or None


def core_cache_bytes() -> int | None:
    """Return the size of the largest cache that the fewest cores share, the one that a core has for itself where
    there is one; None if unknown."""
    sizes = [(len(_cpu_list(shared)), -size) for (_, shared), size in _caches().items()]
    return -min(sizes)[1] if sizes else None


def _caches() -> dict[tuple[int, str], int]:
    """Return the sizes in bytes of the data caches that the usable cores reach, by level and sharing cores."""
    caches: dict[tuple[int, str], int] = {}
    for core in os.sched_getaffinity(0):
        for index in (_CPUS / f"cpu{core}" / "cache").glob("index[0-9]*"):
            try:
                level, kind, size, shared = (
                    (index / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
                )
            except OSError:
                continue
            if kind != "Instruction":
                caches[int(level), shared] = int(size[:-1]) * _SIZES[size[-1]]
    return caches


def _cpu_list(text: str) -> set[int]:
    """Return the cores of a list such as `0-3,8`."""
    bounds = [part.split("-") for part in text.split(",") if part]
    return {core for ends in bounds for core in range(int(ends[0]), int(ends[-1]) + 1)}


def _quotas() -> Iterator[float]:
    """Yield the number of cores that each control group above this process grants, under either interface
    version."""
    try:
        groups = [line.split(":", 2) for line in _OWN_GROUPS.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, group in groups:
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = _CGROUPS / "cpu" if controllers else _CGROUPS
        own = top / group.strip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(top):
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    try:
        if (folder / "cpu.max").is_file():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return
    if quota.isdigit() and int(period) > 0:
        yield int(quota) / int(period)

"""Kills by the kernel for want of memory, as the machine counts them: they are not the fault of who was killed."""

from __future__ import annotations

import contextlib
from pathlib import Path

_GROUPS, _EVENTS = Path("/sys/fs/cgroup"), "memory.events"

_COUNTS = (Path("/proc/vmstat"), _GROUPS / _EVENTS)
"""Files with the counts of the machine, and of the control group that a container sees as the first one."""

OWN_BYTES = 2 << 30
"""Memory that a worker may hold beside its tensors without being the cause of a shortage. Chosen: PyTorch, a
device's context and some workspace."""

TENSORS = 2
"""Times its tensors that it may hold besides. Chosen: results that are returned, and a copy of its inputs."""


def count_memory_kills() -> int:
    """Return how many processes the kernel has killed for want of memory, as far as the machine says."""
    return sum(map(_read_count, dict.fromkeys((*_COUNTS, *_own_groups()))))


def _own_groups() -> list[Path]:
    """Return the file of counts of this process's own control group; none where the machine does not tell."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        return [_GROUPS / line[3:].strip("/") / _EVENTS for line in lines if line.startswith("0::")]
    return []


def _read_count(path: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        pairs = (line.partition(" ") for line in path.read_text().splitlines())
        return sum(int(number) for name, _, number in pairs if name == "oom_kill")
    return 0

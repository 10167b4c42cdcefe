"""Access of this process to the GPU's performance counters, as NVIDIA's driver allows it."""

from __future__ import annotations

import re
from pathlib import Path

PARAMETERS = Path("/proc/driver/nvidia/params")
"""File in which the driver reports its load parameters."""

_STATUS = Path("/proc/self/status")
_CAP_SYS_ADMIN = 1 << 21


def counters_are_closed() -> bool:
    """Return whether the counters are closed to this process.

    Raises:
        OSError: the driver does not report it.
    """
    restricted = re.search(r"^RmProfilingAdminOnly:\s*1", PARAMETERS.read_text(), re.MULTILINE)
    return bool(restricted) and not _is_administrator()


def _is_administrator() -> bool:
    """Return whether this process has the capability that the driver requires; a container's root may lack it."""
    try:
        match = re.search(r"^CapEff:\s*([0-9a-f]+)", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return False
    return bool(match and int(match[1], 16) & _CAP_SYS_ADMIN)

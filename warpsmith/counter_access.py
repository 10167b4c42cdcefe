"""Whether NVIDIA's driver lets this process read the GPU's performance counters."""

from __future__ import annotations

import re
from pathlib import Path

PARAMETERS = Path("/proc/driver/nvidia/params")
"""Where the driver says how it was loaded."""

_STATUS = Path("/proc/self/status")
_CAP_SYS_ADMIN = 1 << 21


def counters_are_closed() -> bool:
    """Whether they are closed to this process; raises OSError where the driver does not say."""
    only = re.search(r"^RmProfilingAdminOnly:\s*1", PARAMETERS.read_text(), re.MULTILINE)
    return bool(only) and not _is_administrator()


def _is_administrator() -> bool:
    """Whether this process has the capability that the driver asks for; a container's root may lack it."""
    try:
        found = re.search(r"^CapEff:\s*([0-9a-f]+)", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return False
    return bool(found and int(found[1], 16) & _CAP_SYS_ADMIN)

"""The processor of this machine, on whose instructions compiled host code depends."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def cpu_features() -> str:
    """Return the processor's feature flags: code that was compiled for others is not taken from a cache."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return ""
    with info.open() as lines:
        return next((line.rstrip("\n") for line in lines if line.startswith(("flags", "Features"))), "")

"""Helpers for readers of all profilers' reports: report paths, and selection of launches by kernel."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.profiling.counters import Counters


def report_path(path: Path, root: Path | None) -> str:
    """Return `path` relative to the project's root if it lies inside, else unchanged."""
    if root is not None and path.resolve().is_relative_to(root.resolve()):
        return path.resolve().relative_to(root.resolve()).as_posix()
    return str(path)


def select_launches(counters: Counters, kernel: str) -> Counters:
    """Return the launches whose kernel name contains `kernel` or matches it as a regular expression.

    Raises:
        Misuse: no launch matches; the message lists the kernels.
    """
    try:
        pattern = re.compile(kernel)
    except re.error:
        pattern = re.compile(re.escape(kernel))
    launches = tuple(x for x in counters.launches if kernel in x.kernel or pattern.search(x.kernel))
    if not launches:
        names = ", ".join(dict.fromkeys(launch.kernel for launch in counters.launches))
        raise Misuse(f"{counters.report} has no kernel `{kernel}`; it has {names}.")
    return counters.model_copy(update={"launches": launches})

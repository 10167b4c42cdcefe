"""What readers of every profiler share: how a report is named, and choosing among its launches."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.profiling.counters import Counters


def relative(path: Path, root: Path | None) -> str:
    """`path` as counters give it: relative to the project's root where it lies in it."""
    if root is not None and path.resolve().is_relative_to(root.resolve()):
        return path.resolve().relative_to(root.resolve()).as_posix()
    return str(path)


def select(counters: Counters, kernel: str) -> Counters:
    """The launches whose kernel's name contains `kernel`, or matches it as a regular expression.

    Raises:
        Misuse: there is none; the message lists the kernels.
    """
    try:
        pattern = re.compile(kernel)
    except re.error:
        pattern = re.compile(re.escape(kernel))
    chosen = tuple(x for x in counters.launches if kernel in x.kernel or pattern.search(x.kernel))
    if not chosen:
        names = ", ".join(dict.fromkeys(launch.kernel for launch in counters.launches))
        raise Misuse(f"{counters.report} has no kernel `{kernel}`; it has {names}.")
    return counters.model_copy(update={"launches": chosen})

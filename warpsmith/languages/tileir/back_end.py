"""Triton's TileIR back end: whether the Triton that is installed has it, and which back end compiled a kernel."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

NAME = "tileir"
"""Name of the back end, of its folder among Triton's, and of the target of what it compiles."""
SWITCH = "ENABLE_TILE"
"""Variable that selects it, for all kernels of a process, when Triton looks for a device."""
FALLBACK = "TRITON_TILEIR_RUNTIME_FALLBACK"
"""Variable that lets the PTX back end compile what this one refuses."""
APPROXIMATIONS = ("TILEIR_ENABLE_APPROX", "TILEIR_ENABLE_FTZ")
"""Variables that allow it approximate instructions, and to flush denormals."""


def missing_back_end() -> str | None:
    """Say in one sentence that the Triton here has no such back end, and where one is; None: it has."""
    names = _back_ends()
    if NAME in names:
        return None
    present = f"only {' and '.join(names)}" if names else "none"
    return (
        f"The installed Triton has no TileIR back end, {present}, and no package registry has one: it comes with a"
        " wheel among the releases of github.com/triton-lang/Triton-to-tile-IR, for Python 3.12 and 3.13."
    )


def back_end_of(kernel: Any) -> str:  # noqa: ANN401 - triton publishes no types
    """Return the back end that compiled a kernel: `tileir`, `cuda`; `unknown` if the kernel does not say it."""
    return str(getattr(getattr(kernel.metadata, "target", None), "backend", "unknown"))


def current_back_end() -> str:
    """Return the back end that this process compiles with, for the device that it has."""
    from triton.runtime import driver

    return str(driver.active.get_current_target().backend)


def _back_ends() -> list[str]:
    """Return the names of the back ends in Triton's folder; nothing is imported."""
    spec = find_spec("triton")
    folders = [Path(folder) / "backends" for folder in (spec and spec.submodule_search_locations) or ()]
    return sorted({path.parent.name for folder in folders for path in folder.glob("*/compiler.py")})

"""What `warpsmith demo` runs: a project of its own, with an operator that ships, and the shipped recording."""

from __future__ import annotations

from pathlib import Path

from warpsmith import files
from warpsmith.errors import MissingInput
from warpsmith.project import SHIPPED

OP = "rmsnorm"
"""The demo's operator."""


def recording() -> Path:
    """The campaign folder whose design turns the demo plays: the oldest of the operator that ships.

    Raises:
        MissingInput: none ships.
    """
    found = sorted(path.parent for path in (SHIPPED / "devlog" / OP).glob("*-cpp-cpu-*/manifest.yaml"))
    if not found:
        raise MissingInput(f"No recorded campaign of {OP} ships with this installation.")
    return found[0]


def prepare(folder: Path) -> Path:
    """Make the demo's project: a configuration and the operator's definition; returns its folder."""
    definition = SHIPPED / "kernels" / OP / "definition.py"
    files.write(folder / "warpsmith.toml", "# The project of `warpsmith demo`: all defaults.\n")
    files.write(folder / "kernels" / OP / "definition.py", definition.read_bytes())
    return folder

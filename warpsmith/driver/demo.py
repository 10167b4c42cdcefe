"""Project and recording that `warpsmith demo` runs; both come from files that ship."""

from __future__ import annotations

from pathlib import Path

from warpsmith import files
from warpsmith.errors import MissingInput
from warpsmith.project import SHIPPED

OP = "rmsnorm"
"""Operator of the demo."""


def demo_recording() -> Path:
    """Return the folder of the campaign that the demo replays: the oldest one of the operator.

    Raises:
        MissingInput: no recorded campaign ships.
    """
    folders = sorted(path.parent for path in (SHIPPED / "devlog" / OP).glob("*-cpp-cpu-*/manifest.yaml"))
    if not folders:
        raise MissingInput(f"No recorded campaign of {OP} ships with this installation.")
    return folders[0]


def create_demo_project(folder: Path) -> Path:
    """Create the demo's project, a configuration and the operator's definition, and return its folder."""
    definition = SHIPPED / "kernels" / OP / "definition.py"
    files.write_file(folder / "warpsmith.toml", "# The project of `warpsmith demo`: all defaults.\n")
    files.write_file(folder / "kernels" / OP / "definition.py", definition.read_bytes())
    return folder

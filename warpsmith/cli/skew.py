"""Skew: the lab that runs is of another version than the plugin that started it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

PLUGIN = "WARPSMITH_PLUGIN"
"""Environment variable with the plugin's folder, which the plugin's launcher sets."""

_PACKAGE = Path(__file__).resolve().parents[1]


def describe_skew(environment: Mapping[str, str] = os.environ, package: Path = _PACKAGE) -> str:
    """Return one sentence with the command that mends it; empty if the lab is the plugin's own or equal to it.

    Args:
        environment: environment variables of the process.
        package: folder of the package that runs.
    """
    plugin = Path(environment.get(PLUGIN, ""))
    bundled = plugin / "warpsmith"
    if PLUGIN not in environment or not bundled.is_dir() or bundled.resolve() == package:
        return ""
    if _source_sizes(bundled) == _source_sizes(package):
        return ""
    if "site-packages" in package.parts:
        command = shlex.join([sys.executable, "-m", "pip", "install", str(plugin)])
    else:
        command = "claude plugin update warpsmith@warpsmith-market"
    return f"The lab in {package.parent} and the plugin in {plugin} are of different versions; run: {command}"


def _source_sizes(folder: Path) -> dict[str, int]:
    """Return the size of each Python file below a folder, by its path there."""
    paths = (path for path in folder.rglob("*.py") if "shipped" not in path.parts)
    return {str(path.relative_to(folder)): path.stat().st_size for path in paths}

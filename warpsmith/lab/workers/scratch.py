"""Scratch folders that a candidate wrote in, and their removal."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def remove_scratch(folder: Path) -> None:
    """Remove a folder that a candidate wrote in.

    A candidate may nest folders deeper than `shutil.rmtree` can recurse, so `rm -rf` is the fallback.
    """
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        subprocess.run(["rm", "-rf", "--", folder], check=False, capture_output=True)

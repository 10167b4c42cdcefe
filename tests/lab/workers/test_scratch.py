"""Scratch folders: whatever a candidate nested in one, it is removed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from warpsmith.lab.workers.scratch import remove_scratch


def test_folders_nested_deeper_than_python_recurses_are_cleared(tmp_path: Path):
    deep = tmp_path / "deep"
    deep.mkdir()
    at = os.open(deep, os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() + 500):
        os.mkdir("a", dir_fd=at)
        below = os.open("a", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    remove_scratch(deep)
    assert list(tmp_path.iterdir()) == []
    remove_scratch(deep)

"""Draws that change with the commit: each run of CI takes another part of what is too dear to run whole."""

from __future__ import annotations

import hashlib
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path


@cache
def draw_seed() -> str:
    """Return the commit at hand, or the day where there is none."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return answer or f"{datetime.now(UTC):%Y-%m-%d}"


def draw_number(name: str, count: int) -> int:
    """Return a number below `count`: the same at each run of one commit, and another for each name."""
    digest = hashlib.sha256(f"{draw_seed()} {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % count

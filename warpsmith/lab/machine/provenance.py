"""Provenance of results: the hash of the lab's own code."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from warpsmith import core, lab, languages

_JUDGES = (core, languages, lab)


@cache
def lab_sha256() -> str:
    """Return the hash of the code that judges: core, languages and lab."""
    total = hashlib.sha256()
    for package in _JUDGES:
        root = Path(package.__path__[0])
        for file in sorted(f for f in root.rglob("*") if f.suffix in (".py", ".hpp", ".cpp")):
            total.update(f"{file.relative_to(root.parent)}\0".encode() + file.read_bytes() + b"\0")
    return total.hexdigest()

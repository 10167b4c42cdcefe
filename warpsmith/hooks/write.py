"""Write that a tool or a command would do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Write:
    """A path that a command writes or removes."""

    path: Path
    """The path, absolute; a pattern that matches nothing stays as it is."""
    deep: bool = False
    """True if everything below a folder is written too."""
    names: tuple[str, ...] = ()
    """With `deep`: patterns, one of which the file's name or path matches, and none with `!` before it; empty: all
    files."""

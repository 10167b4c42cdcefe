"""Three-way merge of text by `git merge-file`, and what somebody changed as a diff."""

from __future__ import annotations

import difflib
import subprocess
import tempfile
from pathlib import Path


def merge_text(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """`ours` with the changes from `base` to `theirs`; None where they collide, are binary, or git is missing."""
    if any(b"\0" in content for content in (ours, base, theirs)):
        return None
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for place, content in zip(places, (ours, base, theirs), strict=True):
            place.write_bytes(content)
        try:
            done = subprocess.run(
                ["git", "merge-file", "--stdout", "--quiet", *map(str, places)],
                cwd=folder,  # in no repository of the user's
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            return None
    return done.stdout if done.returncode == 0 else None


def describe_change(before: bytes | None, after: bytes | None, name: str) -> str:
    """What changed, as a unified diff; one sentence where it is no text."""
    if before is None or after is None:
        return f"{name} was {'made' if before is None else 'removed'} since the edit.\n"
    try:
        old, new = (content.decode().splitlines(keepends=True) for content in (before, after))
    except UnicodeDecodeError:
        return f"{name} is no text in UTF-8; it was changed since the edit.\n"
    lines = difflib.unified_diff(old, new, f"{name} as the edit left it", f"{name} now")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

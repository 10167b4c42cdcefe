"""Three-way merge of text with `git merge-file`, and diffs."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

from warpsmith.temporary import TemporaryFolder


def merge_text(current: bytes, base: bytes, other: bytes) -> bytes | None:
    """Apply the changes from `base` to `other` to `current`; None if they conflict, are binary, or git is
    missing."""
    if any(b"\0" in content for content in (current, base, other)):
        return None
    with TemporaryFolder() as folder:
        paths = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for path, content in zip(paths, (current, base, other), strict=True):
            path.write_bytes(content)
        try:
            process = subprocess.run(
                ["git", "merge-file", "--stdout", "--quiet", *map(str, paths)],
                cwd=folder,  # Outside of any repository of the user.
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            return None
    return process.stdout if process.returncode == 0 else None


def describe_change(before: bytes | None, after: bytes | None, name: str) -> str:
    """Return a unified diff, or one sentence if a content is not text."""
    if before is None or after is None:
        return f"{name} was {'created' if before is None else 'removed'} since the edit.\n"
    try:
        old, new = (content.decode().splitlines(keepends=True) for content in (before, after))
    except UnicodeDecodeError:
        return f"{name} is not UTF-8 text; it was changed since the edit.\n"
    lines = difflib.unified_diff(old, new, f"{name} as the edit left it", f"{name} now")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

"""Copies of versions and drafts with other constants."""

from __future__ import annotations

import re
import shutil
from pathlib import Path


def copy_with(folder: Path, path: Path, **constants: int) -> Path:
    """A copy of a version or a draft with other constants, beside a copy of its definition."""
    operator = next(parent for parent in path.parents if (parent / "definition.py").is_file())
    copy = folder / operator.name / path.relative_to(operator)
    copy.parent.mkdir(parents=True)
    shutil.copy(operator / "definition.py", folder / operator.name)
    text = path.read_text()
    for name, value in constants.items():
        text, count = re.subn(rf"^{name} = \d+$", f"{name} = {value}", text, flags=re.MULTILINE)
        assert count == 1
    copy.write_text(text)
    return copy

"""Copies of drafts with other constants."""

from __future__ import annotations

import re
import shutil
from pathlib import Path


def draft_with(folder: Path, path: Path, **constants: int) -> Path:
    """A copy of a draft with other constants, beside a copy of its definition."""
    operator = path.parents[2]
    copy = folder / operator.name / path.relative_to(operator)
    copy.parent.mkdir(parents=True)
    shutil.copy(operator / "definition.py", folder / operator.name)
    text = path.read_text()
    for name, value in constants.items():
        text, count = re.subn(rf"^{name} = \d+$", f"{name} = {value}", text, flags=re.MULTILINE)
        assert count == 1
    copy.write_text(text)
    return copy

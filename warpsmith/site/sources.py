"""Sources of versions as they were judged, and the difference of each from its parent."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith.campaign.history import records
from warpsmith.campaign.history.records import StoredRound
from warpsmith.errors import MissingInput
from warpsmith.project import Project
from warpsmith.site.markup import Html, escape_code

CONTEXT = 3
"""Number of unchanged lines around a change."""


@dataclass(frozen=True)
class VersionSource:
    """Source of a version as a round judged it."""

    solution: str
    """Name of the version."""
    path: Path
    """File that was read."""
    text: str
    """Its content."""


@dataclass(frozen=True)
class ParentDiff:
    """Difference of a version from the version that it was made from."""

    html: Html
    """Lines of the difference; empty if there is none to show."""
    remark: str
    """Sentence that stands in its place, or beside it; empty if the difference says it all."""
    added: int = 0
    """Number of lines that were added."""
    removed: int = 0
    """Number of lines that were removed."""


def read_judged_source(project: Project, op: str, stored: StoredRound) -> VersionSource | None:
    """Read the version of a round; None if the file that it judged is gone or is not text."""
    try:
        path = records.judged_file(stored, project.kernels / op)
        return VersionSource(stored.record.solution, path, path.read_text(encoding="utf-8"))
    except (MissingInput, OSError, UnicodeDecodeError):
        return None


def diff_from_parent(
    stored: StoredRound, source: VersionSource | None, sources: Sequence[VersionSource]
) -> ParentDiff:
    """Compare the version of a round with its parent.

    Args:
        stored: the round.
        source: its version; None if the file is gone.
        sources: versions that were read, in which the parent is looked for.
    """
    record = stored.record
    if source is None:
        return ParentDiff(Html(""), "The file that was judged is gone, so no difference can be shown.")
    if record.parent is None:
        return ParentDiff(Html(""), "The first version of its campaign: it has no parent.")
    parent = next((other for other in reversed(sources) if other.solution == record.parent), None)
    if parent is None:
        return ParentDiff(Html(""), f"The file of its parent, {record.parent}, is gone.")
    remark = (
        "" if parent.path.suffix == source.path.suffix else f"Its parent is in another language: {record.parent}."
    )
    if remark:
        return ParentDiff(Html(""), f"{remark} The two are not compared line by line.")
    lines = list(difflib.unified_diff(parent.text.splitlines(), source.text.splitlines(), n=CONTEXT, lineterm=""))
    if not lines:
        return ParentDiff(Html(""), f"It is the same text as {record.parent}.")
    changed = lines[2:]  # without the two names of files
    return ParentDiff(
        Html("".join(map(_line, changed))),
        "",
        sum(line.startswith("+") for line in changed),
        sum(line.startswith("-") for line in changed),
    )


def anchor_lines(text: str) -> Html:
    """Return a source as HTML, an element with an anchor for each line; the style sheet numbers them."""
    lines = enumerate(text.splitlines() or [""], start=1)
    return Html("".join(f'<span id="L{number}">{escape_code(line)}\n</span>' for number, line in lines))


def _line(line: str) -> str:
    name = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
    return f'<span class="{name}">{escape_code(line)}\n</span>'

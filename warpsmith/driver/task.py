"""Task of a designer: the version to write, as a model and as the Markdown that an agent reads."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import Field

from warpsmith.core.base import Model, Name, Slug
from warpsmith.core.profile import Bottleneck
from warpsmith.core.text import to_one_line
from warpsmith.driver.answers.models import Line, Version

_BLOCK_MARK = re.compile(r"^(\d{1,9}(?=[.)](?!\S)))|^(?=#{1,6}(?!\S)|[-+*](?!\S)|>|`{3}|~{3}|([-_*]\s*){3,}$)")
"""Start of a line that Markdown would take for another kind of block."""


class PlannedChange(Model):
    """One part of the plan for the next version."""

    name: Line
    """The knowledge entry, or the subject of the line."""
    why: Line
    """The change, and the reason for it."""
    entry: Slug | None = None
    """The knowledge entry to read."""


class DesignTask(Model):
    """Task of a designer: one version to write."""

    op: Name
    """The operator."""
    current: Version | None
    """The best version; null at the baseline."""
    due: Version
    """The version to write."""
    bottleneck: Bottleneck | None
    """The bottleneck of the best version; null if none was measured."""
    root_cause: Line
    """Its root cause."""
    optimizations: tuple[PlannedChange, ...] = Field(min_length=1)
    """The hypothesis, and the entries that it applies."""
    constraints: tuple[Line, ...] = Field(min_length=1)
    """Constraints on the version."""
    fitting: tuple[PlannedChange, ...] = ()
    """Entries that fit besides the planned ones, with their hit rates."""
    prior_art: tuple[Line, ...] = ()
    """The fastest known public approaches to such an operator, each with its source."""


def render_task(task: DesignTask) -> str:
    """Write a task as Markdown, one line an item."""
    return "\n".join(
        (
            f"## Task: {task.op} {task.current or 'none'} -> {task.due}",
            f"### Bottleneck: {task.bottleneck or 'none'}",
            _one_line(task.root_cause),
            "### Optimizations",
            *(f"- {_one_line(_planned_text(change))}" for change in task.optimizations),
            "### Constraints",
            *(f"- {_one_line(constraint)}" for constraint in task.constraints),
            *_section("Entries that also fit", map(_planned_text, task.fitting)),
            *_section("Prior art: take the idea, never the text", task.prior_art),
            "",
        )
    )


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """Return a section with a line an item; nothing without items."""
    items = [f"- {_one_line(text)}" for text in lines]
    return [f"### {title}", *items] if items else []


def _one_line(text: str) -> str:
    return _BLOCK_MARK.sub(r"\1\\", to_one_line(text), count=1)


def _planned_text(change: PlannedChange) -> str:
    entry = f" (`warpsmith knowledge show {change.entry}`)" if change.entry else ""
    return f"{change.name}: {change.why}{entry}"

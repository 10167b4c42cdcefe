"""Edits of the files that hold contexts: one table is added or removed, and every other line stays."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith import project as projects
from warpsmith.errors import Misuse
from warpsmith.execution.contexts import Context, NamedContext, user_contexts_file
from warpsmith.project import MARKER, Project

_HEADER = re.compile(r"\s*\[")


def save_context(project: Project, name: str, context: Context, *, shared: bool) -> Path:
    """Add a context to the user's own settings, or to the project's; return the file.

    Raises:
        Misuse: the file does not take it; nothing has changed then.
    """
    file = user_contexts_file()
    if shared:
        projects.mark_project(project)
        file = projects.read_settings_table(project.root, "contexts")[0]
    prefix = _prefix(file)
    lines = [f"[{'.'.join((*prefix, _key(name)))}]"]
    lines += [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in context.model_dump(exclude_defaults=True).items()
    ]
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    separator = "\n" if before.endswith("\n") else "\n\n" if before else ""
    expected = tomllib.loads(before)
    _table(expected, prefix)[name] = context.model_dump(exclude_defaults=True, mode="json")
    _write(file, f"{before}{separator}" + "\n".join(lines) + "\n", expected, name)
    return file


def remove_context(entry: NamedContext) -> None:
    """Remove a context from its file.

    Raises:
        Misuse: it does not stand there as a table of its own; nothing has changed then.
    """
    prefix = _prefix(entry.file)
    before = entry.file.read_text(encoding="utf-8")
    expected = tomllib.loads(before)
    del _table(expected, prefix)[entry.name]
    header = re.compile(
        rf"\s*\[\s*{re.escape('.'.join(prefix))}\.(?:{re.escape(entry.name)}|\"{re.escape(entry.name)}\")\s*\]"
    )
    lines: list[str] = []
    inside = False
    for line in before.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = bool(header.match(line))
            if inside and lines and not lines[-1].strip():
                lines.pop()
        if not inside:
            lines.append(line)
    if not _table(expected, prefix):
        _drop_table(expected, prefix)
    _write(entry.file, "".join(lines), expected, entry.name)


def _prefix(file: Path) -> tuple[str, ...]:
    return ("contexts",) if file.name in (MARKER, user_contexts_file().name) else ("tool", "warpsmith", "contexts")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _table(content: dict[str, Any], prefix: tuple[str, ...]) -> dict[str, Any]:
    for key in prefix:
        content = content.setdefault(key, {})
    return content


def _drop_table(content: dict[str, Any], prefix: tuple[str, ...]) -> None:
    del _table(content, prefix[:-1])[prefix[-1]]


def _write(file: Path, text: str, expected: dict[str, Any], name: str) -> None:
    """Write the file if it then says what it should; else it has a form that only a person edits."""
    try:
        actual = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        actual = None
    if actual != expected:
        raise Misuse(f"{file} does not have `{name}` as a table of its own; edit the file by hand.")
    files.write_file(file, text)

"""Marks: which Claude Code sessions drive a campaign, so that no other session is asked to go on with it."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith import files
from warpsmith.project import Project


def mark(project: Project, session: str) -> None:
    """This session drives the project's campaign."""
    path = _path(project, session)
    if path and not path.exists():
        files.write(path, "")


def marked(project: Project, session: str) -> bool:
    """Whether it does."""
    path = _path(project, session)
    return path is not None and path.is_file()


def reminded_at(project: Project, session: str) -> str:
    """The progress at which the session was last asked to go on; empty: never."""
    path = _path(project, session)
    return path.read_text() if path and path.is_file() else ""


def remind(project: Project, session: str, progress: str) -> None:
    """Remember that it was asked."""
    path = _path(project, session)
    if path:
        files.write(path, progress)


def _path(project: Project, session: str) -> Path | None:
    sound = re.fullmatch(r"[A-Za-z0-9-]{1,80}", session)
    return project.root / ".warpsmith" / "sessions" / session if sound else None

"""Marks: which Claude Code sessions drive a campaign or opened a trial, so that no other is asked to go on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from warpsmith import files
from warpsmith.project import Project

Work = Literal["campaign", "trial"]
"""What a session has in hand."""


def mark(project: Project, session: str, work: Work) -> None:
    """This session has the project's campaign, or a trial, in hand."""
    path = _path(project, session, work)
    if path and not path.exists():
        files.write(path, "")


def marked(project: Project, session: str, work: Work) -> bool:
    """Whether it has."""
    path = _path(project, session, work)
    return path is not None and path.is_file()


def reminded_at(project: Project, session: str, work: Work) -> str:
    """The progress at which the session was last asked to go on; empty: never."""
    path = _path(project, session, work)
    return path.read_text() if path and path.is_file() else ""


def remind(project: Project, session: str, work: Work, progress: str) -> None:
    """Remember that it was asked."""
    path = _path(project, session, work)
    if path:
        files.write(path, progress)


def _path(project: Project, session: str, work: Work) -> Path | None:
    sound = re.fullmatch(r"[A-Za-z0-9-]{1,80}", session)
    return project.root / ".warpsmith" / "sessions" / f"{session}.{work}" if sound else None

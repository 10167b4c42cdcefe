"""Marks of Claude Code sessions that drive a campaign or opened a trial: only these are asked to continue."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from warpsmith import files
from warpsmith.project import Project

Work = Literal["campaign", "trial"]
"""Kind of work that a session does."""


def mark_session(project: Project, session: str, work: Work) -> None:
    """Mark the session as one that does this work in the project."""
    path = _path(project, session, work)
    if path and not path.exists():
        files.write_file(path, "")


def is_marked(project: Project, session: str, work: Work) -> bool:
    """Return True if the session was marked for this work."""
    path = _path(project, session, work)
    return path is not None and path.is_file()


def last_reminder(project: Project, session: str, work: Work) -> str:
    """Return the progress at which the session was last asked to continue; empty if it never was."""
    path = _path(project, session, work)
    return path.read_text() if path and path.is_file() else ""


def record_reminder(project: Project, session: str, work: Work, progress: str) -> None:
    """Record that the session was asked to continue at this progress."""
    path = _path(project, session, work)
    if path:
        files.write_file(path, progress)


def _path(project: Project, session: str, work: Work) -> Path | None:
    is_valid = re.fullmatch(r"[A-Za-z0-9-]{1,80}", session)
    return project.scratch / "sessions" / f"{session}.{work}" if is_valid else None

"""Logs of commands that failed, stored so that the path in an error still exists afterwards."""

from __future__ import annotations

from pathlib import Path

from warpsmith import files
from warpsmith.repo.command import FinishedCommand

FOLDER = "failed"
"""Folder of the logs, below that of the worktrees; a dry run keeps it if there is one."""


def store_failed_log(folder: Path, name: str, finished: FinishedCommand) -> Path:
    """Write the command, its stdout and its stderr to a new file and return it.

    Args:
        folder: folder of the worktrees.
        name: name of the command and the side.
        finished: the failed command.
    """
    number = len(list((folder / FOLDER).glob("*.log"))) + 1
    path = folder / FOLDER / f"{number:03d}-{name}.log"
    stderr = finished.log.with_suffix(".err").read_text(errors="replace")
    files.write_file(path, f"$ {finished.command}\n== stdout\n{finished.output}\n== stderr\n{stderr}")
    return path

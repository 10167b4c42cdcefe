"""Records that are kept while they grow, so that a command that was killed goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.hardware import Machine
from warpsmith.lab.gate_tests.false_win_models import FalseWins
from warpsmith.lab.gate_tests.models import RedTeamReport
from warpsmith.lab.machine import provenance

Record = TypeVar("Record", FalseWins, RedTeamReport)


def beside(path: Path) -> Path:
    """Where a record for `path` grows: a finished one stays there until another is."""
    return path.with_name(f"{path.stem}.unfinished{path.suffix}")


def keep(path: Path, record: Record) -> None:
    """Keep a record at `path`, or beside it while it is unfinished."""
    files.write(path if record.finished else beside(path), record.model_dump_json(indent=2) + "\n")
    if record.finished:
        beside(path).unlink(missing_ok=True)


def read(
    path: Path, kind: type[Record], here: Machine, unlike: Callable[[Record], str]
) -> tuple[Record | None, str]:
    """The unfinished record for `path` that a run on this machine can go on with.

    Args:
        path: where the record is kept once it is finished.
        kind: its model.
        here: the machine at hand.
        unlike: in which way the run is not that of a record, in a few words; empty: it is.

    Returns:
        The record, or None with the reason in a few words; both are empty where nothing is there.
    """
    grown = beside(path)
    if not grown.exists():
        return None, ""
    try:
        found = kind.model_validate_json(grown.read_bytes())
    except (OSError, ValidationError):
        return None, "it holds no record of this command"
    if found.lab_sha256 != provenance.lab_sha256():
        return None, "the lab's code has changed since"
    if _lasting(found.machine) != _lasting(here):
        return None, "it was made on another machine, for another target or with other libraries"
    why = unlike(found)
    return (None, why) if why else (found, "")


def _lasting(machine: Machine) -> Machine:
    """Without the clocks, which are others at each read."""
    return machine.model_copy(update={"clocks": {}})

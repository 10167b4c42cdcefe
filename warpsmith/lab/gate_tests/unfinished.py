"""Unfinished records, saved while they grow, so that a command that was killed resumes where it stopped."""

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


def unfinished_path(path: Path) -> Path:
    """Return the path at which a record for `path` grows; a finished one stays at `path` until it is replaced."""
    return path.with_name(f"{path.stem}.unfinished{path.suffix}")


def save_record(path: Path, record: Record) -> None:
    """Save a finished record at `path`, and an unfinished one at its `unfinished_path`."""
    target = path if record.finished else unfinished_path(path)
    files.write_file(target, record.model_dump_json(indent=2) + "\n")
    if record.finished:
        unfinished_path(path).unlink(missing_ok=True)


def read_unfinished(
    path: Path, kind: type[Record], machine: Machine, find_difference: Callable[[Record], str]
) -> tuple[Record | None, str]:
    """Read the unfinished record for `path` that a run on this machine can continue.

    Args:
        path: path of the record once it is finished.
        kind: its model.
        machine: this machine.
        find_difference: returns in a few words how the run differs from that of a record; empty if it does not.

    Returns:
        The record, or None with the reason in a few words; None and an empty reason if there is no file.
    """
    unfinished = unfinished_path(path)
    if not unfinished.exists():
        return None, ""
    try:
        record = kind.model_validate_json(unfinished.read_bytes())
    except (OSError, ValidationError):
        return None, "it holds no record of this command"
    if record.lab_sha256 != provenance.lab_sha256():
        return None, "the lab's code has changed since"
    if _without_clocks(record.machine) != _without_clocks(machine):
        return None, "it is from another machine, another target or other library versions"
    reason = find_difference(record)
    return (None, reason) if reason else (record, "")


def _without_clocks(machine: Machine) -> Machine:
    """Return the machine without its clocks, which differ at each read."""
    return machine.model_copy(update={"clocks": {}})

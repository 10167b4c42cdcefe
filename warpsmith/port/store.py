"""Ports on disk: `devlog/<op>/ports/<NNN>/record.json`."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.text import describe_error
from warpsmith.port.models import PortRecord
from warpsmith.project import Project

RECORD, PAGE = "record.json", "port.md"
"""File names in a port's folder."""


def list_port_records(project: Project, op: str = "*") -> list[Path]:
    """List the records of ports, those of one operator in the order in which they were written."""
    return sorted(project.devlog.glob(f"{op}/ports/{files.NUMBERED}/{RECORD}"), key=files.number_order)


def read_port(path: Path) -> PortRecord | str:
    """Read a port, or return what is wrong with its record."""
    try:
        return PortRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        return describe_error(error)


def next_port_folder(project: Project, op: str) -> Path:
    """Return the folder of the operator's next port."""
    ports = project.devlog / op / "ports"
    return ports / files.next_number(ports)

"""Maps on disk: `devlog/<op>/maps/<NNN>-<target>/record.json`."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.text import describe_error
from warpsmith.lab.performance_map.models import PerformanceMap
from warpsmith.project import Project

RECORD, PAGE, PICTURE = "record.json", "map.md", "map.svg"
"""File names in a map's folder."""


def list_map_records(project: Project, op: str = "*", target: str = "*") -> list[Path]:
    """List the records of maps, those of one operator in the order in which they were written."""
    paths = project.devlog.glob(f"{op}/maps/{files.NUMBERED}-{target}/{RECORD}")
    return sorted(paths, key=files.number_order)


def read_map(path: Path) -> PerformanceMap | str:
    """Read a map, or return what is wrong with its record."""
    try:
        record = PerformanceMap.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        return describe_error(error)
    folder = f"{record.definition}/maps/{path.parent.name.partition('-')[0]}-{record.target}/{RECORD}"
    return record if path.as_posix().endswith(f"/{folder}") else f"it is a map of {record.definition}"


def next_folder(project: Project, op: str, target: str) -> Path:
    """Return the folder of the operator's next map."""
    maps = project.devlog / op / "maps"
    return maps / f"{files.next_number(maps)}-{target}"


def last_maps(project: Project) -> list[tuple[Path, PerformanceMap | str]]:
    """Return the last map of each operator and machine with its path, and what is wrong with one that does not
    read."""
    latest: dict[tuple[str, ...], tuple[Path, PerformanceMap | str]] = {}
    for path in list_map_records(project):
        record = read_map(path)
        key = (str(path),) if isinstance(record, str) else (record.definition, record.machine.id)
        latest[key] = (path, record)
    return list(latest.values())

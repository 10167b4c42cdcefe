"""Check of maps: the definition and the versions that they timed are still the same."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith import project as projects
from warpsmith.campaign.history import records, solutions
from warpsmith.core.evidence import Stale
from warpsmith.lab.operator import definition_file
from warpsmith.lab.performance_map import store
from warpsmith.lab.performance_map.models import PerformanceMap
from warpsmith.project import Project


def check_maps(project: Project) -> tuple[int, list[Stale]]:
    """Return the number of maps and their findings; of an operator only the last map of each machine counts."""
    maps, stale = store.last_maps(project), []
    for path, record in maps:
        shown_path = project.relative(path)
        if isinstance(record, str):
            message = f"{shown_path} does not validate: {record}; remove its folder."
            stale.append(Stale(path=shown_path, message=message))
            continue
        stale += [
            Stale(
                path=shown_path,
                message=f"{shown_path} is stale: {change}; put it back, run `warpsmith map {record.definition}`"
                " again, or remove its folder.",
            )
            for change in _list_changes(project, record)
        ]
    return len(maps), stale


def _list_changes(project: Project, record: PerformanceMap) -> Iterator[str]:
    op, own = record.definition, project.definition_path(record.definition)
    owner = project if own.is_file() else projects.shipped_project()
    definition = owner.definition_path(op)
    if definition_file.definition_sha256(definition) != record.definition_sha256:
        change = "or a Python file next to it has changed" if definition.is_file() else "is gone"
        yield f"{project.relative(definition)} {change} since it was made"
    for version in record.versions:
        path = solutions.find_solution(owner, op, version.solution).path
        if not records.has_content(path, version.sha256):
            change = "has changed" if path.is_file() else "is gone"
            yield f"{project.relative(path)} {change} since it was timed"

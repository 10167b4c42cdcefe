"""Choice of the version by the shape of a call, from the map of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith import project as projects
from warpsmith.campaign.evidence import toolchain
from warpsmith.core.hardware import Target
from warpsmith.errors import MachineLacks
from warpsmith.lab.machine import identity
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.performance_map import store
from warpsmith.lab.performance_map.models import PerformanceMap
from warpsmith.languages.base import Run
from warpsmith.project import Project
from warpsmith.use import choice
from warpsmith.use.arguments import Arguments
from warpsmith.use.choice import BestVersion
from warpsmith.use.shape_table import ShapeTable

MOST_SIGNATURES = 4096
"""Signatures of calls that are remembered; the choice for any other is made at each call."""


@dataclass(frozen=True)
class AppliedMap:
    """Last map of an operator for this machine, or for a target that it does not apply to."""

    path: Path
    """File of the record."""
    record: PerformanceMap
    """The map."""
    versions: tuple[BestVersion, ...]
    """Versions that it uses, the best single one first; empty if it does not apply."""
    obstacle: str = ""
    """Reason why it does not apply; empty if it does."""


def find_map(project: Project, op: str, target: Target | None, ranked: Sequence[BestVersion]) -> AppliedMap | None:
    """Return the last map of an operator that this machine made; None if the target has no map that reads.

    One of the project at hand counts before one of the project that owns the operator. A map applies to its
    machine alone, and only under the definition and the libraries of then. Its versions must stand, and today's
    best version must be one that it timed.

    Args:
        project: project that owns the operator.
        op: the operator.
        target: kind of this machine's device.
        ranked: best versions for the target, best first.
    """
    if target is None:
        return None
    # The project at hand comes last, because the last map counts.
    layers = {layer.devlog: layer for layer in (project, projects.find_project())}
    maps = [
        (path, record)
        for layer in layers.values()
        for path in store.list_map_records(layer, op, target.id)
        if isinstance(record := store.read_map(path), PerformanceMap)
    ]
    if not maps:
        return None
    machine = _machine_id(target)
    path, record = next((pair for pair in reversed(maps) if pair[1].machine.id == machine), maps[-1])
    accepted = {version.sha256: version for version in choice.accepted_versions(project, op, target.id)}
    obstacle = _find_obstacle(project, record, machine, ranked, accepted)
    versions = () if obstacle else tuple(accepted[version.sha256] for version in record.used())
    return AppliedMap(path, record, versions, obstacle)


def solution_text(applied: AppliedMap, runs: Mapping[str, Run]) -> str:
    """Return the versions that run as one text: `cuda/v8, by shape also cuda/v7`."""
    first, *others = (version.solution for version in applied.versions if version.solution in runs)
    return f"{first}, by shape also {', '.join(others)}" if others else first


def map_sha256(applied: AppliedMap) -> str:
    """Return the hash of a map's record."""
    return files.file_sha256(applied.path)


def run_by_shape(applied: AppliedMap, runs: Mapping[str, Run], file: DefinitionFile, arguments: Arguments) -> Run:
    """Return a function that calls the version of each shape.

    Its shapes are those of real tensors, also under `torch.compile` with symbolic sizes, because it runs inside of
    the registered operator. A known signature costs one look-up.

    Args:
        applied: a map that applies.
        runs: version to its function; the best single one runs in place of one that is absent.
        file: definition of the operator.
        arguments: arguments of its calls.
    """
    table = ShapeTable(applied.record, file.definition, arguments.axes)
    best = runs[applied.record.best]
    shaped, dtype_at = arguments.shaped_positions, arguments.typed_position
    names = tuple(file.definition.inputs)
    number_positions = tuple(names.index(name) for name in table.numbers)
    remembered: dict[tuple[Any, ...], Run] = {}

    def choose(key: tuple[Any, ...], values: Sequence[Any]) -> Run:
        dtype = str(values[dtype_at].dtype).removeprefix("torch.") if dtype_at is not None else ""
        kind = (dtype, *(values[position] for position in number_positions))
        run = runs.get(table.solution_at(kind, arguments.sizes_by_axis(values)), best)
        if len(remembered) < MOST_SIGNATURES:
            remembered[key] = run
        return run

    def run(*values: Any) -> Any:  # noqa: ANN401 - tensors and numbers
        key = (
            *[values[position].shape for position in shaped],
            None if dtype_at is None else values[dtype_at].dtype,
            *[values[position] for position in number_positions],
        )
        return (remembered.get(key) or choose(key, values))(*values)

    return run


def _machine_id(target: Target) -> str:
    try:
        return identity.identify_machine(target).id
    except MachineLacks:
        return ""


def _find_obstacle(
    project: Project,
    record: PerformanceMap,
    machine: str,
    ranked: Sequence[BestVersion],
    accepted: Mapping[str, BestVersion],
) -> str:
    """Return why a map does not apply on this machine; empty if it does."""
    if record.machine.id != machine:
        return f"it was measured on another machine, {record.machine.device}, {record.machine.processor}"
    if record.definition_sha256 != definition_file.definition_sha256(project.definition_path(record.definition)):
        return "the definition has changed since"
    if missing := [version.solution for version in record.used() if version.sha256 not in accepted]:
        return f"{missing[0]} as it was timed is no accepted version any more"
    if not ranked or ranked[0].sha256 not in {version.sha256 for version in record.versions}:
        return f"it did not time {ranked[0].solution if ranked else 'any version'}, today's best version"
    languages = [version.language for version in record.used()]
    if differences := toolchain.differing_packages(record.machine.libraries, languages):
        return f"it was measured under {toolchain.describe_differences(differences)}"
    return ""

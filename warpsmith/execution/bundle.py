"""Bundles: the job and the files that it needs, without anything else of the project or the user."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from warpsmith.errors import MissingInput, Misuse
from warpsmith.execution.archive import pack_files
from warpsmith.execution.job import Job
from warpsmith.lab.operator import captured
from warpsmith.project import MARKER, SHIPPED, Project

JOB = "job.json"
"""Name of the job in a bundle, and in its folder there."""

PROJECT = "project"
"""Folder of a bundle that is laid out as the project is."""


@dataclass(frozen=True)
class Bundle:
    """A job as it travels."""

    job: Job
    """Job in the bundle."""
    data: bytes
    """Archive of the job and its files."""
    solution_sha256: str | None = None
    """Hash of the version in it."""
    best_sha256: str | None = None
    """Hash of the best version in it."""

    @property
    def sha256(self) -> str:
        """Hash of the archive."""
        return hashlib.sha256(self.data).hexdigest()


def pack_job(
    project: Project,
    job: Job,
    solution: Path | None = None,
    best: Path | None = None,
    contenders: Mapping[int, Path] = MappingProxyType({}),
) -> Bundle:
    """Pack a job with its operator's definition, its versions, the target's page and the target's measurements.

    A version may stand in a fork of the project; it travels as one of the project.

    Args:
        project: the project.
        job: the job.
        solution: file of the version; None if the job has none.
        best: file of the best version; None if there is none.
        contenders: file of each contender that the job names.

    Raises:
        MissingInput: a version does not exist.
        Misuse: a folder or a file of the project lies outside of its root, or a file is no regular one.
    """
    contents = {JOB: job.model_dump_json(exclude_defaults=True).encode(), f"{PROJECT}/{MARKER}": _marker(project)}
    manifest = job.manifest
    paths = list(_definition_files(project, manifest.target_op)) if manifest else []
    if manifest:
        hardware = project.knowledge / "hardware"
        paths += [
            hardware / f"{manifest.target}.md",
            *sorted(project.measurements.glob(f"{manifest.target}-*.json")),
        ]
    contents |= {_name(project, path): _read(project, path) for path in paths if os.path.lexists(path)}
    hashes: list[str | None] = []
    for path in (solution, best):
        source = _read_version(project, path) if path else None
        if manifest and path and source is not None:
            owned = project.kernels / manifest.target_op / path.parent.name / path.name
            contents[_name(project, owned)] = source
        hashes.append(None if source is None else hashlib.sha256(source).hexdigest())
    contents |= {f"{PROJECT}/{job.contenders[key]}": _read_version(project, contenders[key]) for key in contenders}
    return Bundle(job, pack_files(contents), *hashes)


def _read_version(project: Project, path: Path) -> bytes:
    if not os.path.lexists(path):
        raise MissingInput(f"{path} does not exist.")
    return _read(project, path)


def _read(project: Project, path: Path) -> bytes:
    """Return the bytes of a file; a symbolic link must not hand out what the project does not hold."""
    real = path.resolve()
    if not any(real.is_relative_to(root.resolve()) for root in (project.root, SHIPPED)):
        raise Misuse(f"{path} leads to {real}, outside of the project; put the file itself there.")
    if not real.is_file():
        raise Misuse(f"{path} is no regular file, so it cannot be sent to another machine; remove or rename it.")
    return real.read_bytes()


def _definition_files(project: Project, op: str) -> Iterator[Path]:
    folder = project.definition_path(op).parent
    yield from sorted(folder.glob("*.py"))
    yield folder / captured.FILE


def _name(project: Project, path: Path) -> str:
    """Return the name of a file in the bundle: where it stands, not where a symbolic link leads."""
    for folder in (project.kernels, project.knowledge):
        if path.is_relative_to(folder):
            return f"{PROJECT}/{project.relative(folder)}/{path.relative_to(folder).as_posix()}"
    return f"{PROJECT}/{project.relative(path.parent)}/{path.name}"


def _marker(project: Project) -> bytes:
    """Return the configuration of the bundle's project: the same folders, so that records give the same paths."""
    lines = []
    for name, folder in (
        ("kernels", project.kernels),
        ("devlog", project.devlog),
        ("knowledge", project.knowledge),
    ):
        if not folder.resolve().is_relative_to(project.root):
            raise Misuse(f"{folder} lies outside of the project {project.root}; another machine needs it inside.")
        lines.append(f"{name} = {json.dumps(project.relative(folder), ensure_ascii=False)}\n")
    return "".join(lines).encode()

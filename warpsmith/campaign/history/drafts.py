"""Versions and drafts of an operator by their names."""

from __future__ import annotations

import re

from warpsmith import languages
from warpsmith.campaign.history import solutions
from warpsmith.errors import MissingInput
from warpsmith.port.versions import PortVersion
from warpsmith.project import Project

_DRAFT = re.compile(r"([a-z][a-z0-9_]*)/(\d+_\w+)")


def find_port_version(project: Project, op: str, name: str) -> PortVersion:
    """Find the version `triton/v3`, or the draft `flydsl/01_rows` in `<kernels>/<op>/drafts/`.

    Raises:
        MissingInput: it has no file.
        Misuse: the name is none of a version, or the language is unknown.
    """
    if match := _DRAFT.fullmatch(name):
        language, version = match[1], match[2]
        suffix = languages.get(language).suffix
        path = project.kernels / op / "drafts" / language / f"{version}{suffix}"
    else:
        solution = solutions.find_solution(project, op, name)
        language, version, path = solution.language, f"v{solution.version}", solution.path
    if not path.is_file():
        raise MissingInput(f"{project.relative(path)} does not exist.")
    return PortVersion(language, version, path)

"""Project settings: `[tool.warpsmith.project]`, which describes a kernel in its own repository."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pydantic import ValidationError

from warpsmith import project as projects
from warpsmith.core.repo import RepoSettings
from warpsmith.core.text import describe_error
from warpsmith.errors import MissingInput, Misuse
from warpsmith.project import Project

PAGE = "docs/repo-mode.md"
"""Page that explains the keys."""


def load_settings(project: Project) -> RepoSettings:
    """Read the settings of a project.

    Raises:
        MissingInput: the project has none.
        Misuse: a key is unknown, missing or wrong, or a kernel file does not exist.
    """
    file, table = projects.read_settings_table(project.root, "project")
    location = f"{file}, [{'project' if file.name == 'warpsmith.toml' else 'tool.warpsmith.project'}]"
    if table is None:
        raise MissingInput(
            f"{location} does not exist; `warpsmith repo init` drafts it: the kernel, its test and its benchmark."
        )
    if isinstance(table, Mapping) and isinstance(table.get("kernel"), str):
        table = {**table, "kernel": [table["kernel"]]}
    try:
        settings = RepoSettings.model_validate(table)
    except ValidationError as error:
        raise Misuse(f"{location}: {describe_error(error)}; correct it ({PAGE} lists every key).") from error
    for path in settings.kernel:
        if not (project.root / path).is_file():
            raise Misuse(f"{location}: `kernel` names {path}, which is not a file in {project.root}; correct it.")
    return settings


def settings_sha256(settings: RepoSettings) -> str:
    """Hash of the settings; without a program it is what it was before settings could name one."""
    text = settings.model_dump_json(exclude=None if settings.program else {"program"})
    return hashlib.sha256(text.encode()).hexdigest()

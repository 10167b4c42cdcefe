"""The contract: what `[tool.warpsmith.project]` says of a kernel that is worked on in its own repository."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pydantic import ValidationError

from warpsmith import project as projects
from warpsmith.core.problem import describe_error
from warpsmith.core.repo import RepoSettings
from warpsmith.errors import MissingInput, Misuse
from warpsmith.project import Project

PAGE = "docs/repo-mode.md"
"""Where the keys are explained."""


def load_settings(project: Project) -> RepoSettings:
    """The project's contract.

    Raises:
        MissingInput: there is none.
        Misuse: a key is unknown, missing or wrong; or a kernel file is not there.
    """
    file, table = projects.read_kernel_settings(project.root)
    where = f"{file}, [{'project' if file.name == 'warpsmith.toml' else 'tool.warpsmith.project'}]"
    if table is None:
        raise MissingInput(
            f"{where} is not there; write it: which kernel, and how it is tested and measured ({PAGE})."
        )
    if isinstance(table, Mapping) and isinstance(table.get("kernel"), str):
        table = {**table, "kernel": [table["kernel"]]}
    try:
        contract = RepoSettings.model_validate(table)
    except ValidationError as error:
        raise Misuse(f"{where}: {describe_error(error)}; mend it ({PAGE} has every key).") from error
    for path in contract.kernel:
        if not (project.root / path).is_file():
            raise Misuse(f"{where}: `kernel` names {path}, which is no file in {project.root}; mend it.")
    return contract


def settings_sha256(contract: RepoSettings) -> str:
    """The contract's hash."""
    return hashlib.sha256(contract.model_dump_json().encode()).hexdigest()

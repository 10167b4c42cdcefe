"""Operators of the comparison: the definitions that agents see, and the ones with hidden sizes that judge them."""

from __future__ import annotations

import json
from pathlib import Path

from warpsmith import files
from warpsmith.core.definition import Workload
from warpsmith.errors import Misuse
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.project import SHIPPED, Project

SUITE = SHIPPED / "evals" / "uplift"
"""Folder of the operators, their hidden sizes and the bare arm's scripts."""

_HIDDEN = "hidden-"


def operator_names() -> list[str]:
    """List the operators."""
    return sorted(path.parent.name for path in SUITE.glob("operators/*/definition.py"))


def definition_path(operator: str) -> Path:
    """Return the public definition of an operator; raises Misuse if there is none."""
    if operator not in operator_names():
        raise Misuse(f"Uplift has no operator `{operator}`; it has: {', '.join(operator_names())}.")
    return SUITE / "operators" / operator / "definition.py"


def load_public(operator: str) -> DefinitionFile:
    """Load the definition that agents see."""
    return definition_file.load_definition(definition_path(operator))


def load_judged(operator: str, project: Project) -> DefinitionFile:
    """Write the definition with the hidden sizes into a project, and load it."""
    text = definition_path(operator).read_text(encoding="utf-8")
    path = project.definition_path(operator)
    workloads = [workload.model_dump() for workload in hidden_workloads(operator)]
    files.write_file(path, f"{text}\n\ndefinition = definition.model_validate(\n    definition.model_dump() |"
                     " {'workloads': [*(w.model_dump() for w in definition.workloads), "
                     f"*{workloads!r}]}}\n)\n")  # fmt: skip
    return definition_file.load_definition(path)


def hidden_workloads(operator: str) -> list[Workload]:
    """List the workloads that no brief shows."""
    rows = json.loads((SUITE / "hidden.json").read_text(encoding="utf-8"))[operator]
    return [Workload(name=f"{_HIDDEN}{number}", **row) for number, row in enumerate(rows, 1)]


def is_public(workload: str) -> bool:
    """Return True if agents know the workload."""
    return not workload.startswith(_HIDDEN)

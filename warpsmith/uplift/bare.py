"""Plain PyTorch form of an operator, for agents without Warpsmith: derived from its definition, so that both arms
have the same function, sizes and tolerance."""

from __future__ import annotations

import ast
import json
from pprint import pformat

from warpsmith.core.definition import Definition, TensorSpec
from warpsmith.lab.operator.definition_file import DefinitionFile

_HEADER = '''\
"""{description}

`run` in a kernel's file takes {parameters} and returns {outputs}.
{constraints}"""

from dataclasses import dataclass, field

import torch


@dataclass
class Workload:
    name: str
    axes: dict
    dtype: str
    timed: bool
    scalars: dict = field(default_factory=dict)


'''


def plain_reference(file: DefinitionFile) -> str:
    """Return the operator as a module that imports nothing but torch."""
    definition = file.definition
    source = file.path.read_text(encoding="utf-8")
    tables = {
        "PARAMETERS": list(definition.inputs),
        "INPUTS": {name: _spec(spec) for name, spec in definition.tensor_inputs.items()},
        "OUTPUTS": {name: _spec(spec) for name, spec in definition.outputs.items()},
        "TOLERANCE": {name: definition.tolerance_of(name).model_dump() for name in definition.outputs},
    }
    workloads = [
        f"    Workload({w.name!r}, {w.axes!r}, {w.dtype!r}, {w.timed}, {definition.scalars(w)!r}),"
        for w in definition.workloads
    ]
    parts = [
        _header(definition),
        "\n".join(f"{name} = {pformat(table, width=110, sort_dicts=False)}" for name, table in tables.items()),
        "\nWORKLOADS = [\n" + "\n".join(workloads) + "\n]\n",
        *_kept_code(source),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _header(definition: Definition) -> str:
    return _HEADER.format(
        description=definition.description,
        parameters=", ".join(f"`{name}`" for name in definition.inputs),
        outputs=", ".join(f"`{name}`" for name in definition.outputs),
        constraints="".join(f"Promise of callers: {promise}.\n" for promise in definition.constraints),
    )


def _spec(spec: TensorSpec) -> dict[str, object]:
    fields = json.loads(spec.model_dump_json(include={"shape", "dtype", "distribution", "role", "description"}))
    return {name: value for name, value in fields.items() if value}


def _kept_code(source: str) -> list[str]:
    """List the functions and constants of a definition's file that do not need the lab."""
    code = []
    for statement in ast.parse(source).body:
        names = {target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)}
        is_code = isinstance(statement, ast.FunctionDef) and statement.name != "at"
        is_constant = isinstance(statement, ast.Assign) and "definition" not in names
        if is_code or is_constant:
            code.append(f"\n{ast.get_source_segment(source, statement)}\n")
    return code

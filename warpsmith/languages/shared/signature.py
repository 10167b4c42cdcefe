"""Signature of a version's `run`, and the parts of a starting file that every language's template has."""

from __future__ import annotations

from typing import NamedTuple

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec


def parameters(definition: Definition) -> list[str]:
    """Return the names of `run`'s parameters in order: inputs, then outputs if the definition gives them."""
    outputs = definition.outputs if definition.outputs_are == "given" else {}
    return [*definition.inputs, *outputs]


def describe_arguments(definition: Definition) -> list[str]:
    """Return a line for every input and output: `x: (rows, cols), the workload's type. Rows to normalise.`"""
    specs = {**definition.inputs, **definition.outputs}
    return [f"{name}: {_describe_spec(spec)}".rstrip() for name, spec in specs.items()]


class RunStub(NamedTuple):
    """Beginning of `run` in a starting Python file."""

    head: str
    """`def run(...):` with its docstring, without a body."""
    duty: str
    """Task of the body: `return y`, or `write into y`."""


def python_stub(definition: Definition) -> RunStub:
    """Return the `run` of a starting Python file, which a template completes."""
    results = ", ".join(definition.outputs)
    duty = f"write into {results}" if definition.outputs_are == "given" else f"return {results}"
    lines = "\n".join(f"    {line}" for line in describe_arguments(definition))
    head = f'def run({", ".join(parameters(definition))}):\n    """Must {duty}.\n\n{lines}\n    """'
    return RunStub(head, duty)


def _describe_spec(spec: TensorSpec | ScalarSpec) -> str:
    if isinstance(spec, ScalarSpec):
        return f"{spec.type}. {spec.description}"
    dtype = "the workload's type" if spec.dtype == "workload" else spec.dtype
    return f"({', '.join(map(str, spec.shape))}), {dtype}. {spec.description}"

"""What `run` takes and gives, as a starting file tells it."""

from __future__ import annotations

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec


def parameters(definition: Definition) -> list[str]:
    """The names of what `run` is called with, in order: inputs, then outputs that are given."""
    given = definition.outputs if definition.outputs_are == "given" else {}
    return [*definition.inputs, *given]


def described(definition: Definition) -> list[str]:
    """A line for every input and output: `x: (rows, cols), the workload's type. Rows to normalise.`"""
    specs = {**definition.inputs, **definition.outputs}
    return [f"{name}: {_described(spec)}".rstrip() for name, spec in specs.items()]


def _described(spec: TensorSpec | ScalarSpec) -> str:
    if isinstance(spec, ScalarSpec):
        return f"{spec.type}. {spec.description}"
    dtype = "the workload's type" if spec.dtype == "workload" else spec.dtype
    return f"({', '.join(map(str, spec.shape))}), {dtype}. {spec.description}"

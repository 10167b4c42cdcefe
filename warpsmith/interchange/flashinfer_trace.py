"""Import of FlashInfer-Trace definitions (JSON) and their workloads (JSON lines)."""

from __future__ import annotations

import ast
from math import prod
from pathlib import Path

from pydantic import ValidationError

from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.errors import BadDefinition
from warpsmith.interchange.draft import (
    DefinitionDraft,
    docstring_safe,
    magnitude_source,
    python_literal,
    read_user_text,
)
from warpsmith.interchange.trace_schema import TraceDefinition, TraceTensor, TraceWorkload, TraceWorkloadLine

REFERENCE = "flashinfer_reference.py"
"""File of the reference's source, next to the definition."""

_REPRESENTATIVE = 4
"""Number of workloads for every round, spread over the sizes; data sets hold hundreds."""

_DEFAULT_SIZES = {"small": 16, "medium": 1024, "odd": 37}
"""Sizes of the variable axes if there are no workloads."""

_TEXT = '''\
"""FlashInfer-Trace definition `@NAME@`; its unchanged reference is in flashinfer_reference.py."""

from __future__ import annotations

from warpsmith import @NAMES@

definition = @DEFINITION@

reference = load_sibling(__file__, "flashinfer_reference.py").run


@MAGNITUDE@'''


def draft_from_flashinfer_trace(op: str, path: Path, workloads: Path | None = None) -> DefinitionDraft:
    """Draft the definition in `path`, with the workloads in `workloads` or at their place in the data set.

    Raises:
        BadDefinition: a file lacks keys, has an unknown dtype, or its parts are inconsistent.
    """
    trace_definition = _read_definition(path)
    workloads_path = workloads or _find_workloads(path, trace_definition)
    lines = _read_workloads(workloads_path, trace_definition) if workloads_path else []
    usable = [line for line in lines if not _safetensors_inputs(line)]
    notes = [_skip_note(line) for line in lines if _safetensors_inputs(line)]
    if not usable:
        sizes = ", ".join(f"{name} {size}" for name, size in _DEFAULT_SIZES.items())
        notes.append(f"No workloads: the variable axes got default sizes ({sizes}); edit them in the definition.")
    try:
        definition = convert_trace_definition(op, trace_definition, usable)
    except (ValidationError, ValueError) as error:
        raise BadDefinition(
            f"{workloads_path or path} cannot become a definition: {_first_error(error)}"
        ) from error
    return DefinitionDraft(
        files={
            REFERENCE: trace_definition.reference,
            "definition.py": _text(trace_definition, definition, usable),
        },
        notes=tuple(notes),
    )


def convert_trace_definition(
    op: str, trace_definition: TraceDefinition, workloads: list[TraceWorkload]
) -> Definition:
    """Convert a FlashInfer-Trace definition to a definition with the name `op`.

    Raises:
        ValueError: a definition cannot express it.
    """
    scalars = [name for name, tensor in trace_definition.outputs.items() if tensor.shape is None]
    if scalars:
        raise ValueError(f"the outputs {scalars} are Python numbers; change them to tensors of shape []")
    inputs = {
        name: _scalar(name, t, workloads) if t.shape is None else _tensor(t)
        for name, t in trace_definition.inputs.items()
    }
    return Definition(
        name=op,
        description=trace_definition.description or f"FlashInfer-Trace definition {trace_definition.name}.",
        op_type=trace_definition.op_type,
        axes={
            name: axis.description or name if axis.value is None else axis.value
            for name, axis in trace_definition.axes.items()
        },
        inputs=inputs,
        outputs={name: _tensor(tensor) for name, tensor in trace_definition.outputs.items()},
        tolerance=Tolerance(reduction=_reduction(trace_definition)),
        flops=_flops(trace_definition),
        workloads=_workloads(trace_definition, workloads, inputs)
        if workloads
        else _default_workloads(trace_definition),
        constraints=tuple(trace_definition.constraints or ()),
        tags=tuple(trace_definition.tags or ()),
    )


def _read_definition(path: Path) -> TraceDefinition:
    try:
        return TraceDefinition.model_validate_json(read_user_text(path))
    except ValidationError as error:
        raise BadDefinition(f"{path} is not a FlashInfer-Trace definition: {_first_error(error)}") from error


def _first_error(error: ValueError) -> str:
    """Describe the first error and its location."""
    if not isinstance(error, ValidationError):
        return f"{error}."
    first = error.errors()[0]
    location = ".".join(str(part) for part in first["loc"])
    return f"{location + ': ' if location else ''}{first['msg'].removeprefix('Value error, ')}."


def _find_workloads(path: Path, trace_definition: TraceDefinition) -> Path | None:
    """Find `workloads/<op_type>/<name>.jsonl` in the data set that contains the definition."""
    for parent in path.resolve().parents:
        if parent.name == "definitions":
            root = parent.parent / "workloads"
            candidates = (
                root / trace_definition.op_type / f"{trace_definition.name}.jsonl",
                root / f"{trace_definition.name}.jsonl",
            )
            return next((candidate for candidate in candidates if candidate.is_file()), None)
    return None


def _read_workloads(path: Path, trace_definition: TraceDefinition) -> list[TraceWorkload]:
    workloads = []
    for number, line in enumerate(read_user_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            parsed = TraceWorkloadLine.model_validate_json(line)
        except ValidationError as error:
            raise BadDefinition(
                f"{path}:{number} is not a FlashInfer-Trace workload: {_first_error(error)}"
            ) from error
        if parsed.definition == trace_definition.name:
            workloads.append(parsed.workload)
    return workloads


def _safetensors_inputs(workload: TraceWorkload) -> list[str]:
    return [name for name, source in workload.inputs.items() if source.type == "safetensors"]


def _skip_note(workload: TraceWorkload) -> str:
    names = ", ".join(_safetensors_inputs(workload))
    return (
        f"Workload {workload.uuid} is left out: it reads {names} from safetensors files, which is not supported."
    )


def _tensor(tensor: TraceTensor) -> TensorSpec:
    return TensorSpec(shape=tuple(tensor.shape or ()), dtype=tensor.dtype, description=tensor.description or "")


def _scalar(name: str, tensor: TraceTensor, workloads: list[TraceWorkload]) -> ScalarSpec:
    """Convert a number; its value is the first workload's, else a plain guess."""
    kind = "bool" if tensor.dtype == "bool" else "int" if tensor.dtype.startswith("int") else "float"
    python = {"bool": bool, "int": int, "float": float}[kind]
    guess = 1e-6 if "eps" in name and kind == "float" else python(1)
    values = [w.inputs[name].value for w in workloads if name in w.inputs]
    value = next((v for v in values if v is not None), guess)
    return ScalarSpec(type=kind, value=python(value), description=tensor.description or "")


def _workloads(
    trace_definition: TraceDefinition,
    trace_workloads: list[TraceWorkload],
    inputs: dict[str, TensorSpec | ScalarSpec],
) -> tuple[Workload, ...]:
    order = sorted(range(len(trace_workloads)), key=lambda i: prod(trace_workloads[i].axes.values()))
    last = len(order) - 1
    count = min(_REPRESENTATIVE, len(order))
    representative = {order[round(i * last / max(1, count - 1))] for i in range(count)}
    converted = []
    for i, workload in enumerate(trace_workloads):
        if missing := sorted(set(trace_definition.inputs) - set(workload.inputs)):
            raise ValueError(f"workload {workload.uuid} does not specify the inputs {missing}")
        scalars = {
            name: type(spec.value)(value)
            for name, spec in inputs.items()
            if isinstance(spec, ScalarSpec) and (value := workload.inputs[name].value) is not None
        }
        scalars = {name: value for name, value in scalars.items() if value != inputs[name].value}  # type: ignore[union-attr]
        converted.append(
            Workload(
                name=workload.uuid,
                axes=workload.axes,
                scalars=scalars,
                set="representative" if i in representative else "full",
            )
        )
    return tuple(converted)


def _default_workloads(trace_definition: TraceDefinition) -> tuple[Workload, ...]:
    variable = [name for name, axis in trace_definition.axes.items() if axis.value is None]
    fixed = {name: axis.value for name, axis in trace_definition.axes.items() if axis.value is not None}
    workloads = []
    for label, size in _DEFAULT_SIZES.items():
        sizes = _constrained_sizes(trace_definition, fixed | dict.fromkeys(variable, size))
        axes = {name: sizes[name] for name in variable}
        workloads.append(Workload(name=label, axes=axes, set="odd" if label == "odd" else "representative"))
    return tuple(workloads)


def _constrained_sizes(trace_definition: TraceDefinition, sizes: dict[str, int]) -> dict[str, int]:
    """Set the sizes of variable axes that a constraint `axis == arithmetic` determines."""
    for constraint in trace_definition.constraints or ():
        try:
            tree = ast.parse(constraint, mode="eval").body
            if (
                isinstance(tree, ast.Compare)
                and isinstance(tree.left, ast.Name)
                and isinstance(tree.ops[0], ast.Eq)
            ):
                axis = trace_definition.axes.get(tree.left.id)
                if axis is not None and axis.value is None:
                    sizes[tree.left.id] = int(evaluate(ast.unparse(tree.comparators[0]), sizes))
        except (SyntaxError, ValueError):
            continue  # This constraint is about values, not sizes.
    return sizes


def _reduction(trace_definition: TraceDefinition) -> str:
    """Return the axes of inputs that no output has; if there are none, the last axis of the first output."""
    outputs = {axis for tensor in trace_definition.outputs.values() for axis in tensor.shape or ()}
    shapes = [tensor.shape or [] for tensor in trace_definition.inputs.values()]
    summed = dict.fromkeys(axis for shape in shapes for axis in shape if axis not in outputs)
    last = (next(iter(trace_definition.outputs.values())).shape or [])[-1:]
    return " * ".join(summed or last) or "1"


def _flops(trace_definition: TraceDefinition) -> str:
    output = next(iter(trace_definition.outputs.values())).shape or []
    elements = " * ".join(output) or "1"
    return f"2 * {elements} * {_reduction(trace_definition)}" if trace_definition.op_type == "gemm" else elements


def _text(trace_definition: TraceDefinition, definition: Definition, usable: list[TraceWorkload]) -> str:
    notes = {
        "tolerance": "The reduction length is the product of the axes that only inputs have; if there are none,\n"
        "it is the last axis of the output.",
        "flops": "Two per element of the output and step of the sum."
        if trace_definition.op_type == "gemm"
        else "The format does not give them: estimated as one per element of the output, which is never too many.",
    }
    if not usable:
        notes["workloads"] = "Default sizes of the import, since there were no workloads."
    used = {"Definition", "TensorSpec", "Tolerance", "Workload", "load_sibling"} | (
        {"ScalarSpec"} if definition.scalar_inputs else set()
    )
    text = _TEXT.replace("@NAME@", docstring_safe(trace_definition.name)).replace(
        "@NAMES@", ", ".join(sorted(used))
    )
    return text.replace("@DEFINITION@", python_literal(definition, notes)).replace(
        "@MAGNITUDE@", magnitude_source(definition)
    )

"""Reads FlashInfer-Trace definitions (JSON) and their workloads (JSON lines)."""

from __future__ import annotations

import ast
from math import prod
from pathlib import Path

from pydantic import ValidationError

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.core.expression import evaluate
from warpsmith.errors import BadDefinition
from warpsmith.interchange import trace_schema as trace
from warpsmith.interchange.draft import (
    DefinitionDraft,
    docstring_safe,
    magnitude_source,
    python_literal,
    read_user_text,
)

REFERENCE = "flashinfer_reference.py"
"""The reference's own source, beside the definition."""

_REPRESENTATIVE = 4
"""Workloads judged every round, spread over the sizes; data sets hold hundreds."""

_DEFAULT_SIZES = {"small": 16, "medium": 1024, "odd": 37}
"""Sizes of the variable axes where there are no workloads."""

_TEXT = '''\
"""FlashInfer-Trace definition `@NAME@`; its reference stands unchanged in flashinfer_reference.py."""

from __future__ import annotations

from warpsmith.core.definition import @NAMES@
from warpsmith import beside

definition = @DEFINITION@

reference = beside(__file__, "flashinfer_reference.py").run


@MAGNITUDE@'''


def draft_from_flashinfer_trace(op: str, path: Path, workloads: Path | None = None) -> DefinitionDraft:
    """The definition in `path`, with the workloads in `workloads` or at their place in the data set.

    Raises:
        BadDefinition: a file misses keys, has an unknown dtype, or its parts do not fit together.
    """
    theirs = _read_definition(path)
    found = workloads or _find_workloads(path, theirs)
    lines = _read_workloads(found, theirs) if found else []
    usable = [line for line in lines if not _safetensors_inputs(line)]
    notes = [_skip_note(line) for line in lines if _safetensors_inputs(line)]
    if not usable:
        sizes = ", ".join(f"{name} {size}" for name, size in _DEFAULT_SIZES.items())
        notes.append(
            f"No workloads: the variable axes have sizes chosen here ({sizes}); edit them in the definition."
        )
    try:
        ours = convert_trace_definition(op, theirs, usable)
    except (ValidationError, ValueError) as error:
        raise BadDefinition(f"{found or path} cannot become a definition: {_first_error(error)}") from error
    return DefinitionDraft(
        files={REFERENCE: theirs.reference, "definition.py": _text(theirs, ours, usable)}, notes=tuple(notes)
    )


def convert_trace_definition(
    op: str, theirs: trace.TraceDefinition, workloads: list[trace.TraceWorkload]
) -> Definition:
    """Their definition as one of ours under the name `op`.

    Raises:
        ValueError: it has what ours cannot say.
    """
    scalars = [name for name, tensor in theirs.outputs.items() if tensor.shape is None]
    if scalars:
        raise ValueError(f"the outputs {scalars} are Python numbers; make them tensors of shape []")
    inputs = {
        name: _scalar(name, t, workloads) if t.shape is None else _tensor(t) for name, t in theirs.inputs.items()
    }
    return Definition(
        name=op,
        description=theirs.description or f"FlashInfer-Trace definition {theirs.name}.",
        op_type=theirs.op_type,
        axes={
            name: axis.description or name if axis.value is None else axis.value
            for name, axis in theirs.axes.items()
        },
        inputs=inputs,
        outputs={name: _tensor(tensor) for name, tensor in theirs.outputs.items()},
        tolerance=Tolerance(reduction=_reduction(theirs)),
        flops=_flops(theirs),
        workloads=_workloads(theirs, workloads, inputs) if workloads else _default_workloads(theirs),
        constraints=tuple(theirs.constraints or ()),
        tags=tuple(theirs.tags or ()),
    )


def _read_definition(path: Path) -> trace.TraceDefinition:
    try:
        return trace.TraceDefinition.model_validate_json(read_user_text(path))
    except ValidationError as error:
        raise BadDefinition(f"{path} is no FlashInfer-Trace definition: {_first_error(error)}") from error


def _first_error(error: ValueError) -> str:
    """The first thing wrong, with its place."""
    if not isinstance(error, ValidationError):
        return f"{error}."
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}."


def _find_workloads(path: Path, theirs: trace.TraceDefinition) -> Path | None:
    """`workloads/<op_type>/<name>.jsonl` of the data set that the definition lies in."""
    for parent in path.resolve().parents:
        if parent.name == "definitions":
            root = parent.parent / "workloads"
            places = (root / theirs.op_type / f"{theirs.name}.jsonl", root / f"{theirs.name}.jsonl")
            return next((place for place in places if place.is_file()), None)
    return None


def _read_workloads(path: Path, theirs: trace.TraceDefinition) -> list[trace.TraceWorkload]:
    found = []
    for number, line in enumerate(read_user_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            parsed = trace.TraceWorkloadLine.model_validate_json(line)
        except ValidationError as error:
            raise BadDefinition(
                f"{path}:{number} is no FlashInfer-Trace workload: {_first_error(error)}"
            ) from error
        if parsed.definition == theirs.name:
            found.append(parsed.workload)
    return found


def _safetensors_inputs(workload: trace.TraceWorkload) -> list[str]:
    return [name for name, source in workload.inputs.items() if source.type == "safetensors"]


def _skip_note(workload: trace.TraceWorkload) -> str:
    names = ", ".join(_safetensors_inputs(workload))
    return (
        f"Workload {workload.uuid} is left out: it reads {names} from safetensors files, which is not supported."
    )


def _tensor(tensor: trace.TraceTensor) -> TensorSpec:
    return TensorSpec(shape=tuple(tensor.shape or ()), dtype=tensor.dtype, description=tensor.description or "")


def _scalar(name: str, tensor: trace.TraceTensor, workloads: list[trace.TraceWorkload]) -> ScalarSpec:
    """A number; its value is the first workload's, else a plain guess."""
    kind = "bool" if tensor.dtype == "bool" else "int" if tensor.dtype.startswith("int") else "float"
    python = {"bool": bool, "int": int, "float": float}[kind]
    guess = 1e-6 if "eps" in name and kind == "float" else python(1)
    given = [w.inputs[name].value for w in workloads if name in w.inputs]
    value = next((v for v in given if v is not None), guess)
    return ScalarSpec(type=kind, value=python(value), description=tensor.description or "")


def _workloads(
    theirs: trace.TraceDefinition, given: list[trace.TraceWorkload], inputs: dict[str, TensorSpec | ScalarSpec]
) -> tuple[Workload, ...]:
    order = sorted(range(len(given)), key=lambda i: prod(given[i].axes.values()))
    last = len(order) - 1
    count = min(_REPRESENTATIVE, len(order))
    often = {order[round(i * last / max(1, count - 1))] for i in range(count)}
    found = []
    for i, workload in enumerate(given):
        if missing := sorted(set(theirs.inputs) - set(workload.inputs)):
            raise ValueError(f"workload {workload.uuid} says nothing of the inputs {missing}")
        scalars = {
            name: type(spec.value)(value)
            for name, spec in inputs.items()
            if isinstance(spec, ScalarSpec) and (value := workload.inputs[name].value) is not None
        }
        scalars = {name: value for name, value in scalars.items() if value != inputs[name].value}  # type: ignore[union-attr]
        found.append(
            Workload(
                name=workload.uuid,
                axes=workload.axes,
                scalars=scalars,
                set="representative" if i in often else "full",
            )
        )
    return tuple(found)


def _default_workloads(theirs: trace.TraceDefinition) -> tuple[Workload, ...]:
    variable = [name for name, axis in theirs.axes.items() if axis.value is None]
    fixed = {name: axis.value for name, axis in theirs.axes.items() if axis.value is not None}
    found = []
    for label, size in _DEFAULT_SIZES.items():
        sizes = _constrained_sizes(theirs, fixed | dict.fromkeys(variable, size))
        axes = {name: sizes[name] for name in variable}
        found.append(Workload(name=label, axes=axes, set="odd" if label == "odd" else "representative"))
    return tuple(found)


def _constrained_sizes(theirs: trace.TraceDefinition, sizes: dict[str, int]) -> dict[str, int]:
    """Put the sizes of variable axes that a constraint `axis == arithmetic` gives."""
    for constraint in theirs.constraints or ():
        try:
            tree = ast.parse(constraint, mode="eval").body
            if (
                isinstance(tree, ast.Compare)
                and isinstance(tree.left, ast.Name)
                and isinstance(tree.ops[0], ast.Eq)
            ):
                axis = theirs.axes.get(tree.left.id)
                if axis is not None and axis.value is None:
                    sizes[tree.left.id] = int(evaluate(ast.unparse(tree.comparators[0]), sizes))
        except (SyntaxError, ValueError):
            continue  # about values, not sizes
    return sizes


def _reduction(theirs: trace.TraceDefinition) -> str:
    """Axes of inputs that no output has; where there are none, the last axis of the first output."""
    outputs = {axis for tensor in theirs.outputs.values() for axis in tensor.shape or ()}
    shapes = [tensor.shape or [] for tensor in theirs.inputs.values()]
    summed = dict.fromkeys(axis for shape in shapes for axis in shape if axis not in outputs)
    last = (next(iter(theirs.outputs.values())).shape or [])[-1:]
    return " * ".join(summed or last) or "1"


def _flops(theirs: trace.TraceDefinition) -> str:
    output = next(iter(theirs.outputs.values())).shape or []
    elements = " * ".join(output) or "1"
    return f"2 * {elements} * {_reduction(theirs)}" if theirs.op_type == "gemm" else elements


def _text(theirs: trace.TraceDefinition, ours: Definition, usable: list[trace.TraceWorkload]) -> str:
    notes = {
        "tolerance": "The reduction length is the product of the axes that only inputs have; where there are\n"
        "none, the last axis of the output.",
        "flops": "Two an element of the output and step of the sum."
        if theirs.op_type == "gemm"
        else "The form does not say them: estimated as one an element of the output, which is never too many.",
    }
    if not usable:
        notes["workloads"] = "Sizes chosen by the import: there were no workloads with them."
    used = {"Definition", "TensorSpec", "Tolerance", "Workload"} | (
        {"ScalarSpec"} if ours.scalar_inputs else set()
    )
    text = _TEXT.replace("@NAME@", docstring_safe(theirs.name)).replace("@NAMES@", ", ".join(sorted(used)))
    return text.replace("@DEFINITION@", python_literal(ours, notes)).replace("@MAGNITUDE@", magnitude_source(ours))

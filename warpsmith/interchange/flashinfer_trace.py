"""Import of FlashInfer-Trace definitions (JSON) and SOL-ExecBench problems, with their workloads (JSON lines)."""

from __future__ import annotations

import importlib.util
from math import prod
from pathlib import Path

from pydantic import ValidationError

from warpsmith.core.arithmetic.comparison import holds, select_comparisons
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.errors import BadDefinition
from warpsmith.interchange import trace_inputs
from warpsmith.interchange.draft import DefinitionDraft, read_user_text
from warpsmith.interchange.pytorch.formulas import blocked_length
from warpsmith.interchange.pytorch.forward import HALVES
from warpsmith.interchange.trace_schema import TraceDefinition, TraceTensor, TraceWorkload, TraceWorkloadLine
from warpsmith.interchange.trace_text import REFERENCE, trace_definition_text

_REPRESENTATIVE = 4
"""Number of workloads for every round, spread over the sizes; data sets hold hundreds."""

_DEFAULT_SIZES = {"small": 16, "medium": 1024, "odd": 37}
"""Sizes of the variable axes if there are no workloads."""

_STRUCTURAL_SIZES = {"small": 16, "medium": 128}
"""The same where offsets cut an axis: such references loop over it in Python, row by row."""

_ODD_SIZES = {"odd-1": 1, "odd-7": 7, "odd-37": 37}
"""Sizes of the variable axes of odd workloads, where constraints keep the lab from deriving them."""

_TRIED_ELEMENTS = 1 << 24
"""Elements of the largest workload at which the reference is tried."""

_UPCAST = (
    "The reference rounds to half precision between its operations and missed its bound, so it computes in "
    "float32 and rounds its results; as a baseline it is slower than the code as written."
)

_OFFSETS_SHARE = 16
"""Size of an axis over the length of offsets that cut it."""


def draft_from_flashinfer_trace(op: str, path: Path, workloads: Path | None = None) -> DefinitionDraft:
    """Draft the definition in `path`, with the workloads in `workloads` or at their place in the data set.

    Raises:
        BadDefinition: a file lacks keys, has an unknown dtype, or its parts are inconsistent.
    """
    trace_definition = read_trace_definition(path)
    workloads_path = workloads or _find_workloads(path, trace_definition)
    lines = _own_workloads(workloads_path, trace_definition) if workloads_path else []
    notes = _input_notes(trace_definition, lines)
    if not lines:
        sizes = ", ".join(f"{name} {size}" for name, size in _default_sizes(trace_definition).items())
        notes.append(f"No workloads: the variable axes got default sizes ({sizes}); edit them in the definition.")
    try:
        definition = convert_trace_definition(op, trace_definition, lines)
    except (ValidationError, ValueError) as error:
        raise BadDefinition(
            f"{workloads_path or path} cannot become a definition: {first_error(error)}"
        ) from error
    return draft_conversion(trace_definition, definition, lines, notes)


def draft_conversion(
    trace_definition: TraceDefinition,
    definition: Definition,
    lines: list[TraceWorkload],
    notes: list[str],
    captured_files: dict[str, bytes] | None = None,
) -> DefinitionDraft:
    """Draft a converted definition; its reference is tried at small sizes first.

    Args:
        trace_definition: the imported definition.
        definition: its conversion.
        lines: the imported workloads.
        notes: sentences for the user.
        captured_files: further files by name, which stand next to the definition.
    """
    op = definition.name

    def draft(*, upcasts: bool) -> DefinitionDraft:
        text = trace_definition_text(trace_definition, definition, lines, upcasts=upcasts)
        texts = {REFERENCE: trace_definition.reference, "definition.py": text}
        return DefinitionDraft({**texts, **(captured_files or {})}, tuple(notes))

    if importlib.util.find_spec("torch") is None:
        return draft(upcasts=False)
    from warpsmith.interchange.trial import try_reference

    failure = try_reference(op, draft(upcasts=False), _TRIED_ELEMENTS).failure
    has_halves = any(tensor.dtype in HALVES for tensor in trace_definition.inputs.values())
    if failure and has_halves and not try_reference(op, draft(upcasts=True), _TRIED_ELEMENTS).failure:
        notes.append(_UPCAST)
        return draft(upcasts=True)
    if failure:
        notes.append(f"Check: {failure}")
    return draft(upcasts=False)


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
        name: _scalar(trace_definition, name, workloads) if t.shape is None else _tensor(trace_definition, t, name)
        for name, t in trace_definition.inputs.items()
    }
    points = _workloads(trace_definition, workloads, inputs) if workloads else _default_workloads(trace_definition)
    outputs = {name: _tensor(trace_definition, tensor) for name, tensor in trace_definition.outputs.items()}
    return Definition(
        name=op,
        description=trace_definition.description or f"FlashInfer-Trace definition {trace_definition.name}.",
        op_type=trace_definition.op_type,
        axes={
            name: axis.description or name if axis.value is None else axis.value
            for name, axis in trace_definition.axes.items()
            if axis.type != "expr"
        },
        inputs=inputs,
        outputs=outputs,
        tolerance=_tolerance(trace_definition, points),
        flops=_flops(trace_definition),
        workloads=points,
        constraints=tuple(trace_definition.constraints or ()),
        tags=tuple(trace_definition.tags or ()),
    )


def read_trace_definition(path: Path) -> TraceDefinition:
    """Read a FlashInfer-Trace definition.

    Raises:
        BadDefinition: the file is none.
    """
    try:
        return TraceDefinition.model_validate_json(read_user_text(path))
    except ValidationError as error:
        raise BadDefinition(f"{path} is not a FlashInfer-Trace definition: {first_error(error)}") from error


def first_error(error: ValueError) -> str:
    """Describe the first error and its location."""
    if not isinstance(error, ValidationError):
        return f"{error}."
    first = error.errors()[0]
    location = ".".join(str(part) for part in first["loc"])
    return f"{location + ': ' if location else ''}{first['msg'].removeprefix('Value error, ')}."


def _find_workloads(path: Path, trace_definition: TraceDefinition) -> Path | None:
    """Find `workloads/<op_type>/<name>.jsonl` in the data set that contains the definition, or `workload.jsonl`
    beside it, as a SOL-ExecBench problem has it."""
    own_file = path.with_name("workload.jsonl")
    if path.name == "definition.json" and own_file.is_file():
        return own_file
    for parent in path.resolve().parents:
        if parent.name == "definitions":
            root = parent.parent / "workloads"
            candidates = (
                root / trace_definition.op_type / f"{trace_definition.name}.jsonl",
                root / f"{trace_definition.name}.jsonl",
            )
            return next((candidate for candidate in candidates if candidate.is_file()), None)
    return None


def read_trace_workloads(path: Path) -> list[TraceWorkloadLine]:
    """Read workloads, one a line.

    Raises:
        BadDefinition: a line is none.
    """
    workloads = []
    for number, line in enumerate(read_user_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            workloads.append(TraceWorkloadLine.model_validate_json(line))
        except ValidationError as error:
            raise BadDefinition(
                f"{path}:{number} is not a FlashInfer-Trace workload: {first_error(error)}"
            ) from error
    return workloads


def _own_workloads(path: Path, trace_definition: TraceDefinition) -> list[TraceWorkload]:
    lines = read_trace_workloads(path)
    return [line.workload for line in lines if line.definition in (None, trace_definition.name)]


def _input_notes(trace_definition: TraceDefinition, workloads: list[TraceWorkload]) -> list[str]:
    """Return sentences about inputs that are drawn otherwise than the workloads say."""
    drawn = [n for n in trace_definition.inputs if trace_inputs.is_structural(trace_definition, n)]
    stored = {n for w in workloads for n, source in w.inputs.items() if source.type == "safetensors"}
    notes = []
    if drawn:
        notes.append(f"Drawn to fit the axes and constraints, anew for every call: {', '.join(drawn)}.")
    if others := sorted(stored - set(drawn)):
        notes.append(f"Drawn at random instead of read from safetensors files: {', '.join(others)}; check them.")
    if trace_definition.custom_inputs_entrypoint:
        notes.append(f"Inputs come from the definition's own `{trace_definition.custom_inputs_entrypoint}`.")
    return notes


def _tensor(trace_definition: TraceDefinition, tensor: TraceTensor, input_name: str = "") -> TensorSpec:
    distribution = trace_inputs.input_distribution(trace_definition, input_name) if input_name else "workload"
    return TensorSpec(
        shape=trace_inputs.tensor_shape(trace_definition, tensor),
        dtype=tensor.dtype,
        distribution=distribution,
        description=tensor.description or "",
    )


def _scalar(trace_definition: TraceDefinition, name: str, workloads: list[TraceWorkload]) -> ScalarSpec:
    """Convert a number; its value is the first workload's, else a plain guess."""
    tensor = trace_definition.inputs[name]
    kind = "bool" if tensor.dtype == "bool" else "int" if tensor.dtype.startswith("int") else "float"
    python = {"bool": bool, "int": int, "float": float}[kind]
    guess = 1e-6 if "eps" in name and kind == "float" else python(1)
    guess = trace_inputs.scale_value(trace_definition, name) or guess if kind == "float" else guess
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
    return (*converted, *_odd_workloads(trace_definition))


def _default_workloads(trace_definition: TraceDefinition) -> tuple[Workload, ...]:
    workloads = [
        Workload(
            name=label,
            axes=_sizes(trace_definition, size),
            set="odd" if label == "odd" else "representative",
        )
        for label, size in _default_sizes(trace_definition).items()
    ]
    promised = [workload for workload in workloads if _holds_constraints(trace_definition, workload)]
    return (*(promised or workloads), *_odd_workloads(trace_definition))


def _default_sizes(trace_definition: TraceDefinition) -> dict[str, int]:
    is_odd_declared = bool(_odd_workloads(trace_definition))
    return _STRUCTURAL_SIZES if is_odd_declared else _DEFAULT_SIZES


def _odd_workloads(trace_definition: TraceDefinition) -> tuple[Workload, ...]:
    """Return odd workloads if inputs have to fit each other; the lab derives none under constraints."""
    if not trace_definition.constraints or trace_definition.custom_inputs_entrypoint:
        return ()
    if not any(trace_inputs.is_structural(trace_definition, name) for name in trace_definition.inputs):
        return ()
    odd = (
        Workload(name=label, axes=_sizes(trace_definition, size), set="odd") for label, size in _ODD_SIZES.items()
    )
    return tuple(workload for workload in odd if _holds_constraints(trace_definition, workload))


def _holds_constraints(trace_definition: TraceDefinition, workload: Workload) -> bool:
    """Return True if the constraints hold at a workload that compare sizes alone."""
    fixed = {name: axis.value for name, axis in trace_definition.axes.items() if axis.value is not None}
    texts = select_comparisons(tuple(trace_definition.constraints or ()), tuple(trace_definition.axes))
    return all(holds(text, fixed | workload.axes) for text in texts)


def _sizes(trace_definition: TraceDefinition, size: int) -> dict[str, int]:
    """Return the variable axes at one size, where constraints and offsets leave it."""
    short = trace_inputs.offsets_axes(trace_definition)
    fixed = {name: axis.value for name, axis in trace_definition.axes.items() if axis.value is not None}
    variable = {
        name: size // _OFFSETS_SHARE + 2 if name in short else size
        for name, axis in trace_definition.axes.items()
        if axis.type == "var"
    }
    # The length of offsets may determine other axes, or be determined by them.
    sizes = trace_inputs.constrained_sizes(trace_definition, fixed | variable)
    return {name: sizes[name] for name in variable}


def _tolerance(
    trace_definition: TraceDefinition, workloads: tuple[Workload, ...]
) -> Tolerance | dict[str, Tolerance]:
    """Return a tolerance for all outputs, or one for each if their reduction lengths differ."""
    largest = max(workloads, key=lambda workload: prod(workload.axes.values()))
    fixed = {name: axis.value for name, axis in trace_definition.axes.items() if axis.value is not None}
    lengths = {
        name: blocked_length(_reduced_axes(trace_definition, tensor), fixed | largest.axes)
        for name, tensor in trace_definition.outputs.items()
    }
    tolerances = {name: Tolerance(reduction=length) for name, length in lengths.items()}
    return next(iter(tolerances.values())) if len(set(lengths.values())) == 1 else tolerances


def _reduced_axes(trace_definition: TraceDefinition, output: TraceTensor) -> list[str]:
    """Return the axes of floating inputs that an output lacks; if there are none, its last axis."""
    own = output.shape or []
    shapes = [t.shape or [] for t in trace_definition.inputs.values() if t.dtype.startswith(("float", "bfloat"))]
    summed = list(dict.fromkeys(axis for shape in shapes for axis in shape if axis not in own))
    return [trace_inputs.axis_expression(trace_definition, axis) for axis in summed or own[-1:]]


def _flops(trace_definition: TraceDefinition) -> str:
    first = next(iter(trace_definition.outputs.values()))
    factors = [f"({size})" if " " in size else size for size in trace_inputs.tensor_shape(trace_definition, first)]
    elements = " * ".join(factors) or "1"
    if trace_definition.op_type != "gemm":
        return elements
    return " * ".join(["2", elements, *_reduced_axes(trace_definition, first)])

"""Import of a traced serving process: a definition whose workloads are the shapes that were called, with their
weights and their tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.errors import BadDefinition, Misuse
from warpsmith.interchange import trace_inputs
from warpsmith.interchange.capture_dump import CalledShape, CaptureDump, read_dump
from warpsmith.interchange.captured_values import CapturedValues, InputStatistics, describe_values
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.interchange.flashinfer_trace import convert_trace_definition, draft_conversion, first_error
from warpsmith.interchange.trace_schema import TraceInput, TraceWorkload
from warpsmith.lab.operator import captured
from warpsmith.lab.operator.captured import CapturedCall, CapturedCalls

if TYPE_CHECKING:
    import torch

SERVING_TAG = "serving:"
"""Beginning of the tag with the name that the serving process calls the operator by."""

_REPRESENTATIVE = 4
"""Number of shapes that are judged in every round, the most frequent ones."""

_STORED_BYTES = 32 << 20
"""Bytes of all tensors that stand next to a definition."""

_CALLS_OF_A_SHAPE = 4
"""Number of calls of one shape whose tensors are stored."""


@dataclass
class _Store:
    """Tensors that will stand next to the definition; calls share equal ones."""

    calls: list[CapturedCall] = field(default_factory=list)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    size: int = 0
    left_out: int = 0

    def add(self, axes: dict[str, int], tensors: dict[str, torch.Tensor]) -> None:
        """Store a call, unless the tensors would be too large."""
        keys = {name: self._equal_key(name, tensor) for name, tensor in tensors.items()}
        fresh = {name: tensor for name, tensor in tensors.items() if keys[name] is None}
        size = sum(tensor.numel() * tensor.element_size() for tensor in fresh.values())
        if self.size + size > _STORED_BYTES:
            self.left_out += 1
            return
        self.size += size
        own = {name: f"{name}/{len(self.calls)}" for name in fresh}
        self.tensors |= {own[name]: tensor.contiguous() for name, tensor in fresh.items()}
        self.calls.append(CapturedCall(dict(axes), {name: key or own[name] for name, key in keys.items()}))

    def _equal_key(self, name: str, tensor: torch.Tensor) -> str | None:
        import torch

        keys = dict.fromkeys(call.keys[name] for call in self.calls if name in call.keys)
        same = (key for key in keys if self.tensors[key].shape == tensor.shape)
        return next((key for key in same if torch.equal(self.tensors[key], tensor)), None)


def draft_from_capture(op: str, root: Path, name: str = "", examples: Sequence[str] = ()) -> DefinitionDraft:
    """Draft the definition of an operator that a traced process called.

    Args:
        op: name of the operator.
        root: folder of the dump.
        name: the traced definition; by default the only one with calls.
        examples: values of numbers, such as `eps=1e-5`: tracing keeps only tensors.

    Raises:
        MissingInput, Misuse, BadDefinition, MachineLacks: as `read_dump`, or no definition can express it.
    """
    dump = read_dump(root, op, name)
    chosen_numbers = dict(_parse_number(dump, text) for text in examples)
    samples, numbers, store = _read_samples(dump)
    numbers = {shape: {**values, **chosen_numbers} for shape, values in numbers.items()}
    trace_definition = dump.trace_definition
    statistics = {
        each: describe_values(
            values, trace_definition.inputs[each].dtype, trace_definition.inputs[each].shape or ()
        )
        for each, values in samples.items()
    }
    lines = [_named_line(shape, label, numbers) for shape, label in zip(dump.shapes, _labels(dump), strict=True)]
    try:
        definition = convert_trace_definition(op, trace_definition, lines)
        stores_floats = any(
            is_floating(trace_definition.inputs[each].dtype) for c in store.calls for each in c.keys
        )
        draws_floats = any(is_floating(spec.dtype) for spec in definition.tensor_inputs.values())
        data = CapturedCalls(tuple(store.calls), store.tensors).to_bytes() if store.calls and draws_floats else b""
        definition = _with_capture(definition, dump, statistics, data)
    except (ValidationError, ValueError) as error:
        raise BadDefinition(
            f"{root}: {trace_definition.name} cannot become a definition: {first_error(error)}"
        ) from error
    notes = [*_call_notes(dump), *_value_notes(dump, definition, statistics, numbers)]
    notes += _store_notes(store, data, stores_floats=stores_floats)
    return draft_conversion(trace_definition, definition, lines, notes, {captured.FILE: data} if data else {})


def _parse_number(dump: CaptureDump, text: str) -> tuple[str, float | int | bool]:
    """Split `eps=1e-5` into the name of a number of the operator and its value."""
    name, _, literal = text.partition("=")
    spec = dump.trace_definition.inputs.get(name)
    try:
        value = ast.literal_eval({"true": "True", "false": "False"}.get(literal, literal))
    except (SyntaxError, ValueError):
        value = None
    if spec is None or spec.shape is not None or not isinstance(value, float | int):
        names = [each for each, tensor in dump.trace_definition.inputs.items() if tensor.shape is None]
        raise Misuse(
            f"--input {text}: with --from-capture it sets a number of {dump.trace_definition.name}, as in "
            f"eps=1e-5; its numbers: {', '.join(names) or 'none'}."
        )
    return name, value


def _read_samples(
    dump: CaptureDump,
) -> tuple[dict[str, list[CapturedValues]], dict[str, dict[str, float | int | bool]], _Store]:
    """Read the first calls of each shape, the first of all shapes first.

    Returns:
        The tensors of each input, the numbers of each shape by its name, and the calls to store.
    """
    samples: dict[str, list[CapturedValues]] = {}
    numbers: dict[str, dict[str, float | int | bool]] = {}
    store = _Store()
    inputs = dump.trace_definition.inputs
    for index in range(_CALLS_OF_A_SHAPE):
        for shape in dump.shapes:
            if index >= len(shape.calls):
                continue
            tensors = dump.read_call(shape, shape.calls[index])
            scalars = {each: tensors.pop(each).item() for each in list(tensors) if inputs[each].shape is None}
            numbers.setdefault(shape.name, scalars)
            if index == 0:
                for each, tensor in tensors.items():
                    samples.setdefault(each, []).append(CapturedValues(tensor, dump.sizes(shape)))
            if tensors and dump.is_whole(shape, tensors):
                store.add(shape.axes, tensors)
            elif tensors:
                store.left_out += 1
    return samples, numbers, store


def _labels(dump: CaptureDump) -> list[str]:
    """Name the workloads, each name once."""
    labels: list[str] = []
    for number, shape in enumerate(dump.shapes, 1):
        labels.append(shape.name if shape.name not in labels else f"{shape.name[:70]}-{number}")
    return labels


def _named_line(
    shape: CalledShape, label: str, numbers: dict[str, dict[str, float | int | bool]]
) -> TraceWorkload:
    """Turn the first call of a shape into a workload line with a name, and with its captured numbers."""
    captured_numbers = {each: TraceInput(type="scalar", value=v) for each, v in numbers[shape.name].items()}
    return TraceWorkload(uuid=label, axes=shape.axes, inputs={**shape.calls[0].inputs, **captured_numbers})


def _with_capture(
    definition: Definition, dump: CaptureDump, statistics: dict[str, InputStatistics], data: bytes
) -> Definition:
    """Give a converted definition the weights, the distributions and the tag of the capture."""
    distribution = captured.digest_form(data) if data else "normal"
    counted, derived = definition.workloads[: len(dump.shapes)], definition.workloads[len(dump.shapes) :]
    is_even = len({shape.weight for shape in dump.shapes}) == 1

    def workload(number: int, converted: Workload) -> Workload:
        frequent = "representative" if number < _REPRESENTATIVE else "full"
        update = {"distribution": distribution, "weight": dump.shapes[number].weight}
        return converted.model_copy(update=update if is_even else {**update, "set": frequent})

    inputs = {
        name: spec.model_copy(
            update={"distribution": _chosen(dump, name, statistics[name].distribution, is_stored=bool(data))}
        )
        if isinstance(spec, TensorSpec) and name in statistics
        else spec
        for name, spec in definition.inputs.items()
    }
    update = {
        "inputs": inputs,
        "workloads": (*(workload(n, each) for n, each in enumerate(counted)), *derived),
        "tags": (*definition.tags, f"{SERVING_TAG}{dump.trace_definition.name}"),
    }
    return Definition.model_validate(definition.model_copy(update=update).model_dump())


def _chosen(dump: CaptureDump, name: str, observed: str, *, is_stored: bool) -> str:
    """Choose between the distribution that a name and constraints suggest, and that of the captured values.

    Normal values whose rows are stored need none: without one, the gate's adversarial distributions apply.
    """
    if is_stored and observed.startswith("normal:"):
        return "workload"
    declared = trace_inputs.input_distribution(dump.trace_definition, name)
    is_stronger = observed.startswith(("offsets", "distinct")) and not declared.startswith("offsets")
    return observed if declared == "workload" or is_stronger else declared


def _call_notes(dump: CaptureDump) -> Iterator[str]:
    parts = [f"{label} {shape.weight}" for label, shape in zip(_labels(dump), dump.shapes, strict=True)]
    yield f"{dump.calls} calls of {dump.trace_definition.name}, by shape: {', '.join(parts)}."
    if len(dump.shapes) > 1 and all(shape.weight == 1 for shape in dump.shapes):
        yield (
            "Every shape was kept once, as the tracing's filter may do, so the weights say nothing: trace with "
            'TracingConfig(filter_policy="keep_all") to count calls.'
        )


def _value_notes(
    dump: CaptureDump,
    definition: Definition,
    statistics: dict[str, InputStatistics],
    numbers: dict[str, dict[str, float | int | bool]],
) -> Iterator[str]:
    for name, values in statistics.items():
        spec = definition.tensor_inputs[name]
        drawn = "" if spec.distribution == "workload" else f": `{spec.distribution}` where no captured call fits"
        yield f"{name}, {spec.dtype}, {values.summary or 'no values'}{drawn}."
    if missing := [name for name in definition.tensor_inputs if name not in statistics]:
        yield f"No values were captured of {', '.join(missing)}: drawn at random; check them."
    guessed = {
        n: s.value for n, s in definition.scalar_inputs.items() if not any(n in each for each in numbers.values())
    }
    called = {name for shape in dump.shapes for name, s in shape.calls[0].inputs.items() if s.value is not None}
    for name, value in guessed.items():
        if name not in called:
            yield f"{name} = {value!r} is a guess, since tracing keeps tensors only: --input {name}=VALUE sets it."


def _store_notes(store: _Store, data: bytes, *, stores_floats: bool) -> Iterator[str]:
    if data:
        more = f"; {store.left_out} more did not fit" if store.left_out else ""
        varied = ", each floating-point value changed by up to 1/16" if stores_floats else ""
        yield (
            f"{captured.FILE} has the tensors of {len(store.calls)} calls, {len(data) / 2**20:.1f} MiB{more}. The "
            f"workloads draw from them{varied}."
        )
    elif store.left_out:
        yield f"No call's tensors fit {_STORED_BYTES >> 20} MiB, so none are stored: inputs are drawn."
    elif store.calls:
        yield "Only integers go in, which would repeat: inputs are drawn by their specs, and no tensor is stored."

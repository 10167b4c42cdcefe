"""Dump of a traced serving process, as flashinfer-bench writes it: calls of operators, and tensors that it kept.

The folder is a FlashInfer-Trace data set. Tracing appends one line for each call that it keeps to
`workloads/<op_type>/<definition>.jsonl`, and writes the call's tensors to a safetensors file under
`blob/workloads/`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.errors import BadDefinition, MissingInput, Misuse
from warpsmith.interchange import trace_inputs
from warpsmith.interchange.flashinfer_trace import read_trace_definition, read_trace_workloads
from warpsmith.interchange.trace_schema import TraceDefinition, TraceWorkload
from warpsmith.lab.operator.captured import require_safetensors

if TYPE_CHECKING:
    import torch

_READ_ELEMENTS = 1 << 24
"""Elements of a tensor above which only its first rows are read."""

_MOST_SHAPES = 24
"""Number of shapes that become workloads; calls of others count at the nearest one."""


@dataclass
class CalledShape:
    """Calls of one shape."""

    axes: dict[str, int]
    """Size of every variable axis."""
    weight: int = 0
    """Number of calls that count here."""
    calls: list[TraceWorkload] = field(default_factory=list)
    """Calls of exactly this shape, in the order of the trace."""

    @property
    def name(self) -> str:
        """Name of the workload: `tokens17`, or `batch2-pages40`."""
        return "-".join(f"{axis}{size}" for axis, size in self.axes.items())[:80] or "call"


@dataclass(frozen=True)
class CaptureDump:
    """Calls of one operator in a dump."""

    root: Path
    """Folder of the dump."""
    trace_definition: TraceDefinition
    """Definition that was traced."""
    shapes: tuple[CalledShape, ...]
    """Shapes that were called, the most frequent first."""

    @property
    def calls(self) -> int:
        """Number of calls."""
        return sum(shape.weight for shape in self.shapes)

    def sizes(self, shape: CalledShape) -> dict[str, int]:
        """Return the size of every axis that has one without arithmetic."""
        axes = self.trace_definition.axes
        return {name: axis.value for name, axis in axes.items() if axis.value is not None} | shape.axes

    def stored_inputs(self, call: TraceWorkload) -> dict[str, Path]:
        """Return the file of each input of a call that has one.

        Raises:
            MissingInput: a file is missing.
            BadDefinition: a path leads out of the dump.
        """
        paths = {}
        for name, source in call.inputs.items():
            if source.type != "safetensors":
                continue
            path = self.root / (source.path or "")
            if not path.resolve().is_relative_to(self.root.resolve()):
                raise BadDefinition(
                    f"{self.root}: the path `{source.path}` of call {call.uuid} leads out of the dump."
                )
            if not path.is_file():
                raise MissingInput(
                    f"{path} does not exist, but call {call.uuid} has its `{name}` there; copy the whole dump, "
                    "with blob/."
                )
            paths[name] = path
        return paths

    def read_call(self, shape: CalledShape, call: TraceWorkload) -> dict[str, torch.Tensor]:
        """Read the tensors of one call; of a huge one, the first rows.

        Raises:
            MissingInput, BadDefinition: a file is missing or damaged, or a tensor does not fit the definition.
        """
        return {
            name: self._read_tensor(shape, call, name, path) for name, path in self.stored_inputs(call).items()
        }

    def is_whole(self, shape: CalledShape, tensors: Mapping[str, torch.Tensor]) -> bool:
        """Return whether tensors of a call are whole, not first rows."""
        return all(tuple(tensor.shape) == self._shape_of(shape, name) for name, tensor in tensors.items())

    def _read_tensor(self, shape: CalledShape, call: TraceWorkload, name: str, path: Path) -> torch.Tensor:
        from safetensors import SafetensorError, safe_open

        spec = self.trace_definition.inputs.get(name)
        if spec is None:
            raise BadDefinition(f"{path}: `{name}` is no input of {self.trace_definition.name}.")
        key = call.inputs[name].tensor_key or name
        try:
            with safe_open(path, framework="pt") as file:
                part = file.get_slice(key)
                sizes = tuple(part.get_shape())
                is_huge = math.prod(sizes) > _READ_ELEMENTS and len(sizes) > 0
                rows = max(1, _READ_ELEMENTS // math.prod(sizes[1:])) if is_huge else 0
                tensor: torch.Tensor = part[:rows] if rows else file.get_tensor(key)
        except (SafetensorError, OSError) as error:
            raise BadDefinition(
                f"{path} cannot be read: {' '.join(str(error).split())}; trace the process again, or delete the "
                f"lines of call {call.uuid}."
            ) from error
        dtype = str(tensor.dtype).removeprefix("torch.")
        expected = self._shape_of(shape, name)
        if spec.shape is not None and dtype != spec.dtype:
            raise BadDefinition(
                f"{path}: `{name}` is {dtype}, but {self.trace_definition.name} says {spec.dtype}; mend the "
                "traced definition, so that it says what the process passes."
            )
        if spec.shape is not None and sizes != expected:
            raise BadDefinition(
                f"{path}: `{name}` has the shape {list(sizes)}, but its call has {list(expected)}; trace again."
            )
        return tensor

    def _shape_of(self, shape: CalledShape, name: str) -> tuple[int, ...]:
        from warpsmith.core.arithmetic.expression import evaluate

        expressions = trace_inputs.tensor_shape(self.trace_definition, self.trace_definition.inputs[name])
        return tuple(int(evaluate(text, self.sizes(shape))) for text in expressions)


def read_dump(root: Path, op: str, name: str = "") -> CaptureDump:
    """Read the calls of one operator.

    Args:
        root: folder of the dump.
        op: name that the operator will have; it chooses if the dump has a definition of that name.
        name: the traced definition; by default the only one with calls.

    Raises:
        MissingInput: there is no dump, or it has no calls.
        Misuse: several operators were called, and none was chosen.
        BadDefinition: a file is damaged.
        MachineLacks: safetensors is missing, and calls have tensors.
    """
    if not root.is_dir():
        raise MissingInput(f"{root} {'is not a folder' if root.exists() else 'does not exist'}.")
    lines = [line for path in sorted((root / "workloads").rglob("*.jsonl")) for line in read_trace_workloads(path)]
    calls = Counter(line.definition for line in lines if line.definition)
    chosen = _choose_definition(root, calls, op, name)
    trace_definition = _find_definition(root, chosen)
    own = [line.workload for line in lines if line.definition == chosen]
    variable = {axis for axis, spec in trace_definition.axes.items() if spec.type == "var"}
    for call in own:
        if set(call.axes) != variable:
            raise BadDefinition(
                f"{root}: call {call.uuid} has the axes {sorted(call.axes)}, not {sorted(variable)}."
            )
    dump = CaptureDump(root, trace_definition, tuple(_shapes(own)))
    stored = [dump.stored_inputs(call) for call in own]
    if any(stored):
        require_safetensors(str(root))
    return dump


def _choose_definition(root: Path, calls: Counter[str], op: str, name: str) -> str:
    if not calls:
        raise MissingInput(
            f"{root} has no traced calls: run the process with FIB_ENABLE_TRACING=1 and FIB_DATASET_PATH={root}, "
            "and let it end, since it writes at its end."
        )
    names = ", ".join(f"{each} ({count} calls)" for each, count in sorted(calls.items()))
    if name and name not in calls:
        raise MissingInput(f"{root} has no calls of {name}; it has: {names}.")
    if name or len(calls) == 1 or op in calls:
        return name or (op if op in calls else next(iter(calls)))
    raise Misuse(f"{root} has calls of {names}; choose one: --from-capture {root}:{min(calls)}.")


def _find_definition(root: Path, name: str) -> TraceDefinition:
    by_name = sorted((root / "definitions").rglob(f"{name}.json"))
    for path in by_name or sorted((root / "definitions").rglob("*.json")):
        definition = read_trace_definition(path)
        if definition.name == name:
            return definition
    raise MissingInput(f"{root} has calls of {name}, but no definition of it under definitions/; copy it there.")


def _shapes(calls: list[TraceWorkload]) -> list[CalledShape]:
    """Group calls by shape; calls of rare shapes count at the nearest shape that stays."""
    groups: dict[tuple[tuple[str, int], ...], CalledShape] = {}
    for call in calls:
        shape = groups.setdefault(tuple(sorted(call.axes.items())), CalledShape(dict(call.axes)))
        shape.weight += 1
        shape.calls.append(call)
    order = sorted(groups.values(), key=lambda shape: (-shape.weight, -math.prod(shape.axes.values())))
    chosen = order if len(order) <= _MOST_SHAPES else [*_spread(order)]
    for shape in order:
        if shape not in chosen:
            nearest = min(chosen, key=lambda other: _distance(shape.axes, other.axes))
            nearest.weight += shape.weight
    return sorted(chosen, key=lambda shape: -shape.weight)


def _spread(order: list[CalledShape]) -> Iterator[CalledShape]:
    """Choose the most frequent half, and as many of the others, spread over the sizes."""
    half = _MOST_SHAPES // 2
    yield from order[:half]
    others = sorted(order[half:], key=lambda shape: math.prod(shape.axes.values()))
    yield from (others[round(i * (len(others) - 1) / (half - 1))] for i in range(half))


def _distance(axes: dict[str, int], other: dict[str, int]) -> float:
    return math.dist([math.log1p(axes[a]) for a in axes], [math.log1p(other[a]) for a in axes])

"""Writer of an operator's definition, from the calls of a program and the axes of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import cycle
from math import ceil, floor, lcm
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload, WorkloadSet
from warpsmith.core.evaluation import Status
from warpsmith.core.text import describe_error
from warpsmith.errors import BadDefinition
from warpsmith.interchange.draft import docstring_safe, magnitude_source, python_literal
from warpsmith.lab.grading import correctness, odd
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.profiling.trace.text import format_duration
from warpsmith.program.operators import call_form, reference_source
from warpsmith.program.operators.call_form import CallForm, FormArgument
from warpsmith.program.operators.models import CallSignature, OperatorRow, ResultSource, WorkloadCalls
from warpsmith.program.operators.reference_source import RegionReference
from warpsmith.temporary import TemporaryFolder

_REPRESENTATIVE_SHARE, _MOST_REPRESENTATIVE, _MOST_WORKLOADS = 0.8, 4, 16
_MOST_STEPS = 60
"""Number of steps, more than are ever watched, of which calls per step are a share."""

_CHECKED_ELEMENTS = 1 << 24
"""The reference is tried at a workload of at most this many elements, and at derived sizes in any case."""

_MAX_LISTED = 4
"""Largest number of other forms that a note names."""

_MANY_AXES = 3
_ODD_SIZES = ((1,), (67, 17, 5, 3, 2), (129, 9, 7, 2, 3))
"""Odd sizes by axis, the last axis first."""

_FIXED_SIZES = "Only the sizes of the workloads are allowed: the operator accepts no others."

_FAMILIES = (
    ("softmax", "softmax", 5), ("layer_norm", "norm", 5), ("rms_norm", "norm", 4), ("batch_norm", "norm", 4),
    ("group_norm", "norm", 5), ("sum", "reduction", 1), ("mean", "reduction", 1), ("amax", "reduction", 1),
    ("amin", "reduction", 1), ("var", "reduction", 3), ("attention", "attention", 0), ("mm", "gemm", 0),
    ("convolution", "conv", 0), ("embedding", "embedding", 0), ("index", "indexing", 0), ("gather", "indexing", 0),
)  # fmt: skip
"""Part of an operator's name, its family, and operations per element of its largest tensor (0: unknown)."""

_LOOKUPS = ("embedding", "index_select", "gather", "index")
"""Operators that read only as much of their first tensor as they return."""

_TEMPLATE = '''\
"""@SUBJECT@: its shapes, types and layouts.

Written by `warpsmith program extract`; calls.json has the number of calls per workload.
"""

from __future__ import annotations

import torch

from warpsmith import @NAMES@

definition = @DEFINITION@


def reference(@PARAMETERS@):
    """@REFERENCE@."""
@BODY@


@MAGNITUDE@'''


class DefinitionWriter:
    """The definition of one form of an operator, with its axes."""

    def __init__(
        self,
        op: str,
        row: OperatorRow,
        form: CallForm,
        axes_result: Mapping[str, Any],
        program: str,
        region: RegionReference | None = None,
    ) -> None:
        """Prepare the definition; `region` replaces the call of the operator by that of a region."""
        self._region = region
        self._op, self._row, self._form, self._axes_result, self._program = op, row, form, axes_result, program
        self._axes: dict[str, Any] = axes_result["axes"]
        names = [f"out{index}" for index, output in enumerate(axes_result["outputs"]) if output is not None]
        self._outputs = names if len(names) > 1 else ["out"]
        output_names = iter(self._outputs)
        self.results = tuple(
            ResultSource(output=next(output_names) if exists else None, order=order)
            for exists, order in form.results
        )
        """Sources of the operator's results in the definition."""
        self.has_unknown_size = any(size is None for shape in axes_result["outputs"] for size in shape or ())
        """Whether the size of a result is unknown."""
        if not self.has_unknown_size:
            self.workloads, self.workload_calls = self._make_workloads()
            self.workloads += self._odd_workloads()
            self.definition = self._make_definition()
            self.text = self._make_text()
            self.notes = self._make_notes()

    def check_reference(self, *, last: bool) -> bool:
        """Check that the reference does what the definition says, at sizes that the lab derives too.

        Raises:
            BadDefinition: it does not, and `last` says that no other try follows.
        """
        with TemporaryFolder("definition") as folder:
            path = Path(folder) / self._op / "definition.py"
            path.parent.mkdir()
            path.write_text(self.text)
            file = definition_file.load_definition(path)
            smallest = min(self.definition.select("representative", "full"), key=self.definition.elements)
            tried = [smallest] if self.definition.elements(smallest) <= _CHECKED_ELEMENTS else []
            try:
                for workload in (*tried, *(self._odd_workloads() or odd.derive_odd_workloads(file))):
                    drawn = Inputs(file, workload, 0, _form_device(self._form)).draw()
                    expected = correctness.compute_truth(file, workload, drawn)
                    grade = correctness.grade_reference(file, workload, drawn, expected)
                    if grade.status is not Status.PASSED:
                        raise BadDefinition(
                            f"{self._row.name}: PyTorch's own result misses the derived bound at {workload.name}: "
                            f"{grade.detail}; write the definition by hand (`warpsmith new`)."
                        )
            except BadDefinition as error:
                if last:
                    raise BadDefinition(str(error).replace(str(path), self._row.name)) from error
                return False
        return True

    def _make_workloads(self) -> tuple[tuple[Workload, ...], tuple[WorkloadCalls, ...]]:
        """Turn the calls into workloads: those that make up most of the time are representative."""
        total = sum(signature.seconds for signature in self._form.signatures)
        workloads: list[Workload] = []
        calls: list[WorkloadCalls] = []
        covered_seconds = 0.0
        for index, signature in enumerate(self._form.signatures[:_MOST_WORKLOADS]):
            representative = not workloads or (
                covered_seconds < _REPRESENTATIVE_SHARE * total and index < _MOST_REPRESENTATIVE
            )
            covered_seconds += signature.seconds
            workload = self._workload(index, "representative" if representative else "full")
            equal = next((other for other in workloads if _is_same_point(other, workload)), None)
            if equal is None:
                workload = _with_unique_name(workload, [other.name for other in workloads])
                workloads.append(workload)
                calls.append(
                    WorkloadCalls(workload=workload.name, calls=signature.calls, seconds=signature.seconds)
                )
                continue
            position = workloads.index(equal)
            previous = calls[position]
            calls[position] = WorkloadCalls(
                workload=equal.name,
                calls=previous.calls + signature.calls,
                seconds=previous.seconds + signature.seconds,
            )
        weights = _count_calls([entry.calls for entry in calls])
        weighted = [
            workload.model_copy(update={"weight": weight})
            for workload, weight in zip(workloads, weights, strict=True)
        ]
        return tuple(weighted), tuple(calls)

    def _odd_workloads(self) -> tuple[Workload, ...]:
        """Return odd workloads for many axes: the lab's, with one size along every axis, would be too large."""
        free = [name for name, axis in self._axes.items() if axis["free"]]
        if len(free) < _MANY_AXES or len(free) < len(self._axes):
            return ()
        smallest = self.workloads[0]
        return tuple(
            smallest.model_copy(
                update={
                    "name": f"odd-{n}",
                    "set": "odd",
                    "axes": dict(zip(reversed(free), cycle(sizes))),
                    "weight": None,
                }
            )
            for n, sizes in enumerate(_ODD_SIZES)
        )

    def _workload(self, index: int, kind: WorkloadSet) -> Workload:
        sizes = {name: axis["sizes"][index] for name, axis in self._axes.items()}
        dtype = self._form.dtypes[index]
        numbers = {
            part.slot.input: part.numbers[index]
            for part in self._form.arguments
            if part.numbers and part.slot.input and part.numbers[index] != self._usual_value(part)
        }
        name = call_form.call_name(self._form.signatures[index])
        return Workload(name=name, axes=sizes, dtype=dtype, scalars=numbers, set=kind)

    def _usual_value(self, part: FormArgument) -> float:
        return call_form.most_common(part.numbers, [signature.calls for signature in self._form.signatures])

    def _make_definition(self) -> Definition:
        shapes = [shape for shape in self._axes_result["outputs"] if shape is not None]
        dtypes = iter([item for item in self._form.outputs if item is not None])
        outputs = {
            name: TensorSpec(shape=tuple(shape), dtype=next(dtypes))
            for name, shape in zip(self._outputs, shapes, strict=True)
        }
        inputs: dict[str, TensorSpec | ScalarSpec] = {}
        for index, part in enumerate(self._form.arguments):
            if part.slot.input is None:
                continue
            if part.is_tensor:
                inputs[part.slot.input] = self._tensor_spec(part, self._axes_result["inputs"][str(index)])
            else:
                inputs[part.slot.input] = ScalarSpec(type="float", value=self._usual_value(part))
        fixed = any(not item["free"] for item in self._axes.values())
        family, flops = self._family_and_flops(inputs, outputs)
        try:
            return Definition(
                name=self._op,
                description=f"{self._row.name} as {docstring_safe(self._program)} calls it"
                if self._region is None
                else f"{self._region.title} of {docstring_safe(self._program)} under torch.compile",
                op_type=family,
                axes={name: _axis_comment(item) for name, item in self._axes.items()},
                inputs=inputs,
                outputs=outputs,
                tolerance=Tolerance(reduction=str(self._axes_result["reduction"] or self._largest_input(inputs))),
                flops=flops,
                bytes_read=self._bytes_read(inputs, outputs),
                workloads=self.workloads,
                constraints=(_FIXED_SIZES,) if fixed else (),
                tags=(f"operator:{self._row.name}" if self._region is None else f"region:{self._region.digest}",),
            )
        except (ValidationError, ValueError) as error:
            raise BadDefinition(
                f"{self._row.name} cannot become a definition: {describe_error(error)}."
            ) from error

    def _tensor_spec(self, part: FormArgument, shape: Sequence[str | int]) -> TensorSpec:
        lows = [tensor.low for tensor in part.tensors if tensor.low is not None]
        highs = [tensor.high for tensor in part.tensors if tensor.high is not None]
        distribution = "workload"
        if is_floating(part.tensors[0].dtype):
            if any(tensor.masked for tensor in part.tensors):
                distribution = "masked"
            elif lows and min(lows) >= 0 and max(highs) > 0:
                distribution = "uniform"  # such as a variance, where negative values would give NaN
        elif lows and part.tensors[0].dtype != "bool":
            distribution = f"integers:{floor(min(0, *lows, 0))}:{self._integer_bound(part, ceil(max(highs)))}"
        return TensorSpec(
            shape=tuple(shape),
            dtype=part.dtype,
            distribution=distribution,
            role="weight" if all(tensor.weight for tensor in part.tensors) else "activation",
            layout="any" if part.strided else "contiguous",
        )

    def _integer_bound(self, part: FormArgument, highest: int) -> str:
        """Return the exclusive upper bound of integers.

        It is the least size or constant above them, or else their maximum plus one.
        """
        candidates: list[tuple[int, str | int]] = [
            (size, axis_names[dimension])
            for index, other in enumerate(self._form.arguments)
            if other.is_tensor and other is not part and is_floating(other.tensors[0].dtype)
            for axis_names in [self._axes_result["inputs"][str(index)]]
            for dimension, size in enumerate(other.shapes[0])
            if all(
                shapes[dimension] > (item.high or 0)
                for shapes, item in zip(other.shapes, part.tensors, strict=True)
            )
        ]
        constants = [item.slot.source for item in self._form.arguments if item.slot.source.isdecimal()]
        candidates += [(int(text), int(text)) for text in constants if int(text) > highest]
        return str(min(candidates, key=lambda item: item[0])[1]) if candidates else str(highest + 1)

    def _family_and_flops(
        self, inputs: Mapping[str, TensorSpec | ScalarSpec], outputs: Mapping[str, TensorSpec]
    ) -> tuple[str, str]:
        """Return the family, and the number of operations as arithmetic over axes; `0` if it is unknown."""
        if self._region is not None:
            return self._region.kind.replace(" ", "_"), "0"
        operator = bare_name(self._row.name)
        family, operations = next(
            ((kind, count) for part, kind, count in _FAMILIES if part in operator), ("other", 0)
        )
        if self._axes_result["flops"] is not None:
            return family, str(self._axes_result["flops"])
        if self._axes_result["pointwise"]:
            return "elementwise" if family == "other" else family, _element_count(next(iter(outputs.values())))
        largest = max(
            (spec for spec in inputs.values() if isinstance(spec, TensorSpec)),
            key=lambda spec: self._count_elements(spec),
        )
        return family, f"{operations} * {_element_count(largest)}" if operations else "0"

    def _count_elements(self, spec: TensorSpec) -> int:
        total = 1
        for size in spec.shape:
            total *= size if isinstance(size, int) else self._axes.get(size, {"sizes": [1]})["sizes"][0]
        return total

    def _largest_input(self, inputs: Mapping[str, TensorSpec | ScalarSpec]) -> str:
        """Return the element count of the largest input, which bounds the number of summands."""
        return _element_count(
            max((spec for spec in inputs.values() if isinstance(spec, TensorSpec)), key=self._count_elements)
        )

    def _bytes_read(
        self, inputs: Mapping[str, TensorSpec | ScalarSpec], outputs: Mapping[str, TensorSpec]
    ) -> str | None:
        """Return the bytes that a lookup reads: its output and the indices; None if each input is read once."""
        if bare_name(self._row.name) not in _LOOKUPS:
            return None
        smallest = min(DTYPES[dtype].bytes for dtype in self._form.dtypes)
        parts = [f"{smallest} * {_element_count(next(iter(outputs.values())))}"]
        for spec in inputs.values():
            if isinstance(spec, TensorSpec) and spec.dtype != "workload" and not is_floating(spec.dtype):
                parts.append(f"{DTYPES[spec.dtype].bytes} * {_element_count(spec)}")
        return " + ".join(parts)

    def _make_text(self) -> str:
        names = {"Definition", "TensorSpec", "Tolerance", "Workload"}
        names |= {"ScalarSpec"} if self.definition.scalar_inputs else set()
        replacements = {
            "@SUBJECT@": f"`{self._row.name}` as {docstring_safe(self._program)} calls it"
            if self._region is None
            else f"{self._region.title.capitalize()} of {docstring_safe(self._program)} under torch.compile",
            "@REFERENCE@": "PyTorch's own operator" if self._region is None else "The region, call by call",
            "@NAMES@": ", ".join(sorted(names)),
            "@DEFINITION@": python_literal(self.definition, self._comments()),
            "@PARAMETERS@": ", ".join(self.definition.inputs),
            "@BODY@": self._region.body
            if self._region is not None
            else reference_source.reference_body(
                self._row.name, self._form.arguments, self.results, returns_list=self._axes_result["listed"]
            ),
            "@MAGNITUDE@": magnitude_source(self.definition),
        }
        text = _TEMPLATE
        for mark, value in replacements.items():
            text = text.replace(mark, value)
        return text

    def _comments(self) -> dict[str, str]:
        counts = "\n".join(
            f"{calls.workload}: {calls.calls:g} calls, {format_duration(calls.seconds)}"
            for calls in self.workload_calls
        )
        return {
            "workloads": f"Calls and time of one recorded step:\n{counts}",
            "flops": "The number of operations is unknown; the floor follows from the bytes alone."
            if self.definition.flops == "0"
            else "",
        }

    def _make_notes(self) -> tuple[str, ...]:
        notes = []
        total = sum(item.seconds for item in (*self._form.signatures, *self._form.uncovered))
        uncovered = [*self._form.uncovered, *self._form.signatures[_MOST_WORKLOADS:]]
        if uncovered:
            notes.append(
                f"{len(uncovered)} other signatures ({_share(uncovered, total)} of its time) are not covered. "
                "They differ in layout, type, constants or list length; integration leaves them to PyTorch."
            )
        names = [
            f"{call_form.call_name(item[0])} ({_share(item, total)})"
            for item in self._form.other_forms[:_MAX_LISTED]
        ]
        if names:
            notes.append(f"`--like NAME --name OP` extracts one of them instead: {', '.join(names)}.")
        if any(item.calls < 1 for item in self.workload_calls):
            notes.append(
                "Its sizes change from step to step: after integration, the kernel runs only at recorded sizes."
            )
        if any(part.strided for part in self._form.arguments):
            notes.append(
                "It is called with strided tensors: inputs may have any layout, and are timed contiguous."
            )
        if any(item.gradients for item in self._form.signatures):
            notes.append(
                "It consists of other operators, and the program needs its gradient, so an integrated kernel "
                "would not be used; extract the operators that it consists of instead."
            )
        if self.definition.constraints:
            notes.append(self.definition.constraints[0])
        return tuple(notes)


def _share(signatures: Sequence[CallSignature], total: float) -> str:
    return f"{sum(signature.seconds for signature in signatures) / total if total else 0.0:.0%}"


def _axis_comment(axis: Mapping[str, Any]) -> str:
    sizes = sorted(set(axis["sizes"]))
    return f"{', '.join(map(str, sizes[:6]))}{' and more' if len(sizes) > 6 else ''} in the program"


def _is_same_point(workload: Workload, other: Workload) -> bool:
    return (workload.axes, workload.dtype, workload.scalars) == (other.axes, other.dtype, other.scalars)


def _count_calls(calls: Sequence[float]) -> list[int]:
    """Return calls per step as whole numbers: of as many steps as make all of them whole."""
    exact = [Fraction(count).limit_denominator(_MOST_STEPS) for count in calls]
    steps = lcm(*(count.denominator for count in exact))
    return [max(1, int(count * steps)) for count in exact]


def _with_unique_name(workload: Workload, names: Sequence[str]) -> Workload:
    """Return the workload under a name that no other workload has."""
    candidates = [workload.name, *(f"{workload.name}-{n}" for n in range(2, len(names) + 2))]
    return workload.model_copy(update={"name": next(name for name in candidates if name not in names)})


def _element_count(spec: TensorSpec) -> str:
    return (
        " * ".join(f"({size})" if isinstance(size, str) and " " in size else str(size) for size in spec.shape)
        or "1"
    )


def _form_device(form: CallForm) -> str:
    return next(part.tensors[0].device for part in form.arguments if part.is_tensor)


def bare_name(operator: str) -> str:
    """Return the bare name of an operator: `softmax` for `aten::_softmax`."""
    return operator.partition("::")[2].partition(".")[0].strip("_").lower()

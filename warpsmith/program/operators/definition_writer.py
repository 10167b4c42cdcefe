"""Made: the definition of an operator, from the calls of a program and the axes of its tensors."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import cycle
from math import ceil, floor
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload, WorkloadSet
from warpsmith.core.dtype import DTYPES, is_floating
from warpsmith.core.evaluation import Status
from warpsmith.core.problem import describe_error
from warpsmith.errors import BadDefinition
from warpsmith.interchange.draft import docstring_safe, magnitude_source, python_literal
from warpsmith.lab.grading import correctness, odd
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.program.operators import call_form, reference_source
from warpsmith.program.operators.call_form import CallForm, FormArgument
from warpsmith.program.operators.models import CallSignature, OperatorRow, ResultSource, WorkloadCalls

_REPRESENTATIVE_SHARE, _MOST_REPRESENTATIVE, _MOST_WORKLOADS = 0.8, 4, 16
_CHECKED_ELEMENTS = 1 << 24
"""The reference is tried at a workload of no more elements: above, at sizes that the lab derives alone."""

_MAX_LISTED = 4
"""Other ways in which an operator is called that a note names."""

_MANY_AXES = 3
_ODD_SIZES = ((1,), (67, 17, 5, 3, 2), (129, 9, 7, 2, 3))
"""Odd sizes along so many axes, the last axis first."""

_FIXED_SIZES = "Sizes are those of the workloads: the operator takes no others."

_FAMILIES = (
    ("softmax", "softmax", 5), ("layer_norm", "norm", 5), ("rms_norm", "norm", 4), ("batch_norm", "norm", 4),
    ("group_norm", "norm", 5), ("sum", "reduction", 1), ("mean", "reduction", 1), ("amax", "reduction", 1),
    ("amin", "reduction", 1), ("var", "reduction", 3), ("attention", "attention", 0), ("mm", "gemm", 0),
    ("convolution", "conv", 0), ("embedding", "embedding", 0), ("index", "indexing", 0), ("gather", "indexing", 0),
)  # fmt: skip
"""Part of an operator's name, its family, and operations an element of its largest tensor; 0: not known so."""

_LOOKUPS = ("embedding", "index_select", "gather", "index")
"""Operators that read no more of their first tensor than they return."""

_TEMPLATE = '''\
"""`@OPERATOR@` as @PROGRAM@ calls it: its shapes, types and layouts.

Written by `warpsmith program extract`; how often each workload is called stands in calls.json.
"""

from __future__ import annotations

import torch

from warpsmith.core.definition import @NAMES@

definition = @DEFINITION@


def reference(@PARAMETERS@):
    """PyTorch's own operator."""
@BODY@


@MAGNITUDE@'''


class DefinitionWriter:
    """A definition made of a form and its axes."""

    def __init__(
        self, op: str, row: OperatorRow, chosen: CallForm, found: Mapping[str, Any], program: str
    ) -> None:
        self._op, self._row, self._form, self._found, self._program = op, row, chosen, found, program
        self._axes: dict[str, Any] = found["axes"]
        names = [f"out{place}" for place, one in enumerate(found["outputs"]) if one is not None]
        self._outputs = names if len(names) > 1 else ["out"]
        given = iter(self._outputs)
        self.results = tuple(
            ResultSource(output=next(given) if kept else None, order=order) for kept, order in chosen.results
        )
        """The operator's results."""
        self.unknown = any(size is None for shape in found["outputs"] for size in shape or ())
        """Whether the size of a result is not known."""
        if not self.unknown:
            self.workloads, self.called = self._points()
            self.workloads += self._odd()
            self.definition = self._definition()
            self.text = self._text()
            self.notes = self._notes()

    def holds(self, *, last: bool) -> bool:
        """Whether the reference does what the definition says, at sizes that the lab derives too.

        Raises:
            BadDefinition: it does not, and it is the last try.
        """
        with tempfile.TemporaryDirectory(prefix="warpsmith-definition-") as folder:
            path = Path(folder) / self._op / "definition.py"
            path.parent.mkdir()
            path.write_text(self.text)
            file = definition_file.load_definition(path)
            smallest = min(self.definition.select("representative", "full"), key=self.definition.elements)
            tried = [smallest] if self.definition.elements(smallest) <= _CHECKED_ELEMENTS else []
            try:
                for workload in (*tried, *(self._odd() or odd.derive_odd_workloads(file))):
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

    def _points(self) -> tuple[tuple[Workload, ...], tuple[WorkloadCalls, ...]]:
        """The calls as workloads: those that make up most of the time are representative."""
        total = sum(one.seconds for one in self._form.signatures)
        workloads: list[Workload] = []
        called: list[WorkloadCalls] = []
        passed = 0.0
        for place, one in enumerate(self._form.signatures[:_MOST_WORKLOADS]):
            main = not workloads or (passed < _REPRESENTATIVE_SHARE * total and place < _MOST_REPRESENTATIVE)
            passed += one.seconds
            workload = self._workload(place, "representative" if main else "full")
            same = next((other for other in workloads if _is_same_point(other, workload)), None)
            if same is None:
                workload = _with_unique_name(workload, [other.name for other in workloads])
                workloads.append(workload)
                called.append(WorkloadCalls(workload=workload.name, calls=one.calls, seconds=one.seconds))
                continue
            at = workloads.index(same)
            before = called[at]
            called[at] = WorkloadCalls(
                workload=same.name, calls=before.calls + one.calls, seconds=before.seconds + one.seconds
            )
        return tuple(workloads), tuple(called)

    def _odd(self) -> tuple[Workload, ...]:
        """Odd sizes where the lab's own, alike along every axis, would be too many elements."""
        free = [name for name, one in self._axes.items() if one["free"]]
        if len(free) < _MANY_AXES or len(free) < len(self._axes):
            return ()
        smallest = self.workloads[0]
        return tuple(
            smallest.model_copy(
                update={"name": f"odd-{n}", "set": "odd", "axes": dict(zip(reversed(free), cycle(sizes)))}
            )
            for n, sizes in enumerate(_ODD_SIZES)
        )

    def _workload(self, place: int, kind: WorkloadSet) -> Workload:
        sizes = {name: one["sizes"][place] for name, one in self._axes.items()}
        dtype = self._form.dtypes[place]
        numbers = {
            part.slot.input: part.numbers[place]
            for part in self._form.parts
            if part.numbers and part.slot.input and part.numbers[place] != self._usual(part)
        }
        name = call_form.call_name(self._form.signatures[place])
        return Workload(name=name, axes=sizes, dtype=dtype, scalars=numbers, set=kind)

    def _usual(self, part: FormArgument) -> float:
        return call_form.most_common(part.numbers, [one.calls for one in self._form.signatures])

    def _definition(self) -> Definition:
        shapes = [shape for shape in self._found["outputs"] if shape is not None]
        dtypes = iter([one for one in self._form.outputs if one is not None])
        outputs = {
            name: TensorSpec(shape=tuple(shape), dtype=next(dtypes))
            for name, shape in zip(self._outputs, shapes, strict=True)
        }
        inputs: dict[str, TensorSpec | ScalarSpec] = {}
        for place, part in enumerate(self._form.parts):
            if part.slot.input is None:
                continue
            if part.is_tensor:
                inputs[part.slot.input] = self._tensor(part, self._found["inputs"][str(place)])
            else:
                inputs[part.slot.input] = ScalarSpec(type="float", value=self._usual(part))
        fixed = any(not one["free"] for one in self._axes.values())
        family, flops = self._work(inputs, outputs)
        try:
            return Definition(
                name=self._op,
                description=f"{self._row.name} as {docstring_safe(self._program)} calls it",
                op_type=family,
                axes={name: _axis_comment(one) for name, one in self._axes.items()},
                inputs=inputs,
                outputs=outputs,
                tolerance=Tolerance(reduction=str(self._found["reduction"] or self._longest(inputs))),
                flops=flops,
                bytes_read=self._read(inputs, outputs),
                workloads=self.workloads,
                constraints=(_FIXED_SIZES,) if fixed else (),
                tags=(f"operator:{self._row.name}",),
            )
        except (ValidationError, ValueError) as error:
            raise BadDefinition(
                f"{self._row.name} cannot become a definition: {describe_error(error)}."
            ) from error

    def _tensor(self, part: FormArgument, shape: Sequence[str | int]) -> TensorSpec:
        lows = [one.low for one in part.seen if one.low is not None]
        highs = [one.high for one in part.seen if one.high is not None]
        how = "workload"
        if is_floating(part.seen[0].dtype):
            if any(one.masked for one in part.seen):
                how = "masked"
            elif lows and min(lows) >= 0 and max(highs) > 0:
                how = "uniform"  # such as a variance: negative ones would be NaN
        elif lows and part.seen[0].dtype != "bool":
            how = f"integers:{floor(min(0, *lows, 0))}:{self._bound(part, ceil(max(highs)))}"
        return TensorSpec(
            shape=tuple(shape),
            dtype=part.dtype,
            distribution=how,
            role="weight" if all(one.weight for one in part.seen) else "activation",
            layout="any" if part.strided else "contiguous",
        )

    def _bound(self, part: FormArgument, highest: int) -> str:
        """What integers lie below: the smallest size or constant that does, else one more than the highest."""
        others: list[tuple[int, str | int]] = [
            (size, shape[dimension])
            for place, other in enumerate(self._form.parts)
            if other.is_tensor and other is not part and is_floating(other.seen[0].dtype)
            for shape in [self._found["inputs"][str(place)]]
            for dimension, size in enumerate(other.shapes[0])
            if all(
                shapes[dimension] > (one.high or 0) for shapes, one in zip(other.shapes, part.seen, strict=True)
            )
        ]
        constants = [one.slot.source for one in self._form.parts if one.slot.source.isdecimal()]
        others += [(int(text), int(text)) for text in constants if int(text) > highest]
        return str(min(others, key=lambda one: one[0])[1]) if others else str(highest + 1)

    def _work(
        self, inputs: Mapping[str, TensorSpec | ScalarSpec], outputs: Mapping[str, TensorSpec]
    ) -> tuple[str, str]:
        """Family, and operations as arithmetic over axes; 0 where nothing is known of them."""
        called = bare_name(self._row.name)
        family, each = next(((kind, n) for part, kind, n in _FAMILIES if part in called), ("other", 0))
        if self._found["flops"] is not None:
            return family, str(self._found["flops"])
        if self._found["pointwise"]:
            return "elementwise" if family == "other" else family, _element_count(next(iter(outputs.values())))
        largest = max(
            (spec for spec in inputs.values() if isinstance(spec, TensorSpec)),
            key=lambda spec: self._size(spec),
        )
        return family, f"{each} * {_element_count(largest)}" if each else "0"

    def _size(self, spec: TensorSpec) -> int:
        total = 1
        for size in spec.shape:
            total *= size if isinstance(size, int) else self._axes.get(size, {"sizes": [1]})["sizes"][0]
        return total

    def _longest(self, inputs: Mapping[str, TensorSpec | ScalarSpec]) -> str:
        """Where nothing tells how many numbers are added up: all of the largest input."""
        return _element_count(max((s for s in inputs.values() if isinstance(s, TensorSpec)), key=self._size))

    def _read(
        self, inputs: Mapping[str, TensorSpec | ScalarSpec], outputs: Mapping[str, TensorSpec]
    ) -> str | None:
        """Bytes that a lookup reads: what it returns, and the places; None: every input once."""
        if bare_name(self._row.name) not in _LOOKUPS:
            return None
        smallest = min(DTYPES[dtype].bytes for dtype in self._form.dtypes)
        parts = [f"{smallest} * {_element_count(next(iter(outputs.values())))}"]
        for spec in inputs.values():
            if isinstance(spec, TensorSpec) and spec.dtype != "workload" and not is_floating(spec.dtype):
                parts.append(f"{DTYPES[spec.dtype].bytes} * {_element_count(spec)}")
        return " + ".join(parts)

    def _text(self) -> str:
        names = {"Definition", "TensorSpec", "Tolerance", "Workload"}
        names |= {"ScalarSpec"} if self.definition.scalar_inputs else set()
        put = {
            "@OPERATOR@": self._row.name,
            "@PROGRAM@": docstring_safe(self._program),
            "@NAMES@": ", ".join(sorted(names)),
            "@DEFINITION@": python_literal(self.definition, self._comments()),
            "@PARAMETERS@": ", ".join(self.definition.inputs),
            "@BODY@": reference_source.reference_body(
                self._row.name, self._form.parts, self.results, listed=self._found["listed"]
            ),
            "@MAGNITUDE@": magnitude_source(self.definition),
        }
        text = _TEMPLATE
        for mark, value in put.items():
            text = text.replace(mark, value)
        return text

    def _comments(self) -> dict[str, str]:
        counts = "\n".join(
            f"{one.workload}: {one.calls:g} calls, {one.seconds * 1e6:.3g} us" for one in self.called
        )
        return {
            "workloads": f"What one step calls, when it was recorded:\n{counts}",
            "flops": "Nothing is known of its operations; the floor is that of its bytes."
            if self.definition.flops == "0"
            else "",
        }

    def _notes(self) -> tuple[str, ...]:
        found = []
        total = sum(one.seconds for one in (*self._form.signatures, *self._form.left_out))
        left = [*self._form.left_out, *self._form.signatures[_MOST_WORKLOADS:]]
        if left:
            found.append(
                f"{len(left)} other ways in which it is called ({_share(left, total)} of its time) are not "
                "covered: other layouts, types, constants or lengths of lists; integrated, they stay PyTorch's."
            )
        names = [
            f"{call_form.call_name(one[0])} ({_share(one, total)})" for one in self._form.others[:_MAX_LISTED]
        ]
        if names:
            found.append(f"`--like NAME --name OP` takes one of them instead: {', '.join(names)}.")
        if any(one.calls < 1 for one in self.called):
            found.append(
                "Its sizes change from step to step: integrated, the kernel runs at the recorded ones alone."
            )
        if any(part.strided for part in self._form.parts):
            found.append(
                "It is called with strided tensors: inputs may have any layout, and are timed contiguous."
            )
        if any(one.gradients for one in self._form.signatures):
            found.append(
                "It consists of other operators, and the program asks for its gradient: there an integrated "
                "kernel is not used; extract the operators that it consists of instead."
            )
        if self.definition.constraints:
            found.append(self.definition.constraints[0])
        return tuple(found)


def _share(signatures: Sequence[CallSignature], total: float) -> str:
    return f"{sum(one.seconds for one in signatures) / total if total else 0.0:.0%}"


def _axis_comment(axis: Mapping[str, Any]) -> str:
    sizes = sorted(set(axis["sizes"]))
    return f"{', '.join(map(str, sizes[:6]))}{' and more' if len(sizes) > 6 else ''} in the program"


def _is_same_point(one: Workload, other: Workload) -> bool:
    return (one.axes, one.dtype, one.scalars) == (other.axes, other.dtype, other.scalars)


def _with_unique_name(workload: Workload, taken: Sequence[str]) -> Workload:
    """The workload under a name that no other has."""
    names = [workload.name, *(f"{workload.name}-{n}" for n in range(2, len(taken) + 2))]
    return workload.model_copy(update={"name": next(name for name in names if name not in taken)})


def _element_count(spec: TensorSpec) -> str:
    return (
        " * ".join(f"({size})" if isinstance(size, str) and " " in size else str(size) for size in spec.shape)
        or "1"
    )


def _form_device(chosen: CallForm) -> str:
    return next(part.seen[0].device for part in chosen.parts if part.is_tensor)


def bare_name(operator: str) -> str:
    """`softmax` of `aten::_softmax`."""
    return operator.partition("::")[2].partition(".")[0].strip("_").lower()

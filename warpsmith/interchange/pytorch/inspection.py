"""Inspection of a user's PyTorch code in its own process; start it with `python -m`.

Tensors may have gigabytes, so the operator runs on fake tensors without data. Only code that asks for values makes
it run for real, once.
"""

from __future__ import annotations

import inspect
import logging
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.base import Model
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance
from warpsmith.core.gate_rules import DEFAULT_SLACK
from warpsmith.interchange.pytorch import formulas, ties, workloads
from warpsmith.interchange.pytorch.definition_text import definition_draft
from warpsmith.interchange.pytorch.distributions import ObservedValues, drawn_values, is_pattern, observe_values
from warpsmith.interchange.pytorch.example_flags import ExampleFlag, FlagTensor
from warpsmith.interchange.pytorch.forward import HALVES, Forward, ForwardRun, unused_identifier
from warpsmith.interchange.pytorch.index_bounds import integer_distribution
from warpsmith.interchange.pytorch.inspected import InspectedOperator
from warpsmith.interchange.pytorch.operator_axes import OperatorAxes
from warpsmith.interchange.pytorch.reductions import UnusableOperator
from warpsmith.interchange.pytorch.user_code import UserCode
from warpsmith.interchange.trial import try_reference

_REAL_BYTES = 2**30
"""Bytes of an example up to which its values are looked at."""

_UPCAST = (
    "half precision: PyTorch rounds between the operations, so the reference computes in float32 and rounds its "
    "results; as a baseline it is slower than the code as written"
)

_FEW = 64

_HEADROOM = 0.4
"""Share of its bound up to which a reference of float32 results may come at small sizes and a few draws. Over 40
draws of eleven operators the worst draw had up to twice the share of the median one."""


class InspectionRequest(Model):
    """Arguments of the inspection's process."""

    op: str
    """Name of the operator."""
    path: str
    """File of the user."""
    object_name: str = ""
    """Function, class or instance to import; empty for the only one."""
    flags: tuple[ExampleFlag, ...] = ()
    """Example inputs of the command line."""
    inputs: tuple[str, str] | None = None
    """File and name of the example inputs; by default those of the user's file."""
    limit: int
    """Most bytes that the process may allocate."""


def main() -> None:
    """Inspect the request in the file of argument 1 and write the result to the file of argument 2, as JSON."""
    request = InspectionRequest.model_validate_json(Path(sys.argv[1]).read_text())
    resource.setrlimit(resource.RLIMIT_DATA, (request.limit, request.limit))
    try:
        inputs = (Path(request.inputs[0]), request.inputs[1]) if request.inputs else None
        inspected = inspect_operator(request.op, Path(request.path), request.object_name, request.flags, inputs)
    except UnusableOperator as error:
        inspected = InspectedOperator(error=str(error))
    Path(sys.argv[2]).write_text(inspected.model_dump_json())


def inspect_operator(
    op: str,
    path: Path,
    object_name: str = "",
    flags: Sequence[ExampleFlag] = (),
    inputs: tuple[Path, str] | None = None,
) -> InspectedOperator:
    """Inspect the operator in `path`; `inputs` names a file and its example inputs, by default the same file.

    Raises:
        UnusableOperator: its code fails, or it cannot become a definition.
    """
    # PyTorch logs every shape that an operator refuses, with its stack.
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True
    source = UserCode(path, object_name, inputs)
    forward, base = _first_run(source, flags)
    try:
        inspected = _Inspection(op, source, flags, forward, base).inspected()
        return _tried(inspected, op, path, forward, base)
    except (ValidationError, ValueError) as error:
        message = " ".join(str(error).split())[:300]
        raise UnusableOperator(f"no definition can express it: {message}") from error


def _tried(
    inspected: InspectedOperator, op: str, path: Path, forward: Forward, base: ForwardRun
) -> InspectedOperator:
    """Return the operator with a reference that holds its bound at small sizes, or with a warning.

    If it misses the bound, the error hook follows how inputs move the results. An operator that rounds to half
    precision between its operations may still miss it. Then the reference computes in float32 and rounds its
    results.
    """
    variants = [inspected, inspected.model_copy(update={"amplifies": True})]
    if forward.accepts_float32():
        halves = tuple(name for name, dtype in forward.dtypes.items() if dtype in HALVES)
        update = {
            "upcast": halves,
            "rounded": tuple(dtype in HALVES for dtype in base.dtypes),
            "assumptions": (*inspected.assumptions, _UPCAST),
        }
        variants += [variant.model_copy(update=update) for variant in variants]
    failures: list[str] = []
    for variant in variants:
        trial = try_reference(op, definition_draft(variant, path))
        if not trial.failure:
            has_room = trial.worst <= _HEADROOM or any(dtype in HALVES for dtype in base.dtypes)
            return variant if has_room else _with_headroom(variant, op, path, trial.worst)
        failures.append(trial.failure)
    return inspected.model_copy(update={"assumptions": (*inspected.assumptions, f"check: {failures[0]}")})


def _with_headroom(inspected: InspectedOperator, op: str, path: Path, worst: float) -> InspectedOperator:
    """Return the operator with an error hook or a slack that leaves the reference room for other inputs.

    A serial sum whose partial sums grow large comes close to its bound at the few elements where errors pile up.
    """
    amplified = inspected.model_copy(update={"amplifies": True})
    if not inspected.amplifies:
        trial = try_reference(op, definition_draft(amplified, path))
        if not trial.failure and trial.worst <= _HEADROOM:
            return amplified
    definition = inspected.definition
    assert definition is not None
    tolerance = definition.tolerance
    slack = {"slack": 2 * DEFAULT_SLACK}
    wider = (
        tolerance.model_copy(update=slack)
        if isinstance(tolerance, Tolerance)
        else {name: own.model_copy(update=slack) for name, own in tolerance.items()}
    )
    note = (
        f"slack {slack['slack']:g}: the reference came to {worst:.2g} of its bound at the usual {DEFAULT_SLACK:g}"
    )
    return amplified.model_copy(
        update={
            "definition": definition.model_copy(update={"tolerance": wider}),
            "assumptions": (*inspected.assumptions, note),
        }
    )


def _first_run(source: UserCode, flags: Sequence[ExampleFlag]) -> tuple[Forward, ForwardRun]:
    """Run the example once on fake tensors, or for real if the code asks for values."""
    try:
        forward = Forward(source, flags, fake=True)
        return forward, forward.run(forward.shapes)
    except UnusableOperator as error:
        if error.__cause__ is None:
            raise
    forward = Forward(source, flags, fake=False)
    return forward, forward.run(forward.shapes)


class _Inspection:
    """Steps from one run of the example to a definition."""

    def __init__(
        self, op: str, source: UserCode, flags: Sequence[ExampleFlag], forward: Forward, base: ForwardRun
    ) -> None:
        self._op, self._source, self._flags, self._forward, self._base = op, source, flags, forward, base
        self._real: Forward | None = self._real_forward()
        self._leave_patterns_in_module()
        self._axes = OperatorAxes(forward, base)
        self._observed = {name: self._observe(name) for name in forward.tensors}

    def inspected(self) -> InspectedOperator:
        forward, source, base = self._forward, self._source, self._base
        results = [
            [size for size in shape if size is not None] for shape in formulas.result_shapes(self._axes.samples)
        ]
        flops, counts_products = formulas.operation_count(self._axes.samples, results)
        definition = self._definition(results, flops)
        few = min(formulas.elements_at([shape]) for shape in base.shapes) <= _FEW
        amplifies = any(operation.amplifies for operation in base.operations)
        return InspectedOperator(
            definition=definition,
            object_name=source.name,
            kind="class" if source.is_class else "instance" if source.is_module else "function",
            has_init_inputs=source.has_init_inputs,
            positional=tuple(self._argument_source(name) for name in forward.example.positional),
            keywords={name: self._argument_source(name) for name in forward.example.keywords},
            state=forward.keys,
            scratch=forward.scratch,
            result_count=len(base.dtypes),
            is_nested=base.is_nested,
            counts_products=counts_products,
            amplifies=few or amplifies,
            packed=forward.packed,
            assumptions=tuple(self._assumptions(definition)),
        )

    def _real_forward(self) -> Forward | None:
        """Return the operator with the example's values; None if they are too large to look at."""
        shapes, dtypes = self._forward.shapes, self._forward.dtypes
        if sum(formulas.elements_at([shapes[name]]) * DTYPES[dtypes[name]].bytes for name in shapes) > _REAL_BYTES:
            return None
        import torch

        torch.manual_seed(0)
        return self._forward.with_values(self._flags) if self._forward.fake else self._forward

    def _leave_patterns_in_module(self) -> None:
        real = self._real
        names = [n for n in self._forward.buffer_names() if real is None or is_pattern(real.tensors[n])]
        self._forward.leave_in_module(names)
        if real is not None and real is not self._forward:
            real.leave_in_module(names)

    def _observe(self, name: str) -> ObservedValues:
        for flag in self._flags:
            if flag.name == name and isinstance(flag, FlagTensor) and flag.distribution:
                high = flag.distribution.rpartition(":")[2]
                return ObservedValues(flag.distribution, 0, int(high) - 1 if high.isdecimal() else 0)
        if any(flag.name == name for flag in self._flags):
            return ObservedValues("workload", 0, 1)
        if self._real is None:
            return drawn_values(self._forward.generators.get(name, ""))
        return observe_values(self._real.tensors[name], is_state=name in self._forward.keys)

    def _definition(self, results: list[list[Any]], flops: str) -> Definition:
        forward, base = self._forward, self._base
        floating = Counter(d for n, d in forward.dtypes.items() if is_floating(d) and n in forward.arguments)
        dtype = floating.most_common(1)[0][0] if floating else "float32"
        distributions = [
            self._observed[n].distribution for n in forward.arguments if is_floating(forward.dtypes[n])
        ]
        distribution = "uniform" if distributions and set(distributions) == {"uniform"} else "normal"
        reserved = [*forward.values, *forward.keys, *self._axes.axes]
        outputs = ["out"] if len(base.shapes) == 1 else [f"out{i}" for i in range(len(base.shapes))]
        outputs = [unused_identifier(name, reserved) for name in outputs]
        lengths = formulas.reduction_lengths(self._axes.samples, self._axes.example)
        tolerances = [
            Tolerance(reduction=length, accumulate="float64" if own == "float64" else "float32")
            for length, own in zip(lengths, base.dtypes, strict=True)
        ]
        is_uniform = all(tolerance == tolerances[0] for tolerance in tolerances)
        return Definition(
            name=self._op,
            description=self._description(),
            axes={name: ties.axis_description(axis) for name, axis in self._axes.axes.items()},
            inputs=self._inputs(dtype, distribution),
            outputs={
                name: TensorSpec(shape=tuple(shape), dtype="workload" if own == dtype else own)
                for name, shape, own in zip(outputs, results, base.dtypes, strict=True)
            },
            tolerance=tolerances[0] if is_uniform else dict(zip(outputs, tolerances, strict=True)),
            flops=flops,
            bytes_read=self._bytes_read(),
            workloads=tuple(workloads.make_workloads(self._size_plan(results), dtype, distribution)),
            tags=self._tags(),
        )

    def _bytes_read(self) -> str | None:
        """Return the bytes that are read if a table is only looked up and larger than what is read of it."""
        forward, base = self._forward, self._base
        counts: list[str | int] = []
        is_partial = False
        for name, own in forward.dtypes.items():
            elements = formulas.element_formula(self._axes.symbolic_shape(name))
            lookups = base.uses.get(name, {-1})
            if -1 not in lookups:
                looked_up = formulas.looked_up_elements(sorted(lookups), self._axes.samples)
                read = sum(base.operations[index].looked_up for index in lookups)
                if looked_up is not None and read < formulas.elements_at([forward.shapes[name]]):
                    elements, is_partial = looked_up, True
            counts.append(f"{DTYPES[own].bytes} * {formulas.parenthesized(str(elements))}")
        return " + ".join(map(str, counts)) if is_partial else None

    def _inputs(self, dtype: str, distribution: str) -> dict[str, TensorSpec | ScalarSpec]:
        forward = self._forward
        inputs: dict[str, TensorSpec | ScalarSpec] = {}
        for name in forward.values:
            if name in forward.arguments:
                inputs[name] = self._tensor_spec(name, dtype, distribution)
            elif name in forward.numbers:
                value = forward.numbers[name]
                inputs[name] = ScalarSpec(type=type(value).__name__, value=value)
        return inputs | {name: self._tensor_spec(name, dtype, distribution) for name in forward.keys}

    def _tensor_spec(self, name: str, dtype: str, distribution: str) -> TensorSpec:
        forward, key = self._forward, self._forward.keys.get(name, "")
        shape = self._axes.symbolic_shape(name)
        own, observed = forward.dtypes[name], self._observed[name]
        drawn = observed.distribution
        if not is_floating(own) and own != "bool" and drawn == "workload":
            drawn = self._integers(name, observed)
        elif drawn == distribution:
            drawn = "workload"
        elif drawn == "workload" and distribution != "normal":
            drawn = "normal"
        return TensorSpec(
            shape=tuple(shape),
            dtype="workload" if own == dtype else own,
            distribution=drawn,
            role="weight" if key else "activation",
            description=f"{key} of the module" if key else "",
        )

    def _integers(self, name: str, observed: ObservedValues) -> str:
        fixed = {
            str(size): size
            for tensor, shape in self._forward.shapes.items()
            for d, size in enumerate(shape)
            if size > 1 and not self._axes.is_free(tensor, d)
        }
        small = dict(zip(self._axes.axes, (7, 13, 5, 11, 3, 17, 19, 23) * 4, strict=False))
        small = {axis: small[axis] * self._axes.axes[axis].step for axis in self._axes.axes}
        shapes = self._axes.shapes_at(small)
        if self._axes.run_at(small) is None:
            small, shapes = self._axes.example, self._forward.shapes

        def runs_with(tensor: str, value: int, is_offsets: bool) -> bool:
            assert self._real is not None
            return self._real.runs_with_integer(shapes, tensor, value, is_offsets)

        if self._real is None:  # nothing can be run at such sizes
            bounds = [axis for axis, size in (self._axes.example | fixed).items() if size == observed.high + 1]
            return f"integers:{observed.low}:{bounds[0] if len(bounds) == 1 else observed.high + 1}"
        example, sizes = self._axes.example | fixed, small | fixed
        return integer_distribution(name, self._forward.shapes[name], observed, example, sizes, runs_with)

    def _size_plan(self, results: list[list[Any]]) -> workloads.SizePlan:
        def nbytes(sizes: dict[str, int]) -> int:
            run = self._axes.run_at(sizes)
            if run is None:
                return 2**62
            shapes = self._axes.shapes_at(sizes)
            parts = [formulas.elements_at([s]) * DTYPES[self._forward.dtypes[n]].bytes for n, s in shapes.items()]
            return sum(parts) + sum(
                formulas.elements_at([shape]) * DTYPES[dtype].bytes
                for shape, dtype in zip(run.shapes, run.dtypes, strict=True)
            )

        def is_accepted(sizes: dict[str, int]) -> bool:
            run = self._axes.run_at(sizes)
            shapes = [tuple(int(evaluate(str(size), sizes)) for size in shape) for shape in results]
            return run is not None and [tuple(shape) for shape in run.shapes] == shapes

        steps = {name: axis.step for name, axis in self._axes.axes.items()}
        return workloads.SizePlan(self._axes.example, steps, is_accepted, nbytes)

    def _description(self) -> str:
        target = self._source.target
        documented = target if self._source.is_class or not self._source.is_module else type(target)
        text = " ".join(inspect.cleandoc(documented.__doc__ or "").split("\n\n")[0].split())
        is_own = not (self._source.is_module and documented.__module__.startswith("torch."))
        return text if text and is_own else f"`{self._source.name}` of {self._source.path.name}."

    def _tags(self) -> tuple[str, ...]:
        is_problem = self._source.name == "Model" and self._source.has_init_inputs
        return (f"kernelbench:{self._source.path.stem}",) if is_problem else ()

    def _argument_source(self, name: str) -> str:
        forward = self._forward
        if name in forward.packed:
            return name
        return name if name in forward.arguments or name in forward.numbers else repr(forward.constants[name])

    def _assumptions(self, definition: Definition) -> list[str]:
        forward = self._forward
        lines = [f"axis {name}: {text} = {self._axes.example[name]}" for name, text in definition.axes.items()]
        fixed = [
            f"{tensor} {shape}"
            for tensor, shape in forward.shapes.items()
            if any(size > 1 and not self._axes.is_free(tensor, d) for d, size in enumerate(shape))
        ]
        if fixed:
            reason = (
                "the search for axes ran out of time"
                if self._axes.is_incomplete
                else "no other size runs, or a module fixes them"
            )
            lines.append(f"fixed sizes in {', '.join(fixed[:6])}{' and more' if len(fixed) > 6 else ''}: {reason}")
        for name, spec in definition.tensor_inputs.items():
            drawn = definition.workloads[0].distribution if spec.distribution == "workload" else spec.distribution
            if spec.role == "activation":
                lines.append(f"input {name}: {drawn if spec.dtype != 'bool' else 'true or false'}")
            if self._observed[name].is_sorted and drawn.startswith("integers") and self._observed[name].high > 1:
                lines.append(f"check {name}: the example's values are sorted, those of the definition are not")
        if forward.keys:
            lines.append(f"weights: {', '.join(forward.keys)} are inputs")
        if forward.scratch:
            lines.append(f"buffers: {', '.join(forward.scratch)} stay as the module makes them")
        if self._real is None:
            lines.append(
                "check the distributions: the example is too large to look at its values, only at what drew them"
            )
        for name in definition.outputs:
            lines.append(f"tolerance of {name}: reduction length {definition.tolerance_of(name).reduction}")
        return lines


if __name__ == "__main__":
    main()

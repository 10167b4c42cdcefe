"""Correctness of outputs: a float64 reference, a bound from error analysis, and a grade of every element."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import hypot, inf, prod, sqrt
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Definition, Tolerance, Workload
from warpsmith.core.evaluation import Correctness, Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import error_figures, moved_values, reorder, row_parts, rows
from warpsmith.lab.grading.error_figures import BEYOND_ANY_BOUND, split_in_parts
from warpsmith.lab.grading.reference_calls import call_function, run_wide
from warpsmith.lab.grading.rounding import (
    find_subnormals,
    flushing_difference,
    smallest_unflushed,
    zero_subnormals,
)
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile, Function
from warpsmith.lab.operator.tensor_bytes import computable
from warpsmith.lab.operator.values.distributions import ADVERSARIAL

if TYPE_CHECKING:
    import torch

_LOOSE = 1 / 200

_LEAST_BOUND = 5e-324
"""Bound of an element that must be exact, the smallest number: errors are divided by it."""


@dataclass(frozen=True)
class Truth:
    """Reference outputs of one call, and how near a result must be to them."""

    values: dict[str, torch.Tensor]
    """Output to its reference in float64, or in exact integers."""
    bounds: dict[str, torch.Tensor | None]
    """Output to the largest error allowed per element; None: exact."""
    required: dict[str, float]
    """Output to the share of elements that must be within the bound."""
    norms: dict[str, float]
    """Output to the norm that all errors together may have, as a share of the norm of the bounds."""
    largest: dict[str, float] = field(default_factory=dict)
    """Floating-point output to the largest number of its type."""

    @property
    def is_finite(self) -> bool:
        """True if every reference value is a finite number, also in its output's type."""
        floating = {name: value for name, value in self.values.items() if value.is_floating_point()}
        sizes = ((value.abs(), self.largest.get(name, inf)) for name, value in floating.items())
        return all(bool((size.isfinite() & (size <= most)).all()) for size, most in sizes)

    @property
    def has_nan(self) -> bool:
        """True if a reference value is NaN."""
        return any(bool(value.isnan().any()) for value in self.values.values() if value.is_floating_point())


@dataclass(frozen=True)
class Grade:
    """Outcome of comparing one call's outputs with the reference."""

    status: Status
    """PASSED or INCORRECT_NUMERICAL."""
    worst: float
    """Largest error over its bound."""
    relative_error: float
    """Norm-wise relative error, the largest over the outputs."""
    norm_share: float = 0.0
    """Norm of the errors over the norm-wise bound, the largest over the outputs."""
    detail: str = ""
    """Description of the first failure."""

    @property
    def near_miss(self) -> bool:
        """True for a failure so small that unlucky rounding explains it; another draw decides."""
        limit = gate_rules.NEAR_MISS_BOUNDS
        return self.status is not Status.PASSED and self.worst <= limit and self.norm_share <= limit


def compute_truth(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], *, correlated: bool = False
) -> Truth:
    """Compute the float64 reference and the bounds for one set of inputs.

    Rounding errors of a sum over random values mostly cancel: they grow with the root of its length. Over values
    that are alike or ordered they need not cancel. With `correlated`, for a workload of such a distribution, and
    where a few rows may be repeated, they may therefore grow with the length. Where inputs are subnormal, hardware
    that flushes them to zero is right too. Where a hook is not finite although the result is, as beside masked
    inputs, it is asked again with zeros in their place.

    Raises:
        BadDefinition: the reference or one of the error hooks fails, or returns another shape.
    """
    correlated |= workload.distribution in ADVERSARIAL or _may_name_few_rows(file.definition, workload)
    call = _BoundTerms(file, workload, inputs, correlated)
    norms: dict[str, list[tuple[float, float]]] = {}

    def compute(part: Workload, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        values, bounds = _compute_part(call, part, tensors, norms)
        return values | {f"bound:{name}": bound for name, bound in bounds.items() if bound is not None}

    results = row_parts.compute_within_memory(file, workload, inputs, rows.find_part_axis, compute)
    row_parts.release_unused(row_parts.device_of(inputs))
    outputs = file.definition.outputs
    tolerances = {name: file.definition.tolerance_of(name) for name in outputs}
    return Truth(
        {name: results[name] for name in outputs},
        {name: results.get(f"bound:{name}") for name in outputs},
        {name: tolerance.required_match for name, tolerance in tolerances.items()},
        {
            name: _norm_share(tolerance, norms.get(name, ()), flushes=call.flushes)
            for name, tolerance in tolerances.items()
        },
        _largest_numbers(file.definition, workload),
    )


def _largest_numbers(definition: Definition, workload: Workload) -> dict[str, float]:
    """Return the largest number of each floating-point output's type; those of 8 bits, which are clamped, have
    none."""
    import torch

    dtypes = {name: definition.dtype(spec, workload) for name, spec in definition.outputs.items()}
    return {
        name: torch.finfo(getattr(torch, dtype)).max
        for name, dtype in dtypes.items()
        if is_floating(dtype) and DTYPES[dtype].bytes > 1
    }


class _BoundTerms:
    """Facts of a call on which the bounds of all its parts depend."""

    def __init__(
        self, file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], correlated: bool
    ) -> None:
        self.file, self.workload, self.correlated = file, workload, correlated
        self.inputs = inputs
        hooks = file.magnitude or file.extra
        finite = (bool(computable(tensor).isfinite().all()) for tensor in inputs.values())
        self.has_special = bool(hooks) and not all(finite)
        self.flushes = correlated and any(bool(find_subnormals(tensor).any()) for tensor in inputs.values())
        self.exact = _exact_outputs(file)

    @cached_property
    def largest(self) -> float:
        """Largest finite number of the inputs, without its sign."""
        floating = (tensor for tensor in self.inputs.values() if tensor.is_floating_point() and tensor.numel())
        parts = (part for tensor in floating for (part,) in split_in_parts(tensor))
        return max((float(part.double().abs_().nan_to_num_(posinf=0.0).max()) for part in parts), default=0.0)

    def growth(self, tolerance: Tolerance) -> float:
        """Return by how much rounding errors of the call's sums grow."""
        definition = self.file.definition
        length = evaluate(tolerance.reduction, definition.sizes(self.workload))
        if self.correlated or definition.has_smaller_number(self.workload):
            return length
        return sqrt(length) * _stretch(definition, tolerance.reduction, self.workload)


def _compute_part(
    call: _BoundTerms,
    workload: Workload,
    inputs: dict[str, torch.Tensor],
    norms: dict[str, list[tuple[float, float]]],
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor | None]]:
    """Compute values and bounds of a call, or of some of its rows; `norms` receives two bounds' by output."""
    import torch

    file = call.file
    wide = {name: t.double() if t.is_floating_point() else t for name, t in inputs.items()}
    values = run_wide(file, file.reference, workload, wide)
    magnitude, extra = values, {}
    if file.magnitude:
        least = {name: value.double().abs() for name, value in values.items()}
        magnitude = _run_hook(call, file.magnitude, workload, wide, least)
    if file.extra:
        least = {name: value.new_zeros((), dtype=torch.float64) for name, value in values.items()}
        extra = _run_hook(call, file.extra, workload, wide, least)
    flushed_values = run_wide(file, file.reference, workload, zero_subnormals(inputs)) if call.flushes else None
    bounds: dict[str, torch.Tensor | None] = {}
    for name, spec in file.definition.outputs.items():
        expected = file.definition.shape(spec, workload)
        if tuple(values[name].shape) != expected:
            raise BadDefinition(
                f"{file.path}: reference gives `{name}` the shape {tuple(values[name].shape)} at "
                f"{workload.name}, the definition says {expected}."
            )
        dtype = file.definition.dtype(spec, workload)
        if not is_floating(dtype):
            bounds[name] = None
            continue
        tolerance, exact = file.definition.tolerance_of(name), name in call.exact
        growth = call.growth(tolerance)
        if exact:
            bound = (values[name].abs() * DTYPES[dtype].unit_roundoff).clamp_min_(_LEAST_BOUND)
        else:
            bound = _element_bounds(values[name], magnitude[name], extra.get(name), tolerance, growth, dtype)
        if file.magnitude and not call.correlated and not exact:
            scale = torch.maximum(values[name].abs(), magnitude[name].abs() / growth)
            steps = max(growth, gate_rules.CANCELLING_STEPS / gate_rules.REDUCTION_STEP_SHARE)
            whole = _element_bounds(values[name], scale, extra.get(name), tolerance, steps, dtype)
            norms.setdefault(name, []).append(_finite_norms(whole, bound))
        if dtype != "float64" and not exact:
            bound = _widen_at_zeros(bound, values[name], call)
        if flushed_values is not None:
            bound = bound + flushing_difference(values[name], flushed_values[name], dtype)
        bounds[name] = bound
    return values, bounds


def _run_hook(
    call: _BoundTerms,
    hook: Function,
    workload: Workload,
    wide: dict[str, torch.Tensor],
    least: dict[str, torch.Tensor],
) -> dict[str, torch.Tensor]:
    """Return what an error hook says, and where that is not finite, what it says with zeros in place of infinite
    inputs, at least `least`."""
    import torch

    terms = run_wide(call.file, hook, workload, wide)
    if not call.has_special:
        return terms
    zeroed = {name: t.where(t.isfinite(), 0) if t.is_floating_point() else t for name, t in wide.items()}
    others = run_wide(call.file, hook, workload, zeroed)
    return {
        name: term.where(term.isfinite(), torch.maximum(others[name].nan_to_num(0.0, 0.0, 0.0), least[name]))
        for name, term in terms.items()
    }


def _norm_share(tolerance: Tolerance, norms: Sequence[tuple[float, float]], *, flushes: bool) -> float:
    """Return the norm that all errors may have together, from the norms of two bounds of each part."""
    share = 1.0 if flushes else max(gate_rules.NORM_SHARE, 1 / tolerance.slack)
    whole, below = (hypot(*(pair[i] for pair in norms)) for i in (0, 1))
    return share * min(1.0, whole / below) if below else share


def _exact_outputs(file: DefinitionFile) -> frozenset[str]:
    """Return the outputs in which nothing is rounded, unless the definition has its own tolerance for them."""
    if file.magnitude or file.extra:
        return frozenset()
    moved = moved_values.moved_outputs(file)
    return frozenset(name for name in moved if file.definition.tolerance_of(name).slack <= Tolerance().slack)


def _may_name_few_rows(definition: Definition, workload: Workload) -> bool:
    """Return True at an undeclared size of a definition with more indices than elements of another input: many of
    them may name a few rows."""
    if workload.axes in [each.axes for each in definition.workloads]:
        return False
    counts: dict[bool, list[int]] = {True: [], False: []}
    for spec in definition.tensor_inputs.values():
        counts[is_floating(definition.dtype(spec, workload))].append(prod(definition.shape(spec, workload)))
    return max(counts[False], default=0) > min(counts[True], default=0) > 0


def _stretch(definition: Definition, reduction: str, workload: Workload) -> float:
    """Return how much longer a workload's axis of sums is than the longest declared one, and 1 if it is about as
    long: errors of an honest sum then grow faster than by its root, for it may be computed in fewer parts."""
    sizes = {axis: size for axis, size in workload.axes.items() if axis in re.findall(r"\w+", reduction)}
    declared = definition.workloads
    ratios = (size / max(1, *(each.axes[axis] for each in declared)) for axis, size in sizes.items())
    ratio = max(ratios, default=1.0)
    return ratio if ratio > input_rules.LARGER_FACTORS[1] else 1.0


def _element_bounds(
    value: torch.Tensor,
    magnitude: torch.Tensor,
    extra: torch.Tensor | None,
    tolerance: Tolerance,
    growth: float,
    dtype: str,
) -> torch.Tensor:
    out, accumulate = DTYPES[dtype], DTYPES[tolerance.accumulate]
    if dtype == "float64":
        accumulate = out
    constant = gate_rules.ROUNDING_STEPS + growth * gate_rules.REDUCTION_STEP_SHARE
    unflushed = smallest_unflushed(dtype) * max(growth, 1.0)  # each term of a sum may be flushed by itself
    subnormals = max(gate_rules.SUBNORMALS[out.bytes > 1] * out.smallest_subnormal, unflushed)
    if magnitude is value and extra is None:  # the usual case, in as few passes as possible
        unit = tolerance.slack * (out.unit_roundoff + constant * accumulate.unit_roundoff)
        return value.abs().mul_(unit).add_(subnormals)
    steps = constant if extra is None else extra + constant
    rounding = (magnitude.abs() * steps).mul_(accumulate.unit_roundoff)
    return value.abs().mul_(out.unit_roundoff).add_(rounding).mul_(tolerance.slack).add_(subnormals)


def _widen_at_zeros(bound: torch.Tensor, value: torch.Tensor, call: _BoundTerms) -> torch.Tensor:
    """Return the bound, wider where terms may have cancelled to zero in float64 but not in the true result."""
    zeros = value == 0
    if not bool(zeros.any()):
        return bound
    return bound + zeros * (gate_rules.ZERO_SLACK * call.largest)


def _finite_norms(bound: torch.Tensor, other: torch.Tensor) -> tuple[float, float]:
    """Return the norms of two bounds, where both are finite."""
    finite = bound.isfinite() & other.isfinite()
    return float(bound[finite].norm()), float(other[finite].norm())


def grade_outputs(truth: Truth, outputs: dict[str, torch.Tensor]) -> Grade:
    """Compare every element of one call's outputs with the reference.

    Where the reference, rounded to the output's type, is NaN or infinite, the output must be the same. Where a
    bound reaches beyond the type's largest number, a number within it and infinity are both right.
    """
    return merge_grades([_grade_output(name, truth, output) for name, output in outputs.items()])


def merge_grades(grades: list[Grade]) -> Grade:
    """Return one grade with the largest numbers of several, and their first failure."""
    detail = next((grade.detail for grade in grades if grade.detail), "")
    return Grade(
        Status.INCORRECT_NUMERICAL if detail else Status.PASSED,
        max((grade.worst for grade in grades), default=0.0),
        max((grade.relative_error for grade in grades), default=0.0),
        max((grade.norm_share for grade in grades), default=0.0),
        detail,
    )


def right_share(truth: Truth, outputs: dict[str, torch.Tensor]) -> float:
    """Return the share of an output's elements within their bounds, the largest over the outputs.

    Only finite elements other than zero count: memory that was merely filled holds the others.
    """
    largest = 0.0
    for name, output in outputs.items():
        expected, bound = truth.values[name], truth.bounds[name]
        counted = expected.isfinite() & (expected != 0)
        right = output == expected if bound is None else (output.double() - expected).abs() <= bound
        elements = int(counted.sum())
        largest = max(largest, int((right & counted).sum()) / elements if elements else 0.0)
    return largest


def grade_unsampled(sampled: Truth, outputs: dict[str, torch.Tensor], grade: Grade) -> Grade:
    """Return the grade of sampled rows, or a failure if another row was not written.

    Memory that was never written holds NaN. An output whose sampled rows have one may have others.
    """
    for name, output in outputs.items():
        if not output.is_floating_point() or sampled.values[name].isnan().any():
            continue
        if unwritten := int(output.isnan().sum()):
            detail = (
                f"{name} has {unwritten} elements that are NaN or were not written, and none in the sampled rows"
            )
            return replace(grade, status=Status.INCORRECT_NUMERICAL, worst=BEYOND_ANY_BOUND, detail=detail)
    return grade


def _grade_output(name: str, truth: Truth, output: torch.Tensor) -> Grade:
    expected, bound = truth.values[name], truth.bounds[name]
    if output.numel() == 0:
        return Grade(Status.PASSED, 0.0, 0.0)
    if bound is None:
        wrong = int((output != expected).sum())
        failure = error_figures.describe_wrong_element(name, wrong, output, expected, None) if wrong else ""
        return Grade(_status(failure), BEYOND_ANY_BOUND if wrong else 0.0, float(wrong > 0), 0.0, failure)
    figures = error_figures.measure_errors(output, expected, bound)
    share = truth.norms[name]
    norm_bound = (share + (1 - share) / sqrt(output.numel())) * sqrt(figures.bound)
    norm_share = sqrt(figures.within) / norm_bound if norm_bound else 0.0
    failure = ""
    # A NaN is no rounding error: memory that was never written holds NaN, and no share of it is allowed.
    beyond_counting = figures.wrong and error_figures.has_wrong_special_value(output, expected, bound)
    too_far = truth.required[name] < 1 and figures.worst > gate_rules.MISMATCH_BOUNDS[output.element_size() > 1]
    if beyond_counting or too_far or figures.wrong > (1 - truth.required[name]) * output.numel():
        failure = error_figures.describe_wrong_element(name, int(figures.wrong), output, expected, bound)
    elif figures.wrong and (slice_failure := error_figures.describe_wrong_slice(name, output, expected, bound)):
        failure = slice_failure
    elif norm_share > 1.0:
        failure = (
            f"{name} is off by {norm_share:.3g} times the norm-wise bound, although no element is beyond its own: "
            "rounding does not bring all elements near their bounds"
        )
    relative = min(sqrt(figures.error / figures.value), BEYOND_ANY_BOUND) if figures.value else 0.0
    return Grade(_status(failure), figures.worst, relative, norm_share, failure)


def _status(failure: str) -> Status:
    return Status.INCORRECT_NUMERICAL if failure else Status.PASSED


def compare_calls(
    first: dict[str, torch.Tensor], second: dict[str, torch.Tensor], truth: Truth, deterministic: bool
) -> tuple[float, str]:
    """Compare the outputs of two calls on the same inputs.

    With `deterministic`, and for integers, every bit must be the same. Otherwise the difference must be within the
    bound. NaN equals NaN.

    Returns:
        The largest difference as a share of its bound, 0 if all are equal; and a sentence if that is too much.
    """
    worst, failure = 0.0, ""
    for name, output in first.items():
        share, wrong = _compare_output(name, output, second[name], truth, deterministic)
        worst, failure = max(worst, share), failure or wrong
    return worst, failure


def differing_output(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> str:
    """Return the name of the first output that differs in a bit; empty if none does."""
    import torch

    return next((name for name in first if not torch.equal(as_bits(first[name]), as_bits(second[name]))), "")


def _compare_output(
    name: str, first: torch.Tensor, second: torch.Tensor, truth: Truth, deterministic: bool
) -> tuple[float, str]:
    import torch

    bound = truth.bounds[name]
    if torch.equal(as_bits(first), as_bits(second)):
        return 0.0, ""
    parts = split_in_parts(first, second, first if bound is None else bound)
    counts = [_count_differences(*part) for part in parts]
    differing, beyond = (sum(int(part[i]) for part in counts) for i in (0, 1))
    worst = max(float(part[2]) for part in counts)
    exact = deterministic or bound is None
    share = f"{(differing if exact else beyond) / first.numel():.2%}"
    if exact and differing:
        return worst, f"{name} differs from call to call on the same inputs, at {share} of its elements"
    if beyond > 2 * (1 - truth.required[name]) * first.numel():  # each of the two calls may miss that many
        return worst, (
            f"{name} differs from call to call on the same inputs by {worst:.3g} times the bound; "
            f"{share} of its elements by more than the bound"
        )
    return worst, ""


def _count_differences(first: torch.Tensor, second: torch.Tensor, bound: torch.Tensor) -> list[torch.Tensor]:
    """Count elements that differ in a bit, and by more than the bound; and find the largest share of a bound."""
    differ = as_bits(first) != as_bits(second)
    if not first.is_floating_point():
        return [differ.sum(), differ.sum(), differ.any() * BEYOND_ANY_BOUND]
    left, right = first.double(), second.double()
    both_nan = left.isnan() & right.isnan()
    shares = (left - right).abs_().div_(bound).masked_fill_((left == right) | both_nan, 0.0)
    shares = shares.nan_to_num_(nan=BEYOND_ANY_BOUND, posinf=BEYOND_ANY_BOUND).clamp_(max=BEYOND_ANY_BOUND)
    return [(differ & ~both_nan).sum(), (shares > 1.0).sum(), shares.max()]


def as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements as integers of their width; a contiguous tensor shares its memory with them."""
    import torch

    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(integers[tensor.itemsize])


def summarize_grades(
    grades: list[Grade], reordered: float | None = None, repeat: float | None = None
) -> Correctness:
    """Return the record of a workload's calls; `reordered` and `repeat` are those of `Correctness`."""
    total = merge_grades(grades)
    return Correctness(
        calls=len(grades),
        worst=total.worst,
        relative_error=total.relative_error,
        norm_worst=total.norm_share,
        reordered=reordered,
        repeat=repeat,
        detail=total.detail[:600],
    )


def tolerance_is_loose(reordered: float) -> bool:
    """Return True if rounding alone, in any order of summation, uses next to nothing of a bound.

    The tolerance of such a definition lets wrong results pass. An operator that never rounds (0.0) is not loose.
    """
    return 0.0 < reordered < _LOOSE


def grade_reference(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], expected: Truth
) -> Grade:
    """Grade the reference in its own precision, with its sums in several orders; return the worst of the grades.

    A bound that the reference cannot hold would refuse honest kernels.

    Raises:
        BadDefinition: the reference returns another type than the definition says.
    """
    grades = []
    for order, results in reference_orders(file, workload, inputs).items():
        grade = grade_outputs(expected, results)
        grades.append(replace(grade, detail=grade.detail and f"{grade.detail}{order and ', '}{order}"))
    row_parts.release_unused(row_parts.device_of(inputs))
    return merge_grades(grades)


def reference_orders(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor]
) -> dict[str, dict[str, torch.Tensor]]:
    """Run the reference in its own precision and in other orders of summation; return the outputs by order.

    The key of its own order is empty, that of another one is a phrase such as "its sums in the order `blocks`".

    Raises:
        BadDefinition: the reference fails, or returns another type than the definition says.
    """
    with _full_precision_sums():
        results = {"": reference_outputs(file, workload, inputs)}
        for name, spec in file.definition.outputs.items():
            dtype = str(results[""][name].dtype).removeprefix("torch.")
            if dtype != file.definition.dtype(spec, workload):
                raise BadDefinition(
                    f"{file.path}: reference returns `{name}` as {dtype}, the definition says otherwise."
                )
        for order, context in reorder.summation_orders().items():
            with context:
                results[f"its sums in the order `{order}`"] = reference_outputs(file, workload, inputs)
    return results


@contextmanager
def _full_precision_sums() -> Iterator[None]:
    """Have cuBLAS add the parts of 16-bit products in float32.

    By default it may add them in the products' own type, which no bound for float32 sums allows.
    """
    import torch

    settings, names = torch.backends.cuda.matmul, ("fp16", "bf16")
    flags = [f"allow_{name}_reduced_precision_reduction" for name in names]
    before = {flag: getattr(settings, flag) for flag in flags}
    try:
        for flag in flags:
            setattr(settings, flag, False)
        yield
    finally:
        for flag, value in before.items():
            setattr(settings, flag, value)


def reference_outputs(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Run the reference in its own precision, by rows where memory is short; raises BadDefinition if it fails."""

    def compute(part: Workload, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return call_function(file, file.reference, part, tensors)

    return row_parts.compute_within_memory(file, workload, inputs, rows.find_row_axis, compute)


def choices_are_stable(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], expected: Truth
) -> bool:
    """Return True if no discrete choice of the reference depends on rounding.

    The integers of the float64 reference must stay the same when every floating-point input is moved by a random
    share of up to `gate_rules.CHOICE_SHIFT`, and when it is moved as much the other way.
    """
    import torch

    integers = {name: value for name, value in expected.values.items() if not value.is_floating_point()}
    for _ in range(gate_rules.CHOICE_MOVES if integers else 0):
        shares = {
            name: gate_rules.CHOICE_SHIFT
            * (2 * torch.rand(value.shape, dtype=torch.float64, device=value.device) - 1)
            for name, value in inputs.items()
            if value.is_floating_point()
        }
        for sign in (1, -1):
            moved = inputs | {name: inputs[name].double() * (1 + sign * share) for name, share in shares.items()}
            try:
                results = run_wide(file, file.reference, workload, moved)
            except BadDefinition:  # it refuses values just beyond a limit, so the inputs lie at the limit
                return False
            if not all(torch.equal(results[name], value) for name, value in integers.items()):
                return False
    return True

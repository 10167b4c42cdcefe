"""Grading: a float64 reference, a bound from error analysis, and no element left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.core.definition import Tolerance, Workload
from warpsmith.core.dtype import DTYPES, is_floating
from warpsmith.core.evaluation import Correctness, Status
from warpsmith.core.expression import evaluate
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import reorder
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import ADVERSARIAL

if TYPE_CHECKING:
    import torch

_CONSTANT_STEPS = 16
"""Rounding steps that any implementation may take beside its reduction."""

_SUBNORMALS = 4
"""Absolute slack, in smallest subnormals of the output type."""

NORM_SHARE = 0.75
"""Norm-wise bound as a share of the norm of the bounds. Rounding comes near a bound at few elements at once, and
at the usual slack of 2 the error analysis itself fills half of one. Over seven operators, three types, sizes to
50,257 and every distribution, other orders of summing filled 0.52 of it at most, and naive serial float32 sums
0.63. A few elements may be unlucky together, so one alone has all of its bound."""

_NEAR_MISS = 2.0
"""Errors within so many bounds may be rounding where one large element rules a row: then a row's error is one
draw, not a mean. Of a serial float32 softmax over 8192 columns, so ruled, 41 of 4973 draws missed, by 1.5 at
most."""

_FAR = 1e9
"""Stands for an error beyond any bound: a wrong NaN, infinity or integer."""

_LOOSE = 1 / 200

_MOVED = 2.0**-20
"""Share of an input by which rounding may seem to move it: 16 roundoffs of float32, which a few steps of a kernel
have."""

_MOVES = 2
"""Random moves, there and back, that a choice must stand: it may stand one by luck."""

_PART = {"cpu": 1 << 18, "cuda": 1 << 26}
"""Elements that are graded at a time: what stays in a cache; what takes little of a GPU's memory."""


@dataclass(frozen=True)
class Truth:
    """What the outputs of one call must be near to."""

    values: dict[str, torch.Tensor]
    """float64 (or exact integer) reference by output."""
    bounds: dict[str, torch.Tensor | None]
    """Largest error allowed an element; None: exact."""
    required: dict[str, float]
    """Share of elements that must be within the bound."""
    norms: dict[str, float]
    """Norm that all errors together may have, as a share of the norm of the bounds."""


@dataclass(frozen=True)
class Grade:
    """How one call's outputs fared."""

    status: Status
    """PASSED or INCORRECT_NUMERICAL."""
    worst: float
    """Largest error over its bound."""
    relative_error: float
    """Norm-wise, the largest over the outputs."""
    norm_share: float = 0.0
    """Norm of the errors over the norm-wise bound, the largest over the outputs."""
    detail: str = ""
    """The first failure."""

    @property
    def near_miss(self) -> bool:
        """Whether it failed by so little that rounding with bad luck would: another draw tells."""
        return self.status is not Status.PASSED and self.worst <= _NEAR_MISS and self.norm_share <= _NEAR_MISS


def truth(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], *, correlated: bool = False
) -> Truth:
    """The float64 reference and the bounds for one set of inputs.

    Rounding errors of a sum over random values mostly cancel: they grow with the root of its length. Over
    values that are alike or ordered they need not, so there (`correlated`, or a workload that is drawn so) they
    may grow with the length. Where inputs are subnormal, hardware that takes them for zero is right too.

    Raises:
        BadDefinition: the reference or one of the error hooks fails, or gives another shape.
    """
    correlated = correlated or workload.distribution in ADVERSARIAL
    wide = {name: t.double() if t.is_floating_point() else t for name, t in inputs.items()}
    values = _run(file, file.reference, workload, wide)
    magnitude = _run(file, file.magnitude, workload, wide) if file.magnitude else values
    extra = _run(file, file.extra, workload, wide) if file.extra else {}
    flushed = _flushed(inputs) if correlated else None
    zeroed = _run(file, file.reference, workload, flushed) if flushed else None
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
        tolerance = file.definition.tolerance_of(name)
        length = evaluate(tolerance.reduction, file.definition.sizes(workload))
        growth = length if correlated else sqrt(length)
        bound = _bound(values[name], magnitude[name], extra.get(name), tolerance, growth, dtype)
        bounds[name] = bound if zeroed is None else bound + _flushing(values[name], zeroed[name], dtype)
    tolerances = {name: file.definition.tolerance_of(name) for name in values}
    return Truth(
        values,
        bounds,
        {name: tolerance.required_match for name, tolerance in tolerances.items()},
        {name: max(NORM_SHARE, 1 / t.slack) if zeroed is None else 1.0 for name, t in tolerances.items()},
    )


def _flushed(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor] | None:
    """The inputs in float64 with zeros in place of subnormal numbers; None where there are none. float16 has no
    part in it: its subnormals are normal numbers of float32."""
    import torch

    found, any_ = {}, False
    for name, tensor in inputs.items():
        found[name] = tensor.double() if tensor.is_floating_point() else tensor
        if tensor.dtype in (torch.float32, torch.bfloat16):
            small = (tensor.abs() < torch.finfo(tensor.dtype).tiny) & (tensor != 0)
            any_ = any_ or bool(small.any())
            found[name] = found[name].masked_fill(small, 0.0)
    return found if any_ else None


def _flushing(value: torch.Tensor, zeroed: torch.Tensor, dtype: str) -> torch.Tensor:
    """How far a result may move where subnormal inputs and results are taken for zero."""
    return (value - zeroed).abs_().nan_to_num_(nan=0.0, posinf=0.0).add_(_flushed_to_zero(dtype))


def _flushed_to_zero(dtype: str) -> float:
    """Results below it may be zero: devices flush subnormals of float32, and of what is computed in it."""
    import torch

    return torch.finfo(getattr(torch, dtype)).tiny if dtype in ("float32", "bfloat16") else 0.0


def _bound(
    value: torch.Tensor,
    magnitude: torch.Tensor,
    extra: torch.Tensor | None,
    tolerance: Tolerance,
    growth: float,
    dtype: str,
) -> torch.Tensor:
    out, accumulate = DTYPES[dtype], DTYPES[tolerance.accumulate]
    constant = _CONSTANT_STEPS + growth / 2
    subnormals = max(_SUBNORMALS * out.smallest_subnormal, _flushed_to_zero(dtype))
    if magnitude is value and extra is None:  # the usual case, in as few passes as can be
        unit = tolerance.slack * (out.unit_roundoff + constant * accumulate.unit_roundoff)
        return value.abs().mul_(unit).add_(subnormals)
    steps = constant if extra is None else extra + constant
    rounding = magnitude.abs() * steps * accumulate.unit_roundoff
    return (value.abs() * out.unit_roundoff + rounding) * tolerance.slack + subnormals


def grade(truth: Truth, outputs: dict[str, torch.Tensor]) -> Grade:
    """Compare one call's outputs, every element of them.

    Where the reference, rounded to the output's type, is NaN or infinite the output must be the same.
    """
    return worst_of([_grade_one(name, truth, output) for name, output in outputs.items()])


def worst_of(grades: list[Grade]) -> Grade:
    """One grade with the largest numbers of several, and their first failure."""
    detail = next((grade.detail for grade in grades if grade.detail), "")
    return Grade(
        Status.INCORRECT_NUMERICAL if detail else Status.PASSED,
        max((grade.worst for grade in grades), default=0.0),
        max((grade.relative_error for grade in grades), default=0.0),
        max((grade.norm_share for grade in grades), default=0.0),
        detail,
    )


class _Figures(NamedTuple):
    """What is known of an output, or of a part of it."""

    worst: float
    """Largest error as a share of its bound; NaN where an error is."""
    wrong: float
    """Elements beyond their bound."""
    error: float
    """Sum of the squared errors."""
    within: float
    """The same, errors beyond the bound counted as the bound."""
    value: float
    """Sum of the reference's squares."""
    bound: float
    """Sum of the bounds' squares."""


def _grade_one(name: str, truth: Truth, output: torch.Tensor) -> Grade:
    expected, bound = truth.values[name], truth.bounds[name]
    if output.numel() == 0:
        return Grade(Status.PASSED, 0.0, 0.0)
    if bound is None:
        wrong = int((output != expected).sum())
        failure = _describe(name, wrong, output, expected, None) if wrong else ""
        return Grade(_status(failure), _FAR if wrong else 0.0, float(wrong > 0), 0.0, failure)
    found = _figures(_plain, output, expected, bound)
    if not (found.worst <= 1.0 and isfinite(found.bound)):  # a NaN somewhere, perhaps one that belongs there
        found = _figures(_careful, output, expected, bound)
    room = truth.norms[name]
    norm = (room + (1 - room) / sqrt(output.numel())) * sqrt(found.bound)
    norm_share = sqrt(found.within) / norm if norm else 0.0
    failure = ""
    if found.wrong > (1 - truth.required[name]) * output.numel():
        failure = _describe(name, int(found.wrong), output, expected, bound)
    elif norm_share > 1.0:
        failure = (
            f"{name} is off by {norm_share:.3g} times the norm-wise bound, though no element is beyond its own: "
            "errors near the bound all over are no rounding"
        )
    relative = min(sqrt(found.error / found.value), _FAR) if found.value else 0.0
    return Grade(_status(failure), found.worst, relative, norm_share, failure)


def _status(failure: str) -> Status:
    return Status.INCORRECT_NUMERICAL if failure else Status.PASSED


def _parts(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same elements of several tensors, some at a time."""
    size = _PART.get(tensors[0].device.type, _PART["cuda"])
    flat = [tensor.reshape(-1) for tensor in tensors]
    for at in range(0, flat[0].numel(), size):
        yield tuple(tensor[at : at + size] for tensor in flat)


def _figures(part: Any, output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> _Figures:  # noqa: ANN401
    """Put together from all parts; the device is waited for once."""
    import torch

    found = torch.stack([torch.stack(part(*some)) for some in _parts(output, expected, bound)])
    return _Figures(float(found[:, 0].max()), *found[:, 1:].sum(0).tolist())


def _plain(output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> list[torch.Tensor]:
    """In few passes, for finite numbers within their bounds."""
    import torch

    difference = (output.double() - expected).abs_()
    squares = torch.dot(difference, difference)
    worst = torch.div(difference, bound, out=difference).max()
    return [
        worst,
        torch.zeros_like(worst),
        squares,
        squares,
        torch.dot(expected, expected),
        torch.dot(bound, bound),
    ]


def _careful(output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> list[torch.Tensor]:
    """The same for any numbers: NaN and infinities of the reference must be met, and are no part of a norm."""
    import torch

    special, same = _special(output, expected)
    difference = (output.double() - expected).abs_()
    shares = torch.where(special, torch.where(same, 0.0, _FAR), difference / bound)
    shares = shares.nan_to_num_(nan=_FAR, posinf=_FAR).clamp_(max=_FAR)
    outside = special | ~torch.isfinite(bound)
    error = difference.nan_to_num_(nan=_FAR, posinf=_FAR).masked_fill_(outside, 0.0)
    allowed, value = bound.masked_fill(outside, 0.0), expected.masked_fill(outside, 0.0)
    within = torch.minimum(error, allowed)
    squares = [torch.dot(part, part) for part in (error, within, value, allowed)]
    return [shares.max(), (shares > 1.0).sum(), *squares]


def _special(output: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where the reference, rounded to the output's type, is NaN or infinite; and where the output is the same."""
    got, want = output.double(), expected.to(output.dtype).double()
    return ~want.isfinite(), (got == want) | (got.isnan() & want.isnan())


def _describe(
    name: str, wrong: int, output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor | None
) -> str:
    """The first of the wrong elements, and how many there are."""
    import torch

    at = 0
    for got, want, allowed in _parts(output, expected, expected if bound is None else bound):
        if bound is None:
            bad = got != want
        else:
            special, same = _special(got, want)
            bad = ~torch.where(special, same, (got.double() - want).abs_() <= allowed)
        if bool(bad.any()):
            at += int(bad.int().argmax())
            break
        at += got.numel()
    index = [int(i) for i in torch.unravel_index(torch.tensor(at), output.shape)]
    place = tuple(index)
    room = f", off by more than {float(bound[place]):.3g}" if bound is not None else ""
    return (
        f"{name}{index} is {output[place].item()!r}, the reference {expected[place].item()!r}{room}; "
        f"{wrong / output.numel():.2%} of the elements are wrong"
    )


def agree(
    first: dict[str, torch.Tensor], second: dict[str, torch.Tensor], truth: Truth, deterministic: bool
) -> tuple[float, str]:
    """How far two calls on the same inputs are apart, and a sentence where that is too far.

    Returns:
        The largest difference as a share of its bound, 0 where all are equal; and what is wrong: with
        `deterministic` and for integers any bit that differs, else a difference beyond the bound. NaN equals NaN.
    """
    worst, failure = 0.0, ""
    for name, one in first.items():
        share, wrong = _apart(name, one, second[name], truth, deterministic)
        worst, failure = max(worst, share), failure or wrong
    return worst, failure


def _apart(
    name: str, one: torch.Tensor, other: torch.Tensor, truth: Truth, deterministic: bool
) -> tuple[float, str]:
    import torch

    bound = truth.bounds[name]
    if torch.equal(_bits(one), _bits(other)):
        return 0.0, ""
    found = [_part_apart(*some) for some in _parts(one, other, one if bound is None else bound)]
    differing, beyond = (sum(int(part[i]) for part in found) for i in (0, 1))
    worst = max(float(part[2]) for part in found)
    exact = deterministic or bound is None
    share = f"{(differing if exact else beyond) / one.numel():.2%}"
    if exact and differing:
        return worst, f"{name} differs from call to call on the same inputs, at {share} of its elements"
    if beyond > 2 * (1 - truth.required[name]) * one.numel():  # each of the two may miss that many
        far = f"{name} differs from call to call on the same inputs by {worst:.3g} times the bound"
        return worst, f"{far}; {share} of its elements by more than once"
    return worst, ""


def _part_apart(one: torch.Tensor, other: torch.Tensor, bound: torch.Tensor) -> list[torch.Tensor]:
    """Elements that differ in a bit, those that differ by more than the bound, the largest share of a bound."""
    differ = _bits(one) != _bits(other)
    if not one.is_floating_point():
        return [differ.sum(), differ.sum(), differ.any() * _FAR]
    left, right = one.double(), other.double()
    both = left.isnan() & right.isnan()
    shares = (left - right).abs_().div_(bound).masked_fill_((left == right) | both, 0.0)
    shares = shares.nan_to_num_(nan=_FAR, posinf=_FAR).clamp_(max=_FAR)
    return [(differ & ~both).sum(), (shares > 1.0).sum(), shares.max()]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(whole[tensor.itemsize])


def summarise(grades: list[Grade], reordered: float | None = None, repeat: float | None = None) -> Correctness:
    """One record over the calls of a workload; the other numbers as `Correctness` names them."""
    total = worst_of(grades)
    return Correctness(
        calls=len(grades),
        worst=total.worst,
        relative_error=total.relative_error,
        norm_worst=total.norm_share,
        reordered=reordered,
        repeat=repeat,
        detail=total.detail[:600],
    )


def loose(reordered: float) -> bool:
    """Whether rounding alone, in whatever order, uses next to nothing of a bound: then the definition's tolerance
    lets wrong results pass. An operator that never rounds (0.0) says nothing."""
    return 0.0 < reordered < _LOOSE


def holds_itself(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], expected: Truth
) -> Grade:
    """The reference in its own working precision, its sums in several orders, against the float64 one; the worst
    of them: a bound that it cannot hold would turn honest kernels away.

    Raises:
        BadDefinition: it returns another type than the definition says.
    """
    own = _call(file, file.reference, workload, inputs)
    specs = file.definition.outputs
    for name, spec in specs.items():
        dtype = str(own[name].dtype).removeprefix("torch.")
        if dtype != file.definition.dtype(spec, workload):
            raise BadDefinition(
                f"{file.path}: reference returns `{name}` as {dtype}, the definition says otherwise."
            )
    grades = [grade(expected, own)]
    for order, context in reorder.orders().items():
        with context:
            own = _call(file, file.reference, workload, inputs)
        found = grade(expected, own)
        grades.append(replace(found, detail=found.detail and f"{found.detail}, its sums in the order `{order}`"))
    return worst_of(grades)


def decided(file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], expected: Truth) -> bool:
    """Whether no choice hangs on rounding: the float64 reference has the same integers where every floating-point
    input is moved by up to `_MOVED`, and by as much the other way."""
    import torch

    whole = {name: value for name, value in expected.values.items() if not value.is_floating_point()}
    for _ in range(_MOVES if whole else 0):
        away = {
            name: _MOVED * (2 * torch.rand(value.shape, dtype=torch.float64, device=value.device) - 1)
            for name, value in inputs.items()
            if value.is_floating_point()
        }
        for sign in (1, -1):
            moved = inputs | {name: inputs[name].double() * (1 + sign * by) for name, by in away.items()}
            try:
                found = _run(file, file.reference, workload, moved)
            except BadDefinition:  # it refuses what is just beyond a limit: then the inputs lie at it
                return False
            if not all(torch.equal(found[name], value) for name, value in whole.items()):
                return False
    return True


def arguments(file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor]) -> list[Any]:
    """The positional arguments of a call, scalars in their places."""
    scalars = file.definition.scalars(workload)
    return [inputs[name] if name in inputs else scalars[name] for name in file.definition.inputs]


def _run(file: DefinitionFile, function: Any, workload: Workload, wide: dict[str, torch.Tensor]) -> dict[str, Any]:  # noqa: ANN401
    with _wide_mode():
        result = _call(file, function, workload, wide)
        return {name: t.double() if t.is_floating_point() else t for name, t in result.items()}


def _call(
    file: DefinitionFile,
    function: Any,  # noqa: ANN401
    workload: Workload,
    inputs: dict[str, torch.Tensor],
) -> dict[str, Any]:
    """What the definition's function returns, by output; a failure of it is the definition's."""
    import torch

    try:
        with torch.no_grad():
            found = file.outputs(function(*arguments(file, workload, inputs)))
        strange = [name for name, value in found.items() if not isinstance(value, torch.Tensor)]
        if strange:
            raise TypeError(f"{', '.join(strange)} is no tensor")
        return found
    except BadDefinition:
        raise
    except Exception as error:
        what = " ".join(str(error).split())[:300]
        raise BadDefinition(
            f"{file.path}: {function.__name__}() fails at {workload.name}: {type(error).__name__}: {what}"
        ) from error


def _wide_mode() -> Any:  # noqa: ANN401 - a class of torch, which is imported late
    """Conversions to a narrower floating type inside a reference stay float64."""
    import torch
    from torch.overrides import TorchFunctionMode

    names = {"float", "half", "bfloat16"}

    def widen(value: object) -> object:
        return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value

    class Wide(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            if getattr(function, "__name__", "") in names and len(args) == 1:
                return args[0].double()
            kwargs = {key: widen(value) for key, value in (kwargs or {}).items()}
            return function(*(widen(value) for value in args), **kwargs)

    return Wide()

"""Grading: a float64 reference, a bound from error analysis, and no element left out."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Tolerance, Workload
from warpsmith.core.dtype import DTYPES, is_floating
from warpsmith.core.evaluation import Correctness, Status
from warpsmith.core.expression import evaluate
from warpsmith.errors import BadDefinition
from warpsmith.lab.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

_CONSTANT_STEPS = 16
"""Rounding steps that any implementation may take beside its reduction."""

_SUBNORMALS = 4
"""Absolute slack, in smallest subnormals of the output type."""


@dataclass(frozen=True)
class Truth:
    """What the outputs of one call must be near to."""

    values: dict[str, torch.Tensor]
    """float64 (or exact integer) reference by output."""
    bounds: dict[str, torch.Tensor | None]
    """Largest error allowed an element; None: exact."""
    required: dict[str, float]
    """Share of elements that must be within the bound."""


@dataclass(frozen=True)
class Grade:
    """How one call's outputs fared."""

    status: Status
    """PASSED or INCORRECT_NUMERICAL."""
    worst: float
    """Largest error over its bound."""
    relative_error: float
    """Norm-wise, the largest over the outputs."""
    detail: str = ""
    """The first failure."""


def truth(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], *, correlated: bool = False
) -> Truth:
    """The float64 reference and the bounds for one set of inputs.

    Rounding errors of a sum over random values mostly cancel: they grow with the root of its length. Over
    values that are alike or ordered they need not, so there (`correlated`) they may grow with the length.

    Raises:
        BadDefinition: the reference or one of the error hooks fails, or gives another shape.
    """
    wide = {name: t.double() if t.is_floating_point() else t for name, t in inputs.items()}
    values = _run(file, file.reference, workload, wide)
    magnitude = _run(file, file.magnitude, workload, wide) if file.magnitude else values
    extra = _run(file, file.extra, workload, wide) if file.extra else {}
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
        bounds[name] = _bound(
            values[name],
            magnitude[name],
            extra.get(name),
            tolerance,
            length if correlated else sqrt(length),
            dtype,
        )
    required = {name: file.definition.tolerance_of(name).required_match for name in values}
    return Truth(values, bounds, required)


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
    subnormals = _SUBNORMALS * out.smallest_subnormal
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
    worst, relative, detail = 0.0, 0.0, ""
    for name, output in outputs.items():
        share, error, failure = _grade_one(name, truth, output)
        worst, relative = max(worst, share), max(relative, error)
        detail = detail or failure
    status = Status.INCORRECT_NUMERICAL if detail else Status.PASSED
    return Grade(status, worst, relative, detail)


def _grade_one(name: str, truth: Truth, output: torch.Tensor) -> tuple[float, float, str]:
    import torch

    expected, bound = truth.values[name], truth.bounds[name]
    if output.numel() == 0:
        return 0.0, 0.0, ""
    if bound is None:
        wrong = output != expected
        return (1e9, 1.0, _describe(name, wrong, output, expected, None)) if bool(wrong.any()) else (0.0, 0.0, "")
    difference = (output.double() - expected).abs_()
    shares = difference / bound
    worst = float(shares.max())
    if worst <= 1.0:  # every element is finite and near: NaN compares false
        norm = float(expected.norm())
        return worst, float(difference.norm()) / norm if norm else 0.0, ""
    rounded = expected.to(output.dtype)
    special = ~torch.isfinite(rounded)
    if bool(special.any()):
        same = (output == rounded) | (output.isnan() & rounded.isnan())
        shares = torch.where(special, torch.where(same, 0.0, 1e9), shares)
        difference = torch.where(special, 0.0, difference)
    shares = shares.nan_to_num_(nan=1e9, posinf=1e9)
    worst = float(shares.max())
    finite = torch.where(special, 0.0, expected) if bool(special.any()) else expected
    norm = float(finite.norm())
    error = float(difference.nan_to_num_(nan=float("inf")).norm()) / norm if norm else 0.0
    relative = min(error, 1e9)
    if worst <= 1.0:
        return worst, relative, ""
    wrong = shares > 1.0
    if float(wrong.double().mean()) <= 1 - truth.required[name]:
        return worst, relative, ""
    return min(worst, 1e9), relative, _describe(name, wrong, output, expected, bound)


def _describe(
    name: str, wrong: torch.Tensor, output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor | None
) -> str:
    flat = int(wrong.flatten().int().argmax())
    index: list[int] = []
    rest = flat
    for size in reversed(wrong.shape):
        index.insert(0, rest % size)
        rest //= size
    got, want = output.flatten()[flat].item(), expected.flatten()[flat].item()
    allowed = f", off by more than {float(bound.flatten()[flat]):.3g}" if bound is not None else ""
    share = float(wrong.double().mean())
    return f"{name}{index} is {got!r}, the reference {want!r}{allowed}; {share:.2%} of the elements are wrong"


def summarise(grades: list[Grade]) -> Correctness:
    """One record over the calls of a workload."""
    failure = next((g.detail for g in grades if g.detail), "")
    return Correctness(
        calls=len(grades),
        worst=max(g.worst for g in grades),
        relative_error=max(g.relative_error for g in grades),
        detail=failure[:600],
    )


def holds_itself(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], expected: Truth
) -> Grade:
    """The reference in its own working precision against the float64 one: a bound that it cannot hold
    would turn honest kernels away."""
    own = _call(file, file.reference, workload, inputs)
    specs = file.definition.outputs
    for name, spec in specs.items():
        dtype = str(own[name].dtype).removeprefix("torch.")
        if dtype != file.definition.dtype(spec, workload):
            raise BadDefinition(
                f"{file.path}: reference returns `{name}` as {dtype}, the definition says otherwise."
            )
    return grade(expected, own)


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

"""Numerics: comparison of an edited program with the original, from the same start with the same random draws.

Three runs: the original, the original with its parameters perturbed by a rounding error of the precision in force,
and the edited program. The difference between the first two is noise: it shows which parameters and values are
decided by rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.core.trial import NumericsCheck, NumericsResult, Precision
from warpsmith.program.models import ProgramFacts
from warpsmith.program.trials.trajectory import HORIZONS, StateTensor, Trajectory

if TYPE_CHECKING:
    import numpy

NOISE_FACTOR = 4.0
"""Factor by which the noise of the original is added to a bound."""

UNMEASURABLE_ERROR = 1e9
"""Stands for an error that cannot be measured: NaN, or a different structure."""

_PRECISIONS: tuple[Precision, ...] = ("same", "tf32", "bf16")


@dataclass(frozen=True)
class NumericsBounds:
    """Bounds of one precision, relative to the values of the original."""

    jitter: float
    """Relative perturbation of the second run of the original: a few rounding errors."""
    scalar: float
    """Bound of a single value, such as a loss; also at most a quarter of the range of the original's curve."""
    scalar_floor: float
    """Least bound of a single value."""
    tensor: float
    """Bound of a returned tensor, by norm; one element may deviate by eight times that of the largest element."""
    movement: float
    """Bound of the error of the displacement of all parameters, divided by that displacement."""
    movement_cap: float
    """Largest value of that bound after noise is added."""
    parameter: float
    """Bound of the same error of each parameter; below 1, because one that does not move has an error of 1."""
    max_noise: float
    """A parameter whose noise exceeds this share of its displacement is not judged."""


BOUNDS: dict[Precision, NumericsBounds] = {
    "same": NumericsBounds(2**-22, 1e-4, 1e-4, 1e-4, 0.03, 0.1, 0.2, 0.02),
    "tf32": NumericsBounds(2**-11, 1e-3, 3e-4, 5e-3, 0.08, 0.2, 0.4, 0.1),
    "bf16": NumericsBounds(2**-9, 3e-3, 1e-3, 2e-2, 0.15, 0.35, 0.7, 0.3),
}
"""Bounds by precision. Optimizers such as Adam amplify rounding errors: the bounds hold for them over a few steps,
and training on half a batch exceeds each of them."""


def effective_precision(declared: Precision, facts: ProgramFacts) -> Precision:
    """Return the lower of the precision that an entry declares and the one that the original itself uses."""
    observed = facts.observed
    half_types = {"bfloat16", "float16", "half"}
    halves = half_types & {
        *facts.parameter_dtypes,
        *(observed.products if observed else ()),
        *(observed.autocast if observed else ()),
    }
    tensor_float = facts.gpu and (
        facts.tf32_products or (facts.tf32_convolutions and observed is not None and observed.convolutions > 0)
    )
    original: Precision = "bf16" if halves else "tf32" if tensor_float else "same"
    return max(declared, original, key=_PRECISIONS.index)


def compare_numerics(
    original: Trajectory, rerun: Trajectory, edited: Trajectory, precision: Precision, seed: int
) -> NumericsResult:
    """Check that the edited program computes the same as the original.

    Args:
        original: the original.
        rerun: the original, perturbed by a rounding error at its start.
        edited: the edited program.
        precision: the precision whose bounds apply.
        seed: the seed of all three runs, for the record.
    """
    bounds = BOUNDS[precision]
    notes = tuple(_likely_causes(original, edited))
    fault = _structure_fault(original, edited, bounds)
    if fault:
        checks = [NumericsCheck(name="form", worst=UNMEASURABLE_ERROR, bound=0, noise=0, detail=fault)]
    else:
        checks = [NumericsCheck(name="form", worst=0, bound=0, noise=0)]
        checks += _check_integers(original, rerun, edited)
        checks += _check_values(original, rerun, edited, bounds)
        checks += _check_movement(original, rerun, edited, bounds)
        checks += _check_buffers(original, rerun, edited, bounds)
    failed = not all(check.passed for check in checks)
    return NumericsResult(
        precision=precision,
        steps=len(original.values),
        seed=seed,
        checks=tuple(checks),
        notes=notes if failed else (),
    )


def _structure_fault(original: Trajectory, edited: Trajectory, bounds: NumericsBounds) -> str:
    """Describe in one clause how the two differ in structure; empty if they do not."""
    for step, (values, edited_values) in enumerate(zip(original.values, edited.values, strict=True)):
        if set(values) != set(edited_values):
            return f"step {step} returns {_format_names(edited_values)}, the original {_format_names(values)}"
        for path, value in values.items():
            edited_value = edited_values[path]
            if value.shape != edited_value.shape or (value.dtype.kind == "f") != (edited_value.dtype.kind == "f"):
                kinds = _format_kind(edited_value), _format_kind(value)
                return f"step {step} returns {path} as {kinds[0]}, the original as {kinds[1]}"
    shapes = [tensor.shape for tensor in original.parameters], [tensor.shape for tensor in edited.parameters]
    if shapes[0] != shapes[1]:
        return (
            f"it has {len(shapes[1])} parameters, the original {len(shapes[0])}"
            if len(shapes[0]) != len(shapes[1])
            else "its parameters differ from the original's in shape or order"
        )
    for parameter, edited_parameter in zip(original.parameters, edited.parameters, strict=True):
        difference = _norm(edited_parameter.start - parameter.start)
        if difference > NOISE_FACTOR * bounds.jitter * _norm(parameter.start):
            return (
                f"{edited_parameter.name} differs before the first step: draw parameters in the order of the "
                "original, and restore the values that warm-up or capture changed"
            )
    return ""


def _check_integers(original: Trajectory, rerun: Trajectory, edited: Trajectory) -> list[NumericsCheck]:
    """Compare integer values exactly; a plain number counts as an integer if it is one at every step."""
    paths = [path for path in original.values[0] if _is_integral(original, path)]
    if not paths:
        return []
    difference, noise = "", 0.0
    for step, path, value, rerun_value, edited_value in _value_triples(original, rerun, edited, paths):
        noise = max(noise, float((value != rerun_value).mean()) if value.size else 0.0)
        if not difference and (value != edited_value).any():
            difference = f"step {step}: {path} differs in {int((value != edited_value).sum())} of {value.size}"
    if difference and noise:
        difference += (
            "; rounding changes those of the original too: return the values that they are chosen by instead"
        )
    return [
        NumericsCheck(
            name="integers", worst=UNMEASURABLE_ERROR if difference else 0, bound=0, noise=noise, detail=difference
        )
    ]


def _check_values(
    original: Trajectory, rerun: Trajectory, edited: Trajectory, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """Compare the other values, each with its bound, to which the noise of the original so far is added.

    From the step at which noise dominates a value, that value is not judged; the first two steps always are.
    """
    import numpy as np

    paths = [path for path in original.values[0] if not _is_integral(original, path)]
    if not paths:
        return []
    worst = (-1.0, bounds.scalar, "")
    noises = dict.fromkeys(paths, 0.0)
    largest = {path: max(_norm(step_values[path]) for step_values in original.values) for path in paths}
    for step, path, value, rerun_value, edited_value in _value_triples(original, rerun, edited, paths):
        if not np.isfinite(value).all():
            return [_failed_check("values", f"step {step}: the original's own {path} is not finite")]
        if not np.isfinite(edited_value).all():
            return [_failed_check("values", f"step {step}: {path} is not finite")]
        scale = max(_norm(value), 0.05 * largest[path], 1e-30)
        noises[path] = max(noises[path], _clamp_error(_norm(rerun_value - value) / scale))
        share = _scalar_bound(original, path, scale, bounds) if value.size == 1 else bounds.tensor
        if step >= HORIZONS[0] and NOISE_FACTOR * noises[path] > 5 * share:
            continue
        bound = share + min(NOISE_FACTOR * noises[path], 5 * share)
        error = _norm(edited_value - value) / scale / bound
        if value.size > 1:
            element = float(np.abs(edited_value - value).max()) / max(float(np.abs(value).max()), 1e-30)
            error = max(error, element / (8 * bound))
        if error > worst[0]:
            detail = f"step {step}: {path} is {_format_value(edited_value)}, the original's {_format_value(value)}"
            worst = (error, bound, detail)
    return [
        NumericsCheck(
            name="values",
            worst=_clamp_error(worst[0]),
            bound=worst[1],
            noise=max(noises.values()),
            detail=worst[2],
        )
    ]


def _scalar_bound(original: Trajectory, path: str, scale: float, bounds: NumericsBounds) -> float:
    """Return the bound of a single value: it is tighter for a curve that hardly moves."""
    curve = [float(step_values[path].reshape(-1)[0]) for step_values in original.values]
    quarter = (max(curve) - min(curve)) / 4 / scale  # a constant curve deviates by half the range somewhere
    return min(bounds.scalar, max(bounds.scalar_floor, quarter))


def _check_movement(
    original: Trajectory, rerun: Trajectory, edited: Trajectory, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """Compare the displacement of the parameters: all together, and each one that noise does not dominate.

    The horizon is the longest at which the two runs of the original still agree.
    """
    triples = zip(original.parameters, rerun.parameters, edited.parameters, strict=True)
    floating = [triple for triple in triples if triple[0].floating]
    if not any(_norm(parameter.displacement()) for parameter, _, _ in floating):
        moved = [
            edited_parameter.name
            for _, _, edited_parameter in floating
            if _norm(edited_parameter.displacement()) > 0
        ]
        return [_failed_check("movement", f"{moved[0]} moves, and the original does not move it")] if moved else []
    for horizon in range(-1, -1 - len(HORIZONS), -1):
        rows = [_parameter_error(*triple, horizon) for triple in floating if len(triple[0].ends) >= -horizon]
        steady = [row for row in rows if row.noise <= bounds.max_noise]
        norm, steady_norm = (sum(row.distance**2 for row in group) ** 0.5 for group in (rows, steady))
        if rows and steady_norm and steady_norm >= 0.5 * norm:
            return _movement_checks(steady, norm, steady_norm, HORIZONS[horizon], bounds)
    return [
        _failed_check(
            "movement", "rounding alone decides the movement of the original's parameters: it cannot be judged"
        )
    ]


class _ParameterError(NamedTuple):
    """One parameter up to a horizon: norms of its displacement and of the error of the edited program."""

    name: str
    distance: float
    error: float
    noise: float
    """Difference between the two runs of the original, divided by its displacement."""


def _parameter_error(
    original: StateTensor, rerun: StateTensor, edited: StateTensor, horizon: int
) -> _ParameterError:
    distance = _norm(original.displacement(horizon))
    noise = (
        _clamp_error(_norm(rerun.displacement(horizon) - original.displacement(horizon)) / distance)
        if distance
        else 0.0
    )
    return _ParameterError(
        original.name,
        distance,
        _clamp_error(_norm(edited.displacement(horizon) - original.displacement(horizon))),
        noise,
    )


def _movement_checks(
    steady: Sequence[_ParameterError], norm: float, steady_norm: float, steps: int, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """Return the checks of the steady parameters.

    `norm` is over the displacements of all parameters, `steady_norm` over those of the steady ones.
    """
    noise = sum((row.noise * row.distance) ** 2 for row in steady) ** 0.5 / steady_norm
    bound = min(bounds.movement + NOISE_FACTOR * noise, bounds.movement_cap)
    error = sum(row.error**2 for row in steady) ** 0.5 / steady_norm
    checks = [
        NumericsCheck(
            name="movement",
            worst=_clamp_error(error / bound),
            bound=bound,
            noise=noise,
            detail=f"over {steps} steps, parameters deviate by {error:.1%} of the original's displacement",
        )
    ]
    return [*checks, *_worst_parameter(steady, norm, bounds)]


def _worst_parameter(
    steady: Sequence[_ParameterError], norm: float, bounds: NumericsBounds
) -> Iterator[NumericsCheck]:
    """Check the parameter with the largest error.

    One that the original does not move is measured against 0.1 % of `norm`.
    """
    errors = []
    for row in steady:
        error = row.error / (row.distance or 1e-3 * norm)
        bound = min(bounds.parameter + NOISE_FACTOR * row.noise, 0.9)
        errors.append((error / bound, bound, error, row))
    worst, bound, error, row = max(errors)
    yield NumericsCheck(
        name="parameter",
        worst=_clamp_error(worst),
        bound=bound,
        noise=row.noise,
        detail=f"{row.name} deviates by {error:.1%} of the original's displacement{_standstill_note(error)}",
    )


def _check_buffers(
    original: Trajectory, rerun: Trajectory, edited: Trajectory, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """Compare other state by name; a buffer on one side only is a static input or a cache of the edit."""
    rerun_buffers = {tensor.name: tensor for tensor in rerun.buffers}
    edited_buffers = {tensor.name: tensor for tensor in edited.buffers}
    worst = (-1.0, bounds.tensor, 0.0, "")
    for buffer in original.buffers:
        edited_buffer, rerun_buffer = edited_buffers.get(buffer.name), rerun_buffers.get(buffer.name)
        if edited_buffer is None or rerun_buffer is None or edited_buffer.shape != buffer.shape:
            continue
        scale = max(_norm(buffer.ends[-1]), 1e-30)
        noise = _clamp_error(_norm(rerun_buffer.ends[-1] - buffer.ends[-1]) / scale)
        # A floating-point buffer may follow the parameters, so it gets their bound.
        bound = bounds.movement + NOISE_FACTOR * noise if buffer.floating else 1e-12
        error = _clamp_error(_norm(edited_buffer.ends[-1] - buffer.ends[-1]) / scale / bound)
        if error > worst[0]:
            worst = (error, bound, noise, f"{buffer.name} deviates by {error * bound:.1%} from the original")
    if worst[0] < 0:
        return []
    return [NumericsCheck(name="buffers", worst=worst[0], bound=worst[1], noise=worst[2], detail=worst[3])]


def _likely_causes(original: Trajectory, edited: Trajectory) -> Iterator[str]:
    """Yield likely causes of a curve that differs from the original."""
    for path in original.values[0]:
        if any(
            path not in step_values or step_values[path].size != 1
            for step_values in (*original.values, *edited.values)
        ):
            continue
        curve, edited_curve = (
            [float(step_values[path].reshape(-1)[0]) for step_values in side.values] for side in (original, edited)
        )
        if len(set(curve)) > 1 and len(set(edited_curve)) == 1:
            yield f"every step returns the same {path}"
        elif curve != edited_curve and (steps := _steps_ahead(curve, edited_curve)):
            yield f"{path} runs {steps} steps ahead: warm-up or capture counts as steps; restore what they changed"
        elif len(set(curve)) == len(curve) and len(set(edited_curve)) <= len(edited_curve) // 2 + 1:
            yield f"some steps return the {path} of the step before: they do no work"


def _steps_ahead(curve: Sequence[float], edited_curve: Sequence[float]) -> int:
    """Return the number of steps by which one curve continues the other; 0 if it does not."""
    for steps in range(1, len(curve) // 2 + 1):
        pairs = list(zip(curve[steps:], edited_curve, strict=False))
        if len(set(curve)) > 1 and all(abs(a - b) <= 1e-3 * abs(a) for a, b in pairs):
            largest = max(abs(a - b) for a, b in pairs)
            if largest * 10 < max(abs(a - b) for a, b in zip(curve, edited_curve, strict=True)):
                return steps
    return 0


def _value_triples(
    original: Trajectory, rerun: Trajectory, edited: Trajectory, paths: Sequence[str]
) -> Iterator[tuple[int, str, numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    for step, (values, rerun_values, edited_values) in enumerate(
        zip(original.values, rerun.values, edited.values, strict=True)
    ):
        for path in paths:
            yield step, path, values[path], rerun_values[path], edited_values[path]


def _is_integral(trajectory: Trajectory, path: str) -> bool:
    """Return whether the values at a path are whole numbers at every step."""
    import numpy as np

    values = [step[path] for step in trajectory.values]
    if all(value.dtype.kind in "iub" for value in values):
        return True
    return all(value.size == 1 and bool(np.isfinite(value).all()) and not value % 1 for value in values)


def _failed_check(name: str, detail: str) -> NumericsCheck:
    return NumericsCheck.model_validate(
        {"name": name, "worst": UNMEASURABLE_ERROR, "bound": 0, "noise": 0, "detail": detail}
    )


def _norm(value: numpy.ndarray) -> float:
    import numpy as np

    return float(np.linalg.norm(np.asarray(value, dtype=np.float64).reshape(-1)))


def _clamp_error(error: float) -> float:
    """Return an error that a record can hold: NaN and larger errors become `UNMEASURABLE_ERROR`."""
    return error if error < UNMEASURABLE_ERROR else UNMEASURABLE_ERROR


def _standstill_note(error: float) -> str:
    return ": it does not move" if abs(error - 1) < 1e-3 else ""


def _format_names(values: Mapping[str, object]) -> str:
    return ", ".join(sorted(values)) or "nothing"


def _format_kind(value: numpy.ndarray) -> str:
    return f"{value.dtype.name}{list(value.shape) if value.shape else ''}"


def _format_value(value: numpy.ndarray) -> str:
    return f"{float(value.reshape(-1)[0]):.6g}" if value.size == 1 else f"a tensor of norm {_norm(value):.6g}"

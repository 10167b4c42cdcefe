"""Numerics: whether an edited program computes what the original does, from the same start and the same draws.

Three runs: the original, the original with its parameters moved by a rounding of the precision in force, and the
edited program. What the first two differ by is noise: it says which parameters and values rounding alone decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.core.trial import NumericsCheck, NumericsResult, Precision
from warpsmith.program.models import Facts
from warpsmith.program.trials.trajectory import HORIZONS, StateTensor, Trajectory

if TYPE_CHECKING:
    import numpy

NOISE_FACTOR = 4.0
"""The original's own noise counts this often towards a bound."""

UNMEASURABLE_ERROR = 1e9
"""Stands for an error without measure: NaN, or another form."""

_PRECISIONS: tuple[Precision, ...] = ("same", "tf32", "bf16")


@dataclass(frozen=True)
class NumericsBounds:
    """What one precision allows, relative to what the original computes."""

    jitter: float
    """By how much the second run of the original is moved: some roundings."""
    number: float
    """Of a single value, such as a loss; also no more than a quarter of how far the original's moves."""
    least: float
    """The same bound is never below this."""
    tensor: float
    """Of a returned tensor, by norm; eight times that of its largest element for each."""
    movement: float
    """How far off the way of all parameters may end, over how far they went."""
    most: float
    """The same with noise counted in."""
    parameter: float
    """The same of each parameter; below 1, since one that stands still is off by 1."""
    unsteady: float
    """A parameter that rounding moves by more than this, over how far it went, is not judged."""


BOUNDS: dict[Precision, NumericsBounds] = {
    "same": NumericsBounds(2**-22, 1e-4, 1e-4, 1e-4, 0.03, 0.1, 0.2, 0.02),
    "tf32": NumericsBounds(2**-11, 1e-3, 3e-4, 5e-3, 0.08, 0.2, 0.4, 0.1),
    "bf16": NumericsBounds(2**-9, 3e-3, 1e-3, 2e-2, 0.15, 0.35, 0.7, 0.3),
}
"""By precision. Optimizers like Adam amplify rounding: these hold for them over a few steps, and half a batch is
beyond each of them."""


def effective_precision(declared: Precision, facts: Facts) -> Precision:
    """The lowest of what an entry declares and what the original itself rounds to."""
    seen = facts.observed
    lowest = {"bfloat16", "float16", "half"}
    halves = lowest & {*facts.parameter_dtypes, *(seen.products if seen else ()), *(seen.autocast if seen else ())}
    tensor_float = facts.gpu and (
        facts.tf32_products or (facts.tf32_convolutions and seen is not None and seen.convolutions > 0)
    )
    own: Precision = "bf16" if halves else "tf32" if tensor_float else "same"
    return max(declared, own, key=_PRECISIONS.index)


def compare_numerics(
    original: Trajectory, again: Trajectory, edited: Trajectory, precision: Precision, seed: int
) -> NumericsResult:
    """Whether the edited program computes what the original does.

    Args:
        original: the original.
        again: the original, moved by a rounding at its start.
        edited: the edited program.
        precision: which bounds hold.
        seed: what all were seeded with, for the record.
    """
    bounds = BOUNDS[precision]
    notes = tuple(_likely_causes(original, edited))
    form = _structure_fault(original, edited, bounds)
    if form:
        checks = [NumericsCheck(name="form", worst=UNMEASURABLE_ERROR, bound=0, noise=0, detail=form)]
    else:
        checks = [NumericsCheck(name="form", worst=0, bound=0, noise=0)]
        checks += _check_integers(original, again, edited)
        checks += _check_values(original, again, edited, bounds)
        checks += _check_movement(original, again, edited, bounds)
        checks += _check_buffers(original, again, edited, bounds)
    failed = not all(check.passed for check in checks)
    return NumericsResult(
        precision=precision,
        steps=len(original.values),
        seed=seed,
        checks=tuple(checks),
        notes=notes if failed else (),
    )


def _structure_fault(original: Trajectory, edited: Trajectory, bounds: NumericsBounds) -> str:
    """How the two differ in kind, in one clause; empty where they do not."""
    for step, (ours, theirs) in enumerate(zip(original.values, edited.values, strict=True)):
        if set(ours) != set(theirs):
            return f"step {step} returns {_format_names(theirs)}, the original {_format_names(ours)}"
        for path, value in ours.items():
            other = theirs[path]
            if value.shape != other.shape or (value.dtype.kind == "f") != (other.dtype.kind == "f"):
                return (
                    f"step {step} returns {path} as {_format_kind(other)}, the original as {_format_kind(value)}"
                )
    shapes = [held.shape for held in original.parameters], [held.shape for held in edited.parameters]
    if shapes[0] != shapes[1]:
        return (
            f"it has {len(shapes[1])} parameters, the original {len(shapes[0])}"
            if len(shapes[0]) != len(shapes[1])
            else "its parameters have other shapes or another order than the original's"
        )
    for ours_held, theirs_held in zip(original.parameters, edited.parameters, strict=True):
        off = _norm(theirs_held.start - ours_held.start)
        if off > NOISE_FACTOR * bounds.jitter * _norm(ours_held.start):
            return (
                f"{theirs_held.name} differs before the first step: draw parameters in the original's order, and "
                "put back what warming up or capturing moved"
            )
    return ""


def _check_integers(original: Trajectory, again: Trajectory, edited: Trajectory) -> list[NumericsCheck]:
    """Values that are whole numbers are equal; a plain number counts as one where it is one at every step."""
    paths = [path for path in original.values[0] if _is_integral(original, path)]
    if not paths:
        return []
    wrong, noise = "", 0.0
    for step, path, ours, other, theirs in _value_triples(original, again, edited, paths):
        noise = max(noise, float((ours != other).mean()) if ours.size else 0.0)
        if not wrong and (ours != theirs).any():
            wrong = f"step {step}: {path} differs in {int((ours != theirs).sum())} of {ours.size}"
    if wrong and noise:
        wrong += "; the original's own change when it rounds otherwise: return what they are chosen by instead"
    return [
        NumericsCheck(
            name="integers", worst=UNMEASURABLE_ERROR if wrong else 0, bound=0, noise=noise, detail=wrong
        )
    ]


def _check_values(
    original: Trajectory, again: Trajectory, edited: Trajectory, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """The other values, each within its bound; the original's noise so far counts towards it.

    Where rounding alone decides from some step on, the values from there are not judged, but always the first two.
    """
    import numpy as np

    paths = [path for path in original.values[0] if not _is_integral(original, path)]
    if not paths:
        return []
    worst = (-1.0, bounds.number, "")
    noises = dict.fromkeys(paths, 0.0)
    largest = {path: max(_norm(values[path]) for values in original.values) for path in paths}
    for step, path, ours, other, theirs in _value_triples(original, again, edited, paths):
        if not np.isfinite(ours).all():
            return [_failed_check("values", f"step {step}: the original's own {path} is not finite")]
        if not np.isfinite(theirs).all():
            return [_failed_check("values", f"step {step}: {path} is not finite")]
        scale = max(_norm(ours), 0.05 * largest[path], 1e-30)
        noises[path] = max(noises[path], _clamp_error(_norm(other - ours) / scale))
        share = _scalar_bound(original, path, scale, bounds) if ours.size == 1 else bounds.tensor
        if step >= HORIZONS[0] and NOISE_FACTOR * noises[path] > 5 * share:
            continue
        bound = share + min(NOISE_FACTOR * noises[path], 5 * share)
        error = _norm(theirs - ours) / scale / bound
        if ours.size > 1:
            element = float(np.abs(theirs - ours).max()) / max(float(np.abs(ours).max()), 1e-30)
            error = max(error, element / (8 * bound))
        if error > worst[0]:
            detail = f"step {step}: {path} is {_format_value(theirs)}, the original's {_format_value(ours)}"
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
    """The bound of a single value: a curve that hardly moves must be met more closely."""
    curve = [float(values[path].reshape(-1)[0]) for values in original.values]
    quarter = (max(curve) - min(curve)) / 4 / scale  # a constant is off by half of it somewhere
    return min(bounds.number, max(bounds.least, quarter))


def _check_movement(
    original: Trajectory, again: Trajectory, edited: Trajectory, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """The way of the parameters: all together, and each that rounding alone does not decide.

    It is followed as far as the original itself, rounding otherwise, goes the same way.
    """
    triples = zip(original.parameters, again.parameters, edited.parameters, strict=True)
    held = [each for each in triples if each[0].floating]
    if not any(_norm(ours.way()) for ours, _, _ in held):
        strays = [theirs.name for _, _, theirs in held if _norm(theirs.way()) > 0]
        return (
            [_failed_check("movement", f"{strays[0]} moves, which the original leaves as it is")] if strays else []
        )
    for horizon in range(-1, -1 - len(HORIZONS), -1):
        rows = [_parameter_error(*each, horizon) for each in held if len(each[0].ends) >= -horizon]
        steady = [row for row in rows if row.noise <= bounds.unsteady]
        went, seen = (sum(row.way**2 for row in some) ** 0.5 for some in (rows, steady))
        if rows and seen and seen >= 0.5 * went:
            return _movement_checks(steady, went, seen, HORIZONS[horizon], bounds)
    return [
        _failed_check("movement", "rounding alone decides where the original's parameters go: nothing to judge by")
    ]


class _ParameterError(NamedTuple):
    """One parameter until a horizon: norms of its way and of how far the edited one is off it."""

    name: str
    way: float
    off: float
    noise: float
    """By how much the original's way is another when it rounds otherwise, over the way."""


def _parameter_error(ours: StateTensor, other: StateTensor, theirs: StateTensor, horizon: int) -> _ParameterError:
    way = _norm(ours.way(horizon))
    noise = _clamp_error(_norm(other.way(horizon) - ours.way(horizon)) / way) if way else 0.0
    return _ParameterError(ours.name, way, _clamp_error(_norm(theirs.way(horizon) - ours.way(horizon))), noise)


def _movement_checks(
    steady: Sequence[_ParameterError], went: float, seen: float, steps: int, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """The two checks over the steady parameters; `went` and `seen` are norms of all ways and of theirs."""
    noise = sum((row.noise * row.way) ** 2 for row in steady) ** 0.5 / seen
    bound = min(bounds.movement + NOISE_FACTOR * noise, bounds.most)
    off = sum(row.off**2 for row in steady) ** 0.5 / seen
    checks = [
        NumericsCheck(
            name="movement",
            worst=_clamp_error(off / bound),
            bound=bound,
            noise=noise,
            detail=f"over {steps} steps parameters end {off:.1%} of their way off the original's",
        )
    ]
    return [*checks, *_worst_parameter(steady, went, bounds)]


def _worst_parameter(
    steady: Sequence[_ParameterError], went: float, bounds: NumericsBounds
) -> Iterator[NumericsCheck]:
    """The parameter that is furthest off; one that the original leaves as it is may move a thousandth of all."""
    shares = []
    for row in steady:
        off = row.off / (row.way or 1e-3 * went)
        bound = min(bounds.parameter + NOISE_FACTOR * row.noise, 0.9)
        shares.append((off / bound, bound, off, row))
    worst, bound, off, row = max(shares)
    yield NumericsCheck(
        name="parameter",
        worst=_clamp_error(worst),
        bound=bound,
        noise=row.noise,
        detail=f"{row.name} ends {off:.1%} of its way off the original's{_standstill_note(off)}",
    )


def _check_buffers(
    original: Trajectory, again: Trajectory, edited: Trajectory, bounds: NumericsBounds
) -> list[NumericsCheck]:
    """Other state, by name; buffers that only one side has are static inputs or caches of the edit."""
    others = {held.name: held for held in again.buffers}
    mine = {held.name: held for held in edited.buffers}
    worst = (-1.0, bounds.tensor, 0.0, "")
    for ours in original.buffers:
        theirs, other = mine.get(ours.name), others.get(ours.name)
        if theirs is None or other is None or theirs.shape != ours.shape:
            continue
        scale = max(_norm(ours.ends[-1]), 1e-30)
        noise = _clamp_error(_norm(other.ends[-1] - ours.ends[-1]) / scale)
        # A buffer of numbers may follow the parameters: its bound is theirs.
        bound = bounds.movement + NOISE_FACTOR * noise if ours.floating else 1e-12
        error = _clamp_error(_norm(theirs.ends[-1] - ours.ends[-1]) / scale / bound)
        if error > worst[0]:
            worst = (error, bound, noise, f"{ours.name} ends {error * bound:.1%} off the original's")
    if worst[0] < 0:
        return []
    return [NumericsCheck(name="buffers", worst=worst[0], bound=worst[1], noise=worst[2], detail=worst[3])]


def _likely_causes(original: Trajectory, edited: Trajectory) -> Iterator[str]:
    """Likely causes of a curve that is another."""
    for path in original.values[0]:
        if any(path not in values or values[path].size != 1 for values in (*original.values, *edited.values)):
            continue
        ours, theirs = (
            [float(values[path].reshape(-1)[0]) for values in side.values] for side in (original, edited)
        )
        if len(set(ours)) > 1 and len(set(theirs)) == 1:
            yield f"every step returns the same {path}"
        elif ours != theirs and (steps := _steps_ahead(ours, theirs)):
            yield f"{path} runs {steps} steps ahead: warm-up or capture counts as steps; put back what they moved"
        elif len(set(ours)) == len(ours) and len(set(theirs)) <= len(theirs) // 2 + 1:
            yield f"some steps return the {path} of the step before: they do no work"


def _steps_ahead(ours: Sequence[float], theirs: Sequence[float]) -> int:
    """By how many steps one curve is the other's continuation; 0: it is not."""
    for steps in range(1, len(ours) // 2 + 1):
        pairs = list(zip(ours[steps:], theirs, strict=False))
        if len(set(ours)) > 1 and all(abs(a - b) <= 1e-3 * abs(a) for a, b in pairs):
            near = max(abs(a - b) for a, b in pairs)
            if near * 10 < max(abs(a - b) for a, b in zip(ours, theirs, strict=True)):
                return steps
    return 0


def _value_triples(
    original: Trajectory, again: Trajectory, edited: Trajectory, paths: Sequence[str]
) -> Iterator[tuple[int, str, numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    for step, (ours, other, theirs) in enumerate(zip(original.values, again.values, edited.values, strict=True)):
        for path in paths:
            yield step, path, ours[path], other[path], theirs[path]


def _is_integral(course: Trajectory, path: str) -> bool:
    """Whether a path's values are whole numbers at every step."""
    import numpy as np

    values = [step[path] for step in course.values]
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
    """An error that a record can hold: what is NaN or beyond measure is the worst."""
    return error if error < UNMEASURABLE_ERROR else UNMEASURABLE_ERROR


def _standstill_note(off: float) -> str:
    return ": it stands still" if abs(off - 1) < 1e-3 else ""


def _format_names(values: Mapping[str, object]) -> str:
    return ", ".join(sorted(values)) or "nothing"


def _format_kind(value: numpy.ndarray) -> str:
    return f"{value.dtype.name}{list(value.shape) if value.shape else ''}"


def _format_value(value: numpy.ndarray) -> str:
    return f"{float(value.reshape(-1)[0]):.6g}" if value.size == 1 else f"a tensor of norm {_norm(value):.6g}"

"""Edits in place: inputs that change as callers change them, after which a kept result is wrong."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from math import isfinite, log2
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.tensor_bytes import computable
from warpsmith.lab.operator.values.range_values import Limits
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]
"""Inputs by name."""

EditKind = Literal["sign", "exchange", "line", "slices", "near", "cut"]
"""The largest element changes its sign; two elements change places, anywhere or in a line along an axis; two
slices along an axis do; all elements move by a share of their size within `gate_rules.NEAR_EDITS`; one cut between
groups moves by 1."""

EXCHANGES: Final[tuple[EditKind, ...]] = ("exchange", "line", "slices")
"""Kinds that keep each element: a checksum without an order does not see them."""

_AFTER = "after an edit of {} in place"

_EVEN = 0.5
"""Chance of each of two kinds of elements."""

_PAIR = 2
"""Parts that change places."""

_CANDIDATES = 4
"""Elements of which the one that differs most from the first is its partner: equals show nothing."""


class Exchange(NamedTuple):
    """Two parts of a tensor that change places."""

    first: tuple[int | slice, ...]
    """Index of an element or a slice."""
    second: tuple[int | slice, ...]
    """Index of the other one."""

    def apply(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy with the parts exchanged."""
        edited = tensor.clone()
        edited[self.first], edited[self.second] = tensor[self.second], tensor[self.first]
        return edited

    def positions(self, dim: int) -> list[int]:
        """Return where the parts lie along a dimension, in order; empty if they have all of it."""
        pair = (self.first[dim], self.second[dim])
        return sorted({position for position in pair if isinstance(position, int)})


def require_fresh_result(session: Session, drawn: Tensors, name: str) -> None:
    """Change an element of an input, again after a near miss, and require that the result follows.

    Raises:
        SideFailed: the result is wrong.
    """
    spec, limits = session.file.definition.tensor_inputs[name], session.inputs.range_limits(name)
    within = session.file.inputs is not None or spec.fits_together or limits is not None
    for _ in range(gate_rules.DRAW_TRIES):
        write_combined(
            session, lambda fresh: {**drawn, name: edit_tensor(drawn[name], fresh[name], within=within)}
        )
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss:
            break
    require_pass(grade, Status.CACHED_RESULT, _AFTER.format(name))


def require_fresh_results(session: Session, drawn: Tensors, kinds: Sequence[tuple[str, EditKind]]) -> None:
    """Call on the drawn inputs, edit inputs one after the other, and require each time that the result follows.

    Each edit changes what the call before it had, so a key that takes both for equal keeps its result. Another
    edit follows a near miss.

    Args:
        session: session of the version.
        drawn: inputs before the first edit.
        kinds: inputs and the kinds of their edits.

    Raises:
        SideFailed: a result is wrong.
    """
    if not kinds:
        return
    session.write_inputs(0, drawn)
    require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "before an edit")
    current, turns = drawn, {name: itertools.cycle(_draw_dims(tensor)) for name, tensor in drawn.items()}
    for name, kind in kinds:
        dim = next(turns[name]) if kind == "slices" else None  # a sum of each row misses what columns exchange
        for _ in range(gate_rules.DRAW_TRIES):
            edited = hold_limits(_edit_structure(current[name], kind, dim), session.inputs.range_limits(name))
            current = {**current, name: edited}
            session.write_inputs(0, current)
            grade = session.call_and_grade(SOLUTION)
            if not grade.near_miss:
                break
        require_pass(grade, Status.CACHED_RESULT, _AFTER.format(name))


def require_fresh_after_drift(session: Session, drawn: Tensors, name: str) -> int:
    """Call many times, each after a step of a weight that is too small to show, and grade the last call alone.

    All steps are alike, so that what a call keeps until the weight has moved by more falls far behind. Further
    steps follow a near miss.

    Args:
        session: session of the version.
        drawn: inputs before the first step.
        name: the weight, of floating-point numbers.

    Returns:
        The number of calls; 0 where the reference misses its bound after them, which says nothing.

    Raises:
        SideFailed: the result is wrong.
    """
    current, calls = dict(drawn), 0
    limits, step = session.inputs.range_limits(name), draw_drift(session, drawn[name])
    for _ in range(gate_rules.DRAW_TRIES):
        for _ in range(input_rules.DRIFT_CALLS):
            current[name] = hold_limits(_step_weight(current[name], step), limits)
            session.write_inputs(0, current)
            session.call_side(SOLUTION)
            calls += 1
        if session.grade_reference().status is not Status.PASSED or not session.choices_are_stable():
            return 0
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss:
            break
    require_pass(grade, Status.CACHED_RESULT, f"after {calls} small steps of {name} in one direction")
    return calls


def draw_drift(session: Session, weight: torch.Tensor) -> torch.Tensor:
    """Draw the share of its size that each element of a weight moves by in a step: between a few units in the last
    place and the smallest share of an edit.

    In every other draw all grow; else each grows or shrinks. Where a definition draws its own inputs, all shrink.
    """
    import torch

    chance, (least, most) = random.SystemRandom(), input_rules.DRIFT_STEPS
    digits = 1 - round(log2(torch.finfo(weight.dtype).eps))
    share = 2.0 ** -min(digits - 1, chance.randint(least, most))
    if session.file.inputs is not None:
        return torch.full(weight.shape, -share, dtype=torch.float64, device=weight.device)
    signs = torch.ones(weight.shape, dtype=torch.float64, device=weight.device)
    if chance.random() < _EVEN:
        signs = 2.0 * torch.randint(2, weight.shape, device=weight.device).double() - 1
    return share * signs


def _step_weight(weight: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    return (weight.double() * (1 + step)).to(weight.dtype)


def list_edit_kinds(session: Session, name: str, drawn: torch.Tensor) -> tuple[EditKind, ...]:
    """Return the kinds of edits, besides single elements, that keep what an input promises."""
    spec = session.file.definition.tensor_inputs[name]
    if session.file.inputs is None and spec.distribution.startswith("offsets:") and _movable_cuts(drawn):
        return ("cut", "cut", "cut")  # a key that samples cuts misses some
    exchanges = list_exchanges(session, name, drawn)
    if not (exchanges and drawn.is_floating_point()):
        return exchanges
    if session.inputs.range_limits(name):
        return ("near", *exchanges)
    return ("near", *exchanges, *(("sign",) if bool((computable(drawn) < 0).any()) else ()))


def list_exchanges(session: Session, name: str, drawn: torch.Tensor) -> tuple[EditKind, ...]:
    """Return the exchanges that keep what an input promises; one along each axis of a tensor that has several."""
    spec = session.file.definition.tensor_inputs[name]
    if session.file.inputs is not None or spec.fits_together or drawn.numel() < _PAIR:
        return ()
    axes = sum(size > 1 for size in drawn.shape)
    if axes == 1:
        return ("exchange",)
    # A row of nothing but infinite elements may have no result, so those stay where they are.
    moves = not drawn.is_floating_point() or bool(computable(drawn).isfinite().all())
    return EXCHANGES[:2] + EXCHANGES[2:] * (axes if moves else 0)


def draw_edits(session: Session, drawn: Tensors) -> list[tuple[str, EditKind]]:
    """Draw edits of a call whose reference takes long: of some weights one by little everywhere, one of two
    elements and one of two slices along each axis, as far as they have such; and one of another input."""
    chance, specs = random.SystemRandom(), session.file.definition.tensor_inputs
    kinds = {name: list_edit_kinds(session, name, tensor) for name, tensor in drawn.items()}
    weights = [name for name in drawn if specs[name].role == "weight" and kinds[name]]
    others = [name for name in drawn if specs[name].role != "weight" and kinds[name]]
    edits: list[tuple[str, EditKind]] = []
    for name in chance.sample(weights, min(len(weights), input_rules.EDITED_WEIGHTS)):
        for group in (("near", "cut"), ("exchange", "line")):
            fitting = [kind for kind in kinds[name] if kind in group]
            edits += [(name, kind) for kind in chance.sample(fitting, min(len(fitting), 1))]
        edits += [(name, kind) for kind in kinds[name] if kind == "slices"]
    return edits + [(name, chance.choice(kinds[name])) for name in chance.sample(others, min(len(others), 1))]


def require_pass(grade: Grade, status: Status, when: str) -> None:
    """Raise SideFailed with a status for a grade that is not PASSED, and say when that was."""
    if grade.status is not Status.PASSED:
        raise SideFailed(status, f"{grade.detail} ({when})", SOLUTION)


def hold_limits(tensor: torch.Tensor, limits: Limits | None) -> torch.Tensor:
    """Return the tensor with values beyond the limits of an input at these."""
    return tensor if limits is None else computable(tensor).clamp(*limits).to(tensor.dtype)


def write_combined(session: Session, combine: Callable[[Tensors], Tensors]) -> None:
    """Write a combination of a new draw and earlier inputs into slot 0.

    A definition with its own generator may promise that no choice depends on rounding, but only for whole draws.
    Its combined draws are retried until the reference's own sums agree and no choice depends on rounding. After
    `gate_rules.DRAW_TRIES` of them, a whole fresh draw is used.
    """
    own_generator = session.file.inputs is not None
    for _ in range(gate_rules.DRAW_TRIES if own_generator else 1):
        session.write_inputs(0, combine(session.inputs.draw()))
        if not own_generator:
            return
        if session.grade_reference().status is Status.PASSED and session.choices_are_stable():
            return
    session.write_inputs(0, session.inputs.draw())


def edit_tensor(tensor: torch.Tensor, fresh: torch.Tensor, *, within: bool) -> torch.Tensor:
    """Return a copy with one element changed, or two exchanged.

    By chance it is the first element, the last, or any. It becomes larger than the largest, so that sums and
    maxima depend on it, or any finite one of the fresh values, so that a checksum of extremes does not see it, or
    moves by little, so that a sum of all in low precision does not. With `within` it becomes the largest of the
    fresh values, or the smallest if it is the largest already. Integers, whose values may have to fit each other,
    are exchanged or replaced by the fresh ones.
    """
    import torch

    chance = random.SystemRandom()
    edited = tensor.clone()
    flat = edited.view(-1)
    any_place = chance.randrange(flat.numel())
    index = chance.choice((0, flat.numel() - 1, any_place, any_place))
    if not tensor.is_floating_point():
        if within or chance.random() < _EVEN:
            return fresh
        other = chance.randrange(flat.numel())
        flat[index], flat[other] = flat[other].clone(), flat[index].clone()
        return edited
    if not within:
        if chance.random() < _EVEN:
            moved = float(computable(flat)[index]) * (1 + 2.0 ** -gate_rules.NEAR_EDITS[0])
            moves = chance.random() < _EVEN and isfinite(moved) and bool(flat[index] != moved)
            flat[index] = moved if moves else fresh.view(-1)[_draw_finite_places(fresh, 1)[0]]
            return edited
        largest = float(computable(flat).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max())
        larger = gate_rules.EDIT_FACTOR * largest + gate_rules.EDIT_OFFSET
        if tensor.itemsize == 1:  # types of 8 bits have little room, and one has no infinity
            larger = min(larger, torch.finfo(tensor.dtype).max)
        flat[index] = larger
        return edited
    drawn = fresh.flatten().double()
    drawn = drawn[drawn.isfinite()]
    if drawn.numel():
        most, least = float(drawn.max()), float(drawn.min())
        flat[index] = least if float(flat[index]) == most else most
    return edited


def _edit_structure(tensor: torch.Tensor, kind: EditKind, dim: int | None = None) -> torch.Tensor:
    """Return a copy edited in another way than by a new element; exchanged along a dimension, if one is given.

    Infinite elements stay where they are: a row of nothing else may have no result.
    """
    import torch

    if kind in EXCHANGES:
        return draw_exchange(tensor, kind, dim).apply(tensor)
    edited = tensor.clone()
    flat = edited.view(-1)
    if kind == "near":
        signs = 2 * torch.randint(2, flat.shape, device=flat.device) - 1
        flat.copy_((flat.double() * (1 + _draw_near_share(tensor.dtype) * signs)).to(flat.dtype))
    elif kind == "sign":
        numbers = computable(flat)
        index = int(numbers.where(numbers.isfinite(), 0).abs().argmax())
        flat[index] = -numbers[index] if bool(numbers[index].isfinite()) else numbers[index]
    else:
        index, step = random.SystemRandom().choice(_movable_cuts(tensor))
        flat[index] += step
    return edited


def _draw_near_share(dtype: torch.dtype) -> float:
    """Draw the share of its size by which an element moves; a type of few digits shows no small one."""
    import torch

    least, most = gate_rules.NEAR_EDITS
    digits = 1 - round(log2(torch.finfo(dtype).eps))
    return 2.0 ** -random.SystemRandom().randint(least, max(least, min(most, digits)))


def draw_exchange(tensor: torch.Tensor, kind: EditKind, dim: int | None = None) -> Exchange:
    """Draw two parts of a tensor of at least two elements, by one of `EXCHANGES`; along a dimension of several
    elements, drawn by chance if none is given.

    Elements are finite where there are such, and differ where others of a few do.
    """
    chance = random.SystemRandom()
    if dim is None:
        dim = _draw_dims(tensor)[0]
    if kind == "slices":
        whole: list[int | slice] = [slice(None)] * tensor.ndim
        pair = chance.sample(range(tensor.shape[dim]), _PAIR)
        return Exchange(*((*whole[:dim], position, *whole[dim + 1 :]) for position in pair))
    first, *others = (_locate(flat, tensor.shape) for flat in _draw_finite_places(tensor, 1 + _CANDIDATES))
    if kind == "line":
        along = [other for other in range(tensor.shape[dim]) if other != first[dim]]
        drawn = chance.sample(along, min(len(along), _CANDIDATES))
        others = [(*first[:dim], other, *first[dim + 1 :]) for other in drawn]
    values = [tensor[other].item() for other in (first, *others)]
    distances = [abs(value - values[0]) for value in values[1:]]
    distances = [distance if isfinite(distance) else -1.0 for distance in distances]
    if max(distances) < 0:  # every partner is infinite, which stays where it is
        return Exchange(first, first)
    return Exchange(first, others[distances.index(max(distances))])


def _draw_dims(tensor: torch.Tensor) -> list[int]:
    """Return the dimensions of several elements in an order drawn by chance."""
    dims = [dim for dim, size in enumerate(tensor.shape) if size > 1]
    return random.SystemRandom().sample(dims, len(dims))


def _locate(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the index of an element by its place in a contiguous tensor."""
    index = []
    for size in reversed(shape):
        flat, position = divmod(flat, size)
        index.append(position)
    return tuple(reversed(index))


def _movable_cuts(offsets: torch.Tensor) -> list[tuple[int, int]]:
    """List the cuts between the first and the last one that can move by 1 and stay between their neighbours, each
    with the step."""
    lengths = offsets.diff().tolist()
    cuts = range(1, len(lengths))
    return [(cut, step) for cut in cuts for step, room in ((-1, lengths[cut - 1]), (1, lengths[cut])) if room]


def _draw_finite_places(tensor: torch.Tensor, count: int) -> list[int]:
    """Draw flat indices of different elements, fewer of a small tensor, all finite where two are."""
    chance, values = random.SystemRandom(), computable(tensor.flatten())
    some = chance.sample(range(tensor.numel()), min(count, tensor.numel()))
    if bool(values[some].isfinite().all()):  # most tensors are finite, and large ones take long to look through
        return some
    finite = values.isfinite().nonzero().flatten()
    if len(finite) < _PAIR:
        return some
    return [int(finite[number]) for number in chance.sample(range(len(finite)), min(count, len(finite)))]


def update_weight(weight: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Return the weight after an optimizer's step; integers are those that were drawn."""
    if not weight.is_floating_point():
        return direction
    return (computable(weight) - gate_rules.WEIGHT_UPDATE * computable(direction)).to(weight.dtype)

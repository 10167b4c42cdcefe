"""Edits in place: inputs that change as callers change them, after which a kept result is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator.range_values import Limits
from warpsmith.lab.operator.tensor_bytes import computable
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]
"""Inputs by name."""

EditKind = Literal["element", "sign", "exchange", "near", "cut"]
"""An element becomes another one; the largest element changes its sign; two elements change places; all elements
move by up to `gate_rules.NEAR_EDIT` of their size; one cut between groups moves by 1."""

_EVEN = 0.5
"""Chance of each of two kinds of elements."""

_PAIR = 2
"""Elements that change places."""


def require_fresh_result(session: Session, drawn: Tensors, name: str, kind: EditKind = "element") -> None:
    """Edit an input, again after a near miss, and require that the result follows.

    Other kinds than `element` follow a call on the inputs without an edit: a key that takes both for equal keeps
    its result.

    Raises:
        SideFailed: the result is wrong.
    """
    for _ in range(gate_rules.DRAW_TRIES):
        if kind != "element":
            session.write_inputs(0, drawn)
            require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "before an edit")
        _write_edit(session, drawn, name, kind)
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss:
            break
    require_pass(grade, Status.CACHED_RESULT, f"after an edit of {name} in place")


def list_edit_kinds(session: Session, name: str, drawn: torch.Tensor) -> tuple[EditKind, ...]:
    """Return the kinds of edits, besides single elements, that keep what an input promises."""
    spec = session.file.definition.tensor_inputs[name]
    if session.file.inputs is None and spec.distribution.startswith("offsets:") and _movable_cuts(drawn):
        return ("cut", "cut", "cut")  # a key that samples cuts misses some
    if session.file.inputs is not None or spec.fits_together or drawn.numel() < _PAIR:
        return ()
    if not drawn.is_floating_point():
        return ("exchange",)
    if session.inputs.range_limits(name):
        return ("near", "exchange")
    return ("near", "exchange", *(("sign",) if bool((computable(drawn) < 0).any()) else ()))


def require_pass(grade: Grade, status: Status, when: str) -> None:
    """Raise SideFailed with a status for a grade that is not PASSED, and say when that was."""
    if grade.status is not Status.PASSED:
        raise SideFailed(status, f"{grade.detail} ({when})", SOLUTION)


def _write_edit(session: Session, before: Tensors, name: str, kind: EditKind) -> None:
    """Write `before` into slot 0 with one input edited.

    A definition with its own generator may promise a range, and an input may have one. There the new value is one
    of those that are drawn.
    """
    spec, limits = session.file.definition.tensor_inputs[name], session.inputs.range_limits(name)
    within = session.file.inputs is not None or spec.fits_together or limits is not None
    if kind == "element":
        write_combined(
            session, lambda drawn: {**before, name: edit_tensor(before[name], drawn[name], within=within)}
        )
    else:
        edited = _edit_structure(before[name], kind)
        session.write_inputs(0, {**before, name: hold_limits(edited, limits)})


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

    By chance the element becomes larger than the largest, so that sums and maxima depend on it, or any finite one
    of the fresh values, so that a checksum of extremes does not see it. With `within` it becomes the largest of
    the fresh values, or the smallest if it is the largest already. Integers, whose values may have to fit each
    other, are exchanged or replaced by the fresh ones.
    """
    import torch

    chance = random.SystemRandom()
    edited = tensor.clone()
    flat = edited.view(-1)
    index = chance.randrange(flat.numel())
    if not tensor.is_floating_point():
        if within or chance.random() < _EVEN:
            return fresh
        other = chance.randrange(flat.numel())
        flat[index], flat[other] = flat[other].clone(), flat[index].clone()
        return edited
    if not within:
        if chance.random() < _EVEN:
            flat[index] = fresh.view(-1)[_draw_finite_places(fresh, 1)[0]]
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


def _edit_structure(tensor: torch.Tensor, kind: EditKind) -> torch.Tensor:
    """Return a copy edited in another way than by a new element.

    Infinite elements stay where they are: a row of nothing else may have no result.
    """
    import torch

    edited = tensor.clone()
    flat = edited.view(-1)
    if kind == "near":
        signs = 2 * torch.randint(2, flat.shape, device=flat.device) - 1
        flat.copy_((flat.double() * (1 + gate_rules.NEAR_EDIT * signs)).to(flat.dtype))
    elif kind == "sign":
        numbers = computable(flat)
        index = int(numbers.where(numbers.isfinite(), 0).abs().argmax())
        flat[index] = -numbers[index] if bool(numbers[index].isfinite()) else numbers[index]
    elif kind == "cut":
        index, step = random.SystemRandom().choice(_movable_cuts(tensor))
        flat[index] += step
    else:
        first, second = _draw_finite_places(edited, _PAIR)
        flat[first], flat[second] = flat[second].clone(), flat[first].clone()
    return edited


def _movable_cuts(offsets: torch.Tensor) -> list[tuple[int, int]]:
    """List the cuts between the first and the last one that can move by 1 and stay between their neighbours, each
    with the step."""
    lengths = offsets.diff().tolist()
    cuts = range(1, len(lengths))
    return [(cut, step) for cut in cuts for step, room in ((-1, lengths[cut - 1]), (1, lengths[cut])) if room]


def _draw_finite_places(tensor: torch.Tensor, count: int) -> list[int]:
    """Draw flat indices of different elements, all finite where that many are."""
    chance, finite = random.SystemRandom(), computable(tensor.flatten()).isfinite().nonzero().flatten()
    if len(finite) < count:
        return chance.sample(range(tensor.numel()), count)
    return [int(finite[number]) for number in chance.sample(range(len(finite)), count)]


def update_weight(weight: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Return the weight after an optimizer's step; integers are those that were drawn."""
    if not weight.is_floating_point():
        return direction
    return (computable(weight) - gate_rules.WEIGHT_UPDATE * computable(direction)).to(weight.dtype)

"""A call whose inputs hold NaN and infinities where the reference reads nothing: padding need not be written."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.core.definition import DECLARED, Workload, shape_class
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.gate.calls.special_numbers import GradedCall
from warpsmith.lab.grading.reference_calls import float64_mode, run_wide
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.promises import mentions_finite
from warpsmith.lab.operator.tensor_bytes import select_bytes
from warpsmith.lab.timing.session import SOLUTION, Session

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]
"""Inputs of a call by name."""

_UNWRITTEN = (nan, nan, inf, -inf)
"""Numbers that memory may hold, each with the same chance."""

_DISTRIBUTION = "tiny"
"""No function is flat at small values, and labels are padded as they are under every adversarial distribution."""


def call_beside_unwritten(
    file: DefinitionFile, workload: Workload, open_session: Callable[[Workload], Session]
) -> GradedCall | None:
    """Make a call at a near or an odd workload; None where the reference reads all, and where a promise is about
    finite numbers."""
    is_plain = workload.set == "odd" and shape_class(workload.name) in ("near", DECLARED)
    if not is_plain or mentions_finite(file.definition) or not file.definition.elements(workload):
        return None
    session, grade = open_session(workload), None
    for _ in range(gate_rules.DRAW_TRIES):
        session.fill_inputs(_DISTRIBUTION, slots=1)
        planted = plant_unwritten(file, workload, session.drawn[0], session.inputs.draw(_DISTRIBUTION))
        if planted is None or session.grade_reference().status is not Status.PASSED:
            grade = None  # a near miss is not drawn again here, so it says nothing
            continue
        session.write_unread(0, planted)
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss:
            break
    description = f"{_DISTRIBUTION} inputs, NaN and infinities in what the reference does not read,"
    return (session, grade, description) if grade else None


def plant_unwritten(file: DefinitionFile, workload: Workload, inputs: Tensors, others: Tensors) -> Tensors | None:
    """Return the inputs with NaN and infinities where the reference reads nothing; None if it reads all, or that
    cannot be told.

    Only integers, such as lengths, say what is not read: there is no derivative by such elements either where the
    floating-point and boolean inputs have other values. Some that a maximum or an order reads have none, so the
    reference must give the same results beside NaN and both ends of the type.

    Args:
        file: the definition.
        workload: the workload.
        inputs: inputs of a call.
        others: another draw of them.
    """

    values = {name: others[name] if _is_value(each) else each for name, each in inputs.items()}
    first, second = (_find_underived(file, workload, tensors) for tensors in (inputs, values))
    masks = {name: mask & second[name] for name, mask in first.items() if name in second}
    masks = {name: mask for name, mask in masks.items() if bool(mask.any())}
    expected = _run_reference(file, workload, inputs) if masks else None
    if expected is None:
        return None
    fills: tuple[Callable[[torch.finfo], float], ...] = (
        lambda _: nan, lambda limits: limits.max, lambda limits: limits.min,
    )  # fmt: skip
    for names in (list(masks), *([name] for name in masks if len(masks) > 1)):
        chosen = {name: masks[name] for name in names}
        planted = _fill_by_chance(inputs, chosen)
        trials = [*(_fill(inputs, chosen, number) for number in fills), planted]
        if all(_are_equal(_run_reference(file, workload, trial), expected) for trial in trials):
            return planted
    return None


def _is_value(tensor: torch.Tensor) -> bool:
    import torch

    return tensor.is_floating_point() or tensor.dtype == torch.bool


def _find_underived(file: DefinitionFile, workload: Workload, inputs: Tensors) -> Tensors:
    """Return which elements of each floating-point input no result has a derivative by; nothing of a call without
    derivatives."""
    import torch

    leaves = {
        name: value.detach().double().clone().requires_grad_()
        for name, value in inputs.items()
        if value.is_floating_point()
    }
    try:
        with torch.enable_grad(), float64_mode()():
            results = file.outputs(file.reference(*file.arguments(workload, inputs | leaves)))
            total = sum(  # weights by chance: a sum of softmax, say, has no derivative
                (value.double() * torch.rand(value.shape, device=value.device, dtype=torch.float64))
                .masked_fill(~value.isfinite(), 0)
                .sum()
                for value in results.values()
                if value.requires_grad
            )
            derivatives = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    except Exception:  # whatever a reference does that has none
        return {}
    return {
        name: torch.ones_like(leaves[name], dtype=torch.bool) if each is None else each == 0
        for name, each in zip(leaves, derivatives, strict=True)
    }


def _fill(inputs: Tensors, masks: Tensors, number: Callable[[torch.finfo], float]) -> Tensors:
    """Return the inputs with a number, which may be an end of their type, in some places."""
    import torch

    full = {
        name: torch.full(
            mask.shape, number(torch.finfo(inputs[name].dtype)), device=mask.device, dtype=torch.float64
        )
        for name, mask in masks.items()
    }
    return inputs | {
        name: select_bytes(mask, full[name].to(inputs[name].dtype), inputs[name]) for name, mask in masks.items()
    }


def _fill_by_chance(inputs: Tensors, masks: Tensors) -> Tensors:
    """Return the inputs with NaN and infinities by chance in some places."""
    import torch

    planted = dict(inputs)
    for name, mask in masks.items():
        numbers = torch.tensor(_UNWRITTEN, device=mask.device)
        drawn = numbers[torch.randint(len(numbers), mask.shape, device=mask.device)]
        planted[name] = select_bytes(mask, drawn.to(inputs[name].dtype), inputs[name])
    return planted


def _run_reference(file: DefinitionFile, workload: Workload, inputs: Tensors) -> Tensors | None:
    wide = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
    try:
        return run_wide(file, file.reference, workload, wide)
    except BadDefinition:
        return None


def _are_equal(results: Tensors | None, expected: Tensors) -> bool:
    import torch

    return results is not None and all(
        torch.allclose(results[name], value, rtol=1e-9, equal_nan=True)
        if value.is_floating_point()
        else torch.equal(results[name], value)
        for name, value in expected.items()
    )

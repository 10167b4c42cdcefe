"""Elements of inputs that the reference does not read, such as padding, which callers may leave unwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.core.definition import Workload
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading.reference_calls import call_arguments, run_wide
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.tensor_bytes import select_bytes

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]
"""Inputs of a call by name."""


def plant_nan(file: DefinitionFile, workload: Workload, inputs: Tensors) -> Tensors | None:
    """Return the inputs with NaN where the reference reads nothing; None if it reads all, or that cannot be told.

    Elements without a derivative are candidates. Some that a maximum or an order reads have none either, so the
    reference must give the same results beside NaN and both ends of the type, in all candidates or those of one
    input.
    """

    masks = {name: mask for name, mask in _underived(file, inputs, workload).items() if bool(mask.any())}
    if not masks:
        return None
    expected = _results(file, workload, inputs)
    for names in (list(masks), *([name] for name in masks if len(masks) > 1)):
        chosen = {name: masks[name] for name in names}
        if expected and all(
            _are_equal(_results(file, workload, _fill(inputs, chosen, end)), expected)
            for end in ("max", "min", None)
        ):
            return _fill(inputs, chosen, None)
    return None


def _fill(inputs: Tensors, masks: Tensors, end: str | None) -> Tensors:
    """Return the inputs with an end of their type in some places, `max` or `min`, or NaN."""
    import torch

    filled = dict(inputs)
    for name, mask in masks.items():
        dtype = inputs[name].dtype
        number = getattr(torch.finfo(dtype), end) if end else torch.nan
        filled[name] = select_bytes(
            mask, torch.full(mask.shape, number, device=mask.device).to(dtype), inputs[name]
        )
    return filled


def _underived(file: DefinitionFile, inputs: Tensors, workload: Workload) -> Tensors:
    """Return which elements of each floating-point input no result has a derivative by; nothing of a call without
    derivatives."""
    import torch

    with torch.enable_grad():
        leaves = {
            name: value.double().requires_grad_() for name, value in inputs.items() if value.is_floating_point()
        }
        try:
            results = file.outputs(file.reference(*call_arguments(file, workload, inputs | leaves)))
            derivable = [value for value in results.values() if value.requires_grad]
            total = sum(  # weights by chance: a sum of softmax, say, has no derivative
                (value * torch.rand_like(value)).masked_fill(~value.isfinite(), 0).sum() for value in derivable
            )
            derivatives = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        except Exception:  # whatever a reference does that has none
            return {}
    return {
        name: torch.ones_like(inputs[name], dtype=torch.bool) if each is None else each == 0
        for name, each in zip(leaves, derivatives, strict=True)
    }


def _results(file: DefinitionFile, workload: Workload, inputs: Tensors) -> Tensors | None:
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

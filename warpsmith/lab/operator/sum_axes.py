"""Axes along which a reference adds nothing up: results there hold no rounding errors that grow with the axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs

if TYPE_CHECKING:
    import torch

_LENGTHS = (5, 37)
"""Lengths of an axis at which a reference must call as many operators: one that loops over it may add there."""
_OTHER, _SMALL, _LARGE = 4, 1 << 16, 1 << 20
"""Most of each other axis where a call has more elements than the second number; none is made beyond the third."""

_ROUNDING_FREE = (
    "amax", "amin", "aminmax", "max", "min", "argmax", "argmin", "cummax", "cummin", "all", "any", "isin",
    "sort", "argsort", "topk", "kthvalue", "unique_dim", "nonzero", "searchsorted", "bucketize", "cat",
    "stack", "gather", "index", "index_select", "embedding", "take", "flip", "roll", "repeat", "tril", "triu",
    "masked_fill", "masked_fill_", "copy_", "clone", "fill_", "zero_", "contiguous", "_to_copy",
    "constant_pad_nd", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "zeros",
    "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full", "arange",
    "linspace", "scalar_tensor", "lift_fresh", "lift_fresh_copy", "_unsafe_view", "_reshape_alias", "where",
    "detach", "one_hot",
)  # fmt: skip
"""Operators, besides those that compute element by element and views, that round no sum of many terms."""


def adds_nothing_along(file: DefinitionFile, axis: str) -> bool:
    """Return True if the reference computes element by element, moves and compares, whatever the axis's length.

    It is heard at two lengths, once for each axis. An operator that is not known to round no sum may.
    """
    if axis not in file.added_along:
        counts = [_operators(file, axis, length) for length in _LENGTHS]
        file.added_along[axis] = None in counts or counts[0] != counts[1]
    return not file.added_along[axis]


def _operators(file: DefinitionFile, axis: str, length: int) -> int | None:
    """Return how many operators the reference calls at a length; None where it fails or one of them may add."""
    from torch.utils._python_dispatch import TorchDispatchMode

    definition = file.definition
    smallest = min(definition.workloads, key=definition.elements)
    workload = smallest.model_copy(update={"axes": {**smallest.axes, axis: length}})
    if definition.elements(workload) > _SMALL:
        others = {name: min(size, _OTHER) for name, size in smallest.axes.items()}
        workload = smallest.model_copy(update={"axes": {**others, axis: length}})
    if definition.elements(workload) > _LARGE:
        return None
    operators = []

    class Listener(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled inside

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            operators.append(operator)
            return operator(*args, **(kwargs or {}))

    try:
        drawn: dict[str, torch.Tensor] = Inputs(file, workload, 1, "cpu").draw()
        arguments = {**definition.scalars(workload), **drawn}
        with Listener():  # type: ignore[no-untyped-call]
            file.reference(*(arguments[name] for name in definition.inputs))
    except Exception:  # a user's function; whoever needs its results says what is wrong
        return None
    return len(operators) if all(map(_rounds_no_sum, operators)) else None


def _rounds_no_sum(operator: Any) -> bool:  # noqa: ANN401 - an operator of PyTorch, whose type is not public
    import torch

    name = operator.overloadpacket.__name__
    return torch.Tag.pointwise in operator.tags or operator.is_view or name in _ROUNDING_FREE

"""Bounds of integer inputs: an index into a table stays below the table's size, at every size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warpsmith.interchange.pytorch.distributions import ObservedValues

RunsWith = Callable[[str, int, bool], bool]
"""Tells whether the operator runs if an integer input (by name) holds a value; true as the third argument makes it
offsets from 0 to the value."""


def integer_distribution(
    name: str,
    shape: tuple[int, ...],
    observed: ObservedValues,
    example: Mapping[str, int],
    small: Mapping[str, int],
    runs_with: RunsWith,
) -> str:
    """Return the distribution of an integer input.

    Its bound is an axis if the operator accepts the axis's size less one, and fails at the size itself. Otherwise
    it is the example's largest value plus one.

    Args:
        name: the input.
        shape: its shape in the example.
        observed: its values in the example.
        example: sizes that can be a bound, by their names or as numbers, in the example.
        small: the same in a small run.
        runs_with: tells which values the operator accepts in that small run.
    """
    is_offsets = (
        observed.is_sorted and observed.low == 0 and len(shape) == 1 and shape[0] > 1 and observed.high > 1
    )
    candidates = sorted((size, axis) for axis, size in example.items() if size >= observed.high + (not is_offsets))
    if is_offsets:
        for _, axis in candidates:
            if runs_with(name, small[axis], True) and not runs_with(name, small[axis] + 1, True):
                return f"offsets:{axis}"
    for _, axis in candidates:
        if runs_with(name, small[axis] - 1, False) and not runs_with(name, small[axis], False):
            return f"integers:0:{axis}"
    return f"integers:{observed.low}:{observed.high + 1}"

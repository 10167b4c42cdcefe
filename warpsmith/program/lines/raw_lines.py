"""Counts by line as the program's process reports them, per step; `line_rules` makes findings of them."""

from __future__ import annotations

from pydantic import Field

from warpsmith.core.base import Model

MANY_CALLS = 100
"""Calls of one operator at one line in a step, from which on a loop is one of many small operators. Chosen."""


class LoopCounts(Model):
    """The loop around a line."""

    file: str
    """Path of its file."""
    line: int
    """Line with its `for` or `while`."""
    first: int
    """First line of its body."""
    last: int
    """Last line of its body."""
    function: str
    """Function that contains it."""
    share: float | None
    """Share of a step in which it runs, calls from it included; null if it was not timed."""


class SiteLine(Model):
    """A line that called an operator."""

    file: str
    """Path of its file."""
    line: int
    """Line number."""
    function: str
    """Function that contains it."""
    package: str
    """Package that the line belongs to; empty if it is the user's."""
    caller_file: str
    """File with the innermost line of the user's that led there; empty if there is none."""
    caller_line: int
    """Number of that line; 0 if there is none."""
    loop: LoopCounts | None
    """Innermost loop around the line or around a call that led to it; null if there is none."""


class LineCounts(SiteLine):
    """Operators that a line called outside of backward passes, optimizers and compiled functions."""

    operators: dict[str, float]
    """Calls by operator, the most frequent first; views are not counted."""
    bytes: dict[str, float]
    """Mean bytes of the tensors of a call, results included, by operator."""
    copies: dict[str, float]
    """Copies of strided tensors by the Python function that made them."""
    copied_bytes: float = Field(ge=0)
    """Bytes that these copies wrote."""
    depth: int = Field(ge=0)
    """Difference between the longest and the shortest chain of operators that ends at the line."""


class WaitCounts(SiteLine):
    """A line that waits for the device, or would if the program ran on a GPU."""

    kind: str
    """Kind of the observation: `host-read`, `to-host`, `data-shape`."""
    description: str
    """Description of the operation: `.item()`."""
    count: float = Field(ge=0)
    """Number of waits."""


class WatchedLines(Model):
    """Counts of all lines."""

    sites: tuple[LineCounts, ...] = ()
    """Lines that called operators."""
    waits: tuple[WaitCounts, ...] = ()
    """Lines that wait."""
    update: SiteLine | None = None
    """The line that called an optimizer's step; null if none did."""
    copied_bytes: float = Field(ge=0, default=0.0)
    """Bytes that all copies wrote, also those in backward passes and of contiguous tensors."""
    flops: float = Field(ge=0, default=0.0)
    """Floating-point operations of products, convolutions and attention, forward and backward."""

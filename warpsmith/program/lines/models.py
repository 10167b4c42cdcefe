"""Model of a line that costs time in a step."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model

LineKind = Literal["loop", "copy", "wait", "graph break", "recompilation"]
"""`loop`: a Python loop calls the same small operators many times. `copy`: a tensor is copied only to change its
strides. `wait`: the host waits for the device. `graph break` and `recompilation`: `torch.compile` stops there, or
compiled the function again."""


class LineFinding(Model):
    """One line that costs time in a step, of the program or of a library that it calls."""

    kind: LineKind
    """Kind of cost."""
    file: str
    """File, relative to the program's folder; a library's begins with the name of its package."""
    line: int = Field(ge=1)
    """Line number."""
    function: str
    """Function that contains the line; empty if unknown."""
    code: str
    """Text of the line, without its indentation; empty if it cannot be read."""
    package: str = ""
    """Package that the line belongs to; empty if it is the program's."""
    caller: str = ""
    """Innermost line of the program's that leads to a library's line: `train.py:12`; else empty."""
    operation: str
    """Operation and how often it happens in a step: `.item(), 2 times a step`."""
    calls: float = Field(ge=0)
    """Calls per step; for a recompilation, of the whole run so far."""
    share: float | None = Field(default=None, ge=0, le=1)
    """Share of the step's time; null if it is unknown, as for a wait on a machine where nothing waits."""
    bytes: float | None = Field(default=None, ge=0)
    """Bytes per step that a copy writes; null for other kinds."""
    operators: tuple[str, ...] = ()
    """Operators that a loop calls many times, the most frequent first."""
    sequential: bool = False
    """True if each iteration of a loop reads what the one before computed."""
    cause: str
    """Reason why the line costs time."""
    remedy: str
    """Remedy, in one phrase."""

    @property
    def location(self) -> str:
        """Return file and line, as `train.py:12`, with the caller's if the file is a library's."""
        caller = f", called from {self.caller}" if self.caller else ""
        return f"{self.file}:{self.line}{caller}"

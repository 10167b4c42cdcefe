"""Figures of a port's compiled code, beside those of the version before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from warpsmith.core.port.check import LaunchFigures, PortCheck
from warpsmith.port.model_time import mean_model_seconds


class ComparedFigure(NamedTuple):
    """One figure of two versions."""

    name: str
    """Name of the figure with its unit."""
    before: float | None
    """Value of the version before; None if there is none."""
    after: float | None
    """Value of the version."""

    @property
    def text(self) -> str:
        """Figure in words: `spill bytes 12 -> 0`, or `registers 96` where nothing changed."""
        after = _plain(self.after)
        if self.before is None or _plain(self.before) == after:
            return f"{self.name} {after}"
        return f"{self.name} {_plain(self.before)} -> {after}"


_FIGURES: tuple[tuple[str, Callable[[LaunchFigures], int | None], Callable[[list[int]], int]], ...] = (
    ("spill bytes", lambda figures: figures.spill_bytes, max),
    ("registers", lambda figures: figures.registers, max),
    ("shared bytes", lambda figures: figures.shared_bytes, max),
    ("load bits", lambda figures: figures.load_bits, min),
    ("resident warps", lambda figures: figures.resident_warps, min),
)
"""Figures of a thread or a block: name, value, and the choice among the kernels, the worst one."""

MODEL = "MODEL us"
"""Name of the mean of the model's times; nothing of it was measured."""


def compare_figures(before: PortCheck | None, after: PortCheck) -> tuple[ComparedFigure, ...]:
    """Return the figures of a version, the worst ones of all its kernels, beside those of the version before."""
    return tuple(_compared_figures(before, after))


def _compared_figures(before: PortCheck | None, after: PortCheck) -> Iterator[ComparedFigure]:
    for name, value, worst in _FIGURES:
        sides = [_worst(check, value, worst) if check else None for check in (before, after)]
        if sides[1] is not None:
            yield ComparedFigure(name, *sides)
    instructions = [
        sum(kernel.instructions for kernel in check.kernels) if check else None for check in (before, after)
    ]
    yield ComparedFigure("instructions", *instructions)
    seconds = [mean_model_seconds(check) if check else None for check in (before, after)]
    if seconds[1] is not None:
        yield ComparedFigure(MODEL, *(None if each is None else each * 1e6 for each in seconds))


def _worst(
    check: PortCheck, value: Callable[[LaunchFigures], int | None], worst: Callable[[list[int]], int]
) -> int | None:
    values = [each for kernel in check.kernels if (each := value(kernel.figures)) is not None]
    return worst(values) if values else None


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)

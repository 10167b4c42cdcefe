"""Figures of a port's compiled code, beside those of the version before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import exp, fsum, log

from warpsmith.core.port.check import InterpretedKernel, LaunchFigures, ModelTime, PortCheck, PortFigure

_FIGURES: tuple[tuple[str, Callable[[LaunchFigures], int | None], Callable[[list[int]], int]], ...] = (
    ("spill bytes", lambda figures: figures.spill_bytes, max),
    ("registers", lambda figures: figures.registers, max),
    ("shared bytes", lambda figures: figures.shared_bytes, max),
    ("load bits", lambda figures: figures.load_bits, min),
    ("resident warps", lambda figures: figures.resident_warps, min),
)
"""Figures of a thread or a block: name, value, and the choice among the kernels, the worst one."""

MODEL = "MODEL us"
"""Name of the geometric mean of the model's times over the workloads; nothing of it was measured."""


def compare_figures(
    before: PortCheck | None, kernels: Iterable[InterpretedKernel], times: Iterable[ModelTime]
) -> tuple[PortFigure, ...]:
    """Return the figures of a version beside those of the version before; None at the baseline."""
    earlier = {figure.name: figure.after for figure in before.figures} if before else {}
    figures = _figures(tuple(kernels), tuple(times))
    return tuple(PortFigure(name=name, before=earlier.get(name), after=value) for name, value in figures)


def _figures(kernels: tuple[InterpretedKernel, ...], times: tuple[ModelTime, ...]) -> Iterator[tuple[str, float]]:
    for name, value, worst in _FIGURES:
        values = [each for kernel in kernels if (each := value(kernel.figures)) is not None]
        if values:
            yield name, worst(values)
    yield "instructions", sum(kernel.instructions for kernel in kernels)
    if times:
        yield MODEL, 1e6 * exp(fsum(log(time.seconds) for time in times) / len(times))

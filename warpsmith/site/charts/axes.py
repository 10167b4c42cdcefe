"""Axes of charts: from values to positions, and the marks along them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

from warpsmith.site.markup import Html, element

_STEPS = (1.0, 2.0, 5.0)
_FINE_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
_FEWEST = 4
"""Number of marks below which a logarithmic axis has finer ones."""


@dataclass(frozen=True)
class Axis:
    """A logarithmic or linear axis between two positions in pixels."""

    low: float
    """Smallest value."""
    high: float
    """Largest value."""
    start: float
    """Position of the smallest value."""
    end: float
    """Position of the largest value."""
    logarithmic: bool = True
    """True for a logarithmic axis, whose values are above zero."""

    def position(self, value: float) -> float:
        """Return the position of a value; values beyond the ends stay at them."""
        low, high, at = (self._scaled(v) for v in (self.low, self.high, min(max(value, self.low), self.high)))
        return self.start + (self.end - self.start) * (at - low) / ((high - low) or 1.0)

    def ticks(self, most: int = 7) -> list[float]:
        """Return round values on the axis, at most so many."""
        marks = list(self._powers(_STEPS) if self.logarithmic else self._steps(most))
        if self.logarithmic and len(marks) < _FEWEST:
            marks = list(self._powers(_FINE_STEPS))
        while len(marks) > most:
            marks = marks[::2]
        return marks

    def _scaled(self, value: float) -> float:
        return log10(value) if self.logarithmic else value

    def _powers(self, steps: Iterable[float]) -> Iterator[float]:
        for power in range(floor(log10(self.low)), ceil(log10(self.high)) + 1):
            for step in steps:
                value = float(f"{step}e{power}")
                if self.low <= value <= self.high:
                    yield value

    def _steps(self, most: int) -> Iterator[float]:
        width = (self.high - self.low) / most or 1.0
        power = 10 ** floor(log10(width))
        step = next(s * power for s in (*_STEPS, 10.0) if s * power >= width)
        number = ceil(self.low / step)
        while number * step <= self.high * 1.000001:
            yield number * step
            number += 1


def padded_axis(values: Iterable[float], start: float, end: float, padding: float = 1.15) -> Axis:
    """Return a logarithmic axis that holds all values with some room around them."""
    numbers = list(values)
    return Axis(min(numbers) / padding, max(numbers) * padding, start, end)


def horizontal_grid(axis: Axis, left: float, right: float, labels: dict[float, str]) -> Html:
    """Return lines across a chart at the values of a vertical axis, with labels at the left."""
    lines = [
        element("line", class_="grid", x1=left, x2=right, y1=y, y2=y)
        + element("text", label, class_="tick", x=left - 6, y=y + 4, text_anchor="end")
        for value, label in labels.items()
        for y in (axis.position(value),)
    ]
    return Html("".join(lines))


def vertical_grid(axis: Axis, top: float, bottom: float, labels: dict[float, str]) -> Html:
    """Return lines down a chart at the values of a horizontal axis, with labels below."""
    lines = [
        element("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom)
        + element("text", label, class_="tick", x=x, y=bottom + 16, text_anchor="middle")
        for value, label in labels.items()
        for x in (axis.position(value),)
    ]
    return Html("".join(lines))


def spread_labels(positions: Iterable[float], distance: float) -> list[float]:
    """Move positions of labels apart, each at least so far from the one before; the order stays."""
    order = sorted(enumerate(positions), key=lambda pair: pair[1])
    placed = [position for _, position in order]
    for index, (before, after) in enumerate(pairwise(range(len(placed)))):
        if placed[after] - placed[before] < distance:
            placed[index + 1] = placed[before] + distance
    result = dict(zip((index for index, _ in order), placed, strict=True))
    return [result[index] for index in range(len(placed))]


def marker(shape: str, x: float, y: float, size: float = 5.0, **attributes: object) -> Html:
    """Return a mark: `circle`, `square`, `diamond`, `triangle`, `down`, `plus` or `cross`."""
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=size, **attributes)
    path = "".join(
        f"{'L' if index and command != 'M' else 'M'}{x + size * dx:.2f},{y + size * dy:.2f}"
        for index, (command, dx, dy) in enumerate(_SHAPES[shape])
    )
    return element("path", d=path if shape in _OPEN else f"{path}Z", **attributes)


_OPEN = ("cross", "plus")
_SHAPES: dict[str, tuple[tuple[str, float, float], ...]] = {
    "square": (("M", -0.9, -0.9), ("L", 0.9, -0.9), ("L", 0.9, 0.9), ("L", -0.9, 0.9)),
    "diamond": (("M", 0, -1.2), ("L", 1.2, 0), ("L", 0, 1.2), ("L", -1.2, 0)),
    "triangle": (("M", 0, -1.1), ("L", 1.1, 0.9), ("L", -1.1, 0.9)),
    "down": (("M", 0, 1.1), ("L", 1.1, -0.9), ("L", -1.1, -0.9)),
    "cross": (("M", -0.9, -0.9), ("L", 0.9, 0.9), ("M", 0.9, -0.9), ("L", -0.9, 0.9)),
    "plus": (("M", -1.1, 0), ("L", 1.1, 0), ("M", 0, -1.1), ("L", 0, 1.1)),
}

MARKS = ("circle", *_SHAPES)
"""Names of all marks."""

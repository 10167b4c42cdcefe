"""Axes of an operator: which dimensions of its tensors share a size, found by runs at other sizes.

Two dimensions of equal size are one axis only if the operator fails when one of them changes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

Shapes = dict[str, tuple[int, ...]]
"""Shape of every tensor, by name."""

_STEPS = (2, 4, 8, 16, 32, 64, 128)
_MOST_SUBSETS = 60
_MOST_RATIO = 8


@dataclass(frozen=True)
class TiedDimension:
    """Dimension of a tensor that belongs to an axis."""

    tensor: str
    """Name of the tensor."""
    dimension: int
    """Index of the dimension."""
    ratio: int = 1
    """Its size over the axis's size."""


@dataclass(frozen=True)
class FreeAxis:
    """Dimensions that change together."""

    size: int
    """Size in the example."""
    step: int
    """Sizes that the operator accepts are multiples of it."""
    dimensions: tuple[TiedDimension, ...]
    """Dimensions of the axis; the first has the ratio 1."""


def find_free_axes(shapes: Shapes, is_accepted: Callable[[Shapes], bool]) -> list[FreeAxis]:
    """Return the axes whose size can change; dimensions in none of them are fixed.

    Args:
        shapes: shapes of an example that the operator accepts. Dimensions of size 0 and 1 are fixed.
        is_accepted: tells whether the operator accepts other shapes.
    """
    search = _Search(shapes, is_accepted)
    free = [TiedDimension(t, d) for t, shape in shapes.items() for d, size in enumerate(shape) if size > 1]
    axes: list[FreeAxis] = []
    while free:
        first = free.pop(0)
        axis = search.smallest_axis(first, free)
        if axis is not None:
            axes.append(axis)
            members = {(d.tensor, d.dimension) for d in axis.dimensions}
            free = [d for d in free if (d.tensor, d.dimension) not in members]
    return axes


def resize_axis(shapes: Shapes, dimensions: Iterable[TiedDimension], size: int) -> Shapes:
    """Return the shapes with another size of an axis."""
    resized = {name: list(shape) for name, shape in shapes.items()}
    for d in dimensions:
        resized[d.tensor][d.dimension] = size * d.ratio
    return {name: tuple(shape) for name, shape in resized.items()}


def raise_leading_ones(shapes: Shapes, is_accepted: Callable[[Shapes], bool], size: int) -> Shapes:
    """Return the shapes with `size` in place of a leading 1, where that is a tensor's only 1.

    A batch of one is the usual example. Other dimensions of size 1 stay, since they are broadcast.
    """
    leading = [
        TiedDimension(name, 0) for name, shape in shapes.items() if shape[:1] == (1,) and shape.count(1) == 1
    ]
    raised = resize_axis(shapes, leading, size)
    return raised if leading and is_accepted(raised) else shapes


class _Search:
    """Search for the dimensions that must change together."""

    def __init__(self, shapes: Shapes, is_accepted: Callable[[Shapes], bool]) -> None:
        self._shapes, self._is_accepted = shapes, is_accepted
        self._sizes = {size for shape in shapes.values() for size in shape}
        self._answers: dict[tuple[frozenset[TiedDimension], int], bool] = {}

    def smallest_axis(self, first: TiedDimension, free: Sequence[TiedDimension]) -> FreeAxis | None:
        """Return the smallest axis that contains `first`, or None if its size is fixed."""
        size = self._size(first)
        equal = [d for d in free if self._size(d) == size]
        multiples = [
            TiedDimension(d.tensor, d.dimension, self._size(d) // size)
            for d in free
            if self._size(d) % size == 0 and self._size(d) // size <= _MOST_RATIO
        ]
        for step in (1, *(step for step in _STEPS if size % step == 0)):
            for group in self._groups(first, equal, multiples, most_subsets=_MOST_SUBSETS if step == 1 else 0):
                if self._can_change(group, step):
                    return FreeAxis(size, step, tuple(self._without_surplus(first, group, step)))
        return None

    def _groups(
        self,
        first: TiedDimension,
        equal: list[TiedDimension],
        multiples: list[TiedDimension],
        most_subsets: int,
    ) -> Iterable[list[TiedDimension]]:
        yield [first]
        few = (subset for count in (1, 2) for subset in combinations(equal, count) if count < len(equal))
        yield from ([first, *subset] for subset in islice(few, most_subsets))
        if equal:
            yield [first, *equal]
        triples = combinations(equal, 3) if len(equal) > 3 else ()
        yield from ([first, *subset] for subset in islice(triples, most_subsets))
        if len(multiples) > len(equal):
            yield [first, *multiples]
            own = [d for d in multiples if d.tensor != first.tensor]
            yield [first, *own]
            others = (subset for count in (1, 2, 3) for subset in combinations(multiples, count))
            yield from ([first, *subset] for subset in islice(others, most_subsets))

    def _without_surplus(self, first: TiedDimension, group: list[TiedDimension], step: int) -> list[TiedDimension]:
        """Leave out dimensions that need not change with the others."""
        for dimension in list(group):
            smaller = [d for d in group if d != dimension]
            if dimension != first and self._can_change(smaller, step):
                group = smaller
        return group

    def _can_change(self, group: Sequence[TiedDimension], step: int) -> bool:
        key = (frozenset(group), step)
        if key not in self._answers:
            size = self._size(group[0])
            sizes = [self._other_size(size, step), self._other_size(size, -step)]
            self._answers[key] = all(
                self._is_accepted(resize_axis(self._shapes, group, other)) for other in sizes if other > 0
            )
        return self._answers[key]

    def _other_size(self, size: int, step: int) -> int:
        """Return the next size in steps that no dimension has; 0 if there is none."""
        other = size + 3 * step if size + 3 * step > 1 else size + step
        while other in self._sizes and other > 0:
            other += step
        return other if other > 1 else 0

    def _size(self, dimension: TiedDimension) -> int:
        return self._shapes[dimension.tensor][dimension.dimension]


def axis_description(axis: FreeAxis) -> str:
    """Return the dimensions of an axis in words: `x.shape[1], w.shape[0] / 4`."""
    members = ", ".join(
        f"{d.tensor}.shape[{d.dimension}]{f' / {d.ratio}' if d.ratio > 1 else ''}" for d in axis.dimensions
    )
    return members + (f"; multiples of {axis.step}" if axis.step > 1 else "")


def axis_names(axes: Sequence[FreeAxis], shapes: Shapes, reserved: Iterable[str]) -> list[str]:
    """Return a readable name for each axis: `rows` where it is unique, else `x_rows`.

    Args:
        axes: the axes.
        shapes: shapes of the tensors.
        reserved: names that are in use.
    """
    words = [_word(axis.dimensions[0], shapes) for axis in axes]
    names: list[str] = []
    for axis, word in zip(axes, words, strict=True):
        name = word if words.count(word) == 1 else f"{axis.dimensions[0].tensor}_{word}"
        while name in names or name in reserved:
            name = f"{name}_size"
        names.append(name)
    return names


def _word(dimension: TiedDimension, shapes: Mapping[str, Sequence[int]]) -> str:
    """Return what a dimension usually is: `batch`, `rows` and `cols` from the outermost to the innermost."""
    words = {
        1: ("length",),
        2: ("rows", "cols"),
        3: ("batch", "rows", "cols"),
        4: ("batch", "channels", "rows", "cols"),
        5: ("batch", "channels", "depth", "rows", "cols"),
    }
    rank = len(shapes[dimension.tensor])
    return words[rank][dimension.dimension] if rank in words else f"d{dimension.dimension}"

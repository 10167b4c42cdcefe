"""Sizes that are moved until they hold what callers promise of them, such as `k % 128 == 0` or `n == 2 * m`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from operator import itemgetter

from warpsmith.core.arithmetic.comparison import SizeComparison, read_comparisons
from warpsmith.core.definition import Definition, Workload
from warpsmith.lab.operator import input_rules

_LARGEST = 1 << 24
"""Size that an axis gets at most where a promise makes it longer."""

_REACH = 1024
"""Steps of one by which a size is moved to hold a promise about remainders: more than the multiples of callers."""


def draw_promised_workload(
    definition: Definition,
    draw: Callable[[], Workload],
    axes: Collection[str],
    subjects: Collection[str] = (),
    shorten: Callable[[Workload], Workload | None] = lambda workload: workload,
) -> Workload:
    """Return a drawn workload at which promises of callers hold, and no tensor has a size below zero: the first of
    a few draws, or one of them with other sizes, which are none that the definition declares. It is the last draw,
    as it is, where there is none.

    Args:
        definition: the definition.
        draw: draws a workload.
        axes: axes that may get another size.
        subjects: those of them that the workload is about.
        shorten: returns a workload that got other sizes with few enough elements, and None if it has none.
    """
    drawn = []
    for _ in range(input_rules.SHAPE_TRIES):
        drawn.append(draw())
        if definition.has_shapes(drawn[-1]):
            return drawn[-1]
    declared = [(each.axes, each.dtype) for each in definition.workloads]  # a draw is to be another one
    for moved in (fit_to_promises(definition, each, axes, subjects) for each in drawn):
        short = shorten(moved) if definition.has_shapes(moved) else None
        if short and (short.axes, short.dtype) not in declared:
            return short
    return drawn[-1]


def fit_to_promises(
    definition: Definition, workload: Workload, axes: Collection[str], subjects: Collection[str] = ()
) -> Workload:
    """Return the workload with near sizes of some axes at which the comparisons hold that callers promise; the
    workload as it is where none are near.

    Sizes become smaller rather than larger, since tensors have bounded room, but those that the workload is about
    become larger rather than smaller.

    Args:
        definition: the definition.
        workload: the workload.
        axes: axes that may get another size.
        subjects: those of them that the workload is about: they get another size only where no other axis helps.
    """
    if definition.has_shapes(workload):
        return workload
    promised = _read_promises(definition)
    for movable in (set(axes) - set(subjects), set(axes)):
        sizes = _move(promised, definition.sizes(workload), movable, subjects)
        moved = workload.model_copy(update={"axes": {axis: sizes[axis] for axis in workload.axes}})
        if definition.has_shapes(moved):
            return moved
    return workload


def list_loose_axes(definition: Definition, axes: Iterable[str]) -> list[str]:
    """List the axes whose sizes no promise compares."""
    promised = frozenset[str]().union(*(promise.names for promise in _read_promises(definition)))
    return [axis for axis in axes if axis not in promised]


def _read_promises(definition: Definition) -> list[SizeComparison]:
    return [each for text in definition.compared_sizes for each in read_comparisons(text)]


def _move(
    promised: list[SizeComparison], sizes: dict[str, int], movable: Collection[str], subjects: Collection[str]
) -> dict[str, int]:
    """Return the sizes with one of them moved for each promise that does not hold, a few times.

    What mends a promise may break another one. So the move is taken that breaks the fewest, of those one of an
    axis that was not moved before: else two promises may move one axis to and fro.
    """
    touched = set[str]()
    for _ in range(2 * len(sizes)):
        broken = next((each for each in promised if not each.holds_at(sizes)), None)
        if broken is None:
            break
        moves = []
        for axis, size in _list_moves(broken, sizes, movable, subjects):
            count = sum(not each.holds_at({**sizes, axis: size}) for each in promised)
            moves.append((count, axis in touched, axis, size))
            if count == 0:
                break  # a further move takes another search
        if not moves:
            break
        *_, axis, size = min(moves, key=itemgetter(0, 1))
        touched.add(axis)
        sizes = {**sizes, axis: size}
    return sizes


def _list_moves(
    promise: SizeComparison, sizes: dict[str, int], movable: Collection[str], subjects: Collection[str]
) -> Iterator[tuple[str, int]]:
    """Yield axes with a size of each at which a promise holds, the other ones as they are: first those that become
    shorter, or longer if they are subjects."""
    names = sorted(promise.names & set(movable), key=lambda axis: (-sizes[axis], axis))
    for is_first in (True, False):
        for axis in names:
            is_longer = (axis in subjects) == is_first
            size = _find_nearest(promise, sizes, axis, _LARGEST if is_longer else 1)
            if size is not None:
                yield axis, size


def _find_nearest(promise: SizeComparison, sizes: dict[str, int], axis: str, end: int) -> int | None:
    """Return the size of an axis, on the way to another one, that is nearest among those at which a promise holds;
    None if there is none, or none near where the promise is about remainders."""
    start, most = sizes[axis], abs(end - sizes[axis])
    way = 1 if end > start else -1

    def resize_by(distance: int) -> dict[str, int]:
        return {**sizes, axis: start + way * distance}

    first, last = 1, _REACH
    if not promise.has_remainders:
        crossing = _find_crossing(lambda distance: promise.differ(resize_by(distance)), most)
        first, last = (most + 1, most) if crossing is None else (crossing, crossing + 1)  # alike is not less
    fitting = (each for each in range(first, min(last, most) + 1) if promise.holds_at(resize_by(each)))
    distance = next(fitting, None)
    return None if distance is None else start + way * distance


def _find_crossing(differ: Callable[[int], float | None], most: int) -> int | None:
    """Return the least distance at which two sides are alike, or the other one is larger, if their difference
    changes in one direction; None if they are not so at the largest distance."""
    sign = 1 if (differ(0) or 0) > 0 else -1

    def has_crossed(distance: int) -> bool:
        difference = differ(distance)
        return difference is not None and difference * sign <= 0

    if differ(0) == 0:
        return 0
    if not has_crossed(most):
        return None
    low, high = 0, most  # not `bisect`: a size that a version's numbers lead to may be beyond what it counts
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if has_crossed(middle) else (middle + 1, high)
    return low

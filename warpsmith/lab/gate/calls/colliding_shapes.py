"""Shapes that share a weak key with another one, such as the sum of two sizes or a number of few bits: what a
version keeps for a shape is wrong for others."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

from warpsmith.core.definition import DECLARED, Workload, shape_class
from warpsmith.lab.grading import free_axes, odd
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import Arenas, has_room


def take_colliding_workloads(
    file: DefinitionFile, judged: Sequence[Workload], arenas: Arenas, device: str
) -> Iterator[Workload]:
    """Yield shapes that share keys of two sizes, many shapes, and shapes in several types, as far as memory has
    room, each until `input_rules.COLLIDING_SECONDS` are over.

    Args:
        file: the definition.
        judged: workloads, from the smallest of which the other sizes are.
        arenas: memory of the calls.
        device: `cpu` or `cuda`.
    """
    for draw_group in (draw_colliding_workloads, draw_many_workloads, list_in_other_types):
        until = time.monotonic() + input_rules.COLLIDING_SECONDS[device]
        for workload in draw_group(file, judged):
            if time.monotonic() > until:
                break
            if has_room(arenas, file, workload):
                yield workload


def draw_colliding_workloads(file: DefinitionFile, judged: Sequence[Workload]) -> list[Workload]:
    """Draw two shapes, with those that share a key of two sizes with each; none without two axes of callers.

    Such keys are a sum in which the first size has a factor, a product, an exclusive or, the digits one after the
    other, and the sizes in any order. The first shape comes before all others, the second one behind them, since
    what was kept first stays.
    """
    axes, chance = free_axes.drawable_axes(file), random.SystemRandom()
    if len(axes) < 2 or not judged:
        return []
    start = chance.randrange(len(axes) - 1)
    pair = axes[start : start + 2]
    smallest = min(judged, key=file.definition.elements)
    base = odd.resize(smallest, smallest.name, dict.fromkeys(axes, 1))
    groups = []
    for number in range(2):
        first, second = chance.randrange(4, 10, 2), chance.randrange(*input_rules.COLLIDING_SIZES)
        others = _draw_colliding(first, second, chance)
        sizes = [(first, second), *chance.sample(others, len(others))]
        groups.append(
            [
                odd.resize(
                    base, f"colliding-{number}-{first}x{second}", dict(zip(pair, (first, second), strict=True))
                )
                for first, second in sizes
            ]
        )
    return [*groups[0], *reversed(groups[1])]


def draw_many_workloads(file: DefinitionFile, judged: Sequence[Workload]) -> list[Workload]:
    """Draw more tiny shapes than a number of eight bits counts; none without an axis of callers.

    A version that numbers its plans in so few bits takes the plan of another shape then.
    """
    axes, chance = free_axes.drawable_axes(file), random.SystemRandom()
    if not axes or not judged:
        return []
    smallest = min(judged, key=file.definition.elements)
    most = max(2, round(input_rules.MANY_SIZES ** (1 / len(axes))))
    points = {tuple(chance.randint(1, most) for _ in axes) for _ in range(2 * input_rules.MANY_SHAPES)}
    drawn = [
        odd.resize(smallest, f"many-{number}", dict(zip(axes, p, strict=True))) for number, p in enumerate(points)
    ]
    fitting = [workload for workload in drawn if file.definition.has_shapes(workload)]
    return chance.sample(fitting, min(len(fitting), input_rules.MANY_SHAPES))


def list_in_other_types(file: DefinitionFile, judged: Sequence[Workload]) -> list[Workload]:
    """List the shapes of workloads in each of their types, one after the other, in one order of the types and in
    the other one. A version that keeps a plan for a shape takes that of another type then."""
    dtypes = sorted({workload.dtype for workload in judged})
    small = [each for each in judged if file.definition.elements(each) <= input_rules.NEAR_ELEMENTS]
    shapes = {tuple(each.axes.items()): each for each in small if shape_class(each.name) == DECLARED}
    if len(dtypes) < 2:
        return []
    return [
        workload.model_copy(update={"dtype": dtype, "name": f"types-{workload.name}"[:80]})
        for turn, workload in enumerate(shapes.values())
        for dtype in (dtypes if turn % 2 else dtypes[::-1])
    ]


def _draw_colliding(first: int, second: int, chance: random.Random) -> list[tuple[int, int]]:
    """Draw the sizes that share a key with two others, of which the first one is even and has one digit.

    Of a sum, the second sizes differ by half or more: a result of which little is left out may be right by chance.
    """
    digits, factors = f"{first}{second}", input_rules.COLLIDING_FACTORS
    most = [(second - 1) // factor for factor in factors]
    steps = [chance.randint((step + 1) // 2, step) for step in most]
    return [
        *((first + step, second - step * factor) for step, factor in zip(steps, factors, strict=True)),
        (first // 2, second * 2),
        (first ^ 1, second ^ 1),
        (int(digits[:2]), int(digits[2:] or 1) or 1),
        (second, first),
    ]

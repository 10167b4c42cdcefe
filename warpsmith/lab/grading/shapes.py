"""Shapes that a judgement draws by class, beside those near the declared ones: no version can prepare for them.

`edge` has one axis of a single element, `skewed` has one axis much longer and another one much shorter, and
`larger` is beyond the largest judged size. Their numbers vary too, such as the epsilon of a norm.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from math import prod

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.lab.grading import odd, rows
from warpsmith.lab.operator.definition_file import DefinitionFile

CLASSES = ("near", "edge", "skewed", "larger")
"""Classes of drawn shapes; the names of their workloads begin with them."""


def draw_class_workloads(
    file: DefinitionFile, judged: Sequence[Workload], *, interpreted: bool = False, seed: int | None = None
) -> list[Workload]:
    """Draw an edge and a skewed workload that the reference can compute; fewer where axes are bound, and a small
    edge alone where calls are interpreted.

    Args:
        file: the definition.
        interpreted: calls are interpreted, which takes a thousand times as long.
        judged: workloads of the judgement that they are derived from; they have the types that it is about.
        seed: seed of the draw; by default a new one.
    """
    axes, chance = odd.variable_axes(file), random.Random(secrets.randbits(62) if seed is None else seed)
    drawn = []
    most = gate_rules.NEAR_ELEMENTS_INTERPRETED if interpreted else gate_rules.NEAR_ELEMENTS
    for kind in ("edge", "skewed")[: 1 if interpreted else len(axes)] if axes else ():  # a skew needs two axes
        for declared in chance.sample(judged, len(judged)):
            workload = _vary_scalars(
                file, _resize(file, declared, kind, _longest(judged, axes), most, chance), chance
            )
            if odd.reference_holds(file, workload):
                drawn.append(workload)
                break
    return drawn


def draw_larger_workload(
    file: DefinitionFile, judged: Sequence[Workload], most_bytes: int, *, seed: int | None = None
) -> Workload | None:
    """Draw a workload beyond the largest judged one, whose call takes at most `most_bytes`; None without one.

    It is longer along an axis that callers may choose, by a size that no tile divides. Arguments as in
    `draw_class_workloads`.
    """
    chance = random.Random(secrets.randbits(62) if seed is None else seed)
    definition = file.definition
    axes = odd.variable_axes(file) or ([definition.drawn_along] if definition.drawn_along else [])
    largest = max(judged, key=definition.elements)
    for axis in chance.sample(axes, len(axes)):
        size = largest.axes[axis]
        length = int(size * chance.uniform(*gate_rules.LARGER_FACTORS)) // gate_rules.TILE * gate_rules.TILE + 3
        workload = rows.shorten(largest, axis, length).model_copy(
            update={"name": f"larger-{largest.name}"[:80], "set": "full"}
        )
        specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
        if size and sum(definition.nbytes(spec, workload) for spec in specs) <= most_bytes:
            return workload
    return None


def lengthen_beyond(file: DefinitionFile, workload: Workload, axis: str, limit: int) -> Workload:
    """Return the workload so long along an axis that its largest tensor has more than `limit` elements."""
    definition, row = file.definition, rows.shorten(workload, axis, 1)
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    longest = max(prod(definition.shape(spec, row)) for spec in specs if axis in spec.shape)
    length = int(limit * gate_rules.OFFSET_FACTOR) // max(longest, 1) + 1
    name = f"beyond 2^{limit.bit_length() - 1}"
    return rows.shorten(workload, axis, length).model_copy(update={"name": name, "set": "full"})


def shape_class(workload: Workload) -> str:
    """Return the class of a drawn workload by its name, and `declared` for any other."""
    return next((kind for kind in CLASSES if workload.name.startswith(f"{kind}-")), "declared")


def _longest(judged: Sequence[Workload], axes: Sequence[str]) -> dict[str, int]:
    """Return the largest judged size of each axis: an honest sum may lose its precision in a much longer one."""
    return {axis: max(workload.axes[axis] for workload in judged) for axis in axes}


def _resize(
    file: DefinitionFile, workload: Workload, kind: str, longest: dict[str, int], most: int, chance: random.Random
) -> Workload:
    axes, factor = list(longest), gate_rules.SKEW_FACTOR
    small = odd.scale_down(file, workload, axes, most)
    sizes = {name: max(1, small.axes[name] - chance.randrange(gate_rules.TILE)) for name in axes}
    first, *others = chance.sample(axes, len(axes))
    if kind == "edge":
        sizes[first] = 1
    elif others:
        sizes[first] = max(1, min(sizes[first] * factor, longest[first]) - 1)
        sizes[others[0]] = max(1, sizes[others[0]] // factor)
    return odd.resize(small, f"{kind}-{workload.name}"[:80], sizes)


def _vary_scalars(file: DefinitionFile, workload: Workload, chance: random.Random) -> Workload:
    """Give each floating-point number another value: between its own and 1 below 1, and from a half of it above.

    A share stays a share, and an epsilon becomes large enough to show. Zeros, integers and switches stay.
    """
    scalars = file.definition.scalars(workload)
    varied = {name: _vary(value, chance) for name, value in scalars.items() if isinstance(value, float) and value}
    return workload.model_copy(update={"scalars": {**workload.scalars, **varied}})


def _vary(value: float, chance: random.Random) -> float:
    share = chance.uniform(0.5, 1.0)
    size = abs(value) ** share if abs(value) < 1 else abs(value) * share
    return size if value > 0 else -size

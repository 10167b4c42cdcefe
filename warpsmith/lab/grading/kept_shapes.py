"""Shapes that keep some sizes of a judged one, while all others are odd as far as a call has room: a filter of
three by three, say, over an image that no tile divides along either axis. A path for the size that is kept has the
corners of all its tails there."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from functools import partial

from warpsmith.core.definition import Workload
from warpsmith.lab.grading import free_axes, odd
from warpsmith.lab.grading.shapes import KEPT, vary_and_fit
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.promised_sizes import draw_promised_workload, fit_to_promises


def draw_kept_workloads(
    file: DefinitionFile, judged: Sequence[Workload], *, device: str = "cpu", seed: int | None = None
) -> list[Workload]:
    """Draw small workloads that keep a part of the sizes of judged ones: all tiny sizes first, then any by chance.

    Args:
        file: the definition.
        judged: timed workloads, which shapes are derived from.
        device: device on which the reference is tried, `cpu` or `cuda`.
        seed: seed of the draw; by default a new one.
    """
    axes, chance = free_axes.drawable_axes(file), random.Random(secrets.randbits(62) if seed is None else seed)
    if len(axes) < 2:
        return []
    count, drawn = input_rules.KEPT_SHAPES[device], list[Workload]()
    bases = chance.sample(list(judged), len(judged))
    tiny = {(base.dtype, *_tiny_sizes(base, axes).items()): base for base in bases}
    choices = [(base, list(_tiny_sizes(base, axes))) for base in tiny.values()]
    choices = [(base, unchanged) for base, unchanged in choices if 0 < len(unchanged) < len(axes)][: count - 1]
    while len(choices) < count:
        choices.append((chance.choice(bases), chance.sample(axes, chance.randrange(1, len(axes)))))
    for index, (base, unchanged) in enumerate(choices):
        name = f"{KEPT}-{index}-{'-'.join(unchanged)}-{base.name}"[:80]
        small, plain = _keep_sizes(file, base, axes, unchanged, name, chance)
        if workload := vary_and_fit(file, small, plain, chance, device):
            drawn.append(workload)
    return drawn


def _tiny_sizes(workload: Workload, axes: Sequence[str]) -> dict[str, int]:
    return {axis: workload.axes[axis] for axis in axes if workload.axes[axis] < input_rules.TINY_SIZE}


def _keep_sizes(
    file: DefinitionFile,
    base: Workload,
    axes: Sequence[str],
    unchanged: Sequence[str],
    name: str,
    chance: random.Random,
) -> tuple[Workload, Workload]:
    """Return a workload that is shorter along all axes but some, and it with odd sizes along all others.

    Sizes that are kept are shorter too where they alone are too large.
    """
    others = [axis for axis in axes if axis not in unchanged]
    small = odd.halve_longest(file, base, others, input_rules.ROUND_ELEMENTS)
    small = odd.halve_longest(file, small, unchanged, input_rules.NEAR_ELEMENTS)
    small = fit_to_promises(file.definition, small, axes, unchanged)

    def draw() -> Workload:
        sizes = {axis: odd.draw_near_size(small.axes[axis], chance, tile=2, least=3) for axis in others}
        return odd.halve_longest(file, odd.resize(small, name, sizes), axes, _MOST_ELEMENTS)

    shorten = partial(odd.halve_loose, file, axes, _MOST_ELEMENTS)
    return small, draw_promised_workload(file.definition, draw, axes, unchanged, shorten)


_MOST_ELEMENTS = input_rules.NEAR_ROOM * input_rules.NEAR_ELEMENTS

"""Shapes that a judgement draws by class, beside those near the declared ones: no version can prepare for them.

`edge` has one axis of a single element, or is a single row of a judged shape, `skewed` has one axis much longer
and another one much shorter, `square` has one size along all axes, or along one of several and another one, `long`
has one axis longer than any judged size and few elements otherwise, `ragged` has round sizes but for one axis,
`larger` is beyond the largest judged size. Their numbers vary too, such as the epsilon of a norm.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import gcd, prod

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.definition import Workload, shape_class
from warpsmith.lab.grading import free_axes, odd, rows
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.promised_sizes import draw_promised_workload, fit_to_promises
from warpsmith.lab.operator.scalar_values import vary_scalars
from warpsmith.lab.operator.sum_axes import adds_nothing_along

_EVEN = 0.5

_ROW = "all"
"""Stands for all axes but the last: a single row."""

_SQUARE = "0"
"""Number of the tiny shape with the same size along each axis, so that inputs of different axes may be one."""

Sizes = dict[str, int]
"""Axis to its size."""

GUIDED = "guided"
"""Class of the shapes that are drawn at numbers of the version's source."""

KEPT = "kept"
"""Class of the shapes that keep some sizes of a judged one, while all others are odd."""

FAR = "far"
"""Class of the shapes that are far beyond the judged ones along one axis."""


def draw_judged_workloads(
    file: DefinitionFile, timed: Sequence[Workload], *, interpreted: bool, device: str
) -> tuple[list[Workload], list[Workload]]:
    """Return what a judgement checks besides the timed workloads.

    These are the odd ones, declared or derived, with those that are drawn beside them; and the drawn ones between
    and beyond the timed ones, of some of which rows are sampled. Arguments as in `draw_class_workloads`.
    """
    declared = file.definition.select("odd")
    declared = declared or odd.derive_odd_workloads(file)
    near = odd.draw_near_workloads(file, interpreted=interpreted, device=device)
    small = [*declared, *near, *draw_class_workloads(file, timed, interpreted=interpreted, device=device)]
    if interpreted:
        return small, []
    larger = draw_larger_workload(file, timed, input_rules.LARGER_BYTES[device])
    between = (draw_close_workload(file, timed), draw_middle_workload(file, timed))
    far = draw_far_workloads(file, timed) if device == "cpu" else []
    others = [each for each in (*between, larger) if each and file.definition.has_shapes(each)]
    return small, [*others, *far]


def draw_class_workloads(
    file: DefinitionFile,
    judged: Sequence[Workload],
    *,
    interpreted: bool = False,
    seed: int | None = None,
    device: str = "cpu",
) -> list[Workload]:
    """Draw some edge, a skewed, a square, some round and tiny workloads and one that is long along each axis; the
    reference can compute them; fewer where axes are bound, and a small edge alone where calls are interpreted.

    Args:
        file: the definition.
        interpreted: calls are interpreted, which takes a thousand times as long.
        judged: workloads of the judgement that they are derived from; they have the types that it is about.
        seed: seed of the draw; by default a new one.
        device: device on which the reference is tried, `cpu` or `cuda`.
    """
    axes, chance = free_axes.drawable_axes(file), random.Random(secrets.randbits(62) if seed is None else seed)
    if not axes:
        return []
    longest, most = _longest(judged, axes), input_rules.NEAR_ELEMENTS
    edges = [f"edge-{axis}" for axis in chance.sample(axes, min(len(axes), input_rules.EDGE_SHAPES))]
    row_axis = None if interpreted else rows.find_row_axis(file)  # it runs the reference
    edges += [f"edge-{_ROW}"] * (len(axes) > 2)
    rounds = (f"round-{step}" for step in input_rules.ROUND_SIZES if step <= max(longest.values()))
    powers = [f"round-power-{index}" for index in range(input_rules.POWER_SHAPES)]
    kinds = [*edges, *rounds, *powers, *(f"tiny-{index}" for index in range(input_rules.TINY_SHAPES))]
    kinds += [f"long-{axis}" for axis in axes] + ["skewed", "square"] * (len(axes) > 1)
    kinds += [
        f"long-{axis}-{step}" for axis in axes for step in input_rules.LONG_STEPS if 2 * step <= longest[axis]
    ]
    kinds += [f"square-{axis}" for axis in axes] * (len(axes) > 2)
    kinds += [f"ragged-{axis}" for axis in axes] * (len(axes) > 1)
    if interpreted:
        kinds, most = ["edge"], input_rules.NEAR_ELEMENTS_INTERPRETED
    factors = {axis: _factors(file, axis, row_axis) for axis in axes}
    drawn = []
    if row_axis in axes and len(axes) > 1:
        singles = [_shorten_to_single(file, each, row_axis) for each in chance.sample(judged, len(judged))]
        further = [axis for axis in axes if axis != row_axis]
        singles = [fit_to_promises(file.definition, each, further) for each in singles]
        by_sizes = {tuple(each.axes.values()): each for each in singles if file.definition.elements(each) <= most}
        fitting = (vary_and_fit(file, each, each, chance, device) for each in by_sizes.values())
        drawn += list(filter(None, fitting))[: input_rules.SINGLE_ROWS]
    sources = [(kind, chance.sample(judged, len(judged))) for kind in kinds]
    others = [] if interpreted else _other_dtypes(file, judged)
    steps = _list_round_steps(max(longest.values()))
    for other in others:  # several tails, since a wrong one may be right for some lengths
        tails = (*(f"tiny-{index}" for index in range(1, 4)), *(f"ragged-{axis}" for axis in axes))
        sources += [(kind, [other]) for kind in ("edge", *tails, f"round-{chance.choice(steps)}")]
    for kind, origins in sources:
        for declared in origins:
            small = odd.scale_down(
                file, declared, axes, min(most, input_rules.ROUND_ELEMENTS) if kind.startswith("round") else most
            )
            plain = _draw_of_class(file, kind, declared, small, longest, factors, chance)
            if workload := vary_and_fit(file, small, plain, chance, device):
                drawn.append(workload)
                break
    return drawn


def _shorten_to_single(file: DefinitionFile, judged: Workload, row_axis: str) -> Workload:
    """Return a judged workload with a single row: callers that decode have its other sizes as they are."""
    workload = rows.shorten(judged, row_axis, 1)
    return workload.model_copy(update={"name": f"edge-single-{judged.name}"[:80], "set": "odd"})


def vary_and_fit(
    file: DefinitionFile, base: Workload, plain: Workload, chance: random.Random, device: str
) -> Workload | None:
    """Return a drawn workload with other numbers if the reference holds there; None otherwise. Where a definition
    draws its own inputs, its own numbers are tried too."""
    tries = (vary_scalars(file, plain, chance), *([plain] if file.inputs else []))
    return next(filter(None, (free_axes.fit_workload(file, base, each, device) for each in tries)), None)


def draw_larger_workload(
    file: DefinitionFile, judged: Sequence[Workload], most_bytes: int, *, seed: int | None = None
) -> Workload | None:
    """Draw a workload beyond the largest judged one, whose call takes at most `most_bytes`; None without one.

    It is longer along an axis that callers may choose, by a size that no tile divides. Arguments as in
    `draw_class_workloads`.
    """
    chance = random.Random(secrets.randbits(62) if seed is None else seed)
    definition = file.definition
    axes = _free_axes(file)
    largest = chance.choice(_largest_by_dtype(file, judged))
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    room = most_bytes / max(sum(definition.nbytes(spec, largest) for spec in specs), 1)
    row_axis = rows.find_row_axis(file) if room > input_rules.LARGER_FACTORS[0] else None
    for axis in chance.sample(axes, len(axes)) if room > input_rules.LARGER_FACTORS[0] else ():
        least, most = _factors(file, axis, row_axis)
        if axis == row_axis or not _list_sums(file):
            most = max(most, input_rules.FAR_ELEMENTS / max(definition.elements(largest), 1))
        length = int(largest.axes[axis] * least * (min(most, room) / least) ** chance.random())
        length = length // input_rules.TILE * input_rules.TILE + chance.randrange(1, input_rules.TILE)
        workload = rows.shorten(largest, axis, length).model_copy(
            update={"name": f"larger-{largest.name}"[:80], "set": "full"}
        )
        workload = fit_to_promises(definition, workload, axes, [axis])
        is_possible = 0 < largest.axes[axis] < workload.axes[axis] and definition.has_shapes(workload)
        if is_possible and sum(definition.nbytes(spec, workload) for spec in specs) <= most_bytes:
            return vary_scalars(file, workload, chance)
    return None


def draw_far_workloads(
    file: DefinitionFile, judged: Sequence[Workload], *, seed: int | None = None
) -> list[Workload]:
    """Draw workloads for each axis that callers may choose freely, with about a million of it and little else, and
    with so many that 15 or 16 bits are too few.

    Axes of whose sums the definition does not say how long they are have none. Where no result is rounded, it is
    so long that a float no longer counts it, as far as a call has room. Nothing is computed: a call may be too
    slow, or too much for the reference. Other arguments as in `draw_class_workloads`.
    """
    axes, chance = free_axes.drawable_axes(file), random.Random(secrets.randbits(62) if seed is None else seed)
    row_axis = rows.find_row_axis(file) if axes else None
    is_counted = not _list_sums(file) and file.inputs is None
    lengths = (*((input_rules.COUNTED_LENGTHS,) if is_counted else ()), input_rules.FAR_LENGTHS)
    drawn = []
    for axis, most in (_longest(judged, axes) if axes else {}).items():
        base = chance.choice(list(judged))
        is_free = (
            not file.definition.work(base).flops
            or _factors(file, axis, row_axis)[1] == input_rules.LARGER_FACTORS[2]
        )
        for several in (lengths, *((each,) for each in input_rules.SHORT_LENGTHS)) if is_free else ():
            for least, end in several:
                length = chance.randrange(least, end)
                room = max(input_rules.LONG_ELEMENTS, _count_longer_tensors(file, axis) * (length + length // 4))
                workload = _lengthen(file, base, axes, axis, length, room, chance)
                fits = file.definition.has_shapes(workload) and file.definition.elements(workload) <= room
                if most < least and fits:
                    drawn.append(workload)
                    break
    return drawn


def _count_longer_tensors(file: DefinitionFile, axis: str) -> int:
    """Return the number of tensors that an axis makes longer."""
    definition = file.definition
    return sum(axis in spec.shape for spec in (*definition.tensor_inputs.values(), *definition.outputs.values()))


def _lengthen(
    file: DefinitionFile,
    base: Workload,
    axes: Sequence[str],
    axis: str,
    length: int,
    room: int,
    chance: random.Random,
) -> Workload:
    """Return a workload of a length along an axis, and of so little else that it has `room` elements if it can."""
    name = f"{FAR}-{axis}-2^{length.bit_length() - 1}-{base.name}"[:80]
    others = [other for other in axes if other != axis]

    def draw() -> Workload:
        sizes = {other: chance.randrange(1, input_rules.FAR_WIDTH) for other in others}
        plain = odd.resize(base, name, {**sizes, axis: length})
        return odd.halve_longest(file, plain, others, room)

    shorten = partial(odd.halve_loose, file, others, room)
    plain = draw_promised_workload(file.definition, draw, axes, [axis], shorten)
    return vary_scalars(file, plain.model_copy(update={"set": "full"}), chance)


def draw_close_workload(
    file: DefinitionFile, judged: Sequence[Workload], *, seed: int | None = None
) -> Workload | None:
    """Draw a workload whose sizes are up to `NEAR_DISTANCE` from those of a judged one that is too large for the
    other near ones; None without one. Arguments as in `draw_class_workloads`."""
    chance = random.Random(secrets.randbits(62) if seed is None else seed)
    definition, axes = file.definition, free_axes.drawable_axes(file)
    large = [workload for workload in judged if definition.elements(workload) > input_rules.NEAR_ELEMENTS]
    if not axes or not large:
        return None
    base = chance.choice(large)
    name = f"near-{base.name}-unscaled"[:80]
    close = draw_promised_workload(definition, partial(odd.resize_near, base, name, axes, chance), axes)
    return vary_scalars(file, close.model_copy(update={"set": "full"}), chance)


def draw_middle_workload(
    file: DefinitionFile, judged: Sequence[Workload], *, seed: int | None = None
) -> Workload | None:
    """Draw a workload between the small shapes and the largest judged one of a dtype; None without one.

    Where callers promise in words what they pass, it is a size between those of two judged workloads, divided by
    the common divisor of all of them. Arguments as in `draw_class_workloads`.
    """
    chance = random.Random(secrets.randbits(62) if seed is None else seed)
    definition = file.definition
    largest = chance.choice(_largest_by_dtype(file, judged))
    if definition.constraints and file.inputs is None:
        axes = [name for name, size in definition.axes.items() if isinstance(size, str)]
    else:
        axes = _free_axes(file)
    for axis in chance.sample(axes, len(axes)):
        sizes, step = {workload.axes[axis] for workload in judged}, 1
        least = largest.axes[axis] * input_rules.NEAR_ELEMENTS // max(definition.elements(largest), 1)
        if definition.constraints:
            step, least = gcd(*sizes), min(sizes)
        most = largest.axes[axis]
        if least and most - least > 2 * step:
            length = int(least * (most / least) ** chance.random()) // step * step
            if least < length < most and length not in sizes:
                changes = {"name": f"middle-{largest.name}"[:80], "set": "full"}
                workload = rows.shorten(largest, axis, length).model_copy(update=changes)
                workload = fit_to_promises(definition, workload, free_axes.drawable_axes(file), [axis])
                return vary_scalars(file, workload, chance)
    return None


def find_axis_to_shorten(file: DefinitionFile, workload: Workload, length: Callable[[int], int]) -> str | None:
    """Return the longest axis that callers choose and that may have that length instead; None if no axis may: a
    promise such as `least <= context` may forbid it, and an axis that is no size of a tensor shortens nothing."""
    definition = file.definition
    for axis in sorted(free_axes.drawable_axes(file), key=lambda name: -workload.axes[name]):
        part = rows.shorten(workload, axis, length(workload.axes[axis]))
        is_part = definition.has_shapes(part) and definition.elements(part) != definition.elements(workload)
        if part.axes[axis] and is_part:
            return axis
    return None


def take_part(file: DefinitionFile, workload: Workload, divisor: int) -> Workload | None:
    """Return the part of a guided or far workload by which the time of its calls is guessed; None of another one,
    or if its tensors have no such part.

    It is shorter by the divisor along the longest axis that may be.
    """
    if shape_class(workload.name) not in (GUIDED, FAR):
        return None
    axis = find_axis_to_shorten(file, workload, lambda length: length // divisor)
    return rows.shorten(workload, axis, workload.axes[axis] // divisor) if axis else None


def lengthen_beyond(file: DefinitionFile, workload: Workload, axis: str, limit: int) -> Workload:
    """Return the workload so long along an axis that its largest tensor has more than `limit` elements."""
    definition, row = file.definition, rows.shorten(workload, axis, 1)
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    longest = max(prod(definition.shape(spec, row)) for spec in specs if axis in spec.shape)
    length = int(limit * input_rules.OFFSET_FACTOR) // max(longest, 1) + 1
    name = f"beyond 2^{limit.bit_length() - 1}"
    longer = rows.shorten(workload, axis, length).model_copy(update={"name": name, "set": "full"})
    return fit_to_promises(definition, longer, [axis], [axis])


def _free_axes(file: DefinitionFile) -> list[str]:
    """Return the axes that may get another length: those of any size, or the one that inputs are drawn along."""
    along = file.definition.drawn_along
    return free_axes.drawable_axes(file) or ([along] if along else [])


def _largest_by_dtype(file: DefinitionFile, judged: Sequence[Workload]) -> list[Workload]:
    """Return the largest judged workload of each dtype: a kernel may take another path for each."""
    by_size = sorted(judged, key=file.definition.elements)
    return list({workload.dtype: workload for workload in by_size}.values())


def _other_dtypes(file: DefinitionFile, judged: Sequence[Workload]) -> list[Workload]:
    """Return the largest odd workload of each dtype that no timed one has."""
    dtypes = {workload.dtype for workload in judged}
    others = [workload for workload in file.definition.select("odd") if workload.dtype not in dtypes]
    return _largest_by_dtype(file, others)


def _longest(judged: Sequence[Workload], axes: Sequence[str]) -> Sizes:
    """Return the largest judged size of each axis: an honest sum may lose its precision in a much longer one."""
    return {axis: max(workload.axes[axis] for workload in judged) for axis in axes}


def _draw_sizes(
    kind: str,
    small: Workload,
    longest: Sizes,
    factors: Mapping[str, tuple[float, float]],
    chance: random.Random,
) -> Sizes:
    """Return sizes of a class; `long` and `ragged` name their axis, and `edge` may. `long` may name a step."""
    sizes = {axis: odd.draw_near_size(small.axes[axis], chance) for axis in longest}
    tiny = {axis: chance.randrange(2, input_rules.TINY_SIZE) for axis in longest}
    first, *others = chance.sample(list(longest), len(longest))
    kind, _, along = kind.partition("-")
    match kind:
        case "edge" if along == _ROW:
            *short, last = longest
            return {**dict.fromkeys(short, 1), last: sizes[last]}
        case "edge":  # a single row of callers has a round length as often as another one
            is_round = chance.random() < _EVEN
            if is_round:
                sizes = {axis: _draw_round_size(small.axes[axis], chance) for axis in longest}
            return {**sizes, along or first: 1}
        case "round" if along.startswith("power"):
            return {axis: _draw_power(most, int(along[-1]), chance) for axis, most in longest.items()}
        case "round":
            return _round_sizes(small, longest, int(along), chance) or _round_axis(
                tiny, longest, int(along), chance
            )
        case "ragged":
            return {axis: sizes[axis] if axis == along else _round_down(small.axes[axis]) for axis in longest}
        case "tiny":
            return dict.fromkeys(longest, tiny[first]) if along == _SQUARE else tiny
        case "square" if along:
            return {**sizes, chance.choice([axis for axis in longest if axis != along]): sizes[along]}
        case "square":
            most = min(max(longest.values()), int(input_rules.ROUND_ELEMENTS ** (1 / len(longest))))
            return dict.fromkeys(longest, chance.randint(min(input_rules.TINY_SIZE, most), most))
        case "long" if "-" in along:
            axis, _, step = along.partition("-")
            most = int(input_rules.LARGER_FACTORS[1] * longest[axis])  # the factor that every sum is drawn with
            return {**tiny, axis: chance.choice(_odd_multiples(3, int(step), most))}
        case "long":
            length = int(longest[along] * chance.uniform(*factors[along])) + chance.randrange(1, input_rules.TILE)
            return {**tiny, along: length}
        case _:
            factor = input_rules.SKEW_FACTOR
            longer = max(1, min(sizes[first] * factor, longest[first]) - 1)
            return {**sizes, first: longer, others[0]: max(1, sizes[others[0]] // factor)}


def _draw_of_class(
    file: DefinitionFile,
    kind: str,
    declared: Workload,
    small: Workload,
    longest: Sizes,
    factors: Mapping[str, tuple[float, float]],
    chance: random.Random,
) -> Workload:
    """Draw a workload of a class, with shorter axes if its tensors are too large: axes multiply, and some are
    bound to be long. The axis that a `long` one is about stays."""
    axes, (kind_of, along, *_) = list(longest), [*kind.split("-"), ""]
    about = axes[:-1] if along == _ROW else [along] if along in axes else []
    most, shortened = input_rules.NEAR_ROOM * input_rules.NEAR_ELEMENTS, axes
    if kind_of == "long":
        most, shortened = input_rules.LONG_ELEMENTS, [axis for axis in axes if axis != along]

    def draw() -> Workload:
        sizes = _draw_sizes(kind, small, longest, factors, chance)
        plain = odd.resize(small, f"{kind}-{declared.name}"[:80], sizes)
        return odd.halve_longest(file, plain, shortened, most)

    shorten = partial(odd.halve_loose, file, shortened, most)
    return draw_promised_workload(file.definition, draw, axes, about, shorten)


def _draw_power(most: int, number: int, chance: random.Random) -> int:
    """Draw a power of two up to a size, above a tile where there is one, with an exponent as odd or even as a
    number where there is one."""
    top = max(most, 1).bit_length() - 1
    exponents = range(min(input_rules.TILE.bit_length(), top), top + 1)
    alike = [exponent for exponent in exponents if exponent % 2 == number % 2]
    return 1 << chance.choice(alike or exponents)


def _round_sizes(small: Workload, longest: Sizes, step: int, chance: random.Random) -> Sizes:
    """Return odd multiples of a step, which leave a tail of half of a tile of twice the step: more than one tile,
    and up to a size and its double, along each axis that has room; empty if none has."""
    room = {axis: _odd_multiples(3, step, min(most, 2 * small.axes[axis])) for axis, most in longest.items()}
    sizes = {axis: chance.choice(fitting) for axis, fitting in room.items() if fitting}
    return {**small.axes, **sizes} if sizes else {}


def _list_round_steps(size: int) -> list[int]:
    """List the steps of `ROUND_SIZES` up to a size; the size itself below all of them."""
    return [step for step in input_rules.ROUND_SIZES if step <= size] or [max(size, 1)]


def _round_down(size: int) -> int:
    """Return the largest multiple of the largest step up to a size."""
    step = max(_list_round_steps(size))
    return size // step * step


def _draw_round_size(size: int, chance: random.Random) -> int:
    """Return the largest odd multiple of a step up to a size."""
    step = chance.choice(_list_round_steps(size))
    return max(0, (size // step - 1) // 2 * 2 * step + step)


def _round_axis(tiny: Sizes, longest: Sizes, step: int, chance: random.Random) -> Sizes:
    """Return tiny sizes, and an odd multiple of a step along an axis that has room for one; there is one."""
    axis = chance.choice([axis for axis, most in longest.items() if most >= step])
    return {**tiny, axis: chance.choice(_odd_multiples(1, step, min(longest[axis], 8 * step)))}


def _odd_multiples(first: int, step: int, most: int) -> range:
    """Return the odd multiples of a step, from `first` times the step up to a size."""
    return range(first * step, most + 1, 2 * step)


def _factors(file: DefinitionFile, axis: str, row_axis: str | None) -> tuple[float, float]:
    """Return the least and the largest factor of a size along an axis over the largest judged one."""
    least, usual, most = input_rules.LARGER_FACTORS
    states_length = all(axis in re.findall(r"\w+", text) for text in _list_sums(file))
    return least, most if axis == row_axis or states_length or adds_nothing_along(file, axis) else usual


def _list_sums(file: DefinitionFile) -> list[str]:
    """Return the reduction length of each output that is rounded."""
    definition = file.definition
    return [
        definition.tolerance_of(name).reduction
        for name, spec in definition.outputs.items()
        if is_floating(definition.dtype(spec, definition.workloads[0]))
    ]

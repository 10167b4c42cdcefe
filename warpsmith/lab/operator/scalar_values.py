"""Numbers of a call: values that are drawn for them, and those that a kernel may treat by themselves."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.core.definition import Definition, Workload
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs

if TYPE_CHECKING:
    import torch

_EVEN = 0.5

_STEPS = (-1, 0, 1)
"""Distances from a size, at and next to which a kernel may take another path."""

Scalars = Mapping[str, float | int | bool]
"""Numbers of a call by name."""


class SpecialScalars(NamedTuple):
    """Numbers of a call that a kernel may treat by themselves."""

    kind: tuple[str, ...]
    """Name of the case, the same at any sizes of the call."""
    scalars: Scalars
    """All numbers of the call."""


def list_special_scalars(file: DefinitionFile, workload: Workload) -> list[SpecialScalars]:
    """Return the numbers of a call that are special where its sizes are those of a workload.

    Two numbers and more are all 0, 1 or -1, or all the least or the largest that they may be, as far as their
    ranges go, and two of them are two of these, or add up to 1. A share is 0 where results stay finite. An
    integer, or the sum of two, is the size of an axis, one less or one more.
    """
    definition, usual = file.definition, file.definition.scalars(workload)
    ranges = {name: definition.scalar_range(name) for name in _free_scalars(file)}
    special: list[SpecialScalars] = []
    choices: dict[str, Callable[[float, float], float]] = {
        "0": lambda _least, _most: 0, "1": lambda _least, _most: 1, "-1": lambda _least, _most: -1,
        "least": lambda least, _most: least, "largest": lambda _least, most: most,
    }  # fmt: skip
    for kind, choose in choices.items():
        chosen = {name: choose(*limits) for name, limits in ranges.items()}
        fitting = {name: type(usual[name])(value) for name, value in chosen.items() if _holds(ranges[name], value)}
        if len(fitting) > 1:
            special.append(SpecialScalars((kind,), {**usual, **fitting}))
    values = {
        name: sorted({type(usual[name])(choose(*limits)) for choose in choices.values()})
        for name, limits in ranges.items()
    }
    special += [
        SpecialScalars((f"{first} {left:g}", f"{second} {right:g}"), {**usual, first: left, second: right})
        for first, second in itertools.combinations(ranges, 2)
        for left, right in itertools.product(values[first], values[second])
        if left != right and _holds(ranges[first], left) and _holds(ranges[second], right)
    ]
    special += _list_shares(file, usual, ranges)
    integers = [name for name in ranges if isinstance(usual[name], int)]
    targets = [(axis, size, step) for axis, size in definition.sizes(workload).items() for step in _STEPS]
    for name in integers:
        special += [
            SpecialScalars((name, axis, str(step)), {**usual, name: size + step})
            for axis, size, step in targets
            if _holds(ranges[name], size + step)
        ]
    for first, second in itertools.permutations(integers, 2):
        special += [
            SpecialScalars((f"{first} + {second}", axis, str(step)), {**usual, second: rest})
            for axis, size, step in targets
            if _holds(ranges[second], rest := int(size + step - usual[first]))
        ]
    return special


def _list_shares(
    file: DefinitionFile, usual: Scalars, ranges: Mapping[str, tuple[float, float]]
) -> list[SpecialScalars]:
    """Return numbers of which two add up to 1, as factors of an average do, and those of which a share, such as a
    momentum of 0.9, is 0."""
    special = []
    names = [name for name in ranges if isinstance(usual[name], float)]
    for first, second in itertools.combinations(names, 2):
        (least, most), (other_least, other_most) = ranges[first], ranges[second]
        low, high = max(least, 1 - other_most), min(most, 1 - other_least)
        if low < high:
            share = (low + high) / 2
            special.append(SpecialScalars((first, second, "1"), {**usual, first: share, second: 1 - share}))
    for name in names:
        is_open = file.definition.scalar_inputs[name].between is None
        cleared = {**usual, name: 0.0}
        if is_open and input_rules.LEAST_SHARE <= usual[name] < 1 and _stays_finite(file, cleared):
            special.append(SpecialScalars((name, "0"), cleared))
    return special


def list_constant_integers(definition: Definition) -> dict[str, int]:
    """Return the integers of a call that have one value in a judgement, since no `between` gives others."""
    specs = definition.free_scalars
    open_ones = [name for name, spec in specs.items() if spec.type == "int" and spec.between is None]
    ranges = {name: definition.scalar_range(name) for name in open_ones}
    return {name: int(least) for name, (least, most) in ranges.items() if least == most}


def list_nearby_scalars(file: DefinitionFile, workload: Workload) -> list[Scalars]:
    """Return the numbers of a call, then others that a table takes for the same which knows them by their whole
    part or in few bits; none without real numbers."""
    usual = file.definition.scalars(workload)
    ranges = {name: file.definition.scalar_range(name) for name in usual if isinstance(usual[name], float)}
    nearby: list[Scalars] = [usual] if ranges else []
    for bits in input_rules.NEARBY_BITS if ranges else ():
        moved = {name: usual[name] * (1 + 2.0**-bits) for name in ranges}
        fitting = {name: value for name, value in moved.items() if _holds(ranges[name], value)}
        nearby += [{**usual, **fitting}] if fitting else []
    return nearby


def _free_scalars(file: DefinitionFile) -> list[str]:
    """Return the numbers, without switches, that vary; integers of a definition that draws its own inputs do not
    unless it says what they are between, since they may belong to its axes."""
    return [
        name
        for name, spec in file.definition.free_scalars.items()
        if spec.type != "bool" and not isinstance(spec.value, bool)
        if file.inputs is None or spec.between is not None or not isinstance(spec.value, int)
    ]


def _holds(limits: tuple[float, float], value: float) -> bool:
    return limits[0] <= value <= limits[1]


def vary_scalars(file: DefinitionFile, workload: Workload, chance: random.Random) -> Workload:
    """Give each number another value of its range, by chance a limit of it, and by chance two of them the same; a
    switch is thrown by chance.

    Integers of a definition that draws its own inputs stay unless it says what they are between, since they may
    belong to its axes.
    """
    varied: dict[str, float | int | bool] = {}
    numbers = file.definition.scalars(workload)
    for name, spec in file.definition.free_scalars.items():
        value = numbers[name]
        least, most = file.definition.scalar_range(name)
        if isinstance(value, bool):
            varied[name] = chance.random() < _EVEN
        elif isinstance(value, int):
            if file.inputs is not None and spec.between is None:
                continue
            special = _draw_special_number(int(least), int(most), chance)
            if special is None:
                special = _draw_integer(file, workload, int(least), int(most), chance)
            varied[name] = min(max(round(special), int(least)), int(most))  # floats are too coarse for some
        else:
            varied[name] = _draw_between(least, most, chance)
    if chance.random() < input_rules.ALIKE_NUMBERS:
        _make_two_alike(file, varied, chance)
    return workload.model_copy(update={"scalars": {**workload.scalars, **varied}})


def _make_two_alike(file: DefinitionFile, varied: dict[str, float | int | bool], chance: random.Random) -> None:
    """Give a number the value of another one of its type, drawn by chance, if its range holds that and results are
    as finite then as they are with the usual numbers: honest versions differ where one divides by nothing."""
    numbers = [name for name, value in varied.items() if not isinstance(value, bool)]
    if len(numbers) < 2:
        return
    first, second = chance.sample(numbers, 2)
    if type(varied[first]) is type(varied[second]) and _holds(file.definition.scalar_range(second), varied[first]):
        alike = {**varied, second: varied[first]}
        if _stays_finite(file, alike):
            varied[second] = varied[first]


def _stays_finite(file: DefinitionFile, scalars: Scalars) -> bool:
    """Return True if the reference's results are finite where they are with the usual numbers, at the smallest
    workload."""
    usual = min(file.definition.workloads, key=file.definition.elements)
    varied = usual.model_copy(update={"scalars": {**usual.scalars, **scalars}})
    tensors = Inputs(file, usual, 1, "cpu").draw()

    def find_finite(workload: Workload) -> list[torch.Tensor]:
        results = file.outputs(file.reference(*file.arguments(workload, tensors)))
        return [value.double().isfinite() for value in results.values()]

    try:
        places = zip(find_finite(usual), find_finite(varied), strict=True)
        return all(bool((after | ~before).all()) for before, after in places)
    except Exception:  # a reference may refuse such numbers
        return False


def _draw_special_number(least: float, most: float, chance: random.Random) -> float | None:
    """Draw a limit of a range, or one of the numbers in it that many kernels treat by themselves; mostly None."""
    if chance.random() >= input_rules.LIMIT_SHARE:
        return None
    near_one = 1 - 2.0 ** -chance.randint(1, input_rules.NEAR_ONE_BITS)
    special = (number for number in (0.0, 1.0, -1.0, near_one) if least <= number <= most)
    return chance.choice((least, most, *special))


def _draw_between(least: float, most: float, chance: random.Random) -> float:
    """Draw a number, by its logarithm where both limits have one sign."""
    if (special := _draw_special_number(least, most, chance)) is not None:
        return special
    if chance.random() < input_rules.WHOLE_SHARE and (numbers := _list_whole_numbers(least, most)):
        return chance.choice(numbers)
    if least * most <= 0:
        if least < most and chance.random() < input_rules.WIDE_NUMBERS:
            return _draw_near_end(least, most, (most - least) / input_rules.WIDE_SPAN, chance)
        return chance.uniform(least, most)
    return least * math.exp(math.log(most / least) * chance.random())


def _list_whole_numbers(least: float, most: float) -> list[float]:
    """List the small whole numbers of a range, and those that are a half more."""
    ends = (max(least, -input_rules.WHOLE_NUMBERS), min(most, input_rules.WHOLE_NUMBERS))
    return [number / 2 for number in range(math.ceil(2 * ends[0]), math.floor(2 * ends[1]) + 1)]


def _draw_near_end(least: float, most: float, step: float, chance: random.Random) -> float:
    """Draw a number at a distance from zero, or from an end of its range, that is drawn by its logarithm from a
    step on; it may be the end itself."""
    origin = chance.choice((least, most, *((0.0, 0.0) if least < 0 < most else ())))
    direction = chance.choice([way for way in (-1, 1) if least <= origin + way * step <= most] or [0])
    room = (most - origin if direction > 0 else origin - least) / step
    distance = float((room + 1) ** chance.random() - 1)
    return float(origin + direction * step * distance)


def _draw_integer(file: DefinitionFile, workload: Workload, least: int, most: int, chance: random.Random) -> float:
    """Draw an integer: a size or its neighbour, any of its range, one near an end, or one up to a size, as widths
    and counts are."""
    sizes = {size + step for size in file.definition.sizes(workload).values() for step in _STEPS}
    if (fitting := [size for size in sorted(sizes) if least <= size <= most]) and (
        chance.random() < input_rules.SIZE_SHARE
    ):
        return chance.choice(fitting)
    if chance.random() >= input_rules.WIDE_NUMBERS:
        return chance.randint(least, most)
    size = max(file.definition.sizes(workload).values(), default=0)
    if least < size < most and chance.random() < _EVEN:
        return chance.randint(least, size)
    return _draw_near_end(least, most, 1, chance)

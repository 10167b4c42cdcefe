"""Inputs that hold numbers of the version's own source, or of the call: at each it may take another path."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.core.definition import Workload
from warpsmith.lab.grading import reorder
from warpsmith.lab.grading.correctness import Truth, as_bits, reference_outputs
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.tensor_bytes import computable
from warpsmith.lab.operator.values.distributions import REPLACEABLE

if TYPE_CHECKING:
    import torch

_FAR = 1 << 20
"""Distance of seeds whose draws no sum shares."""


def plantable_inputs(file: DefinitionFile, workload: Workload, inputs: Inputs) -> list[str]:
    """Return the inputs that may hold any number of their range, each by itself; none where the definition draws
    its own."""
    if file.inputs is not None:
        return []
    return [
        name
        for name, spec in file.definition.tensor_inputs.items()
        if (
            spec.distribution in REPLACEABLE
            if is_floating(file.definition.dtype(spec, workload))
            else inputs.integer_limits(name) is not None
        )
    ]


def decides(
    file: DefinitionFile,
    workload: Workload,
    inputs: dict[str, torch.Tensor],
    truth: Truth,
    outputs: dict[str, torch.Tensor],
    seed: int,
) -> bool:
    """Return True if a wrong element is farther off than noise in the sums of the reference moves it, or none is
    wrong by itself.

    Between two scores that differ by a rounding an honest softmax may choose the other one: where only two terms
    of a sum are large, the reference is right in every order all the same.
    """
    shifts: dict[str, torch.Tensor] = {}
    for number in range(input_rules.NOISY_CALLS):
        with reorder.sums_with_noise(seed + number * _FAR, input_rules.NOISE_OF_SUMS):
            results = reference_outputs(file, workload, inputs)
        for name, result in results.items():
            shift = _distances(result, truth.values[name])
            shifts[name] = shift.maximum(shifts.get(name, shift))
    has_wrong = False
    for name, output in outputs.items():
        error, bound = _distances(output, truth.values[name]), truth.bounds[name]
        is_wrong = error > (0 if bound is None else bound)
        has_wrong |= bool(is_wrong.any())
        if bool((is_wrong & (error > input_rules.NOISE_ROOM * shifts[name])).any()):
            return True
    return not has_wrong


def _distances(values: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Return how far elements are from exact ones, in float64: infinity for NaN, zero for equal infinities."""
    wide = computable(values).double()
    distances = (wide - exact.double()).abs().nan_to_num(nan=math.inf, posinf=math.inf)
    return distances.masked_fill(wide == exact.double(), 0)


def plant_numbers(
    drawn: dict[str, torch.Tensor],
    numbers: Sequence[float],
    names: Collection[str],
    inputs: Inputs,
    chance: random.Random,
) -> dict[str, torch.Tensor]:
    """Return inputs in which some elements are numbers of the source, or next to them, at random places.

    In floating-point inputs these are each number, both of its neighbours, a number beyond it by up to a factor of
    two and its root, with both signs, as far as the type goes. By chance a row has at most one of them, which
    others would hide in a sum, or every fourth element is one. Integers stay in their range.

    Args:
        drawn: input by name.
        numbers: the numbers.
        names: inputs that may hold them.
        inputs: the source of the inputs, which knows their ranges.
        chance: source of randomness.
    """

    planted = dict(drawn)
    for name in names:
        tensor = drawn[name]
        dtype = str(tensor.dtype).removeprefix("torch.")
        if tensor.dtype.is_floating_point:
            values = _near_numbers(numbers, dtype, chance)
        else:
            low, high = inputs.integer_limits(name) or (0, 0)
            near = {step + int(number) for number in numbers if number == int(number) for step in (-1, 0, 1)}
            values = sorted(value for each in near for value in (each, -each) if low <= value < high)
        planted[name] = _plant(tensor, values, chance)
    return planted


def _plant(tensor: torch.Tensor, values: Sequence[float], chance: random.Random) -> torch.Tensor:
    """Return the tensor with some of the values at random places."""
    import torch

    if not values or not tensor.numel():
        return tensor
    generator = torch.Generator(tensor.device).manual_seed(chance.getrandbits(62))
    places = _draw_places(tensor.shape, generator, chance)
    # Types of 8 bits cannot be made of lists, nor indexed on every device; integers of their width can.
    wide = torch.tensor(values, dtype=torch.float64 if tensor.dtype.is_floating_point else torch.int64)
    bits, chosen = as_bits(tensor).clone(), as_bits(wide.to(tensor.dtype)).to(tensor.device)
    count = (int(places.sum()),)
    bits[places] = chosen[torch.randint(len(values), count, generator=generator, device=tensor.device)]
    return bits.view(tensor.dtype)


def round_scalars(file: DefinitionFile, workload: Workload) -> dict[str, float]:
    """Return the floating-point numbers of a call, rounded to what its inputs and float32 hold exactly.

    Whether a value is equal to one is then no choice of rounding. A number that leaves its range is left out.
    """
    import torch

    definition = file.definition
    dtypes = {definition.dtype(spec, workload) for spec in definition.tensor_inputs.values()}
    coarsest = max(("float32", *filter(is_floating, dtypes)), key=lambda name: DTYPES[name].unit_roundoff)
    rounded = {}
    for name, value in definition.scalars(workload).items():
        least, most = definition.scalar_range(name)
        number = float(torch.tensor(float(value)).to(getattr(torch, coarsest)))
        if isinstance(value, float) and least <= number <= most and bool(number) == bool(value):
            rounded[name] = number
    return rounded


def plant_scalars(
    file: DefinitionFile, workload: Workload, drawn: dict[str, torch.Tensor], inputs: Inputs, chance: random.Random
) -> dict[str, torch.Tensor]:
    """Return the floating-point inputs that may hold numbers of the call, some elements of which are equal to one
    or to its negative.

    Args:
        file: the definition.
        workload: the call, whose numbers the inputs' types hold exactly.
        drawn: input by name.
        inputs: the source of the inputs, which knows their ranges.
        chance: source of randomness.
    """
    import torch

    numbers = [number for number in file.definition.scalars(workload).values() if isinstance(number, float)]
    free, planted = plantable_inputs(file, workload, inputs), {}
    for name, tensor in drawn.items():
        limits = (-math.inf, math.inf) if name in free else inputs.range_limits(name)
        if limits is None or not tensor.dtype.is_floating_point:
            continue
        largest = torch.finfo(tensor.dtype).max
        least, most = max(limits[0], -largest), min(limits[1], largest)
        values = sorted({value for number in numbers for value in (number, -number) if least <= value <= most})
        if values:
            planted[name] = _plant(tensor, values, chance)
    return planted


def _near_numbers(numbers: Sequence[float], dtype: str, chance: random.Random) -> list[float]:
    """Return the values at and near some numbers that a type can hold, away from where sums overflow."""
    import torch

    limits, unit = torch.finfo(getattr(torch, dtype)), 2 * DTYPES[dtype].unit_roundoff
    most = 2.0 ** (input_rules.HUGE_SHARE * math.log2(limits.max))
    values = []
    for number in map(float, numbers):
        near = (number, number * (1 + unit), number * (1 - unit), number * chance.uniform(1, 2))
        values += [*near, math.sqrt(number) * chance.uniform(1, 2)]
    return [value for each in values if each <= most for value in (each, -each)]


def _draw_places(shape: Sequence[int], generator: torch.Generator, chance: random.Random) -> torch.Tensor:
    """Mark at most one element in each row along the last axis, or a share of all elements."""
    import torch

    device = generator.device
    if len(shape) < 2 or chance.random() < input_rules.PLANTED_SHARES[0]:
        return torch.rand(tuple(shape), generator=generator, device=device) < input_rules.PLANTED_SHARES[1]
    rows = math.prod(shape[:-1])
    columns = torch.randint(shape[-1], (rows, 1), generator=generator, device=device)
    is_used = torch.rand((rows, 1), generator=generator, device=device) < input_rules.PLANTED_SHARES[0]
    places = torch.zeros((rows, shape[-1]), dtype=torch.bool, device=device)
    return places.scatter_(1, columns, is_used).view(tuple(shape))


def near_scalars(
    file: DefinitionFile, numbers: Collection[float], chance: random.Random
) -> list[tuple[str, float | int]]:
    """Return numbers of the source, and their neighbours, as values of numbers of the call, in random order.

    They lie in the range that the number is always drawn in, but one that may be above 1 may be as large as they
    say, unless the definition says what it is between.
    """
    choices: list[tuple[str, float | int]] = []
    for name, spec in file.definition.free_scalars.items():
        if spec.type == "bool" or (spec.type == "int" and file.inputs is not None and spec.between is None):
            continue  # an integer may belong to the sizes of inputs that the definition draws
        least, most = file.definition.scalar_range(name)
        if spec.type == "float" and spec.between is None:
            least, most = _admitted_range(least, most)
        for number in numbers:
            if spec.type == "int":
                near: list[float | int] = (
                    [int(number) + step for step in (-1, 0, 1)] if number == int(number) else []
                )
            else:
                near = [number * (1 + step * input_rules.SCALAR_STEP) for step in (-1, 0, 1)]
            signed = (value for each in near for value in (each, -each))
            choices += [(name, value) for value in signed if least <= value <= most]
    return chance.sample(choices, len(choices))


def _admitted_range(least: float, most: float) -> tuple[float, float]:
    """Return the range of a number of the call without `between`: a share stays one, and no sign changes."""
    return -_largest_number(-least), _largest_number(most)


def _largest_number(most: float) -> float:
    return most if most <= 1 else input_rules.LARGEST_NUMBER

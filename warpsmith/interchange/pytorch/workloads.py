"""Workloads of an imported operator: the example's sizes, a smaller and a larger one, and odd smallest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warpsmith.core.definition import Workload, WorkloadSet

_SMALL_SIZES = (7, 13, 5, 11, 3, 17, 19, 23)
_UNEVEN_SIZES = (129, 67, 33, 17, 9, 5, 3, 1)
_FEWER_UNEVEN_SIZES = _UNEVEN_SIZES[2:]
_LARGER_TRIES = (2, 3, 5, 7, 13, 33, 67, 129, 257, 513, 1025)
_ODD_BYTES = 16 * 2**20
_LARGEST_BYTES = 2**30
_SMALLER = 8
"""Factor between the example's first axis and that of the smaller size."""

Sizes = dict[str, int]
"""Size of every variable axis, by name."""


@dataclass(frozen=True)
class SizePlan:
    """Facts that decide which sizes an operator is judged at."""

    example: Sizes
    """Sizes in the example, outermost axis first."""
    steps: Mapping[str, int]
    """Sizes of an axis are multiples of its step."""
    is_accepted: Callable[[Sizes], bool]
    """Tells whether the operator runs at these sizes."""
    nbytes: Callable[[Sizes], int]
    """Bytes of all inputs and outputs at these sizes."""


def make_workloads(plan: SizePlan, dtype: str, distribution: str) -> list[Workload]:
    """Return the example's workload, then the smaller and the larger one, then the odd smallest; names differ."""
    if not plan.example:
        return [Workload(name="as-given", axes={}, dtype=dtype, distribution=distribution)]
    points: list[tuple[Sizes, WorkloadSet]] = [(plan.example, "representative")]
    points += [(sizes, "full") for sizes in (_smaller_sizes(plan), _larger_sizes(plan)) if sizes]
    points += [(sizes, "odd") for sizes in _odd_sizes(plan)]
    workloads: dict[str, Workload] = {}
    for sizes, kind in points:
        name = f"{'x'.join(map(str, sizes.values()))}-{dtype}"[:80]
        workloads.setdefault(
            name, Workload(name=name, axes=sizes, dtype=dtype, distribution=distribution, set=kind)
        )
    return list(workloads.values())


def _smaller_sizes(plan: SizePlan) -> Sizes | None:
    axis = max(plan.example, key=lambda name: plan.example[name] // plan.steps[name])
    size = plan.example[axis] // _SMALLER // plan.steps[axis] * plan.steps[axis]
    sizes = plan.example | {axis: size}
    return sizes if size > 1 and plan.is_accepted(sizes) else None


def _larger_sizes(plan: SizePlan) -> Sizes | None:
    axis = next(iter(plan.example))
    sizes = plan.example | {axis: 2 * plan.example[axis]}
    return sizes if plan.nbytes(sizes) <= _LARGEST_BYTES and plan.is_accepted(sizes) else None


def _odd_sizes(plan: SizePlan) -> list[Sizes]:
    names = list(plan.example)
    smallest = dict.fromkeys(names, 1)
    small = dict(zip(names, _cycle(_SMALL_SIZES, len(names)), strict=True))
    uneven = dict(zip(reversed(names), _cycle(_UNEVEN_SIZES, len(names)), strict=True))
    innermost = names[-1]
    near = small | {innermost: plan.example[innermost] + plan.steps[innermost]}
    if plan.nbytes(uneven) > _ODD_BYTES:
        uneven = dict(zip(reversed(names), _cycle(_FEWER_UNEVEN_SIZES, len(names)), strict=True))
    uneven = {name: uneven[name] for name in names}
    odd = [_accepted_sizes(plan, sizes) for sizes in (smallest, small, uneven, near)]
    return [sizes for sizes in odd if sizes and plan.nbytes(sizes) <= _ODD_BYTES]


def _cycle(sizes: Sequence[int], count: int) -> list[int]:
    return [sizes[index % len(sizes)] for index in range(count)]


def _accepted_sizes(plan: SizePlan, preferred: Sizes) -> Sizes | None:
    """Return the sizes nearest to the preferred smallest that the operator runs at; None if there are none."""
    sizes = {
        name: preferred[name] * (plan.steps[name] if preferred[name] < plan.example[name] else 1)
        for name in plan.example
    }
    if plan.is_accepted(sizes):
        return sizes
    for name in plan.example:  # a window may need a few rows, a choice of the best 50 needs 50
        for larger in (*_LARGER_TRIES, plan.example[name] + plan.steps[name], plan.example[name]):
            other = sizes | {name: larger * (plan.steps[name] if larger < plan.example[name] else 1)}
            if larger > preferred[name] and plan.is_accepted(other):
                return other
    largest = {name: max(preferred[name], 33) * plan.steps[name] for name in plan.example}
    for name in plan.example:
        smaller = largest | {name: preferred[name] * plan.steps[name]}
        largest = smaller if plan.is_accepted(smaller) else largest
    return largest if plan.is_accepted(largest) else None

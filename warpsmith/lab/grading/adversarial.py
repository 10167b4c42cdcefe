"""Choice of the adversarial distributions that a version is graded on at a workload."""

from __future__ import annotations

import random
from collections.abc import Collection

from warpsmith.core.definition import Workload, shape_class
from warpsmith.lab.grading import shapes
from warpsmith.lab.grading.correctness import Truth
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.values.distributions import (
    ALONE,
    FINITE,
    FULL,
    IGNORED,
    IN_RANGE,
    MASKED_ABOVE,
    MASKED_PAIRS,
    MASKED_ROWS,
    MASKS,
    MASKS_BELOW,
    MIXED_ROWS,
    OTHER_SIGNS,
    PADDED_ROWS,
    PATTERNED,
    RELATED_INPUTS,
    REPEATED,
    UNMIXED,
)


def is_defined(distribution: str | None, truth: Truth) -> bool:
    """Return True if a call on inputs of a distribution counts: masks may make infinite results but no NaN, and
    numbers near the ends of a type neither."""
    if distribution not in FINITE or truth.is_finite:
        return True
    return distribution in MASKS and not truth.has_nan


def choose_distributions(
    workload: Workload,
    available: tuple[str, ...],
    chance: random.Random,
    turn: int | None = None,
    finite: Collection[str] = (),
    has_square: bool = False,
) -> tuple[str, ...]:
    """Return the further distributions of a workload.

    Declared and derived odd workloads get all of them, with masked inputs, drawn ones some by chance. Larger ones
    get them in one call that mixes them row by row, and by chance one of those that do not mix, but none near the
    ends of a type. Where a masked input gave finite results, long and larger ones also get those whose rows
    differ in mask and mean. All get those of declared ranges and of padding, and far ones full integers; where an
    input has as many rows as columns, several patterns of pairs.

    Args:
        workload: the workload.
        available: adversarial distributions that apply to its inputs.
        chance: source of randomness.
        turn: number of an odd workload in a language that is interpreted, which gets the next share of them.
        finite: those of `FINITE` that gave finite results at a workload before it.
        has_square: an input has as many rows as columns.
    """
    if not available:
        return ()
    kind, always = shape_class(workload.name), tuple(name for name in available if name in (IN_RANGE, IGNORED))
    below = (MASKED_ROWS, PADDED_ROWS) if set(MASKS_BELOW).intersection(finite) else ()
    masked = (*below, *((MASKED_ABOVE,) if MASKED_ABOVE in finite else ()))
    pairs = (PATTERNED, *((MASKED_PAIRS,) if MASKED_PAIRS in finite or kind == "declared" else ()))
    again = pairs * input_rules.PAIR_CALLS if has_square else ()
    if workload.set != "odd":
        some_whole = (name for name in available if name in (RELATED_INPUTS, OTHER_SIGNS))
        further = (*set(UNMIXED).difference(ALONE), *some_whole)
        far = (REPEATED, *(name for name in available if name == FULL)) if kind == shapes.FAR else ()
        return (MIXED_ROWS, chance.choice(further), *masked, *far, *always, *again)
    every = (*available, *MASKS)
    if turn is not None:
        return every[turn :: input_rules.DISTRIBUTION_TURNS]
    if kind == "declared":
        return (*every, *again)
    some = chance.sample(every, min(input_rules.DRAWN_DISTRIBUTIONS, len(every)))
    return (*dict.fromkeys((*some, *(masked if kind == "long" else ()), *always)), *again)

"""Numerics of programs of many ranks: each rank is compared with itself, and ranks that agreed still have to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from warpsmith.core.trial import NumericsCheck, NumericsResult, Precision
from warpsmith.program.trials import numerics
from warpsmith.program.trials.numerics import UNMEASURABLE_ERROR
from warpsmith.program.trials.trajectory import StateTensor, Trajectory, rank_name

if TYPE_CHECKING:
    import numpy

APART = 0.01
"""Difference between two ranks in a parameter that they held alike, relative to its displacement. Chosen: a
reduction gives every rank the same bits."""


def compare_ranks(
    original: Sequence[Trajectory],
    rerun: Sequence[Trajectory],
    edited: Sequence[Trajectory],
    precision: Precision,
    seed: int,
) -> NumericsResult:
    """Check that the edited program computes the same as the original on every rank.

    Args:
        original, rerun, edited: trajectory of each rank, as `numerics.compare_numerics` takes one.
        precision: the precision whose bounds apply.
        seed: the seed of all runs, for the record.
    """
    if len(edited) != len(original):
        fault = f"it runs on {len(edited)} ranks, the original on {len(original)}"
        check = NumericsCheck(name="form", worst=UNMEASURABLE_ERROR, bound=0, noise=0, detail=fault)
        return NumericsResult(precision=precision, steps=len(original[0].values), seed=seed, checks=(check,))
    results = [
        numerics.compare_numerics(*rank, precision, seed) for rank in zip(original, rerun, edited, strict=True)
    ]
    if len(results) == 1:
        return results[0]
    checks = _worst_checks(results)
    if checks[0].passed:
        checks[1:1] = _check_replicas(original, edited)
    notes = dict.fromkeys(note for result in results for note in result.notes)
    return results[0].model_copy(update={"checks": tuple(checks), "notes": tuple(notes)})


def early_sizes(original: Sequence[Trajectory]) -> dict[str, float]:
    """Return the largest norm of each value over the steps of each rank."""
    return {
        rank_name(path, rank): size for rank, steps in enumerate(original) for path, size in steps.sizes.items()
    }


def _worst_checks(results: Sequence[NumericsResult]) -> list[NumericsCheck]:
    """Return the worst of the ranks' checks of each name; its detail names the rank."""
    worst: dict[str, NumericsCheck] = {}
    for rank, result in enumerate(results):
        for check in result.checks:
            if check.name not in worst or check.worst > worst[check.name].worst:
                detail = f"rank {rank}: {check.detail}" if check.detail else ""
                worst[check.name] = check.model_copy(update={"detail": detail})
    return list(worst.values())


def _check_replicas(original: Sequence[Trajectory], edited: Sequence[Trajectory]) -> list[NumericsCheck]:
    """Check the parameters that any two ranks of the original hold alike; without any there is no check."""
    errors = [
        (_difference(*edits), ranks, edits[0].name)
        for ranks in combinations(range(len(original)), 2)
        for *originals, first, second in zip(
            *(original[rank].parameters for rank in ranks),
            *(edited[rank].parameters for rank in ranks),
            strict=False,
        )
        if _are_alike(*originals)
        for edits in [(first, second)]
    ]
    if not errors:
        return []
    error, ranks, name = max(errors, key=lambda item: item[0])
    detail = (
        f"ranks {ranks[0]} and {ranks[1]} hold {name} alike in the original, and are apart by {error:.1%} of its "
        f"displacement after {len(edited[0].values)} steps of the edited program: a gradient is not reduced over "
        "all ranks"
    )
    worst = min(error / APART, UNMEASURABLE_ERROR)
    return [NumericsCheck(name="ranks", worst=worst, bound=APART, noise=0, detail=detail if worst > 1 else "")]


def _are_alike(first: StateTensor, second: StateTensor) -> bool:
    """Tell whether two ranks of the original hold a parameter alike from the start to the end."""
    import numpy as np

    same = first.floating and first.name == second.name and first.shape == second.shape
    pairs = zip((first.start, *first.ends), (second.start, *second.ends), strict=True)
    return same and all(np.array_equal(*pair) for pair in pairs)


def _difference(first: StateTensor, second: StateTensor) -> float:
    """Return the difference of two ranks, relative to the displacement of the parameter or else to its size."""
    difference = _norm(first.ends[-1] - second.ends[-1])
    if not difference:
        return 0.0
    scale = max(_norm(first.displacement()), _norm(second.displacement())) or _norm(first.start)
    return difference / scale if scale else UNMEASURABLE_ERROR


def _norm(value: numpy.ndarray) -> float:
    import numpy as np

    return float(np.linalg.norm(value))

"""Numerics on several ranks: the rank that is wrong is named, and ranks that agreed have to agree."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.program.trials import rank_numerics
from warpsmith.program.trials.trajectory import StateTensor, Trajectory

LOSSES = (4.0, 3.0, 2.5, 2.2, 2.0, 1.9, 1.8, 1.7)


def rank(losses: float = 1.0, *, away: float = 0.0, start: float = 0.0, name: str = "net.weight") -> Trajectory:
    """One rank whose parameter moves by 1 in each of four places, and by `away` more in the first."""
    begin = np.full(4, 5.0 + start)
    ends = tuple(begin + share * (np.ones(4) + np.array([away, 0, 0, 0])) for share in (0.25, 0.5, 1.0))
    values = tuple({"value": np.asarray(loss * losses)} for loss in LOSSES)
    return Trajectory(values, (StateTensor(name, (4,), True, begin, ends),))


def judged(original: tuple[Trajectory, ...], edited: tuple[Trajectory, ...]) -> rank_numerics.NumericsResult:
    return rank_numerics.compare_ranks(original, original, edited, "same", 3)


def test_ranks_that_compute_the_same_pass() -> None:
    result = judged((rank(), rank(2)), (rank(), rank(2)))
    assert result.passed
    assert [check.name for check in result.checks] == ["form", "ranks", "values", "movement", "parameter"]


def test_ranks_that_drift_apart_are_named_with_the_parameter() -> None:
    result = judged((rank(), rank(), rank()), (rank(), rank(), rank(away=0.5)))
    assert not result.passed
    assert result.failure.startswith("ranks: ranks 0 and 2 hold net.weight alike in the original")
    assert "apart by 2" in result.failure, "0.5 of a displacement of 2.06"
    small = judged((rank(), rank()), (rank(), rank(away=0.03)))
    assert [check.name for check in small.checks if not check.passed] == ["ranks"], (
        "each alone is within its bounds"
    )


@pytest.mark.parametrize("other", [rank(start=1.0), rank(name="other.weight"), rank(away=0.2)])
def test_ranks_that_never_agreed_need_not(other: Trajectory) -> None:
    result = judged((rank(), other), (rank(), other))
    assert result.passed
    assert "ranks" not in [check.name for check in result.checks]


def test_the_rank_with_the_worst_values_is_named() -> None:
    result = judged((rank(), rank(2)), (rank(), rank(2.1)))
    assert result.failure.startswith("values: rank 1: step ")


def test_another_number_of_ranks_is_another_program() -> None:
    assert "runs on 1 ranks, the original on 2" in judged((rank(), rank()), (rank(),)).failure


def test_sizes_of_values_are_those_of_each_rank() -> None:
    assert rank_numerics.early_sizes((rank(), rank(2))) == {"value": 4.0, "value of rank 1": 8.0}

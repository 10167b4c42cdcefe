"""Selection among variants: choosing the fastest of many by its try-times buys no acceptance at the gate."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import BEST
from warpsmith.lab import gate, timing
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.timing import compare_times

FLOOR, PAIRS, JUDGEMENTS = 0.002, 10, 300
PROCESS, CALL = 0.005, 0.003
"""Deviations of a process and of a call, far above the floor, so that false acceptances can be counted."""


def times(rng: np.random.Generator) -> tuple[list[float], list[float]]:
    """Paired seconds of two fresh processes of the same code."""
    bias = rng.normal(0, PROCESS)
    own, other = np.exp(rng.normal([[bias], [0.0]], CALL, (2, PAIRS)))
    return list(own), list(other)


def look(own: list[float], other: list[float]) -> ProvisionalDecision:
    """The gate's decision over one set of pairs, as if it were repeated already."""
    comparison, mean = compare_times(BEST, own, other), statistics.geometric_mean({"w": (own, other)}, BEST)
    return decision.decide_verdict(mean, {"w": comparison}, FLOOR, Thresholds(), 1)


def accepted_shares(tried: int) -> tuple[float, float, float]:
    """Shares of null variants that are accepted, each the fastest of `tried` by its try-times.

    By the try-times again, by one look at fresh times, and by the gate's rule on fresh times.
    """
    rng, accepted = np.random.default_rng(tried), np.zeros(3)
    for _ in range(JUDGEMENTS):
        sweep = [times(rng) for _ in range(tried)]
        chosen = min(sweep, key=lambda pair: float(np.median(np.log(pair[0]) - np.log(pair[1]))))
        first = look(*times(rng))
        verdict = first.decision
        if first.needs_confirmation:
            verdict = decision.confirm_in_fresh_processes(first, lambda: look(*times(rng)), FLOOR)
        accepted += [each.verdict.accepted for each in (look(*chosen).decision, first.decision, verdict)]
    reused, once, judged = accepted / JUDGEMENTS
    return reused, once, judged


def test_false_acceptances_do_not_grow_with_the_variants_tried() -> None:
    (reused, once, judged), (many_reused, many_once, many_judged) = accepted_shares(1), accepted_shares(64)
    error = np.sqrt((once * (1 - once) + many_once * (1 - many_once)) / JUDGEMENTS)
    assert once > 0.1, "so rare that a difference would not show"
    assert abs(many_once - once) < 3 * error
    assert max(judged, many_judged) < once / 2
    assert many_reused > 0.9 > 0.4 > reused, "the gate would have to correct if it reused the tries"


@pytest.mark.parametrize("package", [gate, timing])
def test_no_module_of_the_gate_can_read_tries(package) -> None:
    forbidden = ("warpsmith.lab.tuning", "warpsmith.campaign")
    paths = sorted(Path(package.__file__).parent.glob("*.py"))
    assert len(paths) > 5
    for path in paths:
        tree = ast.parse(path.read_text())
        names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
        assert not [name for name in names if name.startswith(forbidden)], path.name

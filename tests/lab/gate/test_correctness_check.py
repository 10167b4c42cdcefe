"""Tests of the distributions that a correctness check grades at each workload."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.operator.inputs import ADVERSARIAL, MASKED


@pytest.mark.parametrize(
    ("workload_set", "own_inputs", "interpreted", "expected"),
    [
        ("odd", False, False, (*ADVERSARIAL, MASKED)),
        ("representative", False, False, ("mixed_rows",)),
        ("full", False, False, ("mixed_rows",)),
        ("representative", False, True, ()),
        ("representative", True, False, ()),
    ],
)
def test_large_workloads_get_adversarial_rows(workload_set, own_inputs, interpreted, expected):
    check = CorrectnessCheck(None, None, None, "cpu", lambda: 1, interpreted)
    distributions = () if own_inputs else ADVERSARIAL
    session = SimpleNamespace(
        workload=SimpleNamespace(set=workload_set), inputs=SimpleNamespace(adversarial_distributions=distributions)
    )
    assert tuple(check._adversarial(session)) == expected

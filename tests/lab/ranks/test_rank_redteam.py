"""Attacks of one rank on the others must be caught, and honest versions accepted.

On a CPU a file that both ranks map stands for symmetric memory.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate_tests.models import parse_header

CASES = sorted((Path(__file__).parent / "redteam").glob("*.py"))
HEADERS = {path: parse_header(path.read_text()) for path in CASES}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_attacks_are_caught_and_controls_accepted(path, judge_file):
    header = HEADERS[path]
    deadlock = Status.TIMEOUT in header.status
    evaluation = judge_file(path, timed="timing" in header.caught, seconds=2 if deadlock else 20)
    if header.kind == "control":
        assert evaluation.correct, evaluation.decision
        return
    assert evaluation.decision is not None
    assert not evaluation.decision.verdict.accepted
    failed = [result for result in evaluation.results if result.status is not Status.PASSED]
    assert not header.status or failed[0].status in header.status, failed
    assert (failed[0].workload == "*") is ("timing" in header.caught), "caught at another step"


def test_all_seven_attacks_are_tried():
    families = {header.family for header in HEADERS.values() if header.kind == "attack"}
    assert families >= {
        "skipped exchange", "late read", "reused symmetric buffer", "arrival order", "deadlock", "flag race",
        "remote cache",
    }  # fmt: skip

"""Overview: how wrong and slow kernels count, and the gain of an arm over the bare one."""

from __future__ import annotations

import pytest

from warpsmith.uplift import overview
from warpsmith.uplift.models import Arm, Cell, CellJudgement, CellRecord, Effort, KernelClaim, Submission


def record(
    arm: Arm, repetition: int, speedup: float, claimed: float = 1.0, operator: str = "square"
) -> CellRecord:
    """A judged cell; a speedup of 0 is a wrong kernel."""
    return CellRecord(
        submission=Submission(
            cell=Cell(operator=operator, arm=arm, repetition=repetition),
            kernel="kernel.py",
            kernel_sha256="0" * 64,
            claim=KernelClaim(correct=True, speedup=claimed),
            effort=Effort(designer="m-1", device_calls=3, device_seconds=30, tokens=1000 * repetition),
        ),
        judgement=CellJudgement(
            correct=speedup > 0, reason="" if speedup else "INCORRECT", speedup=speedup, public_speedup=speedup,
            judged="2026-01-01 00:00", machine="one", gate_version=1,
        ),
    )  # fmt: skip


RECORDS = [
    record("bare", 1, 2.0), record("bare", 2, 0.0), record("plugin", 1, 4.0, claimed=4.3),
    record("plugin", 2, 0.5, claimed=0.5),
    record("bare", 1, 3.0, claimed=3.4, operator="cube"), record("plugin", 1, 3.0, operator="cube"),
    record("knowledge", 1, 3.0, operator="lone"),
]  # fmt: skip


def row(page: str, name: str) -> list[str]:
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_a_wrong_kernel_and_a_slow_one_leave_pytorch_in_place():
    gains = overview.arm_gain(RECORDS, "plugin")
    assert gains == {"cube": pytest.approx(1.0), "square": pytest.approx(2**0.5)}  # (4 * 1 / 2 / 1) ** 0.5
    assert overview.arm_gain(RECORDS, "knowledge") == {}


def test_arms_are_summed_up():
    page = overview.render_overview(RECORDS)
    cells, right, speedup, usable, score, false_claims, device, tokens = row(page, "bare")
    assert (cells, right, speedup) == ("3", "2/3", "2.45x")
    assert (usable, score) == ("1.82x", "1.67")  # (2 * 1 * 3) ** (1 / 3) and (2 + 0 + 3) / 3
    assert (false_claims, device, tokens) == ("2", "30", "1,333")  # one is wrong, one claims 3.4 for 3.0
    assert row(page, "plugin")[5] == "0"
    assert row(page, "square") == ["1.41x"]
    assert row(page, "square-bare-2")[:2] == ["no", "0.00x"]
    assert "square-bare-2: INCORRECT" in page


def test_cells_that_wait_for_the_judge_are_counted():
    waiting = RECORDS[0].model_copy(update={"judgement": None})
    page = overview.render_overview([waiting])
    assert "1 are not judged yet" in page
    assert row(page, "square-bare-1")[0] == "not judged"

"""Judgement of real kernels with scripted times: right, wrong at a hidden size, and claimed falsely."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from session_clock import use_scripted_clock
from uplift_samples import KERNEL, MakeCell

from warpsmith import project as projects
from warpsmith.core.evaluation import REFERENCE
from warpsmith.lab.machine import hardware
from warpsmith.uplift import judging, submission
from warpsmith.uplift.models import CellRecord, Effort

pytestmark = pytest.mark.usefixtures("forked_workers")

EFFORT = Effort(designer="m-1", device_calls=0, device_seconds=0)


def scripted_seconds(source: str) -> float:
    """A tenth of a millisecond, divided by the source's `SPEED`; the reference takes two tenths."""
    return 1e-4 / int(re.search(r"SPEED = (\d+)", source)[1])


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, CellRecord]]:
    """`judge(folder, ...)`: the records of submitted folders, by arm and repetition."""
    use_scripted_clock(monkeypatch.setattr, scripted_seconds)
    monkeypatch.setattr(judging, "BASELINES", (REFERENCE,))  # torch.compile takes seconds to start
    page = hardware.read_target_page(projects.shipped_project(), "cpu")

    def run(*folders: Path) -> dict[str, CellRecord]:
        results = tmp_path / "results"
        records = [submission.keep_submission(folder, EFFORT, results) for folder in folders]
        judged = judging.judge_operator(results, records, page, lambda _: None, 0.1)
        return {f"{record.submission.cell.arm}-{record.submission.cell.repetition}": record for record in judged}

    return run


def test_kernels_are_raced_and_wrong_ones_score_nothing(judge, make_cell: MakeCell):
    records = judge(
        make_cell("bare", 1, speedup=4.0),
        make_cell("bare", 2, kernel=KERNEL.replace("MODE = 0", "MODE = 1")),
        make_cell("plugin", 1, kernel=KERNEL.replace("SPEED = 2", "SPEED = 4"), speedup=9.5),
        make_cell("plugin", 2, kernel=KERNEL.replace("MODE = 0", "MODE = 2"), correct=False),
    )
    right, wrong, fast, hidden = (records[name] for name in ("bare-1", "bare-2", "plugin-1", "plugin-2"))
    assert right.judgement.speedup == pytest.approx(4.0, rel=0.05)
    assert not right.false_claim
    assert set(right.judgement.workloads) == {"small", "hidden-1"}
    assert not right.judgement.workloads["hidden-1"].public
    assert fast.judgement.speedup == pytest.approx(8.0, rel=0.05)
    assert fast.judgement.public_speedup == pytest.approx(8.0, rel=0.05)
    assert fast.false_claim  # 9.5 is more than 1.1 times 8
    for record in (wrong, hidden):
        assert (record.judgement.correct, record.judgement.speedup, record.judgement.workloads) == (False, 0, {})
    assert wrong.false_claim
    assert not hidden.false_claim  # it was claimed to be wrong
    assert "hidden-1" in hidden.judgement.reason


def test_a_kernel_that_does_not_build_and_a_text_without_a_language_are_wrong(judge, make_cell: MakeCell):
    broken = make_cell("bare", 1, kernel=KERNEL.replace("float(scale)", "nothing(scale)").replace("y[i] =", "z ="))
    strange = make_cell("bare", 2)
    (strange / "submission/kernel.cpp").rename(strange / "submission/kernel.txt")
    records = judge(broken, strange)
    assert "z" in records["bare-1"].judgement.reason
    assert "no language" in records["bare-2"].judgement.reason


def test_the_reference_itself_is_no_kernel(judge, make_cell: MakeCell):
    folder = make_cell()
    (folder / "submission/kernel.cpp").unlink()
    (folder / "submission/kernel.py").write_text("def run(x, scale):\n    return x * x * scale\n")
    assert not judge(folder)["bare-1"].judgement.correct

"""Submissions: kept once, whole, and unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from uplift_samples import KERNEL, MakeCell

from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.uplift import submission
from warpsmith.uplift.models import Effort

EFFORT = Effort(designer="m-1", device_calls=2, device_seconds=30.5, tokens=1000)


def test_a_submission_is_kept_with_its_kernel(make_cell: MakeCell, tmp_path: Path):
    submission.keep_submission(make_cell("plugin", 2, speedup=1.5), EFFORT, tmp_path / "results")
    (record,) = submission.read_records(tmp_path / "results")
    assert record.submission.cell.name == "square-plugin-2"
    assert record.submission.claim.speedup == 1.5
    assert record.submission.effort == EFFORT
    assert record.judgement is None
    assert (tmp_path / "results/square-plugin-2/kernel.cpp").read_text() == KERNEL


def test_a_cell_is_submitted_once(make_cell: MakeCell, tmp_path: Path):
    folder = make_cell()
    submission.keep_submission(folder, EFFORT, tmp_path / "results")
    with pytest.raises(Misuse, match="submitted before"):
        submission.keep_submission(folder, EFFORT, tmp_path / "results")


@pytest.mark.parametrize(
    ("claim", "error", "message"),
    [
        (None, MissingInput, "claim.json"),
        ({"speedup": 2}, Misuse, "correct"),
        ({"correct": True, "speedup": -1}, Misuse, "speedup"),
    ],
)
def test_a_claim_is_required(make_cell: MakeCell, tmp_path: Path, claim, error: type[Exception], message: str):
    folder = make_cell()
    path = folder / "submission/claim.json"
    path.unlink() if claim is None else path.write_text(json.dumps(claim))
    with pytest.raises(error, match=message):
        submission.keep_submission(folder, EFFORT, tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("count", "error"), [(0, MissingInput), (2, Misuse)])
def test_one_kernel_is_required(make_cell: MakeCell, tmp_path: Path, count: int, error: type[Exception]):
    folder = make_cell()
    kernel = folder / "submission/kernel.cpp"
    kernel.unlink() if count == 0 else (folder / "submission/kernel.py").write_text("")
    with pytest.raises(error, match="kernel"):
        submission.keep_submission(folder, EFFORT, tmp_path / "results")


def test_a_kernel_that_changed_after_its_submission_is_named(make_cell: MakeCell, tmp_path: Path):
    submission.keep_submission(make_cell(), EFFORT, tmp_path / "results")
    (tmp_path / "results/square-bare-1/kernel.cpp").write_text(KERNEL + "// faster")
    with pytest.raises(CorruptRecord, match=r"kernel\.cpp"):
        submission.read_records(tmp_path / "results")

"""The fusion ledger of a program: regions with both gains, and why a kernel was kept or refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_program_page import record

from warpsmith import project as projects
from warpsmith.program.analysis import region_file
from warpsmith.program.compiled.models import RegionRow, StepRegions
from warpsmith.program.operators import accepted_regions
from warpsmith.program.operators.transfer_record import Transfer
from warpsmith.program.trials.trial_store import Trials
from warpsmith.reporting.programs import fusion_ledger
from warpsmith.reporting.programs.program_trials import PageContext, program_page
from warpsmith.use import choice

GAIN = {"seconds": 0.004, "error": 0.0001}


def region(digest: str, share: float, **changes: Any) -> RegionRow:
    return RegionRow(
        digest=digest, kind="norm", operators=("mul",), kernels=("k",), backward=True, calls=2, seconds=share,
        share=share, ceiling=1 / (1 - share), **changes,
    )  # fmt: skip


def transfer(digest: str) -> Transfer:
    workload = {"workload": "w", "calls": 2, "reference_seconds": 0.01, "seconds": 0.006}
    return Transfer.model_validate(
        {
            "op": "mine", "operator": f"norm region {digest}", "solution": "cpp/v1", "device": "cpu",
            "region": digest, "hits": 2, "places": 2, "step_seconds": 0.2,
            "workloads": [{**workload, "fresh": GAIN, "weights": GAIN, "same": GAIN}],
            "measured": {
                "against": "original", "other_seconds": 0.2, "speedup": 0.98, "pairs": 5,
                "interval": {"low": 0.97, "high": 0.99},
            },
        }
    )  # fmt: skip


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    """A program with four regions, the first of which was tried and refused."""
    (tmp_path / "warpsmith.toml").write_text("")
    project = projects.find_project(tmp_path)
    step = StepRegions(
        program="train.py", device="cpu", torch="2", graphs=2, step_seconds=0.2, kernel_seconds=0.1,
        rows=(
            region("aaaa", 0.2), region("bbbb", 0.1), region("", 0.05, refusal="draws random numbers"),
            region("cccc", 0.001),
        ),
        measured="2026-11-21 12:00",
    )  # fmt: skip
    path = project.devlog / "programs" / "train" / region_file.REGIONS_FILE
    path.parent.mkdir(parents=True)
    path.write_text(step.model_dump_json())
    trials = Trials(project, "train")
    (trials.folder / "001").mkdir(parents=True)
    (trials.folder / "001" / "transfer.json").write_text(transfer("aaaa").model_dump_json())
    refused = record("RESTORED", decision={"verdict": "RESTORED", "reason": "no gain: 0.98x"})
    monkeypatch.setattr(Trials, "records", lambda self: {1: refused})
    monkeypatch.setattr(accepted_regions, "list_definitions", lambda project: {"aaaa": "mine", "bbbb": "other"})
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {})
    return trials


def test_a_refused_region_has_both_gains(trials):
    ledger = fusion_ledger.read_ledger(trials)
    cells = ledger.rows[0].split(" | ")
    assert cells[5] == "`mine cpp/v1`"
    assert (cells[6], cells[7]) == ("8.00 ms", "2")
    assert cells[8].startswith("-4.08 ms")
    assert "refused" in cells[9]
    assert "no gain: 0.98x" in cells[9]


def test_regions_without_a_kernel_say_why(trials):
    rows = fusion_ledger.read_ledger(trials).rows
    assert len(rows) == 3  # the fourth takes too little
    assert rows[1].endswith("no version is accepted")
    assert "random numbers" in rows[2]


def test_an_accepted_version_that_was_not_tried_is_named(trials, monkeypatch):
    version = SimpleNamespace(solution="cpp/v7")
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {"cpu": [version]})
    row = fusion_ledger.read_ledger(trials).rows[1]
    assert "`other cpp/v7`" in row
    assert "not tried" in row


def test_the_page_has_the_ledger_only_where_regions_were_listed(trials):
    context = PageContext(ledger=fusion_ledger.read_ledger(trials))
    assert "## Fusion ledger" in program_page("train", {}, None, (), context=context)
    assert "Fusion ledger" not in program_page("train", {}, None, ())
    assert fusion_ledger.read_ledger(Trials(trials.project, "other")) is None


def test_the_seam_is_what_the_step_does_not_gain():
    audit = transfer("aaaa")
    assert audit.seam_seconds == pytest.approx(0.008 - 0.2 * (1 - 1 / 0.98))
    assert audit.model_copy(update={"region": ""}).seam_seconds is None

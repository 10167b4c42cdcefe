"""Rows of evidence that a benchmark's record allows, and entries that cite it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from warpsmith.campaign.evidence import citations
from warpsmith.knowledge.evidence import EvidenceRow
from warpsmith.project import Project

ROOT = Path(__file__).parents[2]
RECORD = "benchmarks/records/techniques-h200.json"
ENTRY = "docs/knowledge/optimizations/split-k-stream-k.md"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name in (RECORD, ENTRY):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs" / "knowledge")


def stale(project: Project) -> list[str]:
    path = project.root / ENTRY
    page = citations.CitingPage(path, path.read_text(), rendered=False)
    return [item.message for item in citations.check_entry_evidence(project, page)]


def test_each_comparison_of_a_case_is_a_row() -> None:
    rows = EvidenceRow.read((ROOT / RECORD).read_bytes(), RECORD)
    two = [row for row in rows if row.config == "cluster, 8 rows, NVIDIA H200"]
    assert [(row.before, row.after, row.change) for row in two] == [
        ("3.917 us (cluster)", "4.715 us (two kernels)", "0.831x"),
        ("4.715 us (two kernels)", "3.917 us (cluster)", "1.2x"),
    ]
    assert all(row.source == RECORD for row in rows)


def test_a_record_of_nothing_known_has_no_rows() -> None:
    with pytest.raises(ValidationError):
        EvidenceRow.read(b'{"measured": "2026-11-23 16:26"}', RECORD)


def test_an_entry_that_cites_it_as_it_is(project: Project) -> None:
    assert stale(project) == []


def test_a_figure_that_the_record_does_not_hold(project: Project) -> None:
    path = project.root / ENTRY
    path.write_text(path.read_text().replace("3.18x", "5.18x"))
    (message,) = stale(project)
    assert "5.18x" in message
    assert "write `| split, 16384 to 1024, NVIDIA H200 | 39.43 us (1) | 12.4 us (8) | 3.18x |" in message


def test_a_record_that_changed(project: Project) -> None:
    path = project.root / RECORD
    path.write_text(path.read_text().replace("39.4", "79.4"))
    (message,) = stale(project)
    assert RECORD in message

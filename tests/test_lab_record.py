"""The record of the lab's tests: what it holds for, and what it leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commit_draw
import lab_record
import pytest

NAMES = [f"tests/lab/gate/test_judge.py::test_{number}" for number in range(300)]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lab" / "record.json"
    path.parent.mkdir()
    monkeypatch.setattr(lab_record, "RECORD", path)
    monkeypatch.setattr(commit_draw, "draw_seed", lambda: "c0ffee")
    return path


def config(**options: bool) -> Any:
    left_out: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    option = SimpleNamespace(all_lab=False, record_lab=False, **options)
    return SimpleNamespace(option=option, hook=hook, left_out=left_out)


def write(record: Path, digest: str) -> None:
    seconds = dict.fromkeys(NAMES, 2.0)
    files = {name: lab_record.file_sha256(name) for name in {each.partition("::")[0] for each in NAMES}}
    contents = {"inputs_sha256": digest, "measured": "2026-01-01 00:00", "files": files, "seconds": seconds}
    record.write_text(json.dumps(contents))


def run_count(settings: Any) -> int:
    items = [SimpleNamespace(nodeid=name) for name in (*NAMES, "tests/lab/gate/test_judge.py::test_new")]
    lab_record.deselect_recorded(settings, items)
    assert len(items) + len(settings.left_out) == 301
    assert items[-1].nodeid.endswith("test_new")
    return len(items)


def test_one_in_six_runs_and_others_at_the_next_commit(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(record, lab_record.inputs_sha256())
    assert 30 < run_count(config()) < 75
    drawn = {name for name in NAMES if lab_record.is_drawn(name)}
    monkeypatch.setattr(commit_draw, "draw_seed", lambda: "decaf")
    assert drawn != {name for name in NAMES if lab_record.is_drawn(name)}


@pytest.mark.parametrize("option", ["all_lab", "record_lab"])
def test_all_run_where_that_is_asked_for(record: Path, option: str) -> None:
    write(record, lab_record.inputs_sha256())
    settings = config()
    setattr(settings.option, option, True)
    assert run_count(settings) == 301


def test_all_of_a_file_run_where_it_has_changed(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(record, lab_record.inputs_sha256())
    monkeypatch.setattr(lab_record, "file_sha256", lambda _: "changed")
    assert run_count(config()) == 301


@pytest.mark.parametrize("text", [None, "{", "{}", '{"inputs_sha256": "other", "seconds": {}}'])
def test_all_run_where_no_record_holds(record: Path, text: str | None) -> None:
    if text is not None:
        record.write_text(text)
    assert run_count(config()) == 301


@pytest.mark.parametrize(
    "name", ["warpsmith/lab/gate/judge.py", "tests/redteam/argmax/definition.py", "constraints.txt"]
)
def test_the_hash_covers_the_lab_and_its_tests(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sources = lab_record.ROOT / name, set(lab_record._files())
    assert path in sources
    monkeypatch.setattr(lab_record, "_files", lambda: sources - {path})
    assert lab_record.inputs_sha256.__wrapped__() != lab_record.inputs_sha256()


def test_kernels_count_for_their_own_tests_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "tests/kernels/test_cumsum.py",
        "tests/languages/test_new_language.py",
        "tests/lab/gate/test_judge.py",
    )
    before = [lab_record.file_sha256(name) for name in names]
    monkeypatch.setattr(lab_record, "kernels_sha256", lambda: "other")
    after = [lab_record.file_sha256.__wrapped__(name) for name in names]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True]


@pytest.mark.parametrize("name", ["kernels/cumsum/drafts/triton/01_rows.py", "tests/kernels/draft_copies.py"])
def test_the_hash_of_kernels_covers_versions_drafts_and_kits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = set(lab_record._files(("kernels", "tests/kernels", "tests/languages")))
    assert lab_record.ROOT / name in every
    monkeypatch.setattr(lab_record, "_files", lambda _: every - {lab_record.ROOT / name})
    assert lab_record.kernels_sha256.__wrapped__() != lab_record.kernels_sha256()


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("import warpsmith.lab.gate.judge\nfrom warpsmith.errors import Misuse", True),
        ("from warpsmith import files, languages\nfrom warpsmith.reporting import redteam", True),
        ("from warpsmith.reporting import tables", False),
        ("from warpsmith import campaign", False),
        ("def f():\n    from warpsmith.cli.main import main", False),
    ],
)
def test_a_test_of_other_code_is_not_recorded(tmp_path: Path, text: str, covered: bool) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(text)
    assert lab_record.is_covered(path) is covered


def test_dear_tests_that_pass_are_recorded_beside_earlier_ones(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_record, "is_covered", lambda path: path.name != "test_cli.py")
    monkeypatch.setattr(lab_record, "ROOT", record.parents[1])
    monkeypatch.setattr(lab_record, "inputs_sha256", lambda: "same")
    for names in (("lab/a.py::one", "lab/test_cli.py::x", "other/b.py::y"), ("lab/a.py::two",)):
        recorder = lab_record.Recorder()
        for name in names:
            recorder.pytest_runtest_logreport(report(name, "call", True, 5.04))
        recorder.pytest_runtest_logreport(report("lab/a.py::failed", "call", False, 5.0))
        recorder.pytest_runtest_logreport(report("lab/a.py::cheap", "call", True, 0.5))
        recorder.pytest_runtest_logreport(report("lab/a.py::set-up", "setup", True, 5.0))
        recorder.pytest_sessionfinish()
    assert lab_record.read_record()["seconds"] == {"lab/a.py::one": 5.0, "lab/a.py::two": 5.0}


def report(name: str, when: str, passed: bool, seconds: float) -> Any:
    return SimpleNamespace(nodeid=name, when=when, passed=passed, duration=seconds)

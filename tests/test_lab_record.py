"""The record of dear tests: what it holds for, what it leaves out, and which tests come first."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import code_inputs
import commit_draw
import data_inputs
import lab_record
import pytest
from code_inputs import ROOT

FILE = "tests/lab/gate/test_judge.py"
NAMES = [f"{FILE}::test_{number}" for number in range(300)]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "record.json"
    monkeypatch.setattr(lab_record, "RECORD", path)
    monkeypatch.setattr(commit_draw, "draw_seed", lambda: "c0ffee")
    monkeypatch.setattr(lab_record, "inputs_sha256", lambda name: f"inputs of {name.partition('::')[0]}")
    monkeypatch.setattr(lab_record, "forget_files", lambda: None)
    return path


def config(**options: bool) -> Any:
    left_out: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    option = SimpleNamespace(**{"all_lab": False, "record_lab": False, **options})
    return SimpleNamespace(option=option, hook=hook, left_out=left_out)


def write(record: Path, inputs: str = f"inputs of {FILE}", seconds: float = 2.0) -> None:
    record.write_text(json.dumps({"tests": dict.fromkeys(NAMES, (inputs, seconds))}))


def run_count(settings: Any) -> int:
    items = [SimpleNamespace(nodeid=name) for name in (*NAMES, f"{FILE}::test_new")]
    lab_record.deselect_recorded(settings, items, lab_record.skipped_tests(settings))
    assert len(items) + len(settings.left_out) == 301
    assert items[-1].nodeid.endswith("test_new")
    return len(items)


def test_one_in_twelve_runs_and_others_at_the_next_commit(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(record)
    assert 12 < run_count(config()) < 42
    drawn = {name for name in NAMES if lab_record.is_drawn(name)}
    monkeypatch.setattr(commit_draw, "draw_seed", lambda: "decaf")
    assert drawn != {name for name in NAMES if lab_record.is_drawn(name)}


def test_a_run_that_records_leaves_out_what_is_held(record: Path) -> None:
    write(record)
    assert run_count(config(record_lab=True)) == 1


@pytest.mark.parametrize("record_lab", [False, True])
def test_all_run_where_that_is_asked_for(record: Path, record_lab: bool) -> None:
    write(record)
    assert run_count(config(all_lab=True, record_lab=record_lab)) == 301


@pytest.mark.parametrize("text", [None, "{", "{}", '{"inputs_sha256": "other", "seconds": {}}'])
def test_all_run_where_no_record_holds(record: Path, text: str | None) -> None:
    if text is not None:
        record.write_text(text)
    assert run_count(config()) == 301


@pytest.mark.parametrize("inputs", ["other", ""])
def test_all_run_where_their_inputs_changed_or_cannot_be_told(
    record: Path, monkeypatch: pytest.MonkeyPatch, inputs: str
) -> None:
    write(record, inputs)
    monkeypatch.setattr(lab_record, "inputs_sha256", lambda _: "")
    assert run_count(config()) == 301


def test_a_worker_leaves_out_what_it_is_told(record: Path) -> None:
    settings = config()
    settings.workerinput = {"skipped_tests": NAMES[:7]}
    assert run_count(settings) == 294


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("warpsmith/lab/gate/judge.py", (True, True, False)),
        ("warpsmith/languages/cpp/api/warpsmith.hpp", (True, True, True)),
        ("tests/lab/workshop.py", (True, True, False)),
        ("docs/knowledge/hardware/cpu.md", (True, True, False)),
        ("tests/redteam/argmax/definition.py", (False, True, False)),
        ("kernels/cumsum/definition.py", (False, False, True)),
        ("kernels/softmax/definition.py", (False, False, False)),
        ("constraints.txt", (True, True, True)),
        ("warpsmith/cli/main.py", (False, False, False)),
    ],
)
def test_what_tests_depend_on(name: str, expected: tuple[bool, ...]) -> None:
    path = ROOT / name
    assert path.is_file()
    tests = (FILE, "tests/lab/gate_tests/test_defences.py", "tests/kernels/test_cumsum.py")
    counts = []
    for each in tests:
        code = code_inputs.code_inputs(ROOT / each)
        data = (*code, *code_inputs.package_data(code), *data_inputs.inputs_of_test(each))
        counts.append(any(path.is_relative_to(place) for place in data))
    assert tuple(counts) == expected


@pytest.mark.parametrize("changed", [None, "tests/commit_draw.py", "constraints.txt", "docs/redteam.md"])
def test_the_hash_covers_code_and_data(changed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_record, "code_inputs", lambda _: frozenset({ROOT / "tests" / "commit_draw.py"}))
    monkeypatch.setattr(lab_record, "package_data", lambda _: frozenset({ROOT / "constraints.txt"}))
    monkeypatch.setattr(lab_record, "inputs_of_test", lambda _: frozenset({ROOT / "docs" / "redteam.md"}))
    read, hashes = Path.read_bytes, []
    for more in (b"", b"\nx = 1\n"):
        for function in (lab_record.inputs_sha256, lab_record._code_sha256, lab_record._data_sha256):
            function.cache_clear()
        lab_record._place_sha256.cache_clear()
        monkeypatch.setattr(lab_record, "read_source", code_inputs.read_source.__wrapped__)
        added = {ROOT / changed: more} if changed else {}
        monkeypatch.setattr(Path, "read_bytes", lambda each, added=added: read(each) + added.get(each, b""))
        hashes.append(lab_record.inputs_sha256(FILE))
    for function in (lab_record.inputs_sha256, lab_record._code_sha256, lab_record._place_sha256):
        function.cache_clear()
    assert (hashes[0] == hashes[1]) is (changed is None)


@pytest.mark.parametrize(
    "name", ["tests/cli/test_main.py", "tests/lab/test_gone.py", "tests/languages/test_new_language.py"]
)
def test_others_have_no_hash(name: str) -> None:
    assert lab_record.inputs_sha256(name) == ""


def test_dear_tests_that_pass_are_recorded_beside_earlier_ones(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same, changed = "tests/lab/test_same.py", "tests/lab/test_changed.py"
    monkeypatch.setattr(lab_record, "_exists", lambda name: "gone" not in name)
    for name in ("one", "two"):
        recorder = lab_record.Recorder()
        recorder._before = {same: f"inputs of {same}", changed: "inputs of old"}
        recorder.pytest_runtest_logreport(report(f"{same}::{name}", "call", True, 5.04))
        recorder.pytest_runtest_logreport(report(f"{same}::failed", "call", name == "one", 5.0))
        recorder.pytest_runtest_logreport(report(f"{same}::cheap", "call", True, 0.5))
        recorder.pytest_runtest_logreport(report(f"{same}::set-up", "setup", True, 5.0))
        recorder.pytest_runtest_logreport(report(f"{changed}::long", "call", True, 50.0))
        recorder.pytest_runtest_logreport(report(f"{changed}::short", "call", True, 5.0))
        recorder.pytest_runtest_logreport(report("tests/lab/test_gone.py::long", "call", True, 50.0))
        recorder.pytest_sessionfinish()
    assert lab_record.read_record() == {
        f"{changed}::long": ("", 50.0),
        f"{same}::failed": ("", 5.0),
        f"{same}::one": (f"inputs of {same}", 5.0),
        f"{same}::two": (f"inputs of {same}", 5.0),
    }


def report(name: str, when: str, passed: bool, seconds: float) -> Any:
    return SimpleNamespace(nodeid=name, when=when, passed=passed, failed=not passed, duration=seconds)


def test_what_is_long_comes_first_in_the_shares(record: Path) -> None:
    tests = {"t::c": ("", 30.0), "t::e": ("", 90.0), "t::h": ("x", 60.0), "t::a": ("x", 9.0)}
    record.write_text(json.dumps({"tests": tests}))
    items: list[Any] = [SimpleNamespace(nodeid=f"t::{letter}") for letter in "abcdefgh"]
    lab_record.put_long_first(items, 2)
    assert "".join(item.nodeid[-1] for item in items) == "ecabhdfg"

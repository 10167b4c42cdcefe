"""Record of dear tests that passed, so that a change runs those that depend on it, and few others.

A test is recorded with the hash of its inputs: the code that its file imports, without comments and docstrings,
the files of this repository that it reads, and the libraries below. While the hash holds, one such test in
twelve runs, and other ones at the next commit. `--record-lab` runs what the record does not hold, and adds what
passes; `--all-lab` runs all.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from code_inputs import ROOT, TESTS, code_inputs, package_data, read_source
from commit_draw import draw_number
from data_inputs import UnknownPath, data_imports, data_inputs, inputs_of_test

RECORD = TESTS / "lab" / "record.json"
ONE_IN = 12
"""Share of the recorded tests that runs: one in this many."""
DEAR_SECONDS = 1.0
"""Time from which a test is recorded."""
LONG_SECONDS = 10.0
"""Time from which a test is put first, recorded or not."""

_RECORDED = ("interchange", "kernels", "lab", "languages", "port", "profiling", "program")
"""Folders of tests that a record may skip; other tests run each time."""
_LIBRARIES = ("numpy", "torch", "triton")


class Passed(NamedTuple):
    """A dear test that passed."""

    inputs: str
    """Hash of its inputs; empty if they cannot be told, and it runs each time."""
    seconds: float


@cache
def inputs_sha256(name: str) -> str:
    """Return the hash of all that a test's result depends on; empty if that cannot be told."""
    path = ROOT / name.partition("::")[0]
    if path.relative_to(TESTS).parts[0] not in _RECORDED or not path.is_file():
        return ""
    try:
        data = inputs_of_test(name)
    except UnknownPath:
        return ""
    code = _code_sha256(code_inputs(path) | data_imports(data))
    return hashlib.sha256(f"{code} {_data_sha256(data)}".encode()).hexdigest()[:24]


@cache
def _code_sha256(code: frozenset[Path]) -> str:
    libraries = [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
    lines = [f"{each.relative_to(ROOT)} {read_source(each).sha256}" for each in sorted(code)]
    beside = _data_sha256(package_data(code))
    return hashlib.sha256(f"{sys.version_info[:2]} {libraries} {lines} {beside}".encode()).hexdigest()


@cache
def _data_sha256(places: frozenset[Path]) -> str:
    return hashlib.sha256("".join(_place_sha256(place) for place in sorted(places)).encode()).hexdigest()


@cache
def _place_sha256(place: Path) -> str:
    """Return the hash of a file, or of the names and contents of all files below a folder."""
    total = hashlib.sha256()
    for path in sorted(place.rglob("*")) if place.is_dir() else (place,):
        if path.is_file() and "__pycache__" not in path.parts and path != RECORD:
            total.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


def forget_files() -> None:
    """Have all files read anew."""
    for function in (
        inputs_sha256,
        _code_sha256,
        _data_sha256,
        _place_sha256,
        read_source,
        code_inputs,
        data_inputs,
        data_imports,
    ):
        function.cache_clear()


def read_record() -> dict[str, Passed]:
    """Return the tests of the record, whether it holds for them or not."""
    try:
        tests = json.loads(RECORD.read_text())["tests"]
    except (OSError, ValueError, KeyError):
        return {}
    return {name: Passed(*passed) for name, passed in tests.items()}


def held_tests() -> dict[str, Passed]:
    """Return the tests that passed with what is here now."""
    return {
        name: each for name, each in read_record().items() if each.inputs and each.inputs == inputs_sha256(name)
    }


def is_drawn(name: str) -> bool:
    """Return True if a recorded test runs at this commit."""
    return draw_number(name, ONE_IN) == 0


def skipped_tests(config: pytest.Config) -> frozenset[str]:
    """Return the recorded tests that do not run; a worker gets them from the process that started it."""
    known: list[str] | None = getattr(config, "workerinput", {}).get("skipped_tests")
    if known is not None:
        return frozenset(known)
    if config.option.all_lab:
        return frozenset()
    return frozenset(name for name in held_tests() if config.option.record_lab or not is_drawn(name))


def deselect_recorded(config: pytest.Config, items: list[pytest.Item], skipped: Iterable[str]) -> None:
    """Take recorded tests that do not run out of `items`."""
    names = frozenset(skipped)
    left_out = [item for item in items if item.nodeid in names]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in names]


def put_long_first(items: list[pytest.Item], workers: int) -> None:
    """Put the longest tests first in the shares of the workers, which get equal parts of the list.

    A long test that begins last would keep one worker busy while the others have nothing left.
    """
    seconds = {name: each.seconds for name, each in read_record().items() if each.seconds >= LONG_SECONDS}
    long = sorted((item for item in items if item.nodeid in seconds), key=lambda item: -seconds[item.nodeid])
    others = [item for item in items if item.nodeid not in seconds]
    share = -(-len(items) // workers)
    items.clear()
    for worker in range(workers):
        own = long[worker::workers]
        count = max(share - len(own), 0)
        items += own + others[:count]
        del others[:count]
    items += others


class Recorder:
    """Plugin that writes the record from a run's results."""

    def __init__(self) -> None:
        self._passed: dict[str, float] = {}
        self._failed: set[str] = set()
        self._before = {name: inputs_sha256(name) for name in _test_files()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect a dear test that passed, and any that failed."""
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed and report.duration >= DEAR_SECONDS:
            self._passed[report.nodeid] = round(report.duration, 1)

    def pytest_sessionfinish(self) -> None:
        """Write what passed, beside what the record already holds; not where a file has changed meanwhile."""
        forget_files()
        same = {name for name, inputs in self._before.items() if inputs == inputs_sha256(name)}
        tests = {
            name: each
            for name, each in read_record().items()
            if (each.inputs and each.inputs == inputs_sha256(name)) or each.seconds >= LONG_SECONDS
        }
        for name, seconds in self._passed.items():
            inputs = inputs_sha256(name) if name.partition("::")[0] in same else ""
            if inputs or seconds >= LONG_SECONDS:
                tests[name] = Passed(inputs, seconds)
        for name in self._failed & tests.keys():
            tests[name] = tests[name]._replace(inputs="")
        lines = [
            f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in sorted(tests.items()) if _exists(name)
        ]
        RECORD.write_text('{\n "tests": {\n' + ",\n".join(lines) + "\n }\n}\n")


def _test_files() -> list[str]:
    """List the files of tests that a record may name."""
    return [
        path.relative_to(ROOT).as_posix() for folder in _RECORDED for path in (TESTS / folder).rglob("test_*.py")
    ]


def _exists(name: str) -> bool:
    return (ROOT / name.partition("::")[0]).is_file()

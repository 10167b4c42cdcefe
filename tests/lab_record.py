"""Record of the lab's dear tests that passed, so that a change of a page or a command does not run them all again.

A record holds for the very same code of the lab, of its tests and of the libraries below it. Where it does, one
test in six runs, and another sixth at the next commit. Tests of kernels and languages are in it too, for the very
same kernels. `pytest --all-lab` runs all; `--record-lab` writes it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from commit_draw import draw_number

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).parent / "lab" / "record.json"
ONE_IN = 6
"""Share of the recorded tests that runs: one in this many."""
DEAR_SECONDS = 1.0
"""Time from which a test is recorded."""

_CODE = (
    "warpsmith/*.py",
    "warpsmith/core",
    "warpsmith/interchange",
    "warpsmith/lab",
    "warpsmith/languages",
    "warpsmith/profiling",
    "warpsmith/reporting/redteam.py",
)
"""Code that a recorded test may import from the package."""
_OTHERS = (
    "constraints.txt",
    "docs/knowledge/hardware",
    "kernels/*/definition.py",
    "tests/*.py",
    "tests/lab",
    "tests/redteam",
)
_RECORDED = ("lab", "kernels", "languages")
"""Folders of tests that a record may name."""
_ON_KERNELS = ("tests/kernels/", "tests/languages/")
"""Folders of tests whose results depend on kernels too."""
_OWN = re.compile(r"tests/(.*/)?test_\w+\.py|tests/lab_record\.py")
"""Files of tests, each of which counts for its own tests alone."""
_LIBRARIES = ("numpy", "torch", "triton")


def _files(patterns: tuple[str, ...] = (*_CODE, *_OTHERS)) -> Iterator[Path]:
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            inside = path.rglob("*") if path.is_dir() else (path,)
            yield from (p for p in inside if p.is_file() and "__pycache__" not in p.parts and p != RECORD)


@cache
def inputs_sha256() -> str:
    """Return the hash of what all tests of the lab depend on, which is all but the files of tests."""
    libraries = [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
    return _sha256(f"{sys.version_info[:2]} {libraries}", _files())


@cache
def kernels_sha256() -> str:
    """Return the hash of all kernels and of what their tests share."""
    return _sha256("", _files(("kernels", *_ON_KERNELS)))


def _sha256(text: str, paths: Iterable[Path]) -> str:
    """Return the hash of a text and of files, but for files of tests."""
    total = hashlib.sha256(text.encode())
    for path in sorted(set(paths)):
        name = path.relative_to(ROOT).as_posix()
        if not _OWN.fullmatch(name):
            total.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


@cache
def file_sha256(name: str) -> str:
    """Return the hash of a file of tests, with that of kernels where it is about them; empty if it is gone."""
    path = ROOT / name
    kernels = kernels_sha256() if name.startswith(_ON_KERNELS) else ""
    return hashlib.sha256(kernels.encode() + path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def is_covered(path: Path) -> bool:
    """Return True if all that a test file imports from the package is in the hash."""
    sources = {p for pattern in _CODE for p in ROOT.glob(pattern)}
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "warpsmith" and not _is_within(parts, sources):
                return False
    return True


def _is_within(parts: list[str], sources: set[Path]) -> bool:
    places = [ROOT.joinpath(*parts[:count]) for count in range(2, len(parts) + 1)]
    return any(place in sources or place.with_suffix(".py") in sources for place in places)


def read_record() -> dict[str, Any]:
    """Return the record as far as it holds for the present code: without tests whose file has changed."""
    try:
        record = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        record = {}
    if record.get("inputs_sha256") != inputs_sha256():
        return {}
    same = {name for name, sha256 in record["files"].items() if sha256 == file_sha256(name)}
    seconds = {name: each for name, each in record["seconds"].items() if name.partition("::")[0] in same}
    return {**record, "seconds": seconds}


def is_drawn(name: str) -> bool:
    """Return True if a recorded test runs at this commit."""
    return draw_number(name, ONE_IN) == 0


def deselect_recorded(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take recorded tests that are not drawn out of `items`."""
    if config.option.all_lab or config.option.record_lab:
        return
    passed = read_record().get("seconds", {})
    names = {name for name in passed if not is_drawn(name)}
    left_out = [item for item in items if item.nodeid in names]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in names]


class Recorder:
    """Plugin that writes the record from a run's results."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect a dear test that passed."""
        if report.when != "call" or not report.passed or report.duration < DEAR_SECONDS:
            return
        path = ROOT / report.nodeid.partition("::")[0]
        recorded = any(path.is_relative_to(RECORD.parents[1] / folder) for folder in _RECORDED)
        if recorded and is_covered(path):
            self._seconds[report.nodeid] = round(report.duration, 1)

    def pytest_sessionfinish(self) -> None:
        """Write what passed, beside what the record already holds for the same code."""
        if self._seconds:
            seconds = {**read_record().get("seconds", {}), **self._seconds}
            names = sorted({name.partition("::")[0] for name in seconds})
            record = {
                "inputs_sha256": inputs_sha256(),
                "measured": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
                "files": {name: file_sha256(name) for name in names},
                "seconds": dict(sorted(seconds.items())),
            }
            RECORD.write_text(json.dumps(record, indent=1) + "\n")

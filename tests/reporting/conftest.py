"""Fixtures of the tests of pages: small valid records, and an empty project."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import record_kit

from warpsmith.project import Project


@pytest.fixture
def make() -> SimpleNamespace:
    """The factories of the kit."""
    kit = vars(record_kit)
    constants = {name: kit[name] for name in ("HOSTILE", "BUSY")}
    return SimpleNamespace(**{name: value for name, value in kit.items() if callable(value)}, **constants)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs" / "knowledge")

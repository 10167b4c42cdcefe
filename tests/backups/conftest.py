"""A project in a temporary folder, outside of git."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    (root / "warpsmith.toml").write_text("")
    return projects.find_project(root)


@pytest.fixture
def script(project: Project) -> Path:
    """A file of ten lines, `0` to `9`."""
    path = project.root / "train.py"
    path.write_text("".join(f"{k}\n" for k in range(10)))
    return path

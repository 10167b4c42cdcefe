"""Sites for the tests: that of this repository, built once for all workers, and those of small projects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from warpsmith.project import Project

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def repository_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this repository, built by the command; workers share it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "popen" in base.name else base
    folder = shared / "repository-site"
    with FileLock(shared / "repository-site.lock"):
        if not folder.is_dir():
            command = [sys.executable, "-m", "warpsmith", "site", "--out", str(folder)]
            done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
            assert (done.returncode, [line for line in done.stderr.splitlines() if "Left out" in line]) == (0, [])
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "mine"
    root.mkdir()
    return Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import repo_kit

from warpsmith import project as projects
from warpsmith.project import Project
from warpsmith.repo import rounds, store
from warpsmith.repo.store import RepoCampaign


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests has git settings of their own."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


@pytest.fixture(scope="session")
def _started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = repo_kit.make(tmp_path_factory.mktemp("started").resolve() / "repo")
    rounds.start_repo_campaign(projects.find_project(root), "one", lambda _: None)
    return root


@pytest.fixture
def campaign(_started: Path, tmp_path: Path) -> RepoCampaign:
    """A campaign with its baseline, in a repository of the test's own."""
    root = tmp_path.resolve() / "repo"
    shutil.copytree(_started, root, symlinks=True)
    for side in ("edit", "base", "candidate"):
        place, its = root / store.STATE / "one" / side, root / ".git" / "worktrees" / side
        (place / ".git").write_text(f"gitdir: {its}\n")
        (its / "gitdir").write_text(f"{place}/.git\n")
    return store.find_repo_campaign(projects.find_project(root), "one")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return projects.find_project(repo_kit.make(tmp_path.resolve() / "repo"))

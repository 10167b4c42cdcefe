"""Projects in which screenplays play."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from filelock import FileLock
from harness import REPOSITORY
from screenplay import make_project

from warpsmith import project as projects
from warpsmith.campaign import start
from warpsmith.campaign.history.store import Campaign
from warpsmith.lab.calibration import measurement
from warpsmith.lab.machine import hardware


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This machine's ceilings and noise, measured once for all workers where they are not known yet."""
    folder = tmp_path_factory.getbasetemp().parent / "measured-machine"
    folder.mkdir(exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        (folder / "warpsmith.toml").touch()
        project = projects.find_project(folder)
        measurement.ensure_measurement(project, hardware.read_target_page(project, "cpu").target, lambda _: None)
    return project.measurements


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project with one small operator."""
    return make_project(tmp_path / "work")


@pytest.fixture
def judging(work: Path, measured: Path) -> Path:
    """The same, on a machine that was measured."""
    if measured.is_dir():
        shutil.copytree(measured, projects.find_project(work).measurements)
    return work


@pytest.fixture
def campaign(work: Path) -> Campaign:
    """An open campaign that waits for its first version."""
    return start.start_campaign(projects.find_project(work), "scale", "cpu", "cpp", peers=())


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A project with the campaign that ships: five rounds, two of them rolled back."""
    folder = tmp_path / "work"
    for part in ("kernels/rmsnorm", "devlog/rmsnorm"):
        shutil.copytree(REPOSITORY / part, folder / part)
    (folder / "warpsmith.toml").write_text("")
    return folder

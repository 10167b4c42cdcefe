"""Projects in which screenplays play."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fork_host import ForkHost
from harness import REPOSITORY
from screenplay import make_project

from warpsmith import project as projects
from warpsmith.campaign import start
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.hardware import Ceiling, Measurement, Noise
from warpsmith.lab.machine import hardware, identity, measurement_store

SHIPPED = (
    ".claude",
    ".claude-plugin",
    "agents",
    "bin",
    "devlog",
    "docs/knowledge",
    "hooks",
    "kernels",
    "plugin",
    "skills",
    "tests/redteam",
    "warpsmith",
    "CHANGES.md",
    "LICENSE",
    "README.md",
    "constraints.txt",
    "pyproject.toml",
)

IGNORED = shutil.ignore_patterns("*.local.json", "worktrees", "__pycache__")


@pytest.fixture
def clean_copy(tmp_path: Path) -> Path:
    """The plugin as a clean archive of the repository holds it, in a repository of its own."""
    folder = tmp_path / "repository"
    for part in SHIPPED:
        source = REPOSITORY / part
        if source.is_dir():
            shutil.copytree(source, folder / part, symlinks=True, ignore=IGNORED)
        else:
            shutil.copy(source, folder / part)
    git = ["git", "-c", "user.name=u", "-c", "user.email=u@example.org"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}
    for words in (["init", "-q", "--template="], ["add", "-A"], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *words], cwd=folder, env=env, check=True)
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project with one small operator."""
    return make_project(tmp_path / "work")


@pytest.fixture
def judging(work: Path) -> Path:
    """The same, with a made-up measurement of this machine, whose ceilings nothing exceeds."""
    project = projects.find_project(work)
    machine = identity.identify_machine(hardware.read_target_page(project, "cpu").target)
    ceiling = Ceiling(value=1e4, unit="GB/s", best=1.1e4, spread=0.01, how="made up")
    compute = ceiling.model_copy(update={"unit": "GFLOP/s"})
    measurement = Measurement(
        machine=machine,
        measured="2026-01-01 00:00",
        ceilings=dict.fromkeys(("read", "copy", "triad"), ceiling)
        | dict.fromkeys(("fma_float32", "fma_float64"), compute),
        noise=Noise(floor=0.05, trials=2, how="made up"),
    )
    measurement_store.save_measurement(project, measurement)
    return work


@pytest.fixture
def forked_commands(fork_host: ForkHost) -> dict[str, str]:
    """Environment in which `warpsmith` is forked, for screenplays in which it imports PyTorch."""
    return {"WARPSMITH_PYTHON": str(fork_host.python)}


@pytest.fixture
def scripted_clock(forked_commands: dict[str, str]) -> dict[str, str]:
    """The same, and `warpsmith` judges by scripted times."""
    return {"PYTHONPATH": str(Path(__file__).with_name("clock")), **forked_commands}


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

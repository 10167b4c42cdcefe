"""`bin/warpsmith` finds the lab where a user would expect it, or says the one command that installs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """The plugin as it is installed: without an environment of its own."""
    folder = tmp_path / "plugin"
    for part in ("bin", ".claude-plugin", "warpsmith"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def environment(folder: Path, says: str) -> Path:
    """A stand-in for an environment with the lab in it."""
    for name in ("warpsmith", "python"):
        program = folder / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{says} $*"\n')
        program.chmod(0o755)
    return folder


def run(plugin: Path, cwd: Path, *args: str, event: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "PYTHONDONTWRITEBYTECODE": "1", **env}
    launcher = plugin / "bin" / "warpsmith"
    return subprocess.run([launcher, *args], cwd=cwd, env=bare, input=event, capture_output=True, text=True)


@pytest.mark.parametrize("below", ["", "a/b"])
def test_the_projects_environment_comes_first(plugin, tmp_path, below):
    environment(tmp_path / "mine" / ".venv", "project")
    active = environment(tmp_path / "active", "active")
    cwd = tmp_path / "mine" / below
    cwd.mkdir(parents=True, exist_ok=True)
    assert run(plugin, cwd, "next", VIRTUAL_ENV=str(active)).stdout == "project next\n"


def test_then_the_active_one(plugin, tmp_path):
    active = environment(tmp_path / "active", "active")
    assert run(plugin, tmp_path, "next", VIRTUAL_ENV=str(active)).stdout == "active next\n"
    assert run(plugin, tmp_path, "next", CONDA_PREFIX=str(active)).stdout == "active next\n"


def test_then_the_path_but_no_other_launcher(plugin, tmp_path):
    other = environment(tmp_path / "tools", "tools") / "bin"
    older = environment(tmp_path / "older", "older") / "bin"
    (tmp_path / "older" / ".claude-plugin").mkdir()
    (tmp_path / "older" / ".claude-plugin" / "plugin.json").write_text("{}")
    path = f"{plugin / 'bin'}:{older}:{other}:/usr/bin:/bin"
    assert run(plugin, tmp_path, "next", PATH=path).stdout == "tools next\n"


def test_a_chosen_python_wins(plugin, tmp_path):
    environment(tmp_path / ".venv", "project")
    done = run(plugin, tmp_path, "--version", WARPSMITH_PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    assert done.stdout.strip() == "0.1.0", done.stderr


@pytest.mark.parametrize("where", ["plugin/.venv", ".local/share/warpsmith/venv", "data/warpsmith/venv"])
def test_the_plugins_own_environment(plugin, tmp_path, where):
    """It stands outside of the plugin's folder, which every update replaces; a clone may have its own."""
    own = environment(tmp_path / where, "own")
    (own / "lib" / "python3.11" / "site-packages" / "pydantic").mkdir(parents=True)
    env = {"XDG_DATA_HOME": str(tmp_path / "data")} if where.startswith("data") else {}
    assert run(plugin, tmp_path, "next", **env).stdout == "own -P -m warpsmith next\n"


@pytest.mark.parametrize("where", ["nothing", "venv", "active"])
def test_a_missing_lab_names_the_one_command(plugin, tmp_path, where):
    # A python3 that has no library: what stands first on PATH is a bare one.
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (bare / "python3").chmod(0o755)
    cwd = tmp_path / "mine"
    cwd.mkdir()
    env = {"PATH": f"{bare}:/usr/bin:/bin"}
    expected = f"python3 -m venv '{cwd}/.local/share/warpsmith/venv' && "
    if where == "venv":
        (environment(cwd / ".venv", "x") / "bin" / "warpsmith").unlink()
        expected = f"'{cwd}/.venv/bin/python' -m pip install "
    if where == "active":
        env["VIRTUAL_ENV"] = str(tmp_path / "active")
        expected = f"'{tmp_path}/active/bin/python' -m pip install "
    done = run(plugin, cwd, "next", **env)
    assert done.returncode == 4
    assert done.stdout == ""
    assert f"run: {expected}" in done.stderr
    assert f"'{plugin}[lab,triton]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    hook = run(plugin, cwd, "hook", "guard", event="{}", **env)
    assert (hook.returncode, hook.stdout, hook.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["guard", "stop", "answer", "session"])
def test_a_hook_starts_no_python_where_nothing_is_recorded(plugin, tmp_path, name):
    environment(tmp_path / ".venv", "python ran")
    event = json.dumps({"cwd": str(tmp_path), "tool_input": {"command": "rm -rf build"}})
    assert run(plugin, tmp_path, "hook", name, event=event).stdout == ""


@pytest.mark.parametrize(
    "trace", ["devlog/op/campaign/manifest.yaml", "devlog/programs/p/plan.json", "devlog/repo/r/campaign.json"]
)
@pytest.mark.parametrize("below", ["", "src/deep"])
def test_a_hook_runs_below_a_campaign_a_program_or_a_repository(plugin, tmp_path, trace, below):
    environment(tmp_path / ".venv", "python ran")
    (tmp_path / trace).parent.mkdir(parents=True)
    (tmp_path / trace).write_text("")
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    assert run(plugin, tmp_path / below, "hook", "guard", event="{}").stdout == "python ran hook guard\n"


@pytest.mark.parametrize("settings", ["warpsmith.toml", "pyproject.toml"])
def test_a_hook_runs_where_the_settings_name_another_devlog(plugin, tmp_path, settings):
    environment(tmp_path / ".venv", "python ran")
    (tmp_path / settings).write_text('devlog = "records"\n')
    assert run(plugin, tmp_path, "hook", "guard", event="{}").stdout == "python ran hook guard\n"


@pytest.mark.parametrize(
    "event", ["warpsmith start scale", "/elsewhere/devlog/x", "cd p && rm -r devlog", "kernels/scale/v1.cpp"]
)
def test_a_hook_runs_if_the_event_names_a_campaigns_files(plugin, tmp_path, event):
    """It gets the event though the launcher has read it."""
    program = environment(tmp_path / ".venv", "") / "bin" / "warpsmith"
    program.write_text("#!/bin/sh\ncat\n")
    text = json.dumps({"tool_input": {"command": f"{event} \\n $HOME `x` 'y' \"z\""}})
    assert run(plugin, tmp_path, "hook", "guard", event=text).stdout.strip() == text


def test_through_a_link(plugin, tmp_path):
    active = environment(tmp_path / "active", "active")
    link = tmp_path / "link"
    link.symlink_to(plugin / "bin" / "warpsmith")
    done = subprocess.run(
        [link, "next"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": str(active)},
        capture_output=True,
    )
    assert done.stdout == b"active next\n"

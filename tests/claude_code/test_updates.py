"""A landing reaches those who have installed the plugin from an address: the commit is its version."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from git_server import serve_repositories
from harness import REPOSITORY

from tools.claude_cli import claude_command
from tools.plugin_check import list_plugin_faults

LINKS = REPOSITORY / "plugin"
NOTE = "A line of the second landing."


def git(folder: Path, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_GLOBAL": os.devnull}
    user = ("-c", "user.name=u", "-c", "user.email=u@example.org")
    subprocess.run(["git", *user, *words], cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture
def served(clean_copy: Path, tmp_path: Path) -> Path:
    """The folder of a bare repository that the plugin's own repository pushes to."""
    folder = tmp_path / "served"
    folder.mkdir()
    git(folder, "clone", "-q", "--bare", str(clean_copy), "warpsmith.git")
    git(clean_copy, "remote", "add", "origin", str(folder / "warpsmith.git"))
    return folder


def check_installed_files(source: Path, installed: Path) -> None:
    """Check that the installed plugin holds what `plugin/` links to, as files of its own, and nothing else."""
    assert {path.name for path in installed.iterdir()} - {".in_use"} <= {path.name for path in LINKS.iterdir()}
    assert [path.name for path in (installed / "tests").iterdir()] == ["redteam"]
    assert not [path for path in installed.rglob("*") if path.is_symlink()]
    for part in ("bin/warpsmith", "skills/status/SKILL.md", "warpsmith/cli/main.py"):
        assert (installed / part).read_bytes() == (source / part).read_bytes()


def test_an_update_brings_a_changed_skill(served, clean_copy, tmp_path):
    home = tmp_path / "home"

    def plugin(*words: str) -> str:
        done = claude_command(home, "plugin", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def installed_skill() -> str:
        (entry,) = json.loads(plugin("list", "--json"))
        return (Path(entry["installPath"]) / "skills" / "status" / "SKILL.md").read_text()

    with serve_repositories(served) as address:
        plugin("marketplace", "add", f"{address}/warpsmith.git")
        plugin("install", "warpsmith@warpsmith-market")
        assert NOTE not in installed_skill()
        check_installed_files(clean_copy, Path(json.loads(plugin("list", "--json"))[0]["installPath"]))
        page = clean_copy / "skills" / "status" / "SKILL.md"
        page.write_text(f"{page.read_text()}\n{NOTE}\n")
        git(clean_copy, "commit", "-qam", "second landing")
        git(clean_copy, "push", "-q", "origin", "HEAD")
        plugin("marketplace", "update", "warpsmith-market")
        assert "updated from" in plugin("update", "warpsmith@warpsmith-market")
        assert NOTE in installed_skill()


def test_the_manifest_names_no_version_that_would_stand_still():
    manifest = json.loads((REPOSITORY / ".claude-plugin" / "plugin.json").read_text())
    assert "version" not in manifest


def test_the_validator_finds_nothing(clean_copy):
    assert list_plugin_faults(clean_copy) == []
    manifest = clean_copy / ".claude-plugin" / "plugin.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"unheard": 1}))
    assert list_plugin_faults(clean_copy)

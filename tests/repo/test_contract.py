"""Where the contract is read from, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
import repo_kit

from warpsmith import project as projects
from warpsmith.errors import MissingInput, Misuse
from warpsmith.project import Project
from warpsmith.repo import settings


def test_it_is_read_from_pyproject(project: Project):
    found = settings.load_settings(project)
    assert found.kernel == (repo_kit.KERNEL,)
    assert found.metrics == {"forward": "lower", "backward": "lower"}


def test_it_is_read_from_warpsmith_toml(project: Project):
    (project.root / "warpsmith.toml").write_text(
        f"[project]\n{repo_kit.CONTRACT}repeats = 7\n".replace("repeats = 2\n", "")
    )
    assert settings.load_settings(projects.find_project(project.root)).repeats == 7


def test_the_hash_follows_the_contract(project: Project):
    found = settings.load_settings(project)
    assert settings.settings_sha256(found) == settings.settings_sha256(settings.load_settings(project))
    assert settings.settings_sha256(found) != settings.settings_sha256(found.model_copy(update={"repeats": 9}))


def test_none_is_named_with_its_place(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    with pytest.raises(MissingInput, match=r"pyproject\.toml, \[tool\.warpsmith\.project\] does not exist"):
        settings.load_settings(projects.find_project(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tset = 'x'\n", "unknown key `tset`"),
        ("kernel = 'gone.py'\n", r"`kernel` names gone\.py, which is not a file"),
    ],
)
def test_a_mistake_is_one_sentence(project: Project, text: str, words: str):
    kept = "".join(line for line in repo_kit.CONTRACT.splitlines(True) if line.split()[0] != text.split()[0])
    (project.root / "warpsmith.toml").write_text(f"[project]\n{text}{kept}")
    with pytest.raises(Misuse, match=words) as raised:
        settings.load_settings(projects.find_project(project.root))
    assert "\n" not in str(raised.value)


def test_no_table_is_a_mistake(project: Project):
    (project.root / "warpsmith.toml").write_text("project = 3\n")
    with pytest.raises(Misuse, match=r"warpsmith\.toml, \[project\]"):
        settings.load_settings(projects.find_project(project.root))

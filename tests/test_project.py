"""Project: which folder is the root, where its folders are, and what a bad configuration says."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.errors import Misuse


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "root"
    (made / "deep" / "er").mkdir(parents=True)
    return made


def test_the_nearest_warpsmith_toml_is_the_root(root: Path):
    (root / "warpsmith.toml").write_text("")
    (root / "deep" / "warpsmith.toml").write_text('kernels = "k"\n')
    assert projects.find_project(root).root == root
    inner = projects.find_project(root / "deep" / "er")
    assert (inner.root, inner.kernels) == (root / "deep", root / "deep" / "k")


def test_the_folders_have_defaults_and_may_be_named(root: Path):
    (root / "warpsmith.toml").write_text('devlog = "logs/campaigns"\nknowledge = "known"\n')
    found = projects.find_project(root / "deep")
    assert found.kernels == root / "kernels"
    assert found.devlog == root / "logs" / "campaigns"
    assert found.knowledge == root / "known"
    assert found.definition_path("norm") == root / "kernels" / "norm" / "definition.py"
    assert found.measurements == root / "known" / "hardware" / "measured"


def test_a_pyproject_counts_where_it_has_the_table(root: Path):
    (root / "pyproject.toml").write_text('[tool.warpsmith]\nkernels = "k"\n')
    (root / "deep" / "pyproject.toml").write_text('[project]\nname = "x"\n')
    found = projects.find_project(root / "deep" / "er")
    assert (found.root, found.kernels) == (root, root / "k")


def test_an_empty_table_counts(root: Path):
    (root / "pyproject.toml").write_text("[tool.warpsmith]\n")
    assert projects.find_project(root / "deep").root == root


def test_warpsmith_toml_wins_over_the_pyproject_beside_it(root: Path):
    (root / "pyproject.toml").write_text('[tool.warpsmith]\nkernels = "theirs"\n')
    (root / "warpsmith.toml").write_text('kernels = "own"\n')
    assert projects.find_project(root).kernels == root / "own"


@pytest.mark.parametrize("worktree", [False, True])
def test_without_configuration_the_checkout_is_the_root(root: Path, worktree: bool):
    if worktree:
        (root / ".git").write_text("gitdir: elsewhere\n")
    else:
        (root / ".git").mkdir()
    assert projects.find_project(root / "deep" / "er").root == root


def test_a_configuration_above_wins_over_a_checkout_inside(root: Path):
    (root / "warpsmith.toml").write_text("")
    (root / "deep" / ".git").mkdir()
    assert projects.find_project(root / "deep").root == root


def test_without_anything_it_is_the_folder_itself(root: Path, monkeypatch: pytest.MonkeyPatch):
    assert projects.find_project(root / "deep").root == root / "deep"
    monkeypatch.chdir(root / "deep" / "er")
    assert projects.find_project().root == root / "deep" / "er"
    assert not list((root / "deep" / "er").iterdir())


@pytest.mark.parametrize(
    ("name", "text"),
    [("warpsmith.toml", 'kernel = "k"\n'), ("pyproject.toml", '[tool.warpsmith]\nkernel = "k"\n')],
)
def test_an_unknown_key_is_named_with_those_that_are_known(root: Path, name: str, text: str):
    (root / name).write_text(text)
    known = r"known: \['contexts', 'devlog', 'kernels', 'knowledge', 'project'\]"
    with pytest.raises(Misuse, match=rf"unknown keys \['kernel'\]; {known}"):
        projects.find_project(root / "deep")


@pytest.mark.parametrize("name", ["warpsmith.toml", "pyproject.toml"])
@pytest.mark.parametrize("content", [b"kernels = \n", b"\xff\xfe"])
def test_what_does_not_parse_is_named(root: Path, name: str, content: bytes):
    (root / name).write_bytes(content)
    with pytest.raises(Misuse, match=f"{name} does not parse"):
        projects.find_project(root)


def test_paths_are_relative_to_the_root_where_they_are_below_it(root: Path):
    (root / "warpsmith.toml").write_text("")
    found = projects.find_project(root)
    assert found.relative(root / "deep" / ".." / "deep" / "x.py") == "deep/x.py"
    assert found.relative(root.parent / "x.py") == str(root.parent / "x.py")


def test_the_own_knowledge_comes_before_what_ships(root: Path, monkeypatch: pytest.MonkeyPatch):
    (root / "warpsmith.toml").write_text("")
    found = projects.find_project(root)
    shipped = projects.SHIPPED / "docs" / "knowledge"
    assert found.knowledge_layers == (root / "docs" / "knowledge", shipped)
    assert shipped.is_dir()
    monkeypatch.setattr(projects, "SHIPPED", root)
    assert found.knowledge_layers == (root / "docs" / "knowledge",)


@pytest.mark.parametrize("trace", ["kernels/scale/definition.py", "devlog/scale/one/manifest.yaml"])
def test_without_git_the_folder_above_that_holds_a_campaign_is_the_root(root: Path, trace: str):
    (root / trace).parent.mkdir(parents=True)
    (root / trace).write_text("")
    assert projects.find_project(root / "deep" / "er").root == root
    assert projects.find_project((root / trace).parent).root == root


def test_a_project_is_marked_once_and_keeps_its_settings(root: Path):
    project = projects.find_project(root)
    assert projects.mark_project(project)
    assert not projects.mark_project(project)
    (root / "below").mkdir()
    assert projects.find_project(root / "below").root == root
    (root / projects.MARKER).unlink()
    (root / "pyproject.toml").write_text("[tool.warpsmith]\n")
    assert not projects.mark_project(project)
    assert not (root / projects.MARKER).exists()

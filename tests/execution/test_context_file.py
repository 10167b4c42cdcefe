"""Adding and removing contexts leaves every other line of the file as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.errors import Misuse
from warpsmith.execution import context_file, contexts
from warpsmith.execution.contexts import Context
from warpsmith.project import Project

LAB = Context(ssh="gpu01", workdir='/data/"x"/é', variables=("A", "B"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    return projects.find_project(tmp_path / "project")


@pytest.mark.parametrize(
    "before", ["", "# mine\n\n[contexts.one]\nssh = 'one' # quoted\n", "[contexts.one]\nssh = 'o'"]
)
def test_a_context_comes_and_goes(here: Project, before: str) -> None:
    file = contexts.user_contexts_file()
    if before:
        file.parent.mkdir(parents=True)
        file.write_text(before)
    assert context_file.save_context(here, "lab", LAB, shared=False) == file
    assert file.read_text().startswith(before)
    entry = contexts.find_context(here, "lab")
    assert (entry.context, entry.origin) == (LAB, "yours")
    context_file.save_context(here, "last", Context(ssh="l"), shared=False)
    context_file.remove_context(entry)
    assert "lab" not in contexts.list_contexts(here)
    context_file.remove_context(contexts.find_context(here, "last"))
    assert file.read_text().rstrip("\n") == before.rstrip("\n")


def test_a_name_with_a_dot(here: Project) -> None:
    context_file.save_context(here, "lab.two", Context(ssh="l"), shared=False)
    context_file.remove_context(contexts.find_context(here, "lab.two"))
    assert contexts.list_contexts(here) == {}


def test_a_shared_context_marks_the_project(here: Project) -> None:
    file = context_file.save_context(here, "lab", Context(ssh="gpu01"), shared=True)
    assert file == here.root / "warpsmith.toml"
    assert contexts.find_context(projects.find_project(here.root / "deep"), "lab").origin == "shared"


def test_a_project_in_a_pyproject(here: Project) -> None:
    pyproject = here.root / "pyproject.toml"
    pyproject.write_text('[tool.warpsmith]\nkernels = "k"\n\n[tool.ruff]\nline-length = 99\n')
    assert context_file.save_context(here, "lab", Context(ssh="gpu01"), shared=True) == pyproject
    assert projects.find_project(here.root).kernels == here.root / "k"
    context_file.remove_context(contexts.find_context(here, "lab"))
    assert pyproject.read_text() == '[tool.warpsmith]\nkernels = "k"\n\n[tool.ruff]\nline-length = 99\n'


def test_a_form_that_only_a_person_edits_is_left_alone(here: Project) -> None:
    file = here.root / "warpsmith.toml"
    text = 'contexts = { lab = { ssh = "gpu01" } }\n'
    file.write_text(text)
    with pytest.raises(Misuse, match="edit the file by hand"):
        context_file.remove_context(contexts.find_context(here, "lab"))
    with pytest.raises(Misuse, match="edit the file by hand"):
        context_file.save_context(here, "two", Context(ssh="gpu02"), shared=True)
    assert file.read_text() == text

"""Rendered files: rendered again if their inputs changed, or if they are not on disk as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import derived_rows
from warpsmith.project import Project
from warpsmith.reporting.rendering import rendered_files
from warpsmith.reporting.rendering.rendered_files import RenderedFiles


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs")


@pytest.fixture
def page(project: Project) -> Path:
    """A page that was rendered from `one`."""
    rendered, path = RenderedFiles(project), project.devlog / "page.md"
    rendered.add(path, "one", lambda: "first\n")
    assert rendered.write() == [path]
    return path


def render(project: Project, path: Path, inputs: str, text: str) -> tuple[bool, bool]:
    """Add a file and write; return whether it was rendered, and whether it was written."""
    calls = []
    rendered = RenderedFiles(project)
    rendered.add(path, inputs, lambda: calls.append(path) or text)
    return rendered.write() == [path], bool(calls)


def test_the_same_inputs_are_not_rendered_again(project: Project, page: Path) -> None:
    assert render(project, page, "one", "never\n") == (False, False)
    assert page.read_text() == "first\n"


def test_other_inputs_are(project: Project, page: Path) -> None:
    assert render(project, page, "two", "second\n") == (True, True)
    assert page.read_text() == "second\n"
    assert render(project, page, "one", "second\n") == (False, True), "the text is the same, and stays"


@pytest.mark.parametrize("harm", ["edit", "remove", "lose the index"])
def test_a_file_that_is_not_as_it_was_written_is_rendered(project: Project, page: Path, harm: str) -> None:
    if harm == "edit":
        page.write_text("FIRST\n")
    elif harm == "remove":
        page.unlink()
    else:
        derived_rows.rows_path(project.root).unlink()
    assert render(project, page, "one", "first\n")[1]
    assert page.read_text() == "first\n"


def test_content_that_is_rendered_already_is_written_if_it_differs(project: Project) -> None:
    path = project.devlog / "race.svg"
    for content, changed in ((b"a", True), (b"a", False), (b"b", True)):
        rendered = RenderedFiles(project)
        rendered.add_content(path, content)
        assert rendered.write() == ([path] if changed else [])
        assert path.read_bytes() == content


def test_nothing_is_written_if_one_does_not_render(project: Project) -> None:
    rendered = RenderedFiles(project)
    rendered.add(project.devlog / "a.md", "one", lambda: "a\n")
    rendered.add(project.devlog / "b.md", "one", lambda: str(1 / 0))
    with pytest.raises(ZeroDivisionError):
        rendered.write()
    assert not project.devlog.exists()


def test_other_code_has_other_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    first = rendered_files.hash_inputs("a", "b")
    assert first != rendered_files.hash_inputs("ab", "")
    monkeypatch.setattr(derived_rows, "code_state", lambda: "other")
    assert rendered_files.hash_inputs("a", "b") != first

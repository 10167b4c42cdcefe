"""Tests for the naming rules: each offence is reported once, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.naming import ROOT, list_offences, parse_sources


@pytest.mark.parametrize(
    ("source", "rule", "line"),
    [
        pytest.param("def read_all():\n    found = 1\n", "name", 2, id="participle"),
        pytest.param("def made():\n    pass\n", "name", 1, id="function"),
        pytest.param('def read_all():\n    """Whether all is read."""\n', "docstring", 1, id="function-docstring"),
        pytest.param(
            'class Page:\n    size: int\n    """How big it is."""\n', "docstring", 3, id="field-docstring"
        ),
        pytest.param('LIMIT = 3\n"""Why it stops."""\n', "docstring", 2, id="constant-docstring"),
        pytest.param('class Page:\n    """A page."""\n', "docstring", 1, id="short-docstring"),
    ],
)
def test_an_offence_is_listed(tmp_path: Path, source: str, rule: str, line: int) -> None:
    """A file with one offence yields it, and nothing else."""
    module = tmp_path / "warpsmith" / "page.py"
    module.parent.mkdir()
    module.write_text(source, encoding="utf-8")
    assert [(item.rule, item.line) for item in list_offences(parse_sources(tmp_path))] == [(rule, line)]


def test_a_name_stands_once(tmp_path: Path) -> None:
    """A class and a public function that two modules define are offences at each of their sites."""
    for name in ("first", "second"):
        module = tmp_path / "warpsmith" / f"{name}.py"
        module.parent.mkdir(exist_ok=True)
        module.write_text("class Page:\n    size = 1\n\n\ndef read_page():\n    pass\n", encoding="utf-8")
    paths = {item.path.name for item in list_offences(parse_sources(tmp_path))}
    assert paths == {"first.py", "second.py"}


def test_the_package_has_no_offence() -> None:
    """The package and its tools keep the rules."""
    assert not list_offences(parse_sources(ROOT))

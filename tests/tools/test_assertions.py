"""The rule that tests assert facts, not sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import assertions

SENTENCE = "The version was not accepted since it is slower than the best one here"
"""Fourteen words."""


def lines_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "test_a.py"
    path.write_text(text, encoding="utf-8")
    return assertions.list_sentences(path)


@pytest.mark.parametrize(
    "line",
    [
        f'assert "{SENTENCE}" in page',
        f'assert page == f"{{name}}: {SENTENCE}"',
        f'assert page == [("a", "{SENTENCE[:30]}"\n"{SENTENCE[30:]}")]',
        f'pytest.raises(ValueError, match="{SENTENCE}")',
    ],
)
def test_a_sentence_is_an_offence(tmp_path: Path, line: str):
    (offence,) = lines_of(tmp_path, line)
    assert "test_a.py:1: " in offence
    assert " 14 words" in offence


@pytest.mark.parametrize(
    "line",
    [
        'assert "slower than the best" in page',
        f'page = "{SENTENCE}"',
        f'assert page == "a\\n{SENTENCE}"',
        f'assert row == "| a | {SENTENCE} |"',
        'assert files == "a.py b.py c.py d.py e.py f.py g.py h.py i.py j.py k.py"',
    ],
)
def test_facts_inputs_and_layouts_are_none(tmp_path: Path, line: str):
    assert lines_of(tmp_path, line) == []


def test_the_exit_code_says_that_there_are_offences(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lines_of(tmp_path, f'assert "{SENTENCE}"')
    assert assertions.main([str(tmp_path)]) == 1
    assert "assertions: 1 in 1 modules" in capsys.readouterr().out

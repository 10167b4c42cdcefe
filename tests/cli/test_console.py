"""What people are told on stderr."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.cli import console
from warpsmith.core.text import NoticeLine


def test_a_table_in_a_pipe_is_not_padded_to_its_widest_row(capsys: pytest.CaptureFixture[str]):
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("a", "short")
    table.add_row("b", "much longer than that")
    console.stdout().print(table)
    assert capsys.readouterr().out == "a  short\nb  much longer than that\n"


def test_a_line_for_people_is_neither_wrapped_nor_read_as_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Else a command in it does not survive copying, and a path with brackets is not the path."""
    monkeypatch.setenv("COLUMNS", "40")
    line = f"Started devlog/[bold]softmax/{'x' * 30}; go on with `warpsmith next`."
    console.tell(line)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"{line}\n")


def test_a_path_is_as_it_is_typed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert console.path_from_here(tmp_path / "devlog" / "report.md") == "devlog/report.md"
    assert console.path_from_here(tmp_path.parent / "report.md") == str(tmp_path.parent / "report.md")


def test_phases_are_written_where_no_bar_can_be_drawn(capsys: pytest.CaptureFixture[str]):
    for phases in (False, True):
        with console.progress(phases=phases) as tell:
            tell("timing both in turns")
            tell(NoticeLine("the device is busy"))
    lines = capsys.readouterr().err.split("warpsmith: ")
    assert "".join(lines).split("\n") == [
        "the device is busy", "timing both in turns", "the device is busy", "",
    ]  # fmt: skip

"""The page of commands: every command with its options, and a check that fails when it is stale."""

from __future__ import annotations

import pytest

from tools import commands_page
from warpsmith.cli.listing import PANELS


def test_every_command_has_a_section_with_its_options():
    page = commands_page.render_page()
    for heading, names in PANELS.items():
        assert f"\n## {heading}\n" in page
        for name in names:
            assert f"\n### `warpsmith {name}`\n" in page
    assert "\n### `warpsmith knowledge search`\n" in page
    assert "| `--objective <time\\|energy>` | " in page
    assert "kernels/\\<op>" in page


def test_a_stale_page_fails_the_check_until_it_is_written(tmp_path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(commands_page, "PAGE", tmp_path / "commands.md")
    assert commands_page.main(["--check"]) == 1
    assert "python -m tools.commands_page" in capsys.readouterr().err
    assert commands_page.main([]) == 0
    assert commands_page.main(["--check"]) == 0
    (tmp_path / "commands.md").write_text("# Commands\n")
    assert commands_page.main(["--check"]) == 1

"""Compilers are stopped in time, and what they say cannot leave its fence."""

from __future__ import annotations

import sys
import time

import psutil
import pytest

from warpsmith.languages.shared import tool


def test_gives_status_and_output(tmp_path):
    code = "import os, sys; print(os.environ['LC_ALL'], os.environ['X'], os.getcwd()); "
    code += "sys.stderr.write('e'); sys.exit(3)"
    ended = tool.run_tool([sys.executable, "-c", code], 30, cwd=tmp_path, environment={"X": "given"})
    assert ended.code == 3
    assert "C given" in ended.output
    assert str(tmp_path) in ended.output
    assert ended.output.endswith("e")


def test_tools_get_no_secrets(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "a secret")
    ended = tool.run_tool([sys.executable, "-c", "import os; print(sorted(os.environ))"], 30)
    assert "PATH" in ended.output
    assert "DATABASE_URL" not in ended.output


def test_time_out_ends_children_too(tmp_path):
    pid = tmp_path / "pid"
    with pytest.raises(TimeoutError, match=r"0\.5 s"):
        tool.run_tool(["sh", "-c", f"sleep 200 & echo $! > {pid}; wait"], 0.5)
    child, deadline = int(pid.read_text()), time.monotonic() + 60
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not psutil.pid_exists(child)


def test_fence_cannot_be_ended_or_flooded():
    text = tool.fence_lines(["a\x1b[31mred\u202e", "```", "c" * 9999, *"defghij"])
    lines = text.splitlines()
    assert lines[0] == lines[-1] == "```"
    assert lines[1] == "a[31mred"
    assert text.count("```") == 2
    assert len(lines) == 10
    assert max(map(len, lines)) <= 240

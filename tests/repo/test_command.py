"""Commands: nothing that they start outlives them, or whoever asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpsmith.lab.workers import process
from warpsmith.repo import command
from warpsmith.repo.command import FinishedCommand

DOUBLE_FORK = "setsid sh -c 'setsid sleep 300 & echo $! > pid' & wait; sleep 0.1"


def run(text: str, folder: Path, limit: float = 20) -> FinishedCommand:
    return command.run_command(text, folder, limit, folder / "logs" / "x.out", {"OWN": "1"})


def dead(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while process.is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_output_environment_and_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    done = run('echo "$OWN$GIT_DIR"; echo oops >&2; pwd; exit 3', tmp_path)
    assert done.output.split() == ["1", str(tmp_path)]
    assert (done.exit_code, done.ok) == (3, False)
    assert done.failure == f"exit code 3: {tmp_path}; oops"


def test_the_last_line_says_why(tmp_path: Path):
    assert run("echo one; echo '2 failed'; exit 1", tmp_path).failure == "exit code 1: 2 failed"


def test_a_command_that_never_ends_is_stopped(tmp_path: Path):
    done = run("echo begun; sleep 300 & echo $! > pid; sleep 300", tmp_path, 0.5)
    assert done.exit_code is None
    assert done.seconds < 300  # it would sleep that long
    assert done.failure == "stopped after its limit of 0.5 s: begun"
    assert dead(int((tmp_path / "pid").read_text()))


def test_what_forks_away_is_killed_and_counted(tmp_path: Path):
    done = run(DOUBLE_FORK, tmp_path)
    assert done.ok
    assert done.left_running == 1
    assert dead(int((tmp_path / "pid").read_text()))
    assert "1 processes running" in done.failure


def test_a_killed_shell_is_no_success(tmp_path: Path):
    assert run("kill -9 $$", tmp_path).exit_code == 128 + signal.SIGKILL


def test_nothing_outlives_a_killed_warpsmith(tmp_path: Path):
    text = (
        "from pathlib import Path; from warpsmith.repo import command;"
        "command.run_command('echo $$ > shell; sleep 300 & echo $! > pid; wait', Path('.'), 300, Path('x.out'))"
    )
    ours = subprocess.Popen((sys.executable, "-c", text), cwd=tmp_path, start_new_session=True)
    deadline = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(ours.pid, signal.SIGKILL)
    ours.wait()
    assert dead(int((tmp_path / "pid").read_text()))
    assert dead(int((tmp_path / "shell").read_text()))


OUTPUTS = {
    "gcc": ("In file included from a.h:1:\nsrc/k.cpp:7:12: error: expected ';'\nmore", "src/k.cpp:7:12: error"),
    "nvcc": ("k.cu(12): error: identifier x is undefined\n1 error", "k.cu(12): error"),
    "cython": ("Error compiling Cython file:\n...\n_k.pyx:4:8: undeclared name", "_k.pyx:4:8"),
    "linker": (
        "/usr/bin/ld: k.o: in function f: undefined reference to `g'\ncollect2: failed",
        "undefined reference",
    ),
    "pytest": ("def test():\n>   assert f() == 2\nE   assert 1 == 2\n", "E assert 1 == 2"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_failure_begins_with_the_first_error(tmp_path: Path, name: str):
    output, words = OUTPUTS[name]
    (tmp_path / "out").write_text(f"{output}\nmake: *** [all] Error 1\n")
    failure = run(f"echo in {tmp_path}/x; cat {tmp_path}/out >&2; exit 2", tmp_path).failure
    assert failure.startswith("exit code 2: ")
    assert words in failure.split(";")[0]
    assert "Error 1" in failure
    assert str(tmp_path) not in failure

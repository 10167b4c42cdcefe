"""A command that is told to end cleans up as after Ctrl-C, and its exit code names the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith import termination

COMMAND = """
import sys, tempfile, time
from warpsmith import __main__ as start
from warpsmith.cli import main as entry

def work():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]):
        try:
            print("working", flush=True)
            for _ in range(1200):  # a signal just before a long sleep would wait for its end
                time.sleep(0.05)
        finally:
            print("cleaning", flush=True)
            time.sleep(float(sys.argv[2]))

entry.main = work
start.main()
"""


def running(folder: Path, wait: float = 0.0, *before: str) -> subprocess.Popen[str]:
    """Start a command that works until it is ended; return it when it works."""
    command = [*before, sys.executable, "-c", COMMAND, str(folder), str(wait)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_a_command_in_good_order(number: signal.Signals, tmp_path: Path):
    with running(tmp_path) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in errors
    assert (f"Stopped by {number.name}" in errors) == (number != signal.SIGINT)


def test_a_second_signal_does_not_break_the_clean_up_off(tmp_path: Path):
    with running(tmp_path, 0.3) as process:
        process.terminate()
        assert process.stdout is not None
        assert process.stdout.readline() == "cleaning\n"
        process.terminate()
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_a_clean_up_that_hangs_can_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(termination, "_received", [signal.SIGTERM])
    monkeypatch.setattr(termination, "_times", [0.0])
    ended: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *call: ended.append(call))
    handler = signal.getsignal(signal.SIGTERM)
    try:
        termination._interrupt(signal.SIGTERM, None)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert ended == [(os.getpid(), signal.SIGTERM)]


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path):
    with running(tmp_path, 0.0, "nohup") as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM


def test_output_to_a_terminal_that_is_gone_breaks_nothing(tmp_path: Path):
    terminal, screen = os.openpty()
    command = [sys.executable, "-c", COMMAND, str(tmp_path), "0"]
    with subprocess.Popen(command, stdout=screen, stderr=screen, start_new_session=True) as process:
        os.close(screen)
        assert os.read(terminal, 100).startswith(b"working")
        os.close(terminal)
        process.send_signal(signal.SIGHUP)
        assert process.wait(20) == 128 + signal.SIGHUP
    assert list(tmp_path.iterdir()) == []


def test_handlers_are_as_before_after_a_loop_had_its_own():
    before = {number: signal.getsignal(number) for number in termination.SIGNALS}
    with termination.restored_handlers() as ends:
        for number in ends:
            signal.signal(number, lambda *_: None)
    assert {number: signal.getsignal(number) for number in termination.SIGNALS} == before

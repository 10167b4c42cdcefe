"""The progress bar: drawn by nobody but the caller, with an estimate of the time that is left."""

import io
import threading

from rich.console import Console

from warpsmith.cli import progress_bar
from warpsmith.core.text import PartCounter


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=120)


def test_no_thread_runs_beside_the_bar():
    before = threading.active_count()
    with progress_bar.ProgressBar(terminal()) as bar:
        bar.tell("timing: [bold]64x64")
        assert threading.active_count() == before


def test_the_estimate_is_of_the_last_run_if_there_was_one(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: clock[0])
    console = terminal()
    with progress_bar.ProgressBar(console, 125.0) as bar:
        clock[0] = 20.0
        bar.tell("timing: [bold]64x64")
        assert "about 1:45 left" in console.file.getvalue()
        assert "timing: [bold]64x64" in console.file.getvalue()  # no markup
        clock[0] = 130.0
        bar.tell("decision")
        assert "longer than the 2:05 of the last run" in console.file.getvalue()


def test_without_a_last_run_the_share_gives_the_estimate(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: clock[0])
    console = terminal()
    with progress_bar.ProgressBar(console) as bar:
        parts = PartCounter(bar.tell, 4)
        parts.begin("a")
        assert "left" not in console.file.getvalue()
        clock[0] = 10.0
        parts.begin("b")
        assert "about 0:30 left" in console.file.getvalue()
        second = PartCounter(bar.tell, 4)
        second.begin("the next operation")
        clock[0] = 15.0
        second.begin("b")
        assert "about 0:15 left" in console.file.getvalue()

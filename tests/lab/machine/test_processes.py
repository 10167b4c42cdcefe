"""Processes end with Ctrl-C and with the process that started them, and say why they failed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpsmith.errors import AgentStopped, MachineFailed
from warpsmith.lab.machine import processes
from warpsmith.lab.machine.processes import Processes, read_error

WORKER = """
import os, signal, time
from warpsmith.lab.machine.processes import run_in_folder
from warpsmith.errors import MachineFailed

def work(folder, tell):
    order = (folder / "order").read_text()
    if order == "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    (folder / "pid").write_text(str(os.getpid()))
    tell(f"{order} begins")
    if order == "broken":
        raise MachineFailed("the clock stood still")
    if order == "crash":
        raise ValueError("a bug")
    try:
        time.sleep(20 if order != "quick" else 0)
    except KeyboardInterrupt:
        (folder / "cost").write_text("reported")
        raise
    (folder / "result").write_text("done")

if __name__ == "__main__":
    run_in_folder(work)
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the module `contender_worker`, which every process finds."""
    (tmp_path / "contender_worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    return tmp_path


def place(folders: Path, order: str) -> Path:
    folder = folders / order
    folder.mkdir()
    (folder / "order").write_text(order)
    return folder


def wait_for(path: Path) -> str:
    for _ in range(1000):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} never came")


def is_alive(pid: str) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_they_run_at_once_and_tell_their_lines(folders: Path):
    lines: list[str] = []
    quick = place(folders, "quick")
    with Processes(lines.append) as running:
        running.start("contender 1", "contender_worker", quick)
        running.wait()
    assert (quick / "result").read_text() == "done"
    assert lines == ["contender 1  quick begins"]


def test_an_interruption_ends_all_of_them(folders: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processes, "PATIENCE", 2.0)
    polite, stubborn = place(folders, "polite"), place(folders, "stubborn")
    pids: list[str] = []

    def interrupt_two() -> None:
        with Processes(lambda _: None) as running:
            for folder in (polite, stubborn):
                running.start("contender", "contender_worker", folder)
            pids.extend(wait_for(folder / "pid") for folder in (polite, stubborn))
            assert all(map(is_alive, pids))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt_two()
    assert (polite / "cost").read_text() == "reported"
    assert not any(map(is_alive, pids))
    assert not (stubborn / "result").exists()


def test_they_die_with_the_process_that_started_them(folders: Path):
    asleep = place(folders, "asleep")
    script = f"""
import os, time
from pathlib import Path
from warpsmith.lab.machine.processes import Processes
Processes(print).start("contender", "contender_worker", Path({str(asleep)!r}))
while not (Path({str(asleep)!r}) / "pid").exists():
    time.sleep(0.02)
time.sleep(0.1)
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    pid = wait_for(asleep / "pid")
    for _ in range(500):
        if not is_alive(pid):
            return
        time.sleep(0.02)
    raise AssertionError("it outlived the process that started it")


@pytest.mark.parametrize(
    ("order", "kind", "reason"),
    [("broken", MachineFailed, "the clock stood still"), ("crash", AgentStopped, "ValueError: a bug")],
)
def test_an_error_keeps_its_kind(folders: Path, order: str, kind: type[Exception], reason: str):
    folder = place(folders, order)
    with Processes(lambda _: None) as running:
        running.start("contender", "contender_worker", folder)
        running.wait()
    error = read_error(folder)
    assert type(error) is kind
    assert reason in str(error)

"""Kill each action at every place between two of its system calls: files are whole, and doing it again ends it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kill_kit import Trigger, in_child

from warpsmith import backups
from warpsmith import project as projects
from warpsmith.backups import user_files
from warpsmith.project import Project

LINES = b"".join(b"%d\n" % k for k in range(10))
NAMES = ("plain.py", "merged.py", "made.py", "removed.py", "run.sh")
Files = dict[str, user_files.Content]


@pytest.fixture
def scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield place
    shutil.rmtree(place)


def paths(project: Project) -> list[Path]:
    return [project.root / name for name in NAMES]


def files(project: Project) -> Files:
    return {path.name: user_files.read_content(path) for path in paths(project)}


def fresh(root: Path) -> Project:
    root.mkdir(parents=True)
    (root / "warpsmith.toml").write_text("")
    project = projects.find_project(root)
    for path in paths(project):
        if path.name != "made.py":
            user_files.write_content(
                path, user_files.Content(LINES + path.name.encode(), 0o755 if path.name == "run.sh" else 0o644)
            )
    return project


def edit(project: Project) -> None:
    plain, merged, made, removed, script = paths(project)
    made.write_text("made")
    removed.unlink()
    for path in (plain, merged, script):
        path.write_bytes(path.read_bytes().replace(b"8\n", b"eight\n"))


def edited(root: Path) -> Project:
    """Every file edited and sealed, one changed by its user since."""
    project = fresh(root)
    backups.open_backups(project, paths(project))
    edit(project)
    backups.seal_backups(project, paths(project))
    change(project)
    return project


def change(project: Project) -> None:
    merged = project.root / "merged.py"
    merged.write_bytes(merged.read_bytes().replace(b"1\n", b"one\n"))


def killed_everywhere(
    scratch: Path, make: Callable[[Path], Project], act: Callable[[Project], object]
) -> Iterator[tuple[Project, str]]:
    """The project after each kill of `act`."""
    counter = Trigger(0, False)
    project = make(scratch / "undisturbed")

    def count(say: Callable[[str], None]) -> None:
        counter.arm()
        act(project)
        say(str(counter.calls))

    code, said = in_child(count)
    assert code == 0, said
    template = scratch / "template"
    make(template)
    for n in range(1, int(said[-1]) + 1):
        for after in (False, True) if n == int(said[-1]) else (False,):  # before n is after n - 1
            place = scratch / f"{n}-{after}"
            shutil.copytree(template, place, symlinks=True)
            project = projects.find_project(place)

            def kill(_: Callable[[str], None], n: int = n, after: bool = after, p: Project = project) -> None:
                Trigger(n, after).arm()
                act(p)

            code, said_then = in_child(kill)
            assert code == -signal.SIGKILL, (n, code, said_then)
            yield project, f"killed {'after' if after else 'before'} call {n}"
            shutil.rmtree(place)


def contents(project: Project) -> set[bytes]:
    return {path.read_bytes() for path in project.root.glob(".warpsmith/backups/blobs/[0-9a-f]*")}


def test_a_restore(scratch):
    start = edited(scratch / "start")
    before = files(start)
    original = files(fresh(scratch / "fresh"))
    kinds = 0
    for project, where in killed_everywhere(scratch, edited, lambda p: backups.restore_files(p, paths(p))):
        now = files(project)
        done = {name for name in NAMES if now[name] != before[name]}
        kinds |= 1 << len(done)
        lost = {before[name].data for name in done} - {None} - contents(project)
        assert not lost, where
        if backups.standing_backups(project):
            backups.restore_files(project, paths(project))
        after = files(project)
        assert after.pop("merged.py").data == LINES.replace(b"1\n", b"one\n") + b"merged.py", where
        assert after == {name: original[name] for name in after}, where
        strays = {path.name for path in project.root.iterdir()} - {*NAMES, "warpsmith.toml", ".warpsmith"}
        assert not strays, where
    assert kinds == 0b111111, "a kill after each number of files"


@pytest.mark.parametrize(
    "act", [backups.open_backups, backups.keep_edits, backups.seal_backups], ids=lambda act: act.__name__
)
def test_what_only_writes_the_journal(scratch, act):
    make = fresh if act is backups.open_backups else edited
    before = files(make(scratch / "start"))
    original = files(fresh(scratch / "fresh"))
    for project, where in killed_everywhere(scratch, make, lambda p: act(p, paths(p))):
        assert files(project) == before, where
        if act is backups.open_backups:
            backups.open_backups(project, paths(project))
            edit(project)
        if backups.standing_backups(project):
            backups.restore_files(project, paths(project), force=True)
            assert files(project) == original, where

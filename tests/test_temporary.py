"""A sweep removes what dead commands of this user left, and nothing that anybody uses or may use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from warpsmith import files, ownership
from warpsmith.cli import main as entry
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder, sweep_abandoned


def _raise_os_error(_: Path) -> Path:
    raise OSError


DEAD = """
import os, sys
from pathlib import Path
from warpsmith import files
from warpsmith.temporary import TemporaryFolder
folder = TemporaryFolder("build")
files.temporary_path(Path(sys.argv[1])).write_text("half")
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("kernels", "devlog/op/campaign/rounds/001", "docs/knowledge"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "warpsmith.toml").write_text("")
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs" / "knowledge")


def strays(project: Project) -> list[str]:
    found = [*(project.root / "tmp").iterdir(), *project.root.rglob(".tmp-*")]
    return sorted(path.name for path in found)


def test_what_a_killed_command_left_goes_and_what_a_live_one_uses_stays(project: Project):
    record = project.devlog / "op" / "campaign" / "rounds" / "001" / "summary.md"
    with subprocess.Popen(
        [sys.executable, "-c", DEAD, str(record)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"made\n"
        assert len(before := strays(project)) == 2
        assert sweep_abandoned(project) == []
        process.send_signal(signal.SIGKILL)
        while ownership.process_start(process.pid):  # it stays a zombie until it is waited for
            pass
        assert sorted(path.name for path in sweep_abandoned(project)) == before
    assert strays(project) == []


def mark(**changes: str) -> str:
    """The mark of a dead process of this host, or of another one."""
    host, _, start = ownership.owner_mark().split("-")
    parts = {"host": host, "pid": "999999999", "start": start} | changes
    return "-".join(parts[name] for name in ("host", "pid", "start"))


def test_only_what_is_surely_abandoned_goes(project: Project):
    host, pid, start = ownership.owner_mark().split("-")
    other = f"{(int(host, 16) + 1) % 16**6:06x}"
    keep = [mark(host=other), mark(pid=pid), "", "1234"]
    for text in keep:
        (project.root / "tmp" / f"warpsmith-build-{text}-ab12cd").mkdir()
        (project.devlog / f".tmp-page.md-{text}-ab12cd").write_text("half")
    (project.root / "tmp" / f"theirs-{mark()}-ab12cd").mkdir()
    before = strays(project)
    later = f"{(int(start, 16) + 1) % 16**6:06x}"
    (project.root / "tmp" / f"warpsmith-build-{mark()}-ab12cd").mkdir()
    (
        project.root / "tmp" / f"warpsmith-build-{mark(pid=pid, start=later)}-ab12cd"
    ).mkdir()  # the number came again
    (project.devlog / "op" / f".tmp-page.md-{mark()}-ab12cd").write_text("half")
    assert len(sweep_abandoned(project)) == 3
    assert strays(project) == before


def test_links_are_not_followed(project: Project, tmp_path: Path):
    precious = tmp_path / "precious"
    (precious / "inside").mkdir(parents=True)
    (precious / f".tmp-page.md-{mark()}-ab12cd").write_text("not ours")
    (project.devlog / "elsewhere").symlink_to(precious)
    link = project.root / "tmp" / f"warpsmith-build-{mark()}-ab12cd"
    link.symlink_to(precious)
    assert sweep_abandoned(project) == [link]
    assert (precious / "inside").is_dir()
    assert len(list(precious.iterdir())) == 2


def test_what_belongs_to_another_user_stays(project: Project, monkeypatch: pytest.MonkeyPatch):
    (project.devlog / f".tmp-page.md-{mark()}-ab12cd").write_text("half")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert sweep_abandoned(project) == []


def test_a_folder_is_marked_and_goes_with_its_context(project: Project):
    with TemporaryFolder("build") as folder:
        assert ownership.has_owner_mark(Path(folder).name)
        assert Path(folder).name.startswith("warpsmith-build-")
        assert sweep_abandoned(None) == []
    assert strays(project) == []
    assert ownership.has_owner_mark(files.temporary_path(project.root / "a-b.md").name)


@pytest.mark.parametrize(("command", "swept"), [("report", True), ("status", False), ("evidence check", False)])
def test_writing_commands_sweep(command: str, swept: bool, project: Project, monkeypatch: pytest.MonkeyPatch):
    (project.devlog / f".tmp-page.md-{mark()}-ab12cd").write_text("half")
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(sys, "argv", ["warpsmith", *command.split()])
    monkeypatch.setattr(entry, "load_app", lambda _: lambda: None)
    entry.main()
    assert (strays(project) == []) == swept


@pytest.mark.parametrize("lost", ["/proc/self/ns/pid", "/etc/machine-id and boot_id"])
def test_where_the_host_cannot_be_told_nothing_is_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    stray = tmp_path / f"{files.TEMPORARY_PREFIX}x-{ownership.owner_mark().split('-')[0]}-1-abcdef-0000"
    stray.touch()
    assert ownership.is_abandoned(stray)
    ownership._host.cache_clear()
    if lost.startswith("/proc"):
        monkeypatch.setattr(Path, "readlink", _raise_os_error)
    else:
        monkeypatch.setattr(ownership, "_text", lambda _: "")
        ownership._boot.cache_clear()
    try:
        assert not ownership.is_abandoned(stray)
        assert ownership.has_owner_mark(f"x-{ownership.owner_mark()}-0000")
    finally:
        ownership._host.cache_clear()
        ownership._boot.cache_clear()

"""`warpsmith backup`, `restore`, `keep` and `backups`: what is printed, where, and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from warpsmith.cli import main as entry

Run = Callable[..., tuple[int, str, str]]
LINES = "".join(f"{k}\n" for k in range(10))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in a project with `train.py`: exit code, stdout, stderr."""
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "train.py").write_text(LINES)
    monkeypatch.chdir(tmp_path)

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["warpsmith", *arguments])
        with pytest.raises(SystemExit) as end:
            entry.main()
        told = capsys.readouterr()
        return int(end.value.code or 0), told.out, told.err

    return called


def edit(old: str, new: str) -> None:
    path = Path("train.py")
    path.write_text(path.read_text().replace(f"{old}\n", f"{new}\n"))


def seal() -> None:
    from warpsmith import backups, project

    backups.seal_backups(project.find_project(), [Path("train.py")])


def test_an_edit_and_back(run: Run):
    assert run("backup", "train.py", "new.py", "--label", "graphs") == (
        0,
        "train.py: backup 0001, 20 bytes\nnew.py: does not exist yet; restoring backup 0001 removes it\n",
        "",
    )
    edit("5", "five")
    code, out, _ = run("backups")
    assert (code, [line.split("  ", 2)[2] for line in out.splitlines()]) == (
        0,
        ["train.py (graphs): edited", "new.py (graphs): unchanged since"],
    )
    code, out, err = run("restore", "train.py", "new.py")
    told, blob, other = out.splitlines()
    assert (code, told, err) == (0, "train.py: is as it was at backup 0001", "")
    assert "five" in Path(blob.split(": ")[1]).read_text()
    assert other == "new.py: already had its original content; backup 0001"
    assert (Path("train.py").read_text(), run("backups")) == (LINES, (0, "", ""))


def test_a_conflict_is_shown_and_nothing_written(run: Run):
    run("backup", "train.py")
    edit("5", "five")
    seal()
    edit("five", "FIVE")
    code, out, err = run("restore", "train.py")
    assert (code, "-five\n+FIVE\n" in out) == (1, True)
    assert (err.startswith("warpsmith: train.py: changed since the edit"), err.count("\n")) == (True, 1)
    assert "FIVE" in Path("train.py").read_text()
    assert ": edited, and changed again since" in run("backups")[1]
    assert run("restore", "train.py", "--force")[0] == 0
    assert Path("train.py").read_text() == LINES


def test_a_merge_says_so(run: Run):
    run("backup", "train.py")
    edit("5", "five")
    seal()
    edit("1", "one")
    assert run("restore", "train.py")[1].startswith(
        "train.py: has the edit undone; later changes stay; backup 0001\n"
    )


def test_keep_and_prune(run: Run):
    run("backup", "train.py")
    edit("5", "five")
    assert run("keep", "train.py") == (0, "train.py: keeps its edit; backup 0001 is dropped\n", "")
    (line,) = run("backups", "--aside")[1].splitlines()
    assert Path(line.split(": ")[1]).read_text() == LINES
    (aside,) = run("backups", "--aside", "--json")[1].splitlines()
    assert json.loads(aside)["path"] == "train.py"
    assert run("backups", "--prune") == (0, "blobs removed: 1\n", "")
    assert run("backups", "--aside") == (0, "", "")


def test_the_list_as_json_and_a_torn_blob(run: Run):
    run("backup", "train.py", "--label", "graphs")
    (line,) = run("backups", "--json")[1].splitlines()
    listed = json.loads(line)
    assert (listed["backup"]["path"], listed["now"], listed["sound"]) == ("train.py", "original", True)
    (Path(".warpsmith/backups/blobs") / listed["backup"]["original"]["sha256"]).write_text("")
    code, out, _ = run("backups")
    assert (code, out.rstrip().endswith("; ITS BLOB IS INCOMPLETE OR WAS EDITED")) == (3, True)
    edit("5", "five")
    code, out, err = run("restore", "train.py")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "five" in Path("train.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("backup", "."), 2, "is a folder; name the files in it"),
        (("restore", "train.py"), 3, "train.py: no backup stands"),
        (("keep", "train.py"), 3, "train.py: no backup stands"),
        (("backup",), 2, "Missing argument"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, arguments: tuple[str, ...], code: int, told: str):
    ended, out, err = run(*arguments)
    assert (ended, out, told in err) == (code, "", True)


def test_outside_of_the_project_and_of_git(run: Run, tmp_path_factory: pytest.TempPathFactory):
    other = tmp_path_factory.mktemp("elsewhere") / "a b.py"
    other.write_text("before")
    assert run("backup", str(other))[1] == f"{other}: backup 0001, 6 bytes\n"
    other.write_text("after")
    run("restore", str(other))
    assert other.read_text() == "before"


def test_it_does_without_heavy_imports(tmp_path: Path):
    (tmp_path / "warpsmith.toml").write_text("")
    probe = (
        "import sys; sys.argv = ['warpsmith', 'backup', 'x.py']\n"
        "from warpsmith.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(set(sys.modules) & {'torch', 'triton', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

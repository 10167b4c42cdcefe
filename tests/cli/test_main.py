"""The command: help, version, one sentence and an exit code for an error, and reading without torch."""

from __future__ import annotations

import errno
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer

from warpsmith import __main__ as start
from warpsmith import __version__, errors
from warpsmith.cli import main as entry
from warpsmith.schemas import MODELS, model_of

HEAVY = ("torch", "triton", "numpy", "scipy", "matplotlib", "jinja2", "rich")
"""Packages that no reading command needs; each costs a large part of the third of a second that one may take."""

OTHER_COMMANDS = ("warpsmith.cli.lab.redteam", "warpsmith.cli.uplift", "warpsmith.program.analysis.analyzer")
"""Modules of commands that none of those below is."""
ERRORS = [
    found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, errors.WarpsmithError)
]


def warpsmith(*arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "warpsmith", *arguments]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A project with nothing in it."""
    (tmp_path / "warpsmith.toml").write_text("")
    return tmp_path


def commands() -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []

    def walk(path: str, command: click.Command) -> None:
        found.append((path, command))
        for name, inner in getattr(command, "commands", {}).items():
            walk(f"{path} {name}".strip(), inner)

    walk("", typer.main.get_command(entry.load_app()))
    return found


def test_help_lists_every_command(empty: Path):
    done = warpsmith("--help", at=empty)
    assert (done.returncode, done.stderr) == (0, "")
    for name, _ in commands():
        assert name.split(" ")[0] in done.stdout


def test_short_options_and_completion(empty: Path):
    assert warpsmith("-h", at=empty).stdout == warpsmith("--help", at=empty).stdout
    assert warpsmith("judge", "-h", at=empty).stdout == warpsmith("judge", "--help", at=empty).stdout
    assert warpsmith("repo", "judge", "-h", at=empty).returncode == 0
    assert warpsmith("-V", at=empty).stdout == f"{__version__}\n"
    assert "--install-completion" in warpsmith("--help", at=empty).stdout


def test_new_says_where_it_writes_if_nothing_marks_a_project(tmp_path: Path):
    unmarked = warpsmith("new", "square", at=tmp_path)
    assert f"{tmp_path} is a project now: warpsmith.toml marks it." in unmarked.stderr
    (tmp_path / "warpsmith.toml").write_text("")
    assert "is a project now" not in warpsmith("new", "cube", at=tmp_path).stderr


def test_version_is_printed_alone(empty: Path):
    done = warpsmith("--version", at=empty)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize(("path", "command"), [pytest.param(*pair, id=pair[0] or "itself") for pair in commands()])
def test_every_command_and_option_has_help(path: str, command: click.Command):
    assert (command.help or "").strip(), path
    bare = [
        parameter.name
        for parameter in command.params
        if parameter.name != "help" and not (getattr(parameter, "help", None) or "").strip()
    ]
    assert bare == []


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_an_error_is_one_sentence_and_the_exit_code_of_its_kind(
    kind: type[errors.WarpsmithError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fails() -> None:
        raise kind("kernels/norm is not there; write it.")

    monkeypatch.setattr(entry, "load_app", lambda name: fails)
    with pytest.raises(SystemExit) as exit_:
        entry.main()
    assert exit_.value.code == kind.exit_code
    assert 0 < kind.exit_code < 10
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "warpsmith: kernels/norm is not there; write it.\n")


def test_errors_that_are_no_ones_fault_but_ours_are_not_hidden(monkeypatch: pytest.MonkeyPatch):
    def fails() -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(entry, "load_app", lambda name: fails)
    with pytest.raises(KeyError, match="a bug"):
        entry.main()


@pytest.mark.parametrize(
    ("number", "name", "told"),
    [
        (errno.EACCES, "/shop/.tmp-manifest.yaml-7-ab", "/shop: Permission denied; "),
        (errno.EROFS, "/shop/kernels", "/shop/kernels: Read-only file system; "),
        (errno.ENOSPC, None, "A file: No space left on device; "),
    ],
)
def test_what_the_file_system_refuses_is_one_sentence(
    number: int, name: str | None, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fails() -> None:
        raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr(entry, "load_app", lambda name: fails)
    with pytest.raises(SystemExit) as exit_:
        entry.main()
    assert exit_.value.code == errors.MachineLacks.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"warpsmith: {told}")
    assert said.err.count("\n") == 1


def test_an_interrupt_before_the_command_began_is_no_traceback(monkeypatch: pytest.MonkeyPatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["warpsmith", "status"])
    monkeypatch.setattr(entry, "main", interrupted)
    with pytest.raises(SystemExit) as exit_:
        start.main()
    assert exit_.value.code == 130


def test_misuse_by_a_user_ends_with_one_line(empty: Path):
    done = warpsmith("schema", "nothing", at=empty)
    assert (done.returncode, done.stdout) == (errors.Misuse.exit_code, "")
    assert done.stderr.startswith("warpsmith: Unknown kind of file `nothing`; known: definition, ")
    assert done.stderr.count("\n") == 1


def test_a_broken_configuration_is_named(empty: Path):
    (empty / "warpsmith.toml").write_text("kernels =\n")
    done = warpsmith("knowledge", "search", "x", at=empty)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "warpsmith.toml does not parse" in done.stderr


def test_an_unknown_command_is_refused(empty: Path):
    done = warpsmith("frobnicate", at=empty)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'frobnicate'" in done.stderr


def test_schema_lists_the_kinds_of_files(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, "schema") == 0
    assert capsys.readouterr().out.split() == list(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_schema_prints_each_kind(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, "schema", name) == 0
    assert json.loads(capsys.readouterr().out)["title"] == model_of(name).__name__


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["warpsmith", *arguments])
    with pytest.raises(SystemExit) as exit_:
        entry.main()
    return int(exit_.value.code or 0)


PROBE = f"""
import json, sys
HEAVY = {HEAVY + OTHER_COMMANDS}
from warpsmith.cli.main import main
sys.argv = ["warpsmith", *json.loads(sys.argv[1])]
try:
    main()
except SystemExit as end:
    code = end.code or 0
sys.stderr.write("\\n" + json.dumps([code, sorted(set(sys.modules) & set(HEAVY))]))
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["knowledge", "search", "x"], 0),
        (["knowledge", "show", "row-in-registers"], 0),
        (["knowledge", "symptoms"], 0),
        (["hardware"], 0),
        (["hardware", "h200"], 0),
        (["schema"], 0),
        (["schema", "record"], 0),
        (["route", "--language", "triton"], 0),
        (["context", "list"], 0),
        (["answer", "show", "version"], 0),
        (["backups"], None),
        (["use", "softmax"], None),
        (["brief"], None),
        (["repo", "status"], None),
        (["program", "next"], None),
        (["status"], None),
        (["next"], None),
        (["judge", "--help"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_reading_commands_do_without_heavy_imports(arguments: list[str], code: int | None, empty: Path):
    command = [sys.executable, "-c", PROBE, json.dumps(arguments)]
    done = subprocess.run(command, cwd=empty, capture_output=True, text=True, timeout=60, check=False)
    ended, heavy = json.loads(done.stderr.splitlines()[-1])
    assert heavy == []
    assert code is None or ended == code, done.stderr


@pytest.mark.parametrize("name", ["next", "judge", "answer", "nope", ""])
def test_a_command_is_the_same_alone(name):
    """What is left out for speed is not missed: the call of one command, of a group, of none."""
    alone, whole = typer.main.get_command(entry.load_app(name)), typer.main.get_command(entry.load_app())
    kept = whole.commands.get(name)
    assert alone.commands.keys() == ({name} if kept is not None else whole.commands.keys())
    if kept is not None:
        assert [param.opts for param in alone.commands[name].params] == [param.opts for param in kept.params]

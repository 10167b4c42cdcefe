"""Compiled kernels of a source wait for the next worker that loads the same source, and for no other."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_samples import SQUARE

import warpsmith
from warpsmith.core.evaluation import Status
from warpsmith.lab import definition_file, side, worker
from warpsmith.lab.session import SOLUTION


def test_no_worker_takes_or_leaves_what_users_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the grader is told to send: a version is loaded as one that keeps nothing."""
    builds: list = []
    language = SimpleNamespace(load=lambda build, _: builds.append(build))
    monkeypatch.setattr(worker.languages, "get", lambda _: language)
    side_of = {"language": "toy", "source": "v1.toy", "artifact": "v1.so", "kept": str(tmp_path)}
    definition = definition_file.load(
        Path(warpsmith.__file__).parents[1] / "kernels" / "softmax" / "definition.py"
    ).definition
    message = {"device": "cpu", "threads": 0, "arenas": [], "side": side_of,
               "definition": definition.model_dump(mode="json")}  # fmt: skip
    worker.Worker().load(message, [])
    assert [build.kept for build in builds] == [None]


def test_only_a_users_function_keeps_what_it_compiled() -> None:
    """In all of the package one call gives a build a folder to keep objects in."""
    root = Path(warpsmith.__file__).parent
    given = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and any(word.arg == "kept" for word in node.keywords)
        and getattr(node.func, "id", "") in ("Build", "replace")
    }  # fmt: skip
    assert given == {"use/operator.py"}


def test_only_plain_files_are_kept(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "ab").mkdir(parents=True)
    (made / "ab" / "kernel.cubin").write_bytes(b"machine code")
    (made / "secret").symlink_to("/etc/hostname")
    (made / "folder").symlink_to("/etc")
    side._copy_plain(made, tmp_path / "kept")
    assert [path.relative_to(tmp_path / "kept").as_posix() for path in sorted((tmp_path / "kept").rglob("*"))] == [
        "ab",
        "ab/kernel.cubin",
    ]


def test_no_more_than_the_limit_is_kept(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "made").mkdir()
    for name in "abc":
        (tmp_path / "made" / name).write_bytes(b"x" * 400)
    monkeypatch.setattr(side, "_MOST_COMPILED", 900)
    side._copy_plain(tmp_path / "made", tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    side._copy_plain(tmp_path / "never made", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


COMPILES_ONCE = """
from triton.runtime.cache import FileCacheManager

def run(x):
    cache = FileCacheManager("kernel")
    if cache.get_group("kernel.json"):
        return x * x + 1
    cache.put_group("kernel.json", {"kernel.json": cache.put("{}", "kernel.json", binary=False)})
    return x * x
"""


def test_the_next_worker_of_a_source_finds_what_triton_compiled(seat, workshop) -> None:
    """Triton's list of a kernel's files has whole paths, and each worker has another folder."""
    pytest.importorskip("triton")
    found, ended = [], []
    for _ in ("first", "next"):
        one = seat(workshop.load("square", SQUARE), COMPILES_ONCE, "triton")
        session = one.session()
        session.fill()
        found.append(session.check(SOLUTION).status)
        one.side.kill()  # the next one loads before this one is closed
        ended.append(one.side)
    for each in ended:
        each.close()
    assert found == [Status.PASSED, Status.INCORRECT_NUMERICAL]


def test_a_list_that_cannot_be_written_is_left(tmp_path: Path) -> None:
    listed = tmp_path / "key" / "__grp__kernel.json"
    (listed / "a folder in its place").mkdir(parents=True)
    side._move_lists(tmp_path, b"a", b"b")
    assert listed.is_dir()

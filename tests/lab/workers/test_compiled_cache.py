"""Compiled kernels of a source wait for the next worker that loads the same source, and for no other."""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_samples import SQUARE

import warpsmith
from warpsmith.core.evaluation import Status
from warpsmith.lab.operator import definition_file
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers import compiled_cache, worker


def test_no_worker_takes_or_leaves_what_users_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the grader is told to send: a version is loaded as one that keeps nothing."""
    builds: list = []
    language = SimpleNamespace(load=lambda build, _: builds.append(build))
    monkeypatch.setattr(worker.languages, "get", lambda _: language)
    side_of = {"language": "toy", "source": "v1.toy", "artifact": "v1.so", "cache": str(tmp_path)}
    definition = definition_file.load_definition(
        Path(warpsmith.__file__).parents[1] / "kernels" / "softmax" / "definition.py"
    ).definition
    message = {"device": "cpu", "threads": 0, "arenas": [], "side": side_of,
               "definition": definition.model_dump(mode="json")}  # fmt: skip
    worker.Worker().load(message, [])
    assert [build.cache for build in builds] == [None]


def test_only_a_users_function_keeps_what_it_compiled() -> None:
    """In all of the package one call gives a build a folder to keep objects in."""
    root = Path(warpsmith.__file__).parent
    given = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and any(word.arg == "cache" for word in node.keywords)
        and getattr(node.func, "id", "") in ("Build", "replace")
    }  # fmt: skip
    assert given == {"use/operator.py"}


TRITON, CUTILE = compiled_cache.FOLDERS


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A worker's folder, with two kernels of 400 bytes that Triton compiled."""
    for name in ("ab", "cd"):
        (tmp_path / "scratch" / TRITON / name).mkdir(parents=True)
        (tmp_path / "scratch" / TRITON / name / "kernel.cubin").write_bytes(b"x" * 400)
    return tmp_path / "scratch"


@pytest.fixture
def cache(scratch: Path) -> Path:
    """The cache in that folder."""
    return scratch / TRITON


def inside(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_only_plain_files_are_kept(scratch: Path, cache: Path, tmp_path: Path) -> None:
    (cache / "ab" / "secret").symlink_to("/etc/hostname")
    (cache / "ab" / "deeper").mkdir()
    (cache / "ab" / "deeper" / "file").write_bytes(b"no kernel's")
    os.mkfifo(cache / "cd" / "pipe")
    (cache / "folder").symlink_to("/etc")
    (cache / "file").write_bytes(b"no kernel's")
    (scratch / "elsewhere" / "ef").mkdir(parents=True)
    (scratch / "elsewhere" / "ef" / "file").write_bytes(b"no kernel's")
    compiled_cache.save_compiled(scratch, tmp_path / "kept")
    assert inside(tmp_path / "kept") == [
        TRITON,
        *(f"{TRITON}/{name}" for name in ("ab", "ab/kernel.cubin", "cd", "cd/kernel.cubin")),
    ]


def test_what_is_kept_stays_and_new_kernels_join_it(scratch: Path, cache: Path, tmp_path: Path) -> None:
    compiled_cache.save_compiled(scratch, tmp_path / "kept")
    (cache / "ab" / "kernel.cubin").write_bytes(b"another")
    (cache / "cd").rename(cache / "ef")
    compiled_cache.save_compiled(scratch, tmp_path / "kept")
    compiled_cache.restore_compiled(tmp_path / "kept", tmp_path / "taken")
    assert {path.name for path in (tmp_path / "taken" / TRITON).iterdir()} == {"ab", "cd", "ef"}
    assert (tmp_path / "taken" / TRITON / "ab" / "kernel.cubin").read_bytes() == b"x" * 400


def test_each_librarys_kernels_come_back_to_its_own_cache(scratch: Path, tmp_path: Path) -> None:
    (scratch / CUTILE / "gh").mkdir(parents=True)
    (scratch / CUTILE / "gh" / "kernel.cubin").write_bytes(b"a tile")
    compiled_cache.save_compiled(scratch, tmp_path / "kept")
    compiled_cache.restore_compiled(tmp_path / "kept", tmp_path / "taken")
    assert inside(tmp_path / "taken") == inside(scratch)
    assert (tmp_path / "taken" / CUTILE / "gh" / "kernel.cubin").read_bytes() == b"a tile"


def test_no_more_than_the_limit_is_kept_and_no_half_of_a_kernel(
    scratch: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_cache, "_MOST_BYTES", 900)
    (cache / "ab" / "kernel.json").write_bytes(b"x" * 400)
    compiled_cache.save_compiled(scratch, tmp_path / "kept")
    assert inside(tmp_path / "kept" / TRITON) in (
        ["ab", "ab/kernel.cubin", "ab/kernel.json"],
        ["cd", "cd/kernel.cubin"],
    )


def test_a_kernel_that_cannot_be_read_is_left(
    scratch: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "ab" / "a.json").write_bytes(b"readable")
    real = shutil.copy

    def copy(file, *arguments, **options):
        if "ab/kernel" in os.fspath(file):
            raise PermissionError
        return real(file, *arguments, **options)

    monkeypatch.setattr(shutil, "copy", copy)
    compiled_cache.save_compiled(scratch, tmp_path / "kept")
    assert inside(tmp_path / "kept" / TRITON) == ["cd", "cd/kernel.cubin"]


def test_a_cache_that_is_a_link_or_not_there(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "another").mkdir()
    (tmp_path / "another" / TRITON).symlink_to(cache)
    for source in (tmp_path / "another", tmp_path / "never made"):
        compiled_cache.save_compiled(source, tmp_path / "kept")
        assert not (tmp_path / "kept").exists()


COMPILES_ONCE = """
from triton.runtime.cache import FileCacheManager

def run(x):
    cache = FileCacheManager("kernel")
    if cache.get_group("kernel.json"):
        return x * x + 1
    cache.put_group("kernel.json", {"kernel.json": cache.put("{}", "kernel.json", binary=False)})
    return x * x
"""


@pytest.mark.parametrize("end", ["close", "kill"])
def test_the_next_worker_of_a_source_finds_what_triton_compiled(seat, workshop, end) -> None:
    """Triton's list of a kernel's files has whole paths, and each worker has another folder, which goes when it is
    closed; the next worker may load between a kill and that."""
    pytest.importorskip("triton")
    source = f"{COMPILES_ONCE}# {end}\n"  # another one each time: the host keeps what it compiled
    found, ended = [], []
    for _ in ("first", "next"):
        one = seat(workshop.load("square", SQUARE), source, "triton")
        session = one.session()
        session.fill_inputs()
        found.append(session.call_and_grade(SOLUTION).status)
        getattr(one.side, end)()
        ended.append(one.side)
    for each in ended:
        each.close()
    assert found == [Status.PASSED, Status.INCORRECT_NUMERICAL]


def test_only_the_sources_compiled_last_are_kept(tmp_path: Path) -> None:
    compiled_cache.prune_compiled(tmp_path / "absent")
    for age in (3, 1, 2):
        folder = tmp_path / f"age-{age}" / "kernel"
        folder.mkdir(parents=True)
        os.utime(folder.parent, (1e9 - age, 1e9 - age))
    compiled_cache.prune_compiled(tmp_path, most=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["age-1", "age-2"]
    compiled_cache.save_compiled(tmp_path / "a worker's", tmp_path / "age-2")
    compiled_cache.prune_compiled(tmp_path, most=1)
    assert [path.name for path in tmp_path.iterdir()] == ["age-2"]


def test_a_list_that_cannot_be_written_is_left(tmp_path: Path) -> None:
    listed = tmp_path / "key" / "__grp__kernel.json"
    (listed / "a folder in its place").mkdir(parents=True)
    compiled_cache._rewrite_file_lists(listed.parent, b"a", b"b")
    assert listed.is_dir()

from __future__ import annotations

import importlib

import pytest

from warpsmith.languages.triton import toolchain_key

cache = importlib.import_module("triton.runtime.cache")


@pytest.fixture
def made(monkeypatch):
    """How often the key was made; the real one reads half a gigabyte."""
    calls = []
    monkeypatch.setattr(cache, "triton_key", lambda: calls.append(1) or f"key-{len(calls)}")
    return calls


def test_a_process_takes_the_key_that_an_earlier_one_left(made, monkeypatch, tmp_path):
    makes = cache.triton_key
    toolchain_key.cache_key_in(tmp_path)
    assert cache.triton_key() == "key-1"
    monkeypatch.setattr(cache, "triton_key", makes)  # as in the next process
    toolchain_key.cache_key_in(tmp_path)
    assert cache.triton_key() == "key-1"
    assert len(made) == 1


def test_another_compiler_makes_another_key(made, monkeypatch, tmp_path):
    makes = cache.triton_key
    toolchain_key.cache_key_in(tmp_path)
    monkeypatch.setattr(cache, "triton_key", makes)
    stamps = toolchain_key._file_stamps
    monkeypatch.setattr(toolchain_key, "_file_stamps", lambda root: [*stamps(root), "_C/libtriton.so 1 2"])
    toolchain_key.cache_key_in(tmp_path)
    assert cache.triton_key() == "key-2"


def test_the_compiler_and_the_sources_are_looked_at():
    root = toolchain_key.Path(cache.__file__).parents[1]
    names = {stamp.split()[0].removeprefix(f"{root}/") for stamp in toolchain_key._file_stamps(root)}
    assert "_C/libtriton.so" in names
    assert {"compiler/compiler.py", "runtime/cache.py", "backends/nvidia/compiler.py", "language/core.py"} <= names


def test_a_folder_that_cannot_be_written_to_is_no_error(made, tmp_path):
    (tmp_path / "file").write_text("")
    toolchain_key.cache_key_in(tmp_path / "file")
    assert cache.triton_key() == "key-1"


def test_a_release_that_names_it_otherwise_goes_without(monkeypatch, tmp_path):
    monkeypatch.delattr(cache, "triton_key")
    toolchain_key.compute_key()
    toolchain_key.cache_key_in(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_made_before_a_fork_is_there_after_it(made):
    toolchain_key.compute_key()
    assert len(made) == 1

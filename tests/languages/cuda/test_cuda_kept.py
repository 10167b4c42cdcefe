"""What NVRTC compiled for a user is compiled once; in a judgement each candidate compiles for itself."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_cuda import needs_nvrtc

from warpsmith.languages.base import Build
from warpsmith.languages.cuda import program_cache
from warpsmith.languages.cuda.language import LANGUAGE
from warpsmith.languages.shared import object_store

SOURCE = """\
from cuda.core import Program, ProgramOptions

CODE = '''
#include <scale.h>
template <int N> __global__ void copy(const float* x, float* y) { y[threadIdx.x] = SCALE * x[threadIdx.x + N]; }
'''

def program(include, arch="sm_90a", **more):
    options = ProgramOptions(arch=arch, std="c++17", include_path=[include], **more)
    return Program(CODE, "c++", options).compile("cubin", name_expressions=("copy<3>",))

def run(x):
    return x
"""


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "scale.h").write_text("#define SCALE 2.0f\n")
    return folder


@pytest.fixture
def compiled(tmp_path: Path, headers: Path, monkeypatch: pytest.MonkeyPatch):
    """`compiled(kept, **options)`: a fresh load's program, and whether it was compiled for it."""
    file = tmp_path / "v1.py"
    file.write_text(SOURCE)
    count = SimpleNamespace(compiled=0)
    real = program_cache.compile_cached

    def counted(folder, code, options, names, compile_):
        def compiling():
            count.compiled += 1
            return compile_()

        return real(folder, code, options, names, compiling)

    monkeypatch.setattr(program_cache, "compile_cached", counted)

    def load(kept: Path | None, **options):
        run = LANGUAGE.load(replace(Build(file, file, ()), cache=kept), None)
        before = count.compiled
        made = run.__globals__["program"](str(headers), **options)
        return made, count.compiled - before

    return load


@needs_nvrtc
def test_a_program_is_compiled_once(compiled, tmp_path, headers):
    kept = tmp_path / "kept"
    first, once = compiled(kept)
    again, twice = compiled(kept)
    assert (once, twice) == (1, 0)
    assert bytes(again.code) == bytes(first.code)
    assert again.symbol_mapping == first.symbol_mapping
    assert list(first.symbol_mapping) == ["copy<3>"]
    assert compiled(kept, arch="sm_90")[1] == 1
    (headers / "scale.h").write_text("#define SCALE 3.00f\n")
    other, thrice = compiled(kept)
    assert thrice == 1
    assert bytes(other.code) != bytes(first.code)


@needs_nvrtc
def test_a_judged_candidate_compiles_for_itself(compiled, tmp_path):
    made, through_the_cache = compiled(None)
    assert through_the_cache == 0
    assert made.code
    assert not (tmp_path / "kept").exists()


@needs_nvrtc
def test_where_nothing_can_be_kept_it_compiles_and_logs_why(compiled, tmp_path, caplog, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with caplog.at_level(logging.INFO, "warpsmith"):
        assert compiled(blocked / "kept")[1] == 1
    assert "File exists" in caplog.text or "Not a directory" in caplog.text
    assert compiled(blocked / "kept")[1] == 1

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(object_store.files.os, "replace", full)
    assert compiled(tmp_path / "kept")[1] == 1
    monkeypatch.undo()
    assert not entries(tmp_path / "kept")


def entries(kept: Path) -> list[Path]:
    """The files of the cache, one a program."""
    return sorted((kept / "cuda").glob("*"))


SPOILT = {
    "cut short": lambda content: content[:-100],
    "empty": lambda content: b"",
    "a flipped bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "another thing": lambda content: b"{}",
    "no text": lambda content: b"\xff\xfe",
}


@needs_nvrtc
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_what_is_not_whole_is_compiled_again_and_kept_anew(compiled, tmp_path, spoil):
    kept = tmp_path / "kept"
    code = bytes(compiled(kept)[0].code)
    (spoilt,) = entries(kept)
    good = spoilt.read_bytes()
    spoilt.write_bytes(spoil(good))
    made, times = compiled(kept)
    assert (bytes(made.code), times) == (code, 1)
    assert spoilt.read_bytes() == good
    assert compiled(kept)[1] == 0


@needs_nvrtc
def test_a_program_of_another_key_is_not_taken_for_it(compiled, tmp_path):
    kept, other = tmp_path / "kept", tmp_path / "other"
    compiled(kept)
    compiled(other, arch="sm_80")
    (mine,), (theirs,) = entries(kept), entries(other)
    assert mine.read_bytes() != theirs.read_bytes()
    mine.write_bytes(theirs.read_bytes())
    assert compiled(kept)[1] == 1


@needs_nvrtc
def test_the_oldest_programs_are_deleted(compiled, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    compiled(kept, arch="sm_80")
    (old,) = entries(kept)
    monkeypatch.setattr(object_store, "MAX_BYTES", int(1.5 * old.stat().st_size))
    os.utime(old, (1, 1))
    compiled(kept)
    assert old not in entries(kept)
    assert len(entries(kept)) == 1


@needs_nvrtc
def test_headers_further_down_and_other_releases_of_the_compiler_count(compiled, tmp_path, headers, monkeypatch):
    kept = tmp_path / "kept"
    (headers / "deep" / "er").mkdir(parents=True)
    (headers / "deep" / "er" / "inner.h").write_text("#define SCALE 4.0f\n")
    (headers / "scale.h").write_text("#include <deep/er/inner.h>\n")
    assert [compiled(kept)[1] for _ in "ab"] == [1, 0]
    (headers / "deep" / "er" / "inner.h").write_text("#define SCALE 5.00f\n")
    assert [compiled(kept)[1] for _ in "ab"] == [1, 0]
    monkeypatch.setattr(program_cache, "_compiler_stamps", lambda: iter(["a later release of the same number"]))
    assert [compiled(kept)[1] for _ in "ab"] == [1, 0]


@needs_nvrtc
def test_what_reads_more_than_its_key_tells_is_not_kept(compiled, tmp_path, headers, monkeypatch):
    kept = tmp_path / "kept"
    shutil.copy(headers / "scale.h", tmp_path / "before.h")
    assert [compiled(kept, pre_include=[str(tmp_path / "before.h")])[1] for _ in "ab"] == [1, 1]
    file, beside = tmp_path / "v1.py", tmp_path / "scale.h"
    monkeypatch.setattr(f"{__name__}.SOURCE", SOURCE.replace("<scale.h>", '"scale.h"'))
    file.write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    found = []
    for scale in ("6.0f", "7.0f"):
        beside.write_text(f"#define SCALE {scale}\n")
        found.append(bytes(compiled(kept)[0].code))
    assert found[0] != found[1]
    assert not kept.exists() or not entries(kept)


def test_a_key_that_cannot_be_made_costs_a_compilation(tmp_path, monkeypatch):
    """Of a release of cuda.core that names things otherwise."""
    fake = SimpleNamespace(make_program_cache_key=lambda **_: b"key")
    monkeypatch.setattr(program_cache.importlib, "import_module", lambda _: fake)
    options = SimpleNamespace(include_path=None)
    assert program_cache.compile_cached(tmp_path, "code", options, (), lambda: "made") == "made"
    assert not list(tmp_path.iterdir())

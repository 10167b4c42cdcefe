"""What NVRTC compiled for a user is compiled once; in a judgement each candidate compiles for itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_cuda import needs_nvrtc

from warpsmith.languages import cuda_kept
from warpsmith.languages.base import Build
from warpsmith.languages.cuda import LANGUAGE

SOURCE = """\
from cuda.core import Program, ProgramOptions

CODE = '''
#include "scale.h"
template <int N> __global__ void copy(const float* x, float* y) { y[threadIdx.x] = SCALE * x[threadIdx.x + N]; }
'''

def program(include, arch="sm_90a"):
    options = ProgramOptions(arch=arch, std="c++17", include_path=[include])
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
    real = cuda_kept.compiled

    def counted(folder, code, options, names, compile_):
        def compiling():
            count.compiled += 1
            return compile_()

        return real(folder, code, options, names, compiling)

    monkeypatch.setattr(cuda_kept, "compiled", counted)

    def load(kept: Path | None, **options):
        run = LANGUAGE.load(replace(Build(file, file, ()), kept=kept), None)
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
def test_where_nothing_can_be_kept_it_compiles(compiled, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert compiled(blocked / "kept")[1] == 1
    assert compiled(blocked / "kept")[1] == 1

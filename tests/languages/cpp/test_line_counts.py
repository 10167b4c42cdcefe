"""Lines of C++ that no call ran."""

from __future__ import annotations

import subprocess
import sys

import pytest

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.errors import MachineLacks
from warpsmith.languages import get
from warpsmith.languages.base import BuildFailed, CountsLines
from warpsmith.languages.cpp import line_counts

CPP = get("cpp")

DEFINITION = Definition(
    name="copy",
    description="y = x",
    axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="n",
    workloads=(Workload(name="small", axes={"n": 50}),),
)

HEAD = """#include <cmath>
#include <stdexcept>
#include <vector>
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x_, Tensor& y_) {
  const int64_t n = x_.size(0);
  const float* x = x_.data<float>(); float* y = y_.data<float>();
"""

CALL = """
import sys, torch
from pathlib import Path
from warpsmith import languages
from warpsmith.core.definition import Definition
from warpsmith.languages.base import Build
language, build = languages.get("cpp"), Build(Path(sys.argv[1]), Path(sys.argv[2]), ())
language.begin_counts(build)
language.load(build, Definition.model_validate_json(sys.stdin.read()))(torch.rand(50))
print(language.take_counts(build))
"""


@pytest.fixture
def unrun(tmp_path):
    """Lines below the head that a call of 50 elements leaves unrun."""

    def count(body: str) -> list[int]:
        source = tmp_path / "v1.cpp"
        source.write_text(f"{HEAD}{body}\n}}\n")
        build = CPP.build_counted(source, DEFINITION, tmp_path / "counted")
        command = [sys.executable, "-c", CALL, source, build.artifact]
        call = subprocess.run(
            command, input=DEFINITION.model_dump_json(), capture_output=True, text=True, cwd=tmp_path, check=True
        )
        first = HEAD.count("\n")
        return [line - first for line in CPP.unrun_lines(build, call.stdout.strip())]

    return count


LOOP = "for (int64_t i = 0; i < n; ++i) y[i] = x[i];"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (LOOP, []),
        (f"{LOOP}\nif (n > 999) {{\n  y[0] = 0;\n}}", [2, 3]),
        (f"{LOOP}\nif (n > 999) y[0] = 0;", [2]),
        (f"{LOOP}\ny[0] = n > 999 ? 0 : x[0];", [2]),
        ("#pragma omp parallel for\nfor (int64_t i = 0; i < n; ++i)\n  y[i] = x[i] > 5 ? 0 : x[i];", [3]),
        (f"{LOOP}\nif (false) {{\n  y[0] = 0;\n}}", []),
        (f"{LOOP}\nstd::vector<float> room(n);\nroom[0] = 1;", []),
        (f'{LOOP}\nif (n > 999) throw std::runtime_error("too long");', []),
        (f'{LOOP}\nif (n > 999)\n  throw std::runtime_error(\n      "too long");', [2]),
        (f'{LOOP}\nif (n > 999) {{ throw std::runtime_error("no"); }}', []),
        (f"{LOOP}\nif (n > 999) {{ y[0] = 0; throw 1; }}", [2]),
    ],
)
def test_lines_with_code_that_no_call_ran(unrun, body, lines):
    left = unrun(body)
    if "throw std::runtime_error(\n" in body:
        assert set(left) <= {2}  # the condition alone
    else:
        assert set(left) <= set(lines)
        assert bool(left) == bool(lines)


def test_a_library_names_the_counters(tmp_path):
    assert isinstance(CPP, CountsLines)
    source = tmp_path / "v1.cpp"
    hidden = 'extern "C" void __attribute__((weak)) hidden() __asm__("__gcov_reset");'
    source.write_text(f"{hidden}\n{HEAD}if (&hidden) hidden();{LOOP}}}")
    with pytest.raises(BuildFailed, match="not its own"):
        CPP.build(source, DEFINITION, tmp_path / "build")


@pytest.mark.parametrize(
    "text",
    [
        "__attribute__((no_profile_instrument_function)) void f() {}",
        "#define A no_profile_\n#define B(a, b) a##b\n#define C(a, b) B(a, b)\n"
        "__attribute__((C(A, instrument_function))) void f() {}",
        'extern "C" void __gcov_dump();',
    ],
)
def test_a_source_cannot_leave_functions_out(tmp_path, text):
    source = tmp_path / "v1.cpp"
    source.write_text(f"{text}\n{HEAD}{LOOP}}}")
    for build in (CPP.build, CPP.build_counted):
        with pytest.raises(BuildFailed, match="poison"):
            build(source, DEFINITION, tmp_path / "build")


def test_macros_do_not_tell_the_builds_apart(tmp_path):
    text = "".join(
        f"#if {test}\n#error counted\n#endif\n" for test in ("!defined __OPTIMIZE__", "defined __NO_INLINE__")
    )
    source = tmp_path / "v1.cpp"
    source.write_text(
        f"#include <immintrin.h>\n{text}{HEAD}__m128 a = _mm_set1_ps(x[0]);\n"
        f"y[0] = _mm_cvtss_f32(_mm_shuffle_ps(a, a, 0x1b));\n{LOOP}}}"
    )
    for build in (CPP.build, CPP.build_counted):
        build(source, DEFINITION, tmp_path / "build")


def test_notes_of_another_form():
    with pytest.raises(MachineLacks, match="another form"):
        line_counts.read_unrun_lines(None, b"adcg" + bytes(40), b"")
    with pytest.raises(MachineLacks, match="another form"):
        line_counts.read_unrun_lines(None, b"oncg*22B" + bytes(4), b"")

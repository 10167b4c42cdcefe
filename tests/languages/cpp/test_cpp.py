"""C++ solutions: built, cached, called without copies, and refused with the compiler's own words."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import torch

from warpsmith import landlock
from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.errors import BadDefinition, MachineLacks, Misuse
from warpsmith.languages.base import BuildFailed
from warpsmith.languages.cpp import language as cpp
from warpsmith.languages.cpp import source as cpp_source

RMSNORM = """
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* px = x.data<float>();
  const float* pw = weight.data<float>();
  float* py = y.data<float>();
#pragma omp parallel for
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = px + i * x.stride(0);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < cols; ++j) sum += row[j] * row[j];
    const float scale = 1.0f / std::sqrt(sum / cols + static_cast<float>(eps));
    for (int64_t j = 0; j < cols; ++j) py[i * cols + j] = row[j] * scale * pw[j];
  }
}
"""

SCALE = """#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data<float>()[i] = 2 * x.data<float>()[i];
}
"""


@pytest.fixture
def build(tmp_path, write):
    """Builds a source and loads it."""

    def make(source, definition, name="v1.cpp"):
        built = cpp.LANGUAGE.build(write(source, name), definition, tmp_path / "build")
        return cpp.LANGUAGE.load(built, definition)

    return make


def many(outputs_are):
    """All kinds of parameters, two outputs, an axis that is only an integer's value, one that is fixed."""
    return Definition(
        name="many",
        description="Every kind of parameter.",
        axes={"n": "length", "k": "how many", "three": 3},
        inputs={
            "x": TensorSpec(shape=("n",)),
            "scale": ScalarSpec(value=1.0),
            "k": ScalarSpec(type="int", value=2),
            "negate": ScalarSpec(type="bool", value=False),
            "index": TensorSpec(shape=("n",), dtype="int64"),
        },
        outputs={
            "y": TensorSpec(shape=("k + 1", "three")),
            "z": TensorSpec(shape=("2 * n",), dtype="int64"),
        },
        outputs_are=outputs_are,
        flops="n",
        workloads=(Workload(name="a", axes={"n": 4, "k": 2}),),
    )


MANY = """#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, double scale, int64_t k, bool negate, const Tensor& index,
                    Tensor& y, Tensor& z) {
  for (int64_t i = 0; i < y.numel(); ++i) y.data<double>()[i] = (negate ? -scale : scale) * x.data<double>()[k];
  for (int64_t i = 0; i < z.size(-1); ++i) z.data<int64_t>()[i] = index.data<int64_t>()[i / 2] + y.ndim;
}
"""


def test_rmsnorm_returned(build, rmsnorm):
    run = build(RMSNORM, rmsnorm)
    weight = torch.randn(100)
    for rows in (1, 7):
        x = torch.randn(rows, 100)
        torch.testing.assert_close(run(x, weight, 1e-5), torch.nn.functional.rms_norm(x, (100,), weight, 1e-5))


def test_strides_reach_the_kernel(build, rmsnorm):
    x = torch.randn(4, 64)[:, :32]
    expected = torch.nn.functional.rms_norm(x, (32,), None, 1e-6)
    torch.testing.assert_close(build(RMSNORM, rmsnorm)(x, torch.ones(32), 1e-6), expected)


def test_every_kind_of_parameter(build):
    x, index = torch.arange(4, dtype=torch.float64), torch.arange(4)
    y, z = build(MANY, many("returned"))(x, 1.5, 2, True, index)
    assert y.shape == (3, 3)
    assert y.dtype == torch.float64
    assert (y == -3.0).all()
    assert z.tolist() == [2, 2, 3, 3, 4, 4, 5, 5]


def test_given_outputs_are_written_in_place(build):
    run = build(MANY, many("given"))
    x, index = torch.arange(4, dtype=torch.float64), torch.arange(4)
    y, z = torch.zeros(3, 3, dtype=torch.float64), torch.zeros(8, dtype=torch.int64)
    assert run(x, 0.5, 1, False, index, y, z) is None
    assert (y == 0.5).all()
    assert z.tolist() == [2, 2, 3, 3, 4, 4, 5, 5]


def test_outputs_are_fresh_every_call(build, vector):
    run = build(SCALE, vector)
    first, second = run(torch.ones(8)), run(torch.full((8,), 2.0))
    assert first.tolist() == [2.0] * 8
    assert second.tolist() == [4.0] * 8


def test_threads_call_at_once(build, vector):
    waits = SCALE.replace("{", "{ usleep(20000);", 1)
    run = build("#include <unistd.h>\n" + waits, vector)
    inputs = [torch.full((8,), float(index)) for index in range(4)]
    with ThreadPoolExecutor(len(inputs)) as pool:
        results = list(pool.map(run, inputs))
    assert [y.tolist() for y in results] == [[2.0 * index] * 8 for index in range(4)]


def test_wrong_tensors_are_refused(build, vector):
    run = build(SCALE, vector)
    with pytest.raises(TypeError, match="1 axes"):
        run(torch.ones(2, 2))
    with pytest.raises(TypeError, match="CPU tensor"):
        run(torch.ones(4, device="meta"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "uint8", "bool"])
def test_types_of_the_header(build, vector, dtype):
    kind = {"uint8": "uint8_t"}.get(dtype, dtype)
    body = f"y.data<{kind}>()[i] = static_cast<{kind}>(static_cast<float>(x.data<{kind}>()[i]) * 3.0f);"
    run = build(SCALE.replace("y.data<float>()[i] = 2 * x.data<float>()[i];", body), vector)
    x = torch.randn(4096).mul(100).abs().to(getattr(torch, dtype))
    torch.testing.assert_close(run(x), (x.float() * 3).to(x.dtype) if dtype != "uint8" else x * 3)


def test_bfloat16_keeps_special_values(build, vector):
    body = "y.data<bfloat16>()[i] = bfloat16(static_cast<float>(x.data<bfloat16>()[i]));"
    run = build(SCALE.replace("y.data<float>()[i] = 2 * x.data<float>()[i];", body), vector)
    x = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1e-39], dtype=torch.bfloat16)
    torch.testing.assert_close(run(x), x, equal_nan=True, rtol=0, atol=0)


def test_header_numbers_types_as_the_lab_does():
    header = (cpp._API / "warpsmith.hpp").read_text()
    listed = header.split("enum class DType : int32_t {")[1].split("}")[0].replace("boolean", "bool")
    assert [name.strip() for name in listed.split(",")] == list(DTYPES)


def test_call_is_cheap(build, rmsnorm):
    run = build(RMSNORM.replace("#pragma omp parallel for", ""), rmsnorm)
    x, weight = torch.randn(1, 8), torch.randn(8)

    def burst():
        started = time.thread_time()
        for _ in range(200):
            run(x, weight, 1e-6)
        return (time.thread_time() - started) / 200

    assert min(burst() for _ in range(10)) < 30e-6


LOOPS = """#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.numel();
  float* p = y.data<float>();
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
#pragma omp simd \\
    reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += p[j] * p[j];
    for (int64_t j = 0; j < n; ++j) p[j] = p[j] + sum;
  }
  for (int64_t i = 0; i < n; ++i) if (p[i] == 7) { p[0] = 1; break; }
}
"""


def test_report_counts_loops_of_the_solution_once(write, vector, tmp_path):
    (report,) = cpp.LANGUAGE.build(write(LOOPS, "v1.cpp"), vector, tmp_path).resources
    assert (report.kernel, report.vectorized_loops, report.missed_loops) == ("run", 2, 1)
    assert report.notes[0].startswith("line 13: not vectorized: ")


REASONS = """template <typename T> void pass(T* p, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    T* row = p + i;
    for (int64_t j = 0; j < n; ++j) row[j] = f(row[j]);
    for (int64_t j = 0; j < n; ++j) {
      row[0] = row[j];
    }
  }
}
"""


def test_a_missed_loop_has_the_reason_that_gcc_gives_on_its_next_line(write):
    path = write(REASONS, "v1.cpp")
    lines = [
        f"{path}:4:8: missed: couldn't vectorize loop",  # the outer loop, at its first statement
        f"{path}:4:8: missed: not vectorized: control flow in loop.",
        f"{path}:5:30: missed: couldn't vectorize loop",
        "/usr/include/cmath:223:26: missed: statement clobbers memory: _82 = __builtin_expf (_57);",
        f"{path}:6:30: missed: couldn't vectorize loop",
        f"{path}:7:14: missed: not vectorized: no vectype for stmt: _25 = *_12;",
        f"{path}:5:30: optimized: loop vectorized using 32 byte vectors",
    ]
    report = cpp._vectorization(path, "\n".join(lines))
    assert (report.vectorized_loops, report.missed_loops) == (1, 2)
    assert report.notes == (
        "line 5: not vectorized for every type: it calls expf",
        "line 6: not vectorized: no vectype for stmt",
    )


def test_reports_of_clang_are_read_too(write):
    path = write(LOOPS, "v1.cpp")
    lines = [
        f"{path}:10:5: remark: vectorized loop (vectorization width: 8, interleaved count: 4)",
        f"{path}:13:3: remark: loop not vectorized: could not determine number of loop iterations",
        "/usr/include/x.h:1:3: remark: loop not vectorized",
    ]
    report = cpp._vectorization(path, "\n".join(lines))
    assert (report.vectorized_loops, report.missed_loops) == (1, 1)
    assert report.notes == ("line 13: not vectorized: could not determine number of loop iterations",)


def test_same_source_is_taken_from_the_folder(write, vector, tmp_path, monkeypatch):
    path = write(SCALE, "v1.cpp")
    first = cpp.LANGUAGE.build(path, vector, tmp_path / "build")
    monkeypatch.setattr(cpp, "_compile", lambda *_: pytest.fail("compiled again"))
    assert cpp.LANGUAGE.build(path, vector, tmp_path / "build") == first
    assert sorted(p.suffix for p in (tmp_path / "build").iterdir()) == [".json", ".so"]
    path.write_text(SCALE.replace("2 *", "3 *"))
    with pytest.raises(pytest.fail.Exception, match="compiled again"):
        cpp.LANGUAGE.build(path, vector, tmp_path / "build")


@pytest.mark.skipif(not landlock.landlock_version(), reason="no Landlock")
@pytest.mark.parametrize("line", ['#include "{path}"', 'asm(".incbin \\"{path}\\"");'])
def test_the_compiler_reads_no_file_but_the_versions_own(write, vector, tmp_path, line):
    """Another version, the definition or a user's file would be copied into the library, or into its errors."""
    secret = tmp_path / "elsewhere" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("static const int key = 4711;\n", encoding="utf-8")
    path = write(f"{line.format(path=secret)}\n{SCALE}", "v1.cpp")
    with pytest.raises(BuildFailed) as failure:
        cpp.LANGUAGE.build(path, vector, tmp_path / "built")
    assert "4711" not in str(failure.value)


def test_compile_error_is_short_and_fenced(write, vector, tmp_path):
    path = write(SCALE.replace("2 *", "two *"), "v7.cpp")
    with pytest.raises(BuildFailed) as caught:
        cpp.LANGUAGE.build(path, vector, tmp_path / "build")
    message = str(caught.value)
    assert message.startswith("v7.cpp does not compile.")
    assert "v7.cpp:3:" in message
    assert "two" in message
    assert str(tmp_path) not in message
    assert len(message.splitlines()) <= 11
    assert list((tmp_path / "build").iterdir()) == []


@pytest.mark.parametrize(
    "source",
    [
        SCALE.replace("Tensor& y)", "Tensor& y, double eps)"),
        SCALE.replace("const Tensor& x", "Tensor& x"),
        SCALE.replace("run(", "walk("),
    ],
)
def test_other_signature_is_told_the_expected_one(write, vector, tmp_path, source):
    with pytest.raises(BuildFailed, match=r'extern "C" void run\(const Tensor& x, Tensor& y\)'):
        cpp.LANGUAGE.build(write(source, "v1.cpp"), vector, tmp_path)


def test_compiler_is_stopped_in_time(write, vector, tmp_path, monkeypatch):
    slow = write("#!/bin/sh\ncase $* in *--version*|*syntax*) ;; *) sleep 5;; esac\n", "slow-c++")
    slow.chmod(0o755)
    monkeypatch.setenv("CXX", str(slow))
    cpp._compiler()
    monkeypatch.setattr(cpp, "_SECONDS", 0.3)
    with pytest.raises(BuildFailed, match=r"v1.cpp was not compiled.*0\.3 s"):
        cpp.LANGUAGE.build(write(SCALE, "v1.cpp"), vector, tmp_path / "build")


def test_missing_compiler(write, vector, tmp_path, monkeypatch):
    assert cpp.LANGUAGE.missing("cpu") is None
    assert "CPU only" in (cpp.LANGUAGE.missing("gpu") or "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "g++" in (cpp.LANGUAGE.missing("cpu") or "")
    with pytest.raises(MachineLacks, match=r"g\+\+"):
        cpp.LANGUAGE.build(write(SCALE, "v1.cpp"), vector, tmp_path)


def test_linkage_may_be_left_out(build, vector):
    assert build(SCALE.replace('extern "C" ', ""), vector)(torch.ones(1)).item() == 2


def test_inspect_compiles_for_another_architecture(write, rmsnorm):
    path = write(RMSNORM, "v1.cpp")
    (native,) = cpp.LANGUAGE.inspect(path, rmsnorm, "native")
    assert native.vectorized_loops == 2
    with pytest.raises(BuildFailed, match="nonsuch"):
        cpp.LANGUAGE.inspect(path, rmsnorm, "nonsuch")
    with pytest.raises(Misuse, match="-march"):
        cpp.LANGUAGE.inspect(path, rmsnorm, "x -fplugin=evil")


def test_assembly_names_the_lines_of_inlined_code_once(write, rmsnorm, tmp_path, monkeypatch):
    path, folder = write(RMSNORM, "v1.cpp"), tmp_path / "asm"
    (found,) = cpp.LANGUAGE.assembly(path, rmsnorm, rmsnorm.workloads, "x86-64-v3", folder)
    assert (found.kernel, found.workloads, found.isa) == ("run", ("small",), "x86")
    assert found.resources.vectorized_loops == 2
    assert found.assembly == folder / "run.x86-64-v3.asm"
    lines = found.assembly.read_text().splitlines()
    assert any("ymm" in line for line in lines)
    callers = [number for number, line in enumerate(lines) if line.startswith("inlined by ")]
    alone = {now for now in callers if lines[now - 1].startswith((" ", "\t"))}  # the same place, another caller
    assert len(alone) < len(callers)
    assert all(lines[now] != lines[last] for last, now in pairwise(callers) if now in alone)
    with pytest.raises(Misuse, match="-march=nonsuch"):
        cpp.LANGUAGE.assembly(path, rmsnorm, rmsnorm.workloads, "nonsuch", folder)
    monkeypatch.setattr(cpp.shutil, "which", lambda name: None if name == "objdump" else f"/usr/bin/{name}")
    with pytest.raises(MachineLacks, match="binutils"):
        cpp.LANGUAGE.assembly(path, rmsnorm, rmsnorm.workloads, "native", folder)


def test_template_compiles_once_it_is_filled_in(build, rmsnorm):
    template = cpp_source.cpp_template(rmsnorm)
    assert "x: (rows, cols), the workload's type. Rows to normalise." in template
    with pytest.raises(BuildFailed, match="Write the kernel: fill y here"):
        build(template, rmsnorm)
    lines = [line for line in template.splitlines() if not line.startswith("#error")]
    assert build("\n".join(lines), rmsnorm)(torch.ones(2, 3), torch.ones(3), 1e-6).shape == (2, 3)


def test_output_axis_that_no_input_has(build):
    definition = Definition(
        name="odd",
        description="An output of unknown size.",
        axes={"n": "length", "m": "other"},
        inputs={"x": TensorSpec(shape=("n",))},
        outputs={"y": TensorSpec(shape=("m",))},
        flops="n",
        workloads=(Workload(name="a", axes={"n": 4, "m": 2}),),
    )
    with pytest.raises(BadDefinition, match=r"odd: .* dimension m"):
        build(SCALE, definition)

"""HIP C++'s part of the interface: what is missing, which compiler is taken, what is refused."""

from __future__ import annotations

from importlib.machinery import ModuleSpec

import pytest

from warpsmith import languages
from warpsmith.driver import routing
from warpsmith.errors import MachineLacks, Misuse, SolutionFailed
from warpsmith.languages.base import Assembles, Build, BuildFailed, Relaunches, SuppressesLaunches
from warpsmith.languages.hip import compiler
from warpsmith.languages.hip import language as hip
from warpsmith.languages.hip.fake_device import fake_hip_device
from warpsmith.languages.hip.language import LANGUAGE

ASSEMBLY = """	.globl	_Z4rowsPfid
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .value_kind:     by_value
      - .offset:         16
        .size:           8
        .value_kind:     by_value
    .name:           _Z4rowsPfid
...
"""


@pytest.fixture
def no_rocm(monkeypatch, tmp_path):
    """A machine without ROCm; gives the folder to put one into."""
    monkeypatch.delenv("HIP_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "_USUAL", str(tmp_path / "usual"))
    return tmp_path


def pretend(monkeypatch, *packages):
    specs = {name: ModuleSpec(name, None, origin=f"/site/{name}/__init__.py") for name in packages}
    monkeypatch.setattr(compiler, "find_spec", specs.get)


def test_the_interface():
    assert languages.get("hip") is LANGUAGE
    assert isinstance(LANGUAGE, SuppressesLaunches)
    assert isinstance(LANGUAGE, Assembles)
    assert isinstance(LANGUAGE, Relaunches)
    assert (LANGUAGE.suffix, LANGUAGE.targets, LANGUAGE.architectures) == (".py", ("gpu",), ("gfx942", "gfx950"))
    assert LANGUAGE.port_architectures() == ("gfx942", "gfx950")
    assert not LANGUAGE.replaces_instructions


@pytest.mark.parametrize(
    ("file", "text", "language"),
    [
        ("kernel.py", 'import torch\nSOURCE = r"""\n#include <hip/hip_runtime.h>\n"""\n', "hip"),
        ("kernel.cpp", "# include <hip/hip_runtime.h>\n__global__ void f() {}\n", "hip"),
        ("kernel.cu", "#include <hip/hip_runtime.h>\n", "hip"),
        ("kernel.hip", "__global__ void f() {}\n", "hip"),
        ("kernel.cpp", "#include <cuda_bf16.h>\n__global__ void f() {}\n", "cuda"),
        ("kernel.cu", "__global__ void f() {}\n", "cuda"),
        ("kernel.cpp", "int main() {}\n", "cpp"),
    ],
)
def test_sources_are_recognised(file, text, language):
    assert languages.recognise(file, text) == language


@pytest.mark.parametrize("word", ["HIP C++", "hip", "HIP-CPP", "hipcc", "ROCm HIP"])
def test_users_names_for_it(word):
    assert routing.parse_language(word, languages.by_preference()) == "hip"


def test_rocms_compiler_comes_first_and_brings_its_own_headers(monkeypatch, no_rocm):
    pretend(monkeypatch, "ziglang", "torch")
    own = compiler.find_hip_compiler()
    assert own[:2] == ("/site/ziglang/zig", "clang")
    assert f"-I{compiler._API}" in own
    for folder in ("bin", "usual"):
        program = no_rocm / folder / "hipcc"
        program.parent.mkdir()
        program.touch(mode=0o755)
        rocm = compiler.find_hip_compiler()
        assert rocm[0] == str(program)
        assert not any("nogpu" in part or str(compiler._API) in part for part in rocm)
        program.unlink()


def test_a_machine_without_compiler_is_told_what_to_install(monkeypatch, no_rocm, rmsnorm, write):
    pretend(monkeypatch, "torch")
    assert "Neither ROCm's `hipcc` nor Python's ziglang" in (LANGUAGE.missing("gpu") or "")
    assert " -m pip install " in (LANGUAGE.missing("cpu") or "")
    source = write(LANGUAGE.template(rmsnorm), "v1.py")
    with pytest.raises(MachineLacks, match="nor Python's ziglang"):
        LANGUAGE.assembly(source, rmsnorm, rmsnorm.workloads, "gfx942", no_rocm)
    pretend(monkeypatch, "ziglang")
    assert "torch cannot be imported" in (LANGUAGE.missing("gpu") or "")


def test_a_folder_named_ziglang_is_no_compiler(monkeypatch, no_rocm):
    monkeypatch.setattr(compiler, "find_spec", lambda name: ModuleSpec(name, None))
    assert compiler.find_hip_compiler() is None


def test_what_is_missing_beside_the_compiler(monkeypatch, no_rocm):
    monkeypatch.setattr(hip, "missing_hip_compiler", lambda: None)
    pretend(monkeypatch, "ziglang")
    assert "no interpreter: Python's ziglang compiles" in (LANGUAGE.missing("cpu") or "")
    monkeypatch.setattr(hip, "has_amd_device", lambda: False)
    assert "No AMD GPU" in (LANGUAGE.missing("gpu") or "")
    monkeypatch.setattr(hip, "has_amd_device", lambda: True)
    assert LANGUAGE.missing("gpu") is None


def test_no_result_here_is_trusted(rmsnorm):
    assert "only an AMD GPU" in (LANGUAGE.distrust(rmsnorm, rmsnorm.workloads[0]) or "")


def test_architectures():
    assert LANGUAGE.architecture(None) == "gfx942"
    with pytest.raises(
        Misuse, match="HIP C\\+\\+ is not compiled for the architecture `sm_90`; known: gfx942, gfx950"
    ):
        LANGUAGE.architecture("sm_90")


def test_a_signature_that_differs_is_a_failed_build(rmsnorm, write, tmp_path):
    with pytest.raises(BuildFailed, match="expected a top-level"):
        LANGUAGE.build(write("def run(x):\n    return x\n", "v1.py"), rmsnorm, tmp_path)


def test_launches_are_suppressed_and_come_back(rmsnorm, write):
    pytest.importorskip("torch")
    utilities = pytest.importorskip("torch.cuda._utils")
    source = write(
        "import torch\n\ndef run(x, weight, eps):\n    return torch.cuda._utils._CudaKernel(None, None)()\n",
        "v1.py",
    )
    run, launch = LANGUAGE.load(Build(source, source, ()), rmsnorm), utilities._CudaKernel.__call__
    with LANGUAGE.suppress_launches():
        assert run(1, 2, 3) is None
    assert utilities._CudaKernel.__call__ is launch


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"args": [0.5, 3]}, "takes 3 arguments, the launch gives 2"),
        ({"args": [0.5, 3, 1]}, "argument 3 of `rows` is a `int` of 4 bytes; the kernel reads 8"),
        ({"args": [0.5, 3, 1.0], "grid": (4, 1)}, "must be three positive integers"),
        ({"args": [0.5, 3, 1.0], "block": (0, 1, 1)}, "must be three positive integers"),
        ({"args": [0.5, 3, 1.0], "shared_mem": 50000}, r"set_shared_memory_config\(50000\) first"),
    ],
)
def test_what_pytorch_would_refuse_or_misread_is_refused(call, words):
    torch = pytest.importorskip("torch")
    launches = []
    with fake_hip_device("gfx942", lambda *_: ASSEMBLY, launches):
        kernel = torch.cuda._compile_kernel("", "rows")
        with pytest.raises(SolutionFailed, match=words):
            kernel(**call)
        kernel.set_shared_memory_config(50000)
        kernel(args=[0.5, 3, 1.0], block=(64, 2, 1), shared_mem=50000)
        with pytest.raises(SolutionFailed, match=r"no `extern .C. __global__` kernel `row`; it has: _Z4rowsPfid"):
            torch.cuda._compile_kernel("", "row")
    assert [(launch.threads, launch.lds_bytes) for launch in launches] == [(128, 50000)]


def test_errors_are_shown_without_the_warnings_before():
    output = ["v1.py:3:1: warning: unused", "v1.py:9:5: error: unknown type name", "  9 | flaot x;"]
    assert LANGUAGE.error_lines(output) == output[1:]
    assert LANGUAGE.error_lines(["line 4: KeyError: 1"]) == ["line 4: KeyError: 1"]

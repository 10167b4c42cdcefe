"""CUDA C++ solutions without a GPU: what the language asks for, refuses and reports."""

from __future__ import annotations

import functools
import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from warpsmith import languages
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import Assembles, Build, BuildFailed, SuppressesLaunches
from warpsmith.languages.cuda import language as cuda
from warpsmith.languages.cuda.language import LANGUAGE
from warpsmith.languages.shared import compile_only
from warpsmith.languages.shared.tool import ToolResult


def absent() -> str | None:
    try:
        return cuda.missing_compiler()
    except ImportError as error:
        return str(error)


needs_nvrtc = pytest.mark.skipif(absent() is not None, reason=f"CUDA C++ is not compiled here: {absent()}")
PLAIN = "def run(x):\n    return x\n"


def test_it_is_a_language_with_everything():
    assert languages.get("cuda") is LANGUAGE
    assert isinstance(LANGUAGE, SuppressesLaunches)
    assert isinstance(LANGUAGE, Assembles)
    assert LANGUAGE.targets == ("gpu",)


def test_importing_it_imports_no_library():
    import subprocess

    code = "import sys; from warpsmith import languages; languages.get('cuda'); "
    code += "sys.exit(any(m in sys.modules for m in ('torch', 'cuda.core', 'triton', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_names_what_lacks(monkeypatch):
    monkeypatch.setattr(cuda, "find_spec", lambda name: None if name == "cuda.core" else object())
    assert "Python's cuda.core cannot be imported" in (LANGUAGE.missing("gpu") or "")
    monkeypatch.setattr(cuda, "find_spec", lambda name: object())
    monkeypatch.setattr(cuda, "header_folders", lambda: {"cudart": None, "cccl": Path("/usr/include")})
    said = LANGUAGE.missing("gpu") or ""
    assert "cudart nowhere (pip install nvidia-cuda-runtime), cccl in /usr/include" in said
    monkeypatch.setattr(cuda, "header_folders", lambda: {"cudart": Path("/a"), "cccl": None})
    monkeypatch.setattr(cuda, "has_cuda_device", lambda: False)
    assert "No CUDA device" in (LANGUAGE.missing("gpu") or "")
    assert "no interpreter" in (LANGUAGE.missing("cpu") or "")
    monkeypatch.setattr(cuda, "has_cuda_device", lambda: True)
    assert LANGUAGE.missing("gpu") is None


def test_what_runs_is_trusted(vector):
    assert LANGUAGE.distrust(vector, vector.workloads[0]) is None


def test_architectures_by_their_other_name():
    names = {asked: LANGUAGE.architecture(asked) for asked in (None, "sm_90", "sm_90a", "sm_100a")}
    assert names == {None: "sm_90a", "sm_90": "sm_90a", "sm_90a": "sm_90a", "sm_100a": "sm_100"}
    with pytest.raises(Misuse, match=r"sm_12.*sm_90a"):
        LANGUAGE.architecture("sm_12")


@pytest.mark.parametrize("source", [PLAIN, "def run(x, *, block=3):\n    return x\n"])
def test_signatures_that_fit(write, vector, tmp_path, source):
    path = write(source, "v1.py")
    assert LANGUAGE.build(path, vector, tmp_path) == Build(path, path, ())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def run(y):\n    return y\n", r"`def run\(x\)`"),
        ("X = 1\n", "it has none"),
        ("def run(x):\n    retrun x\n", "does not parse at line 2"),
        ("def run(x): ...\n\0", "does not parse"),
    ],
)
def test_files_that_do_not_fit(write, vector, tmp_path, source, said):
    with pytest.raises(BuildFailed, match=said):
        LANGUAGE.build(write(source, "v1.py"), vector, tmp_path)


@needs_nvrtc
def test_a_program_that_does_not_parse_is_told_by_the_lines_of_the_file(write, vector, tmp_path):
    source = (
        'from cuda.core import Program\n\nS = r"""\n__global__ void k(float* y) {\n  y[0] = missing;\n}\n"""\n'
    )
    path = write(f"{source}P = lambda: Program(S, 'c++')\n{PLAIN}", "v3.py")
    with pytest.raises(BuildFailed) as caught:
        LANGUAGE.build(path, vector, tmp_path)
    said = str(caught.value).splitlines()
    assert said[0] == "v3.py does not compile."
    assert said[2] == 'v3.py(5): error: identifier "missing" is undefined'
    assert "y[0] = missing;" in said[3]


@needs_nvrtc
def test_a_program_is_checked_once(write, vector, tmp_path, monkeypatch):
    source = 'from cuda.core import Program\n\nS = r"""\n__global__ void k() {}\n"""\n'
    path = write(f"{source}P = lambda: Program(S, 'c++')\n{PLAIN}", "v4.py")
    asked = []
    monkeypatch.setattr(type(LANGUAGE), "run_child", lambda *given: asked.append(given))
    for _ in range(2):
        LANGUAGE.build(path, vector, tmp_path / "built")
    assert len(asked) == 1
    path.write_text(path.read_text().replace("void k()", "void other()"))
    LANGUAGE.build(path, vector, tmp_path / "built")
    assert len(asked) == 2


@needs_nvrtc
def test_template_says_what_to_write(write, rmsnorm, tmp_path):
    source = LANGUAGE.template(rmsnorm)
    LANGUAGE.build(write(source, "v1.py"), rmsnorm, tmp_path)
    assert "x: (rows, cols), the workload's type. Rows to normalise." in source
    assert "raise NotImplementedError" in source
    assert LANGUAGE.findings(source) == []


def test_assembly_keeps_the_sass(write, vector, tmp_path, monkeypatch):
    launch = {"stem": "scale.sm_90a", "workloads": ["a"], "variant": "block 32", "matrix_product": False}

    def compiled(source, definition, workloads, arch, folder):
        (folder / f"scale.{arch}.sass").write_text("sass")
        (folder / "launches.json").write_text(json.dumps([launch]))
        return (Resources(kernel="scale"),)

    monkeypatch.setattr(LANGUAGE, "_compile", compiled, raising=False)
    folder = tmp_path / "asm"
    folder.mkdir()
    for name in ("scale-2.sm_90a.sass", "scale.sm_80.sass"):
        (folder / name).write_text("of an earlier call")
    (found,) = LANGUAGE.assembly(write(PLAIN, "v1.py"), vector, vector.workloads, "sm_90a", folder)
    assert (found.kernel, found.workloads, found.isa, found.ptx) == ("scale", ("a",), "sass", None)
    assert found.assembly.read_text() == "sass"
    assert {path.name for path in folder.iterdir()} == {"scale.sm_90a.sass", "scale.sm_80.sass"}


def test_what_is_missing_is_not_the_solutions_fault(write, vector, monkeypatch):
    monkeypatch.setattr(cuda, "missing_compiler", lambda: "NVIDIA's headers are missing.")
    with pytest.raises(MachineLacks, match="headers are missing"):
        LANGUAGE.inspect(write(PLAIN, "v1.py"), vector, "sm_90a")


def test_a_child_that_fails_or_hangs_is_told(write, tmp_path, monkeypatch):
    monkeypatch.setattr(
        compile_only.tool, "run_tool", lambda *_, **__: ToolResult(1, "\n".join(f"line {n}" for n in range(99)))
    )
    path = write(PLAIN, "v2.py")
    with pytest.raises(BuildFailed, match=r"v2.py does not compile\.\n```\nline 0\n") as caught:
        LANGUAGE.run_child(path, {}, tmp_path, "does not compile")
    assert len(str(caught.value).splitlines()) <= 11

    def late(*_, **__):
        raise TimeoutError("python took more than 120 s")

    monkeypatch.setattr(compile_only.tool, "run_tool", late)
    with pytest.raises(BuildFailed, match="does not compile: python took more than"):
        LANGUAGE.run_child(path, {}, tmp_path, "does not compile")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("scale", "scale"),
        ("softmax<float, 16>", "softmax"),
        ("ops::norm<__nv_bfloat16, ops::Sum>", "norm"),
        ("_Z7softmaxIfLi16EEvPKT_PS0_xf", "softmax"),
        ("_ZN3ops5inner4normILi3EEEvP6float4S2_", "norm"),
    ],
)
def test_names_without_arguments(name, short):
    assert cuda.short_name(name) == short


class FakeKernel:
    """A loaded kernel as cuda.core shows it."""

    def __init__(self, name: str) -> None:
        self.handle = name
        self.attributes = SimpleNamespace(
            num_regs=40, shared_size_bytes=1024, local_size_bytes=8, max_threads_per_block=256
        )


@pytest.fixture
def fake_core(monkeypatch):
    """cuda.core and the driver as they would be beside a GPU."""
    real = []
    core = ModuleType("cuda.core")
    core.Kernel, core.Program, core.launch = FakeKernel, type("Program", (), {}), lambda *_: real.append("core")
    driver = ModuleType("cuda.bindings.driver")
    driver.CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    driver.cuLaunchKernel, driver.cuLaunchKernelEx = lambda *_: real.append("one"), lambda *_: real.append("ex")
    driver.cuKernelGetName = lambda name: (0, name.encode())
    modules = {"cuda.core": core, "cuda.bindings.driver": driver}
    monkeypatch.setattr(cuda.importlib, "import_module", modules.__getitem__)
    return SimpleNamespace(core=core, driver=driver, real=real)


def test_resources_of_the_kernels_that_a_file_keeps(fake_core):
    @functools.cache
    def compiled(name: str):
        return FakeKernel(name)

    @functools.lru_cache(4)
    def few(name: str):
        return FakeKernel(name)

    compiled("_Z5scaleIfEvPT_"), few("norm"), compiled("_Z5scaleIdEvPT_")
    names = {"compiled": compiled, "few": few, "TABLE": {"a": [FakeKernel("route")]}, "json": json}
    run = eval("lambda x: x", names)
    found = {report.kernel: report for report in LANGUAGE.resources(run)}
    assert set(found) == {"scale", "norm", "route"}
    assert len(LANGUAGE.resources(run)) == 3  # both of `scale` report the same
    report = found["scale"]
    assert (report.registers, report.shared_bytes, report.spill_bytes) == (40, 1024, 8)


def test_launches_are_held_back_whatever_they_are_called(fake_core, monkeypatch):
    solution = ModuleType("warpsmith_solution_test_0")
    solution.launch = solution.go = fake_core.core.launch
    solution.driver = fake_core.driver
    monkeypatch.setitem(sys.modules, solution.__name__, solution)
    with LANGUAGE.suppress_launches():
        solution.launch(1, 2, 3)
        solution.go(1, 2, 3)
        fake_core.core.launch(1, 2, 3)
        assert solution.driver.cuLaunchKernelEx(1, 2, 3, 4) == (0,)
    assert fake_core.real == []
    solution.go(1, 2, 3)
    solution.driver.cuLaunchKernelEx(1)
    assert fake_core.real == ["core", "ex"]


@needs_nvrtc
def test_loaded_programs_name_lines_of_the_file(fake_core, write):
    class Program:
        def __init__(self, code, code_type, options):
            self.code = code

    fake_core.core.Program = Program
    sys.modules["cuda.core"], before = fake_core.core, sys.modules.get("cuda.core")
    try:
        text = 'from cuda.core import Program\nS = r"""\n__global__ void k() {}\n"""\ndef run(x):\n    '
        path = write(text + 'return Program(S, "c++").code, Program(S, "ptx").code\n', "v4.py")
        run = LANGUAGE.load(Build(path, path, ()), None)
        assert fake_core.core.Program is Program
        assert run(0) == ('#line 2 "v4.py"\n\n__global__ void k() {}\n', "\n__global__ void k() {}\n")
    finally:
        if before is None:
            del sys.modules["cuda.core"]
        else:
            sys.modules["cuda.core"] = before


@needs_nvrtc
def test_what_the_language_asks_of_cuda_core_is_there():
    from cuda import core
    from cuda.bindings import driver

    for name in ("Kernel", "LaunchConfig", "Program", "ProgramOptions", "Stream", "launch"):
        assert hasattr(core, name)
    assert hasattr(core.Stream, "from_handle")
    assert {"num_regs", "local_size_bytes", "shared_size_bytes"} <= set(dir(core._module.KernelAttributes))
    for name in ("cuKernelGetName", "cuLaunchKernel", "cuLaunchKernelEx", "cuKernelSetAttribute"):
        assert callable(getattr(driver, name))

    class Program(core.Program):
        pass

    assert re.search("Program", repr(Program))

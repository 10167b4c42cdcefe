"""FlyDSL's part of the interface: what is missing, what is suppressed, what is told. No compiler runs here."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from warpsmith import languages
from warpsmith.driver import routing
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import Assembles, Build, BuildFailed, Relaunches, SuppressesLaunches
from warpsmith.languages.flydsl import language as flydsl
from warpsmith.languages.flydsl.language import LANGUAGE
from warpsmith.languages.shared import python_file


@pytest.fixture
def jit(monkeypatch):
    """A `flydsl` whose jitted functions count what they compile and launch."""
    modules = {
        name: ModuleType(name)
        for name in (
            "flydsl",
            "flydsl._mlir",
            "flydsl._mlir.ir",
            "flydsl.compiler",
            "flydsl.compiler.jit_function",
        )
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)

    class JitFunction:
        launched: list[tuple[object, ...]] = []

        def _compile_or_execute(self, args, kwargs, *, execute, return_compiled=False):
            self.launched.append(args)

        def __call__(self, *args, **kwargs):
            return self._compile_or_execute(args, kwargs, execute=True)

    class CompiledFunction:
        def __call__(self, *args):
            JitFunction.launched.append(args)

    JitFunction.launched = []
    modules["flydsl._mlir.ir"].Context = SimpleNamespace(current=None)
    module = modules["flydsl.compiler.jit_function"]
    module.JitFunction, module.CompiledFunction = JitFunction, CompiledFunction
    module.context = modules["flydsl._mlir.ir"].Context
    return module


def test_the_interface():
    assert languages.get("flydsl") is LANGUAGE
    assert isinstance(LANGUAGE, SuppressesLaunches)
    assert isinstance(LANGUAGE, Assembles)
    assert isinstance(LANGUAGE, Relaunches)
    assert (LANGUAGE.suffix, LANGUAGE.targets, LANGUAGE.architectures) == (".py", ("gpu",), ("gfx942", "gfx950"))
    assert LANGUAGE.port_architectures() == ("gfx942", "gfx950")
    assert not LANGUAGE.replaces_instructions


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nimport flydsl.compiler as flyc\n",
        "from flydsl import expr as fx\n",
        "def build():\n    from flydsl.expr import rocdl\n",
    ],
)
def test_sources_are_recognised(text):
    assert languages.recognise("kernel.py", text) == "flydsl"


def test_others_are_not():
    assert languages.recognise("kernel.py", "import flydsl_tools\nimport triton\n") == "triton"
    assert languages.recognise("kernel.cpp", "import flydsl\n") == "cpp"


@pytest.mark.parametrize("word", ["FlyDSL", "fly-dsl", "Fly", "ROCm FlyDSL"])
def test_users_names_for_it(word):
    assert routing.parse_language(word, languages.by_preference()) == "flydsl"


@pytest.mark.parametrize(
    ("architecture", "agent"), [("gfx942", "flydsl"), ("gfx950", "flydsl"), ("sm_90", "triton")]
)
def test_its_agent_is_named_for_amds_architectures_only(architecture, agent):
    request = routing.RouteRequest(language="flydsl", architecture=architecture)
    route = routing.plan_route(request, languages.agent_names(), languages.by_preference())
    assert [(step.agent, step.available) for step in route.steps] == [(f"{agent}-specialist", True)]
    assert any("FlyDSL does not run on sm_90" in note for note in route.notes) is (agent == "triton")


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(flydsl, "is_installed", lambda name: name != "flydsl")
    for kind in ("gpu", "cpu"):
        assert "Python's flydsl cannot be imported: run `" in (LANGUAGE.missing(kind) or "")
    monkeypatch.setattr(flydsl, "is_installed", lambda _: False)
    assert "torch and flydsl cannot" in (LANGUAGE.missing("gpu") or "")


def test_a_folder_of_versions_is_no_package(monkeypatch, tmp_path):
    (tmp_path / "fly_versions").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert not flydsl.is_installed("fly_versions")
    (tmp_path / "fly_versions" / "__init__.py").touch()
    assert flydsl.is_installed("fly_versions")


def test_what_is_missing_beside_the_package(monkeypatch):
    monkeypatch.setattr(flydsl, "is_installed", lambda _: True)
    assert "no interpreter" in (LANGUAGE.missing("cpu") or "")
    monkeypatch.setattr(flydsl, "has_amd_device", lambda: False)
    assert "No AMD GPU" in (LANGUAGE.missing("gpu") or "")
    monkeypatch.setattr(flydsl, "has_amd_device", lambda: True)
    assert LANGUAGE.missing("gpu") is None


@pytest.mark.parametrize(
    ("hip", "available", "there"), [("7.0", True, True), ("7.0", False, False), (None, True, False)]
)
def test_a_device_is_one_of_a_pytorch_for_amd(monkeypatch, hip, available, there):
    cuda = SimpleNamespace(is_available=lambda: available)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(version=SimpleNamespace(hip=hip), cuda=cuda))
    assert python_file.has_amd_device() is there


def test_before_pytorch_is_imported_the_driver_tells(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(python_file, "_AMD_DRIVER", tmp_path / "kfd")
    assert not python_file.has_amd_device()
    (tmp_path / "kfd").touch()
    assert python_file.has_amd_device()


def test_no_result_here_is_trusted(rmsnorm):
    assert "only an AMD GPU" in (LANGUAGE.distrust(rmsnorm, rmsnorm.workloads[0]) or "")


def test_architectures():
    assert LANGUAGE.architecture(None) == "gfx942"
    assert LANGUAGE.architecture("gfx950") == "gfx950"
    with pytest.raises(Misuse, match="FlyDSL is not compiled for the architecture `sm_90`; known: gfx942, gfx950"):
        LANGUAGE.architecture("sm_90")


def test_the_compiling_process_is_told_the_architecture(tmp_path):
    environment = LANGUAGE.environment(tmp_path, "gfx950")
    assert environment["FLYDSL_GPU_ARCH"] == environment["ARCH"] == "gfx950"
    assert environment["FLYDSL_RUNTIME_ENABLE_CACHE"] == "0"


def test_without_the_package_nothing_is_compiled(monkeypatch, rmsnorm, write, tmp_path):
    monkeypatch.setattr(flydsl, "is_installed", lambda name: name != "flydsl")
    source = write(LANGUAGE.template(rmsnorm), "v1.py")
    with pytest.raises(MachineLacks, match="flydsl cannot be imported"):
        LANGUAGE.assembly(source, rmsnorm, rmsnorm.workloads, "gfx942", tmp_path)
    with pytest.raises(MachineLacks, match="flydsl cannot be imported"):
        LANGUAGE.assemble_relaunches(source, rmsnorm, rmsnorm.workloads, "gfx942", tmp_path / "port")


def test_a_signature_that_differs_is_a_failed_build(rmsnorm, write, tmp_path):
    with pytest.raises(BuildFailed, match="expected a top-level"):
        LANGUAGE.build(write("def run(x):\n    return x\n", "v1.py"), rmsnorm, tmp_path)


@pytest.mark.parametrize(
    ("cache", "name", "value"),
    [(None, "FLYDSL_RUNTIME_ENABLE_CACHE", "0"), (Path("/c"), "FLYDSL_RUNTIME_CACHE_DIR", "/c/flydsl")],
)
def test_compiled_kernels_go_to_the_builds_cache_or_nowhere(monkeypatch, rmsnorm, write, cache, name, value):
    monkeypatch.setenv(name, "before")  # restored afterwards
    source = write("def run(x, weight, eps):\n    return x\n", "v1.py")
    assert LANGUAGE.load(Build(source, source, (), cache), rmsnorm)(1, 2, 3) == 1
    assert os.environ[name] == value


def test_suppressed_launches_do_nothing(jit):
    function, compiled = jit.JitFunction(), jit.CompiledFunction()
    with LANGUAGE.suppress_launches():
        function(1)
        compiled(2)
        later = function._compile_or_execute((3,), {}, execute=True, return_compiled=True)
        later(4)
    assert jit.JitFunction.launched == []
    function(5)
    compiled(6)
    assert jit.JitFunction.launched == [(5,), (6,)]


def test_a_function_that_is_traced_calls_others(jit):
    jit.context.current = object()
    with LANGUAGE.suppress_launches():
        jit.JitFunction()(1)
    assert jit.JitFunction.launched == [(1,)]


def test_errors_are_shown_without_the_compilers_frames():
    output = [
        "/v1.py:25: UserWarning: Variable is assigned",
        "line 81: DSLCompileError: operand has another type",
        "  note: see current operation",
        "DSL Traceback (most recent operation last):",
        '  File "/v1.py", line 12',
        "    @flyc.jit",
        "line 81: DSLCompileError: operand has another type",
    ]
    assert LANGUAGE.error_lines(output) == [output[1]]
    assert LANGUAGE.error_lines(["python: a.cpp:112: Assertion `leaf` failed."]) == [
        "python: a.cpp:112: Assertion `leaf` failed."
    ]

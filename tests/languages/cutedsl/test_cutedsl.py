"""CuTe DSL solutions without a GPU: what a file must hold, and what the compiler makes of the skill's example."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith import languages
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import Assembles, Build, BuildFailed, SuppressesLaunches
from warpsmith.languages.cutedsl import language as cutedsl
from warpsmith.languages.shared import compile_only
from warpsmith.languages.shared.tool import ToolResult

pytestmark = pytest.mark.usefixtures("forked_compilers")

LACKS = cutedsl.LANGUAGE.uninstalled()
needs_cutedsl = pytest.mark.skipif(LACKS is not None, reason=LACKS or "")

EXAMPLE = Path(__file__).parents[3] / "skills/design-cutedsl-kernel/references/example.md"
SOFTMAX = Definition(
    name="row_softmax",
    description="Softmax of each row of scale * x.",
    axes={"rows": "rows", "cols": "row length"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=0.125)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="6 * rows * cols",
    workloads=(
        Workload(name="float32", axes={"rows": 4096, "cols": 1024}),
        Workload(name="more-rows", axes={"rows": 9, "cols": 1024}),
        Workload(name="bfloat16", axes={"rows": 64, "cols": 8192}, dtype="bfloat16"),
        Workload(name="odd", axes={"rows": 7, "cols": 129}, dtype="bfloat16"),
    ),
)

HELD_BACK = """
import gc, os, sys
from pathlib import Path
from warpsmith.languages.base import Build
from warpsmith.languages.cutedsl.language import LANGUAGE
import torch
path = Path(sys.argv[1])
run = LANGUAGE.load(Build(path, path, ()), None)
from warpsmith.languages.cutedsl import calls as cutedsl_calls
assert cutedsl_calls.compiled_functions() == []
x = torch.randn(4, 64)
with LANGUAGE.suppress_launches():
    assert run(x, 0.5).shape == x.shape
try:
    run(x, 0.5)
except ValueError as error:
    assert "device_type=cuda" in str(error), error
else:
    raise AssertionError("it was held back still")
(made,) = cutedsl_calls.compiled_functions()
assert isinstance(made.__cubin__, bytes), made.__cubin__
"""


def example():
    """The kernel that the skill shows."""
    block = re.search(r"```python\n(.*?)```", EXAMPLE.read_text(), re.DOTALL)
    assert block
    return block[1]


@pytest.fixture(scope="module")
def listings(tmp_path_factory):
    """The example's kernels, compiled for sm_90a once."""
    if LACKS:
        pytest.skip(LACKS)
    folder = tmp_path_factory.mktemp("assembly")
    path = folder / "v1.py"
    path.write_text(example())
    (folder / "gone.sm_90a.sass").write_text("of an earlier call")
    return cutedsl.LANGUAGE.assembly(path, SOFTMAX, SOFTMAX.workloads, "sm_90a", folder)


def test_it_is_a_language_with_all_that_a_gpu_needs():
    assert languages.get("cutedsl") is cutedsl.LANGUAGE
    assert isinstance(cutedsl.LANGUAGE, SuppressesLaunches)
    assert isinstance(cutedsl.LANGUAGE, Assembles)


def test_the_example_keeps_to_registers_and_moves_16_bytes(listings):
    for listing in listings:
        report = listing.resources
        assert (listing.kernel, listing.isa, report.spill_bytes) == ("softmax_kernel", "sass", 0)
        assert 0 < report.registers <= 64
        kinds = report.notes[0]
        assert "LDL x0" in kinds
        width = "LDG.E.U16 x3, STG.E.U16 x3" if listing.workloads == ("odd",) else "LDG.E.128 x4, STG.E.128 x4"
        assert kinds.startswith(width)


def test_a_compilation_serves_every_number_of_rows(listings):
    assert [listing.workloads for listing in listings] == [("float32", "more-rows"), ("bfloat16",), ("odd",)]
    assert [listing.resources.shared_bytes for listing in listings] == [16, 64, 16]
    assert [listing.variant.split(",")[0] for listing in listings] == ["64 threads", "256 threads", "64 threads"]


def test_listings_name_their_lines_and_those_of_earlier_calls_go(listings):
    names = {path.name for path in listings[0].assembly.parent.glob("*.sass")}
    assert names == {f"softmax_kernel{n}.sm_90a.sass" for n in ("", "-2", "-3")}
    sass = listings[0].assembly.read_text()
    assert sass.count(".section\t.text.") == 1
    assert re.search(r'## File ".*v1\.py", line \d+', sass)
    assert ".target sm_90a" in listings[0].ptx.read_text()
    assert not listings[0].matrix_product


@needs_cutedsl
def test_calls_are_held_back_and_compilations_heard(write):
    ended = subprocess.run(
        [sys.executable, "-c", HELD_BACK, write(example(), "v1.py")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_the_child_is_told_what_to_compile_for(write, monkeypatch):
    told = {}

    def run(command, seconds, environment):
        folder = Path(command[-1])
        told.update(environment, request=json.loads((folder / "request.json").read_text()))
        assert Path(environment["CUTE_DSL_DUMP_DIR"]).parent == folder
        (folder / "resources.json").write_text(json.dumps([Resources(kernel="k").model_dump(mode="json")]))
        return ToolResult(0, "")

    monkeypatch.setattr(cutedsl.LANGUAGE, "uninstalled", lambda: None, raising=False)
    monkeypatch.setattr(compile_only.tool, "run_tool", run)
    path = write("def run(x, scale):\n    return x\n", "v1.py")
    assert cutedsl.LANGUAGE.inspect(path, SOFTMAX, "sm_100") == (Resources(kernel="k"),)
    assert (told["CUTE_DSL_ARCH"], told["CUTE_DSL_KEEP"]) == ("sm_100a", "cubin,ptx")
    assert told["request"]["workloads"] == ["float32"]


@pytest.mark.parametrize(
    ("ends", "error", "said"),
    [
        (
            TimeoutError("python took more than 180 s"),
            BuildFailed,
            "does not compile for sm_90a: python took more",
        ),
        (
            ToolResult(1, "\n\nline 3: \x1b[91mTypeError:\x1b[0m no\n"),
            BuildFailed,
            "(?s)does not compile.*line 3: TypeError: no",
        ),
        ("`nvdisasm` is not there.", MachineLacks, "`nvdisasm` is not there"),
    ],
)
def test_what_goes_wrong_in_the_child_is_said(write, monkeypatch, ends, error, said):
    def run(command, *_, **__):
        if isinstance(ends, str):
            Path(command[-1], "lacks.txt").write_text(ends)
            return ToolResult(1, "")
        if isinstance(ends, Exception):
            raise ends
        return ends

    monkeypatch.setattr(cutedsl.LANGUAGE, "uninstalled", lambda: None, raising=False)
    monkeypatch.setattr(compile_only.tool, "run_tool", run)
    with pytest.raises(error, match=said):
        cutedsl.LANGUAGE.inspect(write("def run(x, scale):\n    return x\n", "v1.py"), SOFTMAX, "sm_90a")


def test_architectures_by_their_other_name(write):
    names = {asked: cutedsl.LANGUAGE.architecture(asked) for asked in (None, "sm_80", "sm_90", "sm_100a")}
    assert names == {None: "sm_90a", "sm_80": "sm_80", "sm_90": "sm_90a", "sm_100a": "sm_100"}
    with pytest.raises(Misuse, match=r"sm_12.*sm_90a"):
        cutedsl.LANGUAGE.architecture("sm_12")
    with pytest.raises(Misuse, match=r"sm_12.*sm_90a"):
        cutedsl.LANGUAGE.inspect(write("def run(x, scale): ...", "v1.py"), SOFTMAX, "sm_12")


def test_missing_names_what_lacks(monkeypatch, tmp_path):
    here = {"torch", "cutlass", "tvm_ffi"}
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(cutedsl, "find_spec", lambda name: spec if name in here else None)
    assert "without its libraries for CUDA 13" in cutedsl.LANGUAGE.missing("gpu")
    libraries = tmp_path / "_mlir/_mlir_libs"
    libraries.mkdir(parents=True)
    (libraries / "_cutlass_ir.cu13.so").touch()
    monkeypatch.setattr(cutedsl, "has_cuda_device", lambda: False)
    assert "No CUDA device" in cutedsl.LANGUAGE.missing("gpu")
    assert "no interpreter" in cutedsl.LANGUAGE.missing("cpu")
    monkeypatch.setattr(cutedsl, "has_cuda_device", lambda: True)
    assert cutedsl.LANGUAGE.missing("gpu") is None
    here.remove("tvm_ffi")
    assert cutedsl.LANGUAGE.missing("gpu").startswith("apache-tvm-ffi cannot be imported: run `")


def test_only_a_gpu_is_trusted():
    assert "only a GPU" in (cutedsl.LANGUAGE.distrust(SOFTMAX, SOFTMAX.workloads[0]) or "")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "def run(x):\n    return x\n",
            r"v1.py has no `run` for row_softmax: `run` at line 1.*`def run\(x, scale\)`",
        ),
        ("import cutlass\n", r"it has none; expected a top-level `def run\(x, scale\)`"),
        ("def run(x, scale):\n    return (\n", r"v1.py does not parse at line 2"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(write, tmp_path, source, said):
    with pytest.raises(BuildFailed, match=said):
        cutedsl.LANGUAGE.build(write(source, "v1.py"), SOFTMAX, tmp_path)


@pytest.mark.skipif(find_spec("cutlass") is None, reason="nvidia-cutlass-dsl is not installed")
def test_the_example_fits_what_new_writes(write, tmp_path):
    path = write(example(), "v1.py")
    assert cutedsl.LANGUAGE.build(path, SOFTMAX, tmp_path) == Build(path, path, ())
    assert cutedsl.LANGUAGE.findings(example()) == []


def test_nothing_is_reported_before_a_kernel_was_compiled(monkeypatch):
    monkeypatch.delitem(sys.modules, "cutlass", raising=False)
    assert cutedsl.LANGUAGE.resources(lambda x: x) == ()

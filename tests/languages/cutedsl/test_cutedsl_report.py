"""The compiler's report is read out of what the tools and the driver say."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from warpsmith.core.evaluation import Resources
from warpsmith.languages.cutedsl import report as cutedsl_report

ONE, TWO = "kernel_cutlass_norm_tensorptrf32_8_0", "kernel_cutlass_norm_rows_tensorptrf32_1"
USAGE = f"""
Resource usage:
 Common:
  GLOBAL:0
 Function {ONE}:
  REG:32 STACK:16 SHARED:1024 LOCAL:8 CONSTANT[0]:564 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function {TWO}:
  REG:64 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:564 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
SASS = f"""\t.target\tsm_90a
//--------------------- .text.{TWO} --------------------------
\t.section\t.text.{TWO}
        /*0000*/                   LDC R1, c[0x0][0x28] ;
//--------------------- .text.{ONE} --------------------------
\t.section\t.text.{ONE}
        /*0000*/                   EXIT ;
"""
PTX = f"""
.extern .shared .align 1024 .b8 __dynamic_shmem__0[];
.shared .align 4 .b8 fixed[32];
.visible .entry {ONE}(
\t.param .align 8 .b8 param_0[16]
)
.reqntid 64, 2, 1
{{ }}
.visible .entry {TWO}(
\t.param .align 8 .b8 param_0[16]
)
{{ }}
"""
_CONFIG = "llvm.getelementptr {0}[0, 2] : (!llvm.ptr) -> !llvm.struct<(array<3 x i32>, array<3 x i32>, i64, ptr)>"


def lowered(*launches):
    """Host code as the DSL lowers it, one launch after the other."""
    lines = ["llvm.func @other() {", "  %1 = llvm.mlir.constant(7 : i64) : i64", "}", "llvm.func @launch() {"]
    for n, (value, kernel) in enumerate(launches):
        if value is not None:
            lines.append(f"  %{n}1 = llvm.mlir.constant({value} : i64) : i64")
        lines += [
            f"  %{n}2 = {_CONFIG.format(f'%{n}0')}",
            f"  llvm.store %{n}1, %{n}2 : i64, !llvm.ptr",
            f"  %{n}3 = llvm.mlir.addressof @kernels_{kernel} : !llvm.ptr",
            f"  %{n}4 = llvm.call @_cudaLaunchKernelEx(%{n}5, %{n}3, %{n}6) : i32",
        ]
    return "\n".join([*lines, "}"])


def test_names_are_the_functions_of_the_file():
    known = ["norm", "norm_rows", "run"]
    assert cutedsl_report.split_symbol(ONE, known) == ("norm", "tensorptrf32_8_0")
    assert cutedsl_report.split_symbol(TWO, known) == ("norm_rows", "tensorptrf32_1")
    assert cutedsl_report.split_symbol(ONE, ["run"]) == ("norm_tensorptrf32_8_0", "")


def test_usage_is_of_every_kernel():
    assert cutedsl_report.parse_usage(USAGE) == {ONE: (32, 24), TWO: (64, 0)}


def test_every_kernel_has_its_own_listing():
    found = cutedsl_report.split_sections(SASS)
    assert list(found) == [TWO, ONE]
    assert "LDC" in found[TWO]
    assert "LDC" not in found[ONE]
    assert all(text.startswith("\t.target\tsm_90a") for text in found.values())


def test_threads_are_those_that_the_launch_fixes():
    assert cutedsl_report.threads_per_block(PTX) == {ONE: 128}


def test_shared_memory_is_what_the_launch_asks_for():
    module = lowered((256, ONE), (512, TWO))
    assert cutedsl_report.shared_bytes(module, "") == {ONE: 256, TWO: 512}
    assert cutedsl_report.shared_bytes(module, PTX) == {ONE: 288, TWO: 544}
    assert cutedsl_report.shared_bytes(lowered((None, ONE), (512, TWO)), "") == {TWO: 512}


@pytest.fixture
def driver(monkeypatch):
    """A driver with one kernel loaded, and what was unloaded."""
    attributes = {
        f"CU_FUNC_ATTRIBUTE_{name}": value
        for name, value in {"NUM_REGS": 40, "LOCAL_SIZE_BYTES": 16, "SHARED_SIZE_BYTES": 1024}.items()
    }
    unloaded = []
    fake = SimpleNamespace(
        CUfunction_attribute=SimpleNamespace(**{name: name for name in attributes}),
        cuCtxGetDevice=lambda: (0, "device"),
        cuLibraryGetKernelCount=lambda library: (0, 1),
        cuLibraryEnumerateKernels=lambda count, library: (0, ["kernel"] * count),
        cuKernelGetName=lambda kernel: (0, ONE.encode()),
        cuKernelGetAttribute=lambda name, kernel, device: (0, attributes[name]),
        cuLibraryUnload=unloaded.append,
    )
    runtime = SimpleNamespace(checkCudaErrors=lambda answer: answer[1], load_library_data=lambda cubin: "library")
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)
    monkeypatch.setitem(sys.modules, "cutlass.base_dsl.runtime.cuda", runtime)
    return unloaded


def test_the_driver_is_asked_for_every_kernel(driver):
    made = SimpleNamespace(__cubin__=b"ELF", __ptx__=None, ir_module=lowered((256, ONE)))
    (report,) = cutedsl_report.driver_reports(made, ["norm"])
    assert report == Resources(
        kernel="norm", registers=40, shared_bytes=256, spill_bytes=16, notes=("tensorptrf32_8_0",)
    )
    assert driver == ["library"]


def test_without_its_binary_nothing_is_said(driver):
    assert cutedsl_report.driver_reports(SimpleNamespace(__cubin__="path", __ptx__=None), []) == ()
    assert driver == []

"""A small version is compiled for both vendors, and refused where its target cannot take it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from warpsmith import project
from warpsmith.lab.operator import definition_file
from warpsmith.languages.base import BuildFailed
from warpsmith.port import compile as port_compile
from warpsmith.port import devices
from warpsmith.port.models import Numerics
from warpsmith.port.versions import PortVersion

pytestmark = [
    pytest.mark.usefixtures("forked_compilers"),
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
]

DEFINITION = """
from warpsmith import Definition, TensorSpec, Workload

definition = Definition(
    name="double",
    description="Twice x.",
    axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",), dtype="DTYPE")},
    flops="n",
    workloads=(Workload(name="a", axes={"n": 4096}, dtype="float32"),),
)


def reference(x):
    return (2 * x).to(dtype)
"""
SOURCE = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x_ptr, y_ptr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + o, (2 * tl.load(x_ptr + o)).to(y_ptr.dtype.element_ty))

def run(x):
    y = torch.empty(x.shape, dtype=torch.DTYPE, device=x.device)
    double[(x.numel() // 2048,)](x, y, BLOCK=2048, num_warps=WARPS)
    return y
"""


@pytest.fixture
def ported(tmp_path):
    """`ported(to, dtype, warps)`: the record of a port, without numerics."""

    def make(to: str, dtype: str = "float32", warps: int = 4, source: str = SOURCE):
        (tmp_path / "warpsmith.toml").write_text("")
        here = project.find_project(tmp_path)
        path = here.kernels / "double" / "triton" / "v1.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.replace("DTYPE", dtype).replace("WARPS", str(warps)))
        here.definition_path("double").write_text(DEFINITION.replace("DTYPE", dtype))
        architectures = port_compile.require_portable("triton").port_architectures()
        request = port_compile.PortRequest(
            here,
            definition_file.load_definition(here.definition_path("double")),
            PortVersion("triton", "v1", path),
            devices.find_device(here, "h200", architectures),
            devices.parse_devices(here, to, architectures),
        )
        return port_compile.compile_port(request, Numerics(state="unchecked"), lambda _: None)

    return make


def test_a_plain_kernel_transfers_to_both_vendors(ported):
    record = ported("gfx942,sm_80")
    assert record.timed is False
    assert (record.origin.arch, record.origin.target) == ("sm_90a", "h200")
    amd, nvidia = record.targets
    assert (amd.outcome, nvidia.outcome) == ("transfers", "transfers")
    assert (amd.target, amd.warp_size, amd.most_warps) == ("mi300x", 64, 32)
    (kernel,) = amd.kernels
    assert (kernel.own.num_warps, kernel.own.load_bits, kernel.own.spill_bytes) == (4, 128, 0)
    assert 0 < kernel.own.registers < 64
    assert {figures.num_warps for figures in kernel.changed} == {2, 8}
    stores = {count.kind.split("_", 1)[1] for count in kernel.counts if count.group == "global stores"}
    assert stores == {"store_dwordx4"}
    assert any(count.kind.startswith("STG.E") for count in nvidia.kernels[0].counts)
    assert "PTX" in amd.lacks
    assert not amd.losses


def test_a_block_that_is_too_large_for_waves_needs_other_constants(ported):
    (target,) = ported("gfx950", warps=32).targets
    assert target.outcome == "needs other constants"
    (kernel,) = target.kernels
    assert "2048 threads" in kernel.own.obstacle
    assert kernel.own.resident_warps == 0
    assert kernel.advice[0].startswith("num_warps 16: launches")


def test_a_kind_of_fp8_is_refused_or_emulated(ported):
    refused, emulated = ported("sm_80,gfx942", dtype="float8_e4m3fn").targets
    assert refused.outcome == "does not compile"
    assert "fp8e4nv not supported" in refused.error
    assert "`" not in refused.error
    assert not refused.kernels
    assert emulated.outcome == "transfers"
    assert [loss.split(":")[0] for loss in emulated.losses] == ["fp8 e4m3fn"]


def test_a_version_that_does_not_compile_at_home_is_no_port(ported):
    with pytest.raises(BuildFailed, match="sm_90a"):
        ported("gfx942", source=SOURCE.replace("BLOCK=2048", "BLOCK=2047"))


def test_refused_instructions_are_named_without_temporary_files(ported):
    early = SOURCE.replace("    o = tl.program", "    gdc_wait()\n    o = tl.program").replace(
        "import triton.language as tl\n",
        "import triton.language as tl\nfrom triton.language.extra.cuda import gdc_wait\n",
    )
    for target in ported("gfx942,sm_80", source=early).targets:
        assert target.outcome == "does not compile"
        assert "griddepcontrol" in target.error
        assert "/tmp" not in target.error
        assert "lld" not in target.error.lower()
        assert "==" not in target.error
        assert [loss.split(":")[0] for loss in target.losses] == ["programmatic dependent launch"]

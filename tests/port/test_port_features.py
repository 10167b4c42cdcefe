"""Features that a version uses and a target lacks."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from warpsmith.core.evaluation import Resources
from warpsmith.port import features
from warpsmith.profiling.assembly.models import CompiledKernel, Count


def kernel(kind: str) -> CompiledKernel:
    return CompiledKernel(
        name="k",
        workloads=("a",),
        variant="",
        isa="sass",
        assembly="k.sass",
        resources=Resources(kernel="k"),
        instructions=1,
        counts=(Count(group="tensor cores", kind=kind, count=4),),
        loops=(),
        lines=(),
    )


@pytest.mark.parametrize(
    ("arch", "lacking"),
    [
        ("sm_90a", ()),
        ("sm_120", ("wgmma",)),
        ("sm_89", ("wgmma", "TMA", "clusters", "programmatic dependent launch")),
    ],
)
def test_what_hopper_has_and_others_lack(arch, lacking):
    assert features.missing_features("sm_90a", arch) == lacking


def test_amd_lacks_ptx_and_cdna3_the_ocp_kinds_of_fp8():
    cdna3, cdna4 = (set(features.missing_features("sm_90a", arch)) for arch in ("gfx942", "gfx950"))
    assert "PTX" in cdna3 & cdna4
    assert {"fp8 e4m3fn", "fp8 e5m2"} <= cdna3 - cdna4


def test_an_architecture_lacks_nothing_that_its_origin_lacks_too():
    assert features.missing_features("sm_80", "sm_89") == ()
    assert "TMA" not in features.missing_features("sm_80", "gfx942")


@pytest.mark.parametrize(
    ("source", "kind", "arch", "words"),
    [
        ("", "HGMMA.64x64x16.F32.BF16", "sm_80", "wgmma: products use"),
        ("k[g](x, launch_pdl=True)", "", "gfx942", "programmatic dependent launch"),
        ("k[g](x, num_ctas=2)", "", "sm_80", "clusters"),
        ("tl.make_tensor_descriptor(p)", "", "sm_89", "TMA"),
        ("tl.inline_asm_elementwise('x')", "", "gfx950", "PTX"),
        ("y = torch.float8_e4m3fn", "", "sm_80", "Triton refuses"),
        ("y = torch.float8_e4m3fn", "", "gfx942", "e4m3fnuz"),
        ("", "LDGSTS.E.BYPASS.128", "gfx942", "through registers"),
        ("", "LDGSTS.E.BYPASS.128", "gfx950", "TRITON_HIP_USE_ASYNC_COPY=1"),
        ("", "QMMA.16832.F32.E4M3.E4M3", "gfx942", "in fp16, at half the rate"),
        ("", "QMMA.16832.F32.E4M3.E4M3", "sm_80", "in fp16"),
        ("", "HMMA.1688.F32.TF32", "gfx950", "stay in float32"),
    ],
)
def test_losses_name_what_takes_the_place(source, kind, arch, words):
    (loss,) = features.feature_losses("sm_90a", arch, source, [kernel(kind or "FFMA")])
    assert words in loss
    assert features.feature_losses("sm_90a", "sm_90a", source, [kernel(kind or "FFMA")]) == ()


def test_cdna3_multiplies_in_tf32_and_cdna4_in_fp8():
    tf32, fp8 = kernel("HMMA.1688.F32.TF32"), kernel("QMMA.16832.F32.E4M3.E4M3")
    assert features.feature_losses("sm_90a", "gfx942", "", [tf32]) == ()
    assert features.feature_losses("sm_90a", "gfx950", "", [fp8]) == ()


PRODUCTS = """
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, n, SIZE: tl.constexpr):
    rows, columns = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for step in range(n):
        left = tl.load(a + rows * SIZE + columns + step * SIZE * SIZE)
        right = tl.load(b + rows * SIZE + columns + step * SIZE * SIZE)
        total = tl.dot(left, right, total)
    tl.store(c + rows * SIZE + columns, total)


types = {"a": "*" + sys.argv[1], "b": "*" + sys.argv[1], "c": "*fp32", "n": "i32", "SIZE": "constexpr"}
aligned = {(place,): [["tt.divisibility", 16]] for place in range(3)}
source = ASTSource(product, types, {"SIZE": 64}, aligned)
print(triton.compile(source, target=GPUTarget("hip", sys.argv[2], 64)).asm["amdgcn"])
"""


@pytest.mark.parametrize(
    ("dtype", "arch", "switch", "words"),
    [
        ("fp8e4nv", "gfx942", "0", r"v_mfma_f32_\w+_f16"),
        ("fp8e4nv", "gfx950", "0", r"(?s)^(?!.*load_lds_dwordx4).*v_mfma_\w+_f8f6f4"),
        ("fp8e4nv", "gfx950", "1", r"global_load_lds_dwordx4"),
        ("fp32", "gfx942", "0", r"v_mfma_\w+_xf32"),
        ("fp32", "gfx950", "0", r"v_mfma_f32_\w+_f32"),
    ],
)
def test_the_pinned_compiler_does_what_the_rows_say(dtype, arch, switch, words, tmp_path):
    pytest.importorskip("triton")
    script = tmp_path / "products.py"
    script.write_text(PRODUCTS)
    environment = {
        **os.environ,
        "TRITON_HIP_USE_ASYNC_COPY": switch,
        "TRITON_INTERPRET": "0",
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, str(script), dtype, arch]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert re.search(words, text)


def test_one_block_a_cluster_is_no_cluster():
    assert features.feature_losses("sm_90a", "sm_80", "k[g](x, num_ctas=1)", []) == ()


def test_where_the_language_replaces_nothing_no_substitute_is_promised():
    (loss,) = features.feature_losses("gfx942", "gfx950", "", [kernel("v_mfma_f32_16x16x8_xf32")], replaced=False)
    assert loss.startswith("TF32 products by default: nothing takes its place")
    (loss,) = features.feature_losses("gfx942", "gfx950", "", [kernel("v_mfma_f32_16x16x8_xf32")])
    assert "stay in float32" in loss

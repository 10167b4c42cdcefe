"""Features that a version uses and a target lacks."""

from __future__ import annotations

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
    ],
)
def test_losses_name_what_takes_the_place(source, kind, arch, words):
    (loss,) = features.feature_losses("sm_90a", arch, source, [kernel(kind or "FFMA")])
    assert words in loss
    assert features.feature_losses("sm_90a", "sm_90a", source, [kernel(kind or "FFMA")]) == ()


def test_one_block_a_cluster_is_no_cluster():
    assert features.feature_losses("sm_90a", "sm_80", "k[g](x, num_ctas=1)", []) == ()

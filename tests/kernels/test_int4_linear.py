"""The bounds of the int4 linear layer pass what is honest and refuse what is not; peers get the same weights."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from warpsmith import languages
from warpsmith.lab import peer_libraries as called
from warpsmith.lab.grading import correctness, near
from warpsmith.lab.operator import definition_file, peer_libraries, peers
from warpsmith.lab.operator.inputs import Inputs

KERNELS = Path(__file__).parents[2] / "kernels" / "int4_linear"
FILE = definition_file.load_definition(KERNELS / "definition.py")
ODD = {one.name: one for one in FILE.definition.select("odd")}
PLAIN = ODD["7x1000x1152-bf16"]
NARROW = ODD["4x200x640-bf16"]
HARD = (None, "wide", "huge", "heavy_end", "scaled_rows", "one_hot", "near_tie", "constant")


def nibble(words, place):
    return (words >> (4 * place)) & 15


def parts(packed, scales, zeros):
    """Values in groups, their zero points and scales, by other ways than the reference's."""
    features, groups = scales.shape
    q = torch.stack([nibble(packed, place) for place in range(8)], -1).view(features, groups, 128).float()
    rows = torch.arange(features)
    z = nibble(zeros[rows // 8], rows[:, None] % 8).float()
    return q, z, scales.float()


def product(x, weights):
    return (x.float() @ weights.flatten(1).t()).to(x.dtype)


def honest(x, packed, scales, zeros):
    q, z, s = parts(packed, scales, zeros)
    return product(x, (q - z[..., None]) * s[..., None])


def by_group(x, packed, scales, zeros):
    """Sums of a group of x times 128 + q, then 128 + z times the sum of x: what bfloat16 operands give."""
    q, z, s = parts(packed, scales, zeros)
    grouped = x.float().view(len(x), -1, 128)
    raw = torch.einsum("tgk,fgk->tfg", grouped, q + 128)
    return ((raw - (z + 128) * grouped.sum(-1)[:, None]) * s).sum(-1).to(x.dtype)


def by_bytes(x, packed, scales, zeros):
    """x in fixed point of 23 bits under the largest exponent of its group: sums are exact."""
    q, z, s = parts(packed, scales, zeros)
    grouped = x.double().view(len(x), -1, 128)
    unit = 2.0 ** (grouped.abs().amax(-1, keepdim=True).clamp(min=2.0**-103).log2().floor() - 21)
    fixed = (grouped / unit).round()
    raw = torch.einsum("tgk,fgk->tfg", fixed, q.double()) - z * fixed.sum(-1)[:, None]
    return (raw.float() * unit.float()[:, None, :, 0] * s).sum(-1).to(x.dtype)


def rounds_weights(x, packed, scales, zeros):
    q, z, s = parts(packed, scales, zeros)
    return product(x, ((q - z[..., None]) * s[..., None]).bfloat16().float())


def swaps_nibbles(x, packed, scales, zeros):
    swapped = ((packed & 0x0F0F0F0F) << 4) | ((packed >> 4) & 0x0F0F0F0F)
    return honest(x, swapped, scales, zeros)


def packs_zeros_along_groups(x, packed, scales, zeros):
    q, _, s = parts(packed, scales, zeros)
    flat = torch.stack([nibble(zeros, place) for place in range(8)], -1).flatten()
    z = flat[: s.numel()].view_as(s).float()
    return product(x, (q - z[..., None]) * s[..., None])


def centres_at_eight(x, packed, scales, zeros):
    q, _, s = parts(packed, scales, zeros)
    return product(x, (q - 8) * s[..., None])


def takes_the_next_groups_scale(x, packed, scales, zeros):
    return honest(x, packed, scales.roll(1, 1), zeros)


def sums_in_bfloat16(x, packed, scales, zeros):
    q, z, s = parts(packed, scales, zeros)
    w = (q - z[..., None]) * s[..., None]
    return torch.einsum("tgk,fgk->tfg", x.float().view(len(x), -1, 128), w).bfloat16().sum(-1)


def drawn(workload, distribution=None):
    return Inputs(FILE, workload, 5, "cpu").draw(distribution)


def graded(run, inputs, workload, correlated=False):
    truth = correctness.compute_truth(FILE, workload, inputs, correlated=correlated)
    return correctness.grade_outputs(truth, FILE.outputs(run(*FILE.arguments(workload, inputs))))


@pytest.mark.parametrize("run", [honest, by_group, by_bytes])
@pytest.mark.parametrize("distribution", HARD)
def test_what_is_honest_passes(run, distribution):
    for workload in (NARROW, ODD["1x1x128-bf16"]):
        inputs = drawn(workload, distribution)
        grade = graded(run, inputs, workload, distribution is not None)
        assert grade.status == "PASSED", f"{workload.name}: {grade.detail}"


@pytest.mark.parametrize(
    "wrong",
    [
        rounds_weights,
        swaps_nibbles,
        packs_zeros_along_groups,
        centres_at_eight,
        takes_the_next_groups_scale,
        sums_in_bfloat16,
    ],
)
def test_what_is_wrong_fails(wrong):
    inputs = drawn(PLAIN)
    assert graded(honest, inputs, PLAIN).status == "PASSED"
    assert graded(wrong, inputs, PLAIN).status == "INCORRECT_NUMERICAL"


def test_rounded_weights_are_near_and_wrong_ones_are_not():
    inputs = drawn(PLAIN)
    wide = near.widen_bounds(FILE, PLAIN, inputs, correctness.compute_truth(FILE, PLAIN, inputs))
    arguments = FILE.arguments(PLAIN, inputs)
    statuses = [
        correctness.grade_outputs(wide, FILE.outputs(run(*arguments))).status
        for run in (rounds_weights, centres_at_eight)
    ]
    assert statuses == ["PASSED", "INCORRECT_NUMERICAL"]


def prepared(name, inputs):
    """The arguments of a peer's `run`, as a race makes them."""
    peer = peers.get_peer(FILE, name)
    made = peers.PreparedWeights(peer, tuple(inputs))
    return peer, made.arguments_of_run(0, tuple(inputs.values()))


def test_cublas_gets_the_weights_of_the_reference():
    inputs = drawn(PLAIN)
    peer, arguments = prepared("cublas-bf16", inputs)
    truth = correctness.compute_truth(FILE, PLAIN, inputs)
    wide = near.widen_bounds(FILE, PLAIN, inputs, truth)
    assert correctness.grade_outputs(wide, FILE.outputs(peer.run(*arguments))).status == "PASSED"


def test_tinygemm_gets_the_weights_of_the_reference(monkeypatch):
    """Its form holds (q - 8) * scale + middle, from bytes with the even k in the high bits."""
    inputs = drawn(PLAIN)
    monkeypatch.setattr(torch.ops.aten, "_convert_weight_to_int4pack", lambda q, tiles: q)
    _, (_, q, factors) = prepared("tinygemm", inputs)
    values = torch.stack((q >> 4, q & 15), -1).flatten(1).float()
    scale, middle = factors.transpose(0, 1).float().repeat_interleave(128, 1).unbind(-1)
    exact = FILE.reference(torch.eye(1152), *(inputs[name] for name in ("packed", "scales", "zeros"))).t()
    assert torch.allclose((values - 8) * scale + middle, exact.float(), rtol=0, atol=0.25 * 2**-8)


def test_marlins_zero_points_and_scales_are_permuted_alike(monkeypatch):
    workload = PLAIN.model_copy(update={"axes": {"tokens": 1, "features": 128, "groups": 3}})
    inputs = drawn(workload)
    library = torch.library.Library("int4_stand_in", "DEF")
    library.define(
        "gptq_marlin_repack(Tensor q, Tensor perm, SymInt k, SymInt n, int bits, bool is_a_8bit) -> Tensor"
    )
    library.impl("gptq_marlin_repack", lambda q, perm, k, n, bits, is_a_8bit: q.clone(), "CPU")
    monkeypatch.setattr(called, "vllm", lambda _: torch.ops.int4_stand_in)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: type("", (), {"multi_processor_count": 3}))
    inputs["scales"] = parts(inputs["packed"], inputs["scales"], inputs["zeros"])[1].bfloat16()
    _, (_, tiled, scales, zeros, locks) = prepared("vllm-marlin", inputs)
    assert tiled.shape == (3 * 16, 128)
    assert locks.tolist() == [0, 0, 0]
    values = torch.stack([nibble(zeros, place) for place in range(8)], -1)  # a word holds 0, 2, 4, 6, 1, 3, 5, 7
    assert torch.equal(values[..., [0, 4, 1, 5, 2, 6, 3, 7]].flatten(1).bfloat16(), scales)


def test_a_missing_peer_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(peer_libraries, "find_spec", lambda _: None)
    workload = PLAIN.model_copy(update={"axes": {"tokens": 1, "features": 128, "groups": 1}})
    for name in ("vllm-marlin", "vllm-machete"):
        with pytest.raises(ImportError, match="pip install vllm"):
            prepared(name, drawn(workload))


def test_a_build_without_the_operator_is_named(monkeypatch):
    monkeypatch.setattr(called, "vllm", lambda _: object())
    workload = PLAIN.model_copy(update={"axes": {"tokens": 1, "features": 128, "groups": 1}})
    with pytest.raises(ImportError, match="no machete_prepack_B"):
        prepared("vllm-machete", drawn(workload))


def test_floors():
    """At 4.3 TB/s, in us."""
    works = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    assert {name: round(work.bytes / 4.3e12 * 1e6, 1) for name, work in works.items()} == {
        "1x11008x4096-bf16": 5.5,
        "1x4096x11008-bf16": 5.5,
        "1x28672x8192-bf16": 28.4,
        "4x14336x4096-bf16": 7.1,
        "16x4096x4096-bf16": 2.1,
    }


@pytest.mark.parametrize(("version", "product"), [("triton/v1.py", "HMMA"), ("cuda/v2.py", "IMMA")])
def test_it_copies_ahead_and_multiplies_on_tensor_cores(version, product):
    path = KERNELS / version
    [found] = languages.get(path.parent.name).inspect(path, FILE.definition, "sm_90a")
    notes = " ".join(found.notes)
    assert re.search(rf"\b{product} x\d", notes), notes
    assert re.search(r"\bLDGSTS x\d", notes), notes

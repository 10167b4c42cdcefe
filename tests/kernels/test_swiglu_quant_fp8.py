"""The bounds of SwiGLU + e4m3 quantisation pass what is honest and refuse what is not; so with experts' counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsmith.lab.grading import correctness, near
from warpsmith.lab.operator import definition_file, peer_libraries, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import ALONE
from warpsmith.lab.workers import arena

KERNELS = Path(__file__).parents[2] / "kernels"
FILE = definition_file.load_definition(KERNELS / "swiglu_quant_fp8" / "definition.py")
MASKED = definition_file.load_definition(KERNELS / "swiglu_quant_fp8_masked" / "definition.py")
PLAIN = next(one for one in FILE.definition.workloads if one.name == "131x768-bf16")
SKEWED = next(one for one in MASKED.definition.workloads if one.name == "5x67x384-130-bf16")


def quick(file):
    """The odd workloads that take little in every distribution."""
    return [one for one in file.definition.select("odd") if file.definition.elements(one) <= 130_000]


def activation(x):
    """As kernels do it, by an exponential of base 2."""
    gate, up = x.float().chunk(2, -1)
    return gate / (1 + torch.exp2(gate * -1.4426950408889634)) * up


def quantised(a, floor=1e-4):
    """Values, in groups, and their scales; here by the reciprocal and not by division."""
    groups = a.unflatten(-1, (-1, 128))
    amax = groups.abs().amax(-1).clamp(min=floor)
    return groups * (448 / amax)[..., None], amax * (1 / 448)


def laid_out(values, scales):
    q = values.clamp(-448, 448).to(torch.float8_e4m3fn).flatten(-2)
    return q, torch.nn.functional.pad(scales.mT, (0, -scales.shape[-2] % 4)).contiguous()


def honest(x):
    return laid_out(*quantised(activation(x)))


def truncates(x):
    values, scales = quantised(activation(x))
    q, rows = laid_out(values, scales)
    beyond = q.float().abs() > values.flatten(-2).abs()
    return (q.view(torch.uint8) - beyond.to(torch.uint8)).view(torch.float8_e4m3fn), rows


def uses_the_next_groups_scale(x):
    groups = activation(x).unflatten(-1, (-1, 128))
    scales = (groups.abs().amax(-1).clamp(min=1e-4) / 448).roll(1, 1)
    return laid_out(groups / scales[..., None], scales)


def scales_by_token(x):
    groups = activation(x).unflatten(-1, (-1, 128))
    scales = (groups.abs().amax((-1, -2)).clamp(min=1e-4) / 448)[:, None].expand(-1, groups.shape[1])
    return laid_out(groups / scales[..., None], scales)


def rounds_the_activation(x):
    return laid_out(*quantised(activation(x).to(x.dtype).float()))


def takes_up_for_gate(x):
    gate, up = x.chunk(2, -1)
    return honest(torch.cat([up, gate], -1))


def approximates_by_tanh(x):
    """A hardware tangent with 11 bits."""
    gate, up = x.float().chunk(2, -1)
    half = torch.tanh(gate / 2).half().float()
    return laid_out(*quantised(gate * (0.5 + 0.5 * half) * up))


def has_no_floor(x):
    values, scales = quantised(activation(x), floor=0.0)
    return laid_out(values.nan_to_num(), scales)


def drawn(file, workload, distribution=None):
    return Inputs(file, workload, 5, "cpu").draw(distribution)


def graded(run, inputs, correlated=False, file=FILE, workload=PLAIN):
    truth = correctness.compute_truth(file, workload, inputs, correlated=correlated)
    return correctness.grade_outputs(truth, file.outputs(run(*file.arguments(workload, inputs))))


@pytest.mark.parametrize("workload", quick(FILE), ids=lambda one: one.name)
def test_what_is_honest_passes_at_odd_workloads(workload):
    for distribution in (None, *Inputs(FILE, workload, 3, "cpu").adversarial_distributions):
        inputs = drawn(FILE, workload, distribution)
        grade = graded(honest, inputs, distribution is not None, workload=workload)
        assert grade.status == "PASSED" or distribution in ("huge", *ALONE), f"{distribution}: {grade.detail}"


@pytest.mark.parametrize(
    "wrong",
    [
        truncates,
        uses_the_next_groups_scale,
        scales_by_token,
        rounds_the_activation,
        takes_up_for_gate,
        approximates_by_tanh,
    ],
)
def test_what_is_wrong_fails_on_normal_inputs(wrong):
    inputs = drawn(FILE, PLAIN)
    assert graded(honest, inputs).status == "PASSED"
    assert graded(wrong, inputs).status == "INCORRECT_NUMERICAL"


def test_a_missing_floor_fails_on_zeros():
    inputs = drawn(FILE, PLAIN, "one_hot")
    assert graded(honest, inputs, correlated=True).status == "PASSED"
    assert graded(has_no_floor, inputs, correlated=True).status == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize("size", [0.0, 1e-20, 1e-3, 10.0, 300.0])
def test_rows_of_any_size(size):
    inputs = drawn(FILE, PLAIN)
    inputs["x"] = inputs["x"] * size
    assert graded(honest, inputs).status == "PASSED"


def masked(x, masked_m, beyond="kept", inner=honest):
    """What a kernel leaves in memory that the lab has poisoned."""
    q, scales = (
        torch.empty(MASKED.definition.shape(spec, one), dtype=getattr(torch, spec.dtype))
        for spec, one in zip(MASKED.definition.outputs.values(), [shaped(x)] * 2, strict=True)
    )
    arena.poison_tensor(q)
    arena.poison_tensor(scales)
    for expert, count in enumerate(masked_m.tolist()):
        part, rows = inner(x[expert].nan_to_num() if beyond == "written" else x[expert, :count])
        q[expert, : len(part)] = part
        scales[expert, :, :count] = rows[:, :count]
    return q, scales


def shaped(x):
    axes = {**SKEWED.axes, "experts": x.shape[0], "capacity": x.shape[1], "groups": x.shape[2] // 256}
    return SKEWED.model_copy(update={"axes": axes})


@pytest.mark.parametrize("workload", quick(MASKED), ids=lambda one: one.name)
def test_counts_are_kept_and_what_is_beyond_them_stays(workload):
    inputs = drawn(MASKED, workload)
    counts = inputs["masked_m"]
    assert counts.sum() == workload.axes["routed"]
    assert counts.max() <= workload.axes["capacity"]
    assert len(counts) == 1 or counts.min() == 0
    assert graded(masked, inputs, file=MASKED, workload=workload).status == "PASSED"


def test_writing_beyond_a_count_fails():
    inputs = drawn(MASKED, SKEWED)
    grade = graded(lambda *both: masked(*both, beyond="written"), inputs, file=MASKED, workload=SKEWED)
    assert grade.status == "INCORRECT_NUMERICAL"
    assert "the reference nan" in grade.detail


def test_a_wrong_scale_of_an_expert_fails():
    inputs = drawn(MASKED, SKEWED)
    wrong = graded(
        lambda *both: masked(*both, inner=uses_the_next_groups_scale), inputs, file=MASKED, workload=SKEWED
    )
    assert wrong.status == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize(
    ("inner", "status"), [(honest, "PASSED"), (uses_the_next_groups_scale, "INCORRECT_NUMERICAL")]
)
def test_a_peer_with_tensors_of_its_own_is_judged_where_tokens_are(inner, status):
    inputs = drawn(MASKED, SKEWED)
    canonical = peers.get_peer(MASKED, "vllm").canonical

    def everywhere(x, masked_m):
        found = MASKED.outputs(masked(x, masked_m, beyond="written", inner=inner))
        found["scales"] = found["scales"].nan_to_num(nan=7.0)
        return tuple(canonical(inputs, found).values())

    assert graded(everywhere, inputs, file=MASKED, workload=SKEWED).status == status


def test_rounding_the_activation_is_near():
    inputs = drawn(FILE, PLAIN)
    wide = near.widen_bounds(FILE, PLAIN, inputs, correctness.compute_truth(FILE, PLAIN, inputs))
    for run, status in ((rounds_the_activation, "PASSED"), (takes_up_for_gate, "INCORRECT_NUMERICAL")):
        grade = correctness.grade_outputs(wide, FILE.outputs(run(inputs["x"])))
        assert grade.status == status, grade.detail


def test_floors():
    """At 4.3 TB/s; the width in a name is the result's."""
    floors = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    assert {name: round(work.bytes / 4.3e12 * 1e6) for name, work in floors.items()} == {
        "8192x14336-bf16": 137,
        "65536x2048-bf16": 157,
    }
    assert floors["8192x14336-bf16"].flops == 8 * 8192 * 14336


def test_work_of_experts_is_that_of_their_tokens():
    plain = FILE.definition.workloads[0].model_copy(update={"axes": {"tokens": 8192, "groups": 16}})
    there = next(one for one in MASKED.definition.workloads if one.name == "32x1024x2048-8192-bf16")
    assert MASKED.definition.work(there).flops == FILE.definition.work(plain).flops
    assert MASKED.definition.work(there).bytes == FILE.definition.work(plain).bytes + 4 * 32


@pytest.mark.parametrize(("file", "workload"), [(FILE, PLAIN), (MASKED, SKEWED)], ids=["dense", "masked"])
def test_a_missing_peer_says_how_to_install_it(file, workload, monkeypatch):
    monkeypatch.setattr(peer_libraries, "find_spec", lambda _: None)
    arguments = file.arguments(workload, drawn(file, workload))
    for peer in file.peers.values():
        with pytest.raises(ImportError, match="pip install vllm"):
            peer(*arguments)


def test_the_references_scales_are_contiguous_where_nothing_is_padded():
    assert all(one.is_contiguous() for one in FILE.reference(torch.ones(8, 512)))

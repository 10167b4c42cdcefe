"""The bounds of add + RMSNorm + e4m3 quantisation pass what is honest and refuse what is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from warpsmith.lab.grading import correctness, near, odd
from warpsmith.lab.operator import definition_file, peer_libraries, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import ALONE

KERNELS = Path(__file__).parents[2] / "kernels"
FILE = definition_file.load_definition(KERNELS / "rmsnorm_quant_fp8" / "definition.py")
TOKEN = definition_file.load_definition(KERNELS / "rmsnorm_quant_fp8_token" / "definition.py")
PLAIN = next(one for one in FILE.definition.workloads if one.name == "67x640-bf16")


def quick(file):
    """The odd workloads that take little in every distribution and order of sums."""
    return [one for one in file.definition.select("odd") if file.definition.elements(one) <= 130_000]


def parts(x, residual, weight, eps):
    """The sum, and the norm that is to be quantised."""
    h = x.float() + residual.float()
    rstd = (h.square().mean(-1, keepdim=True) + eps).rsqrt()
    return h, h * rstd * weight.float()


def quantised(y, floor=1e-4):
    """Values, in groups, and their scales; here by the reciprocal and not by division."""
    groups = y.view(len(y), -1, 128)
    amax = groups.abs().amax(-1).clamp(min=floor)
    return groups * (448 / amax)[..., None], amax * (1 / 448)


def laid_out(q, scales, h, x):
    tokens = len(x)
    rows = torch.nn.functional.pad(scales.t(), (0, -tokens % 4))
    return q.clamp(-448, 448).to(torch.float8_e4m3fn).reshape(x.shape), rows.contiguous(), h.to(x.dtype)


def honest(x, residual, weight, eps):
    h, y = parts(x, residual, weight, eps)
    return laid_out(*quantised(y), h, x)


def truncates(x, residual, weight, eps):
    h, y = parts(x, residual, weight, eps)
    values, scales = quantised(y)
    near = values.clamp(-448, 448).to(torch.float8_e4m3fn)
    beyond = near.float().abs() > values.abs()  # one down in magnitude where rounding went up
    down = (near.view(torch.uint8) - beyond.to(torch.uint8)).view(torch.float8_e4m3fn)
    _, rows, out = laid_out(values, scales, h, x)
    return down.reshape(x.shape), rows, out


def uses_the_next_groups_scale(x, residual, weight, eps):
    h, y = parts(x, residual, weight, eps)
    groups = y.view(len(y), -1, 128)
    scales = (groups.abs().amax(-1).clamp(min=1e-4) / 448).roll(1, 1)
    return laid_out(groups / scales[..., None], scales, h, x)


def has_no_epsilon(x, residual, weight, eps):
    return honest(x, residual, weight, 0.0)


def has_no_floor(x, residual, weight, eps):
    h, y = parts(x, residual, weight, eps)
    values, scales = quantised(y, floor=0.0)
    return laid_out(values.nan_to_num(), scales, h, x)


def scales_by_token(x, residual, weight, eps):
    h, y = parts(x, residual, weight, eps)
    scale = y.abs().amax(-1, keepdim=True).clamp(min=1e-4) / 448
    scales = scale.expand(-1, x.shape[1] // 128)
    return laid_out(y / scale, scales, h, x)


def rounds_the_sum_first(x, residual, weight, eps):
    h, _ = parts(x, residual, weight, eps)
    _, y = parts(h.to(x.dtype), torch.zeros_like(residual), weight, eps)
    return laid_out(*quantised(y), h, x)


def rounds_the_norm(x, residual, weight, eps):
    """As vLLM's kernel does."""
    h, y = parts(x, residual, weight, eps)
    return laid_out(*quantised(y.to(x.dtype).float()), h, x)


def truncates_the_residual(x, residual, weight, eps):
    q, scales, out = honest(x, residual, weight, eps)
    h, _ = parts(x, residual, weight, eps)
    beyond = out.float().abs() > h.abs()
    return q, scales, (out.view(torch.int16) - beyond.to(torch.int16)).view(x.dtype)


def writes_scales_row_by_row(x, residual, weight, eps):
    q, scales, out = honest(x, residual, weight, eps)
    return q, scales.t().contiguous().view(scales.shape), out


def leaves_the_padding(x, residual, weight, eps):
    q, scales, out = honest(x, residual, weight, eps)
    scales[:, len(x) :] = torch.nan
    return q, scales, out


def graded(file, workload, run, inputs, correlated=False):
    truth = correctness.compute_truth(file, workload, inputs, correlated=correlated)
    return correctness.grade_outputs(truth, file.outputs(run(*file.arguments(workload, inputs))))


def drawn(workload, distribution=None, file=FILE):
    return Inputs(file, workload, 11, "cpu").draw(distribution)


@pytest.mark.parametrize("workload", quick(FILE), ids=lambda one: one.name)
def test_what_is_honest_passes_at_every_odd_workload(workload):
    for distribution in (None, *Inputs(FILE, workload, 3, "cpu").adversarial_distributions):
        inputs = drawn(workload, distribution)
        grade = graded(FILE, workload, honest, inputs, distribution is not None)
        assert grade.status == "PASSED" or distribution in ("huge", *ALONE), f"{distribution}: {grade.detail}"


@pytest.mark.parametrize(
    "wrong",
    [
        truncates,
        uses_the_next_groups_scale,
        scales_by_token,
        rounds_the_sum_first,
        rounds_the_norm,
        truncates_the_residual,
        writes_scales_row_by_row,
        leaves_the_padding,
    ],
)
def test_what_is_wrong_fails_on_normal_inputs(wrong):
    inputs = drawn(PLAIN)
    assert graded(FILE, PLAIN, honest, inputs).status == "PASSED"
    assert graded(FILE, PLAIN, wrong, inputs).status == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize(("wrong", "distribution"), [(has_no_epsilon, "tiny"), (has_no_floor, "one_hot")])
def test_what_is_wrong_for_small_numbers_fails(wrong, distribution):
    inputs = drawn(PLAIN, distribution)
    assert graded(FILE, PLAIN, honest, inputs, correlated=True).status == "PASSED"
    assert graded(FILE, PLAIN, wrong, inputs, correlated=True).status == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-6, 1.0, 1e6, 1e16])
def test_rows_of_any_size(size):
    inputs = drawn(PLAIN)
    inputs["x"], inputs["residual"] = inputs["x"] * size, inputs["residual"] * size
    inputs["x"][2], inputs["residual"][2] = 0.0, 0.0
    assert graded(FILE, PLAIN, honest, inputs).status == "PASSED"
    q, scales, _ = honest(*FILE.arguments(PLAIN, inputs))
    assert not q[2].float().any()
    assert torch.equal(scales[:, 2], torch.full_like(scales[:, 2], 1e-4 / 448))


def test_the_scales_are_deepgemms_tensor():
    inputs = drawn(PLAIN)
    _, scales, _ = FILE.reference(*FILE.arguments(PLAIN, inputs))
    taken = scales.contiguous().t()[:67]
    assert (taken.shape, taken.stride()) == ((67, 5), (1, 68))
    assert not scales[:, 67:].any()


def test_floors():
    """At 4.3 TB/s."""
    floors = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    assert {name: round(work.bytes / 4.3e12 * 1e6) for name, work in floors.items()} == {
        "8192x7168-bf16": 96,
        "16384x4096-bf16": 110,
        "128x7168-bf16": 2,
    }
    assert floors["8192x7168-bf16"].flops == 8 * 8192 * 7168


def test_near_misses_of_declared_shapes_are_drawn():
    assert odd.draw_near_workloads(FILE, interpreted=True, seed=1)[0].axes["groups"] % 8 > 0


@pytest.mark.parametrize("workload", quick(TOKEN), ids=lambda one: one.name)
def test_one_scale_a_token(workload):
    def by_token(x, residual, weight, eps):
        h, y = parts(x, residual, weight, eps)
        scale = (y.abs().amax(-1) * (1 / 448)).clamp(min=1 / (448 * 512))
        return (y * (1 / scale)[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale, h.to(x.dtype)

    for distribution in (None, *Inputs(TOKEN, workload, 3, "cpu").adversarial_distributions):
        inputs = drawn(workload, distribution, TOKEN)
        grade = graded(TOKEN, workload, by_token, inputs, distribution is not None)
        assert grade.status == "PASSED" or distribution in ("huge", *ALONE), f"{distribution}: {grade.detail}"


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (rounds_the_norm, "PASSED"),
        (rounds_the_sum_first, "PASSED"),
        (uses_the_next_groups_scale, "INCORRECT_NUMERICAL"),
        (scales_by_token, "INCORRECT_NUMERICAL"),
        (writes_scales_row_by_row, "INCORRECT_NUMERICAL"),
        (leaves_the_padding, "INCORRECT_NUMERICAL"),
    ],
)
def test_another_honest_rounding_is_near(run, status):
    inputs = drawn(PLAIN)
    wide = near.widen_bounds(FILE, PLAIN, inputs, correctness.compute_truth(FILE, PLAIN, inputs))
    grade = correctness.grade_outputs(wide, FILE.outputs(run(*FILE.arguments(PLAIN, inputs))))
    assert grade.status == status, grade.detail


@pytest.mark.parametrize("file", [FILE, TOKEN], ids=lambda one: one.definition.name)
def test_vllm_adds_into_the_stream_that_it_is_given(file, monkeypatch):
    """A stand-in for the library: what it writes over is what the peer says it consumes."""

    def norm(y_q, x, weight, scales, eps, bound, residual, *group):
        residual += x

    operators = SimpleNamespace(rms_norm_per_block_quant=norm, rms_norm_dynamic_per_token_quant=norm)
    monkeypatch.setattr("warpsmith.lab.peer_libraries.vllm", lambda namespace: operators)
    inputs = drawn(file.definition.select("odd")[0], None, file)
    peer, given = peers.get_peer(file, "vllm"), {name: value.clone() for name, value in inputs.items()}
    *_, out = peer(*given.values(), 1e-6)
    assert out is given["residual"]
    assert {name for name in inputs if not torch.equal(given[name], inputs[name])} == set(peer.consumes)


@pytest.mark.parametrize("file", [FILE, TOKEN], ids=lambda one: one.definition.name)
def test_a_missing_peer_says_how_to_install_it(file, monkeypatch):
    monkeypatch.setattr(peer_libraries, "find_spec", lambda _: None)
    workload = file.definition.select("odd")[0]
    arguments = file.arguments(workload, drawn(workload, None, file))
    with pytest.raises(ImportError, match="pip install vllm"):
        file.peers["vllm"](*arguments)


def test_the_references_scales_are_contiguous_where_nothing_is_padded():
    assert all(
        one.is_contiguous()
        for one in FILE.reference(torch.ones(8, 256), torch.ones(8, 256), torch.ones(256), 1e-6)
    )

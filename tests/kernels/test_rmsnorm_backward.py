"""The definition of rmsnorm_backward: honest implementations hold its bounds, near misses do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from warpsmith.core.evaluation import Status
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs

FILE = definition_file.load_definition(Path(__file__).parents[2] / "kernels/rmsnorm_backward/definition.py")
BANDWIDTH = 4.27e12
"""Bytes a second of a copy on an H200."""

TALL, NARROW, RESIDUAL, SINGLE = "2501x136-bf16", "203x128-fp32", "21x1023-fp32-residual", "1x3000-bf16"


def workload(name: str):
    return next(one for one in FILE.definition.workloads if one.name == name)


def judged(name: str, run, seed: int = 3):
    """How an implementation fares at one workload."""
    point = workload(name)
    inputs = Inputs(FILE, point, seed, "cpu").draw()
    truth = correctness.compute_truth(FILE, point, inputs)
    return correctness.grade_outputs(truth, FILE.outputs(run(*FILE.arguments(point, inputs))))


def parts(x, dy, weight, rstd):
    """n = x * rstd and g = dy * weight in float32."""
    return x.float() * rstd[:, None], dy.float() * weight.float()


def cubed(x, dy, weight, rstd, dresidual):
    """As Liger writes it: the cube of rstd stands outside the sum, and dw is summed by blocks of rows."""
    x_wide, g = x.float(), dy.float() * weight.float()
    slope = rstd**3 * (g * x_wide).sum(-1) / x.shape[-1]
    dx = rstd[:, None] * g - slope[:, None] * x_wide
    if dresidual.shape[0]:
        dx = dx + dresidual.float()
    partial = [
        (block.float() * (part.float() * r[:, None])).sum(0)
        for block, part, r in zip(dy.split(132), x.split(132), rstd.split(132), strict=True)
    ]
    return dx.to(x.dtype), torch.stack(partial).sum(0).to(weight.dtype)


def without_mean(x, dy, weight, rstd, dresidual):
    n, g = parts(x, dy, weight, rstd)
    dx = rstd[:, None] * (g - n * (g * n).sum(-1, keepdim=True))
    return dx.to(x.dtype), (dy.float() * n).sum(0).to(weight.dtype)


def narrow_sums(x, dy, weight, rstd, dresidual):
    """Partial sums of dw are kept in the weight's type."""
    dx, _ = FILE.reference(x, dy, weight, rstd, dresidual)
    n, _ = parts(x, dy, weight, rstd)
    partial = [part.sum(0).to(weight.dtype) for part in (dy.float() * n).split(32)]
    return dx, torch.stack(partial).float().sum(0).to(weight.dtype)


def narrow_accumulator(x, dy, weight, rstd, dresidual):
    """dw is added up row by row in the weight's type."""
    dx, _ = FILE.reference(x, dy, weight, rstd, dresidual)
    n, _ = parts(x, dy, weight, rstd)
    total = torch.zeros_like(weight)
    for row in dy.float() * n:
        total += row
    return dx, total


def whole_tiles_only(x, dy, weight, rstd, dresidual):
    """Rows after the last whole tile of eight are left out of dw."""
    dx, _ = FILE.reference(x, dy, weight, rstd, dresidual)
    kept = x.shape[0] // 8 * 8
    n, _ = parts(x, dy, weight, rstd)
    return dx, (dy.float() * n)[:kept].sum(0).to(weight.dtype)


def own_rstd(x, dy, weight, rstd, dresidual):
    """What the forward pass saved is computed anew, with another epsilon."""
    own = torch.rsqrt(x.float().square().mean(-1) + 1e-5)
    return FILE.reference(x, dy, weight, own, dresidual)


def no_residual(x, dy, weight, rstd, dresidual):
    return FILE.reference(x, dy, weight, rstd, dresidual[:0])


def rounded_n(x, dy, weight, rstd, dresidual):
    """n is rounded to the inputs' type before dw, as casting for Llama does."""
    dx, _ = FILE.reference(x, dy, weight, rstd, dresidual)
    n, _ = parts(x, dy, weight, rstd)
    return dx, (dy.float() * n.to(x.dtype).float()).sum(0).to(weight.dtype)


@pytest.mark.parametrize("run", [FILE.reference, cubed])
@pytest.mark.parametrize("name", [TALL, NARROW, RESIDUAL, SINGLE])
def test_honest_implementations_pass(run, name):
    grade = judged(name, run)
    assert grade.status is Status.PASSED, grade.detail
    assert grade.worst < 0.7


@pytest.mark.parametrize(
    ("run", "name", "output"),
    [
        (without_mean, SINGLE, "dx"),
        (without_mean, NARROW, "dx"),
        (narrow_sums, TALL, "dw"),
        (narrow_accumulator, TALL, "dw"),
        (whole_tiles_only, TALL, "dw"),
        (whole_tiles_only, NARROW, "dw"),
        (own_rstd, NARROW, "dx"),
        (own_rstd, TALL, "dx"),
        (no_residual, RESIDUAL, "dx"),
        (rounded_n, TALL, "dw"),
    ],
)
def test_near_misses_fail(run, name, output):
    grade = judged(name, run)
    assert grade.status is Status.INCORRECT_NUMERICAL
    assert output in grade.detail


@pytest.mark.parametrize("name", [NARROW, RESIDUAL, SINGLE, "1x1-fp32"])
@pytest.mark.parametrize("distribution", [None, "large", "one_hot", "shifted", "sorted", "denormal"])
def test_the_bounds_hold_the_reference_in_any_order(name, distribution):
    point = workload(name)
    inputs = Inputs(FILE, point, 5, "cpu").draw(distribution)
    truth = correctness.compute_truth(FILE, point, inputs, correlated=distribution is not None)
    grade = correctness.grade_reference(FILE, point, inputs, truth)
    assert grade.status is Status.PASSED, grade.detail


def test_reordering_shows_that_no_bound_is_loose():
    inputs = Inputs(FILE, workload(NARROW), 5, "cpu").draw()
    truth = correctness.compute_truth(FILE, workload(NARROW), inputs)
    assert not correctness.tolerance_is_loose(
        correctness.grade_reference(FILE, workload(NARROW), inputs, truth).worst
    )


@pytest.mark.parametrize(
    ("name", "microseconds"), [("16384x4096-bf16", 94.3), ("8192x8192-bf16", 94.3), ("131072x128-bf16", 23.7)]
)
def test_floors_count_each_byte_once(name, microseconds):
    assert FILE.definition.work(workload(name)).bytes / BANDWIDTH * 1e6 == pytest.approx(microseconds, abs=0.05)


def test_a_residual_gradient_is_one_more_tensor_to_read():
    point = workload(RESIDUAL)
    without = point.model_copy(update={"axes": {**point.axes, "residual": 0}})
    more = FILE.definition.work(point).bytes_read - FILE.definition.work(without).bytes_read
    assert more == 21 * 1023 * 4


def test_gradients_are_those_of_autograd():
    torch.manual_seed(0)
    x, dy, weight = torch.randn(5, 33, requires_grad=True), torch.randn(5, 33), torch.randn(33, requires_grad=True)
    torch.nn.functional.rms_norm(x, (33,), weight, 1e-6).backward(dy)
    rstd = torch.rsqrt(x.detach().square().mean(-1) + 1e-6)
    dx, dw = FILE.reference(x.detach(), dy, weight.detach(), rstd, x.detach()[:0])
    torch.testing.assert_close(dx, x.grad)
    torch.testing.assert_close(dw, weight.grad)


@pytest.mark.parametrize(
    ("peer", "module", "package"),
    [
        ("liger", "liger_kernel", "liger-kernel"),
        ("quack", "quack", "quack-kernels"),
        ("cudnn", "cudnn", "nvidia-cudnn-frontend"),
    ],
)
def test_a_missing_peer_says_how_to_install_it(peer, module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    inputs = Inputs(FILE, workload(NARROW), 5, "cpu").draw()
    with pytest.raises(ImportError, match=f"pip install {package}=="):
        FILE.peers[peer](*FILE.arguments(workload(NARROW), inputs))


def test_a_peer_without_residual_gradients_says_so():
    inputs = Inputs(FILE, workload(RESIDUAL), 5, "cpu").draw()
    with pytest.raises(NotImplementedError, match="residual"):
        FILE.peers["aten"](*FILE.arguments(workload(RESIDUAL), inputs))

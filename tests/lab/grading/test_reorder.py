from __future__ import annotations

import pytest
import torch
import torch.nn.functional as functional

from warpsmith.lab.grading import reorder

ORDERS = ["backwards", "blocks"]

REFERENCES = {
    "sum": lambda x, w: x.sum(),
    "sum of rows": lambda x, w: x.sum(-1),
    "sum of two axes": lambda x, w: x.unflatten(1, (-1, 11)).sum((0, -1), keepdim=True),
    "sum in another type": lambda x, w: x.sum(0, dtype=torch.float64),
    "sum of all axes, as an empty list": lambda x, w: x.sum([]),
    "mean": lambda x, w: x.mean((0, 1), keepdim=True),
    "mean of columns": lambda x, w: x.mean(-2),
    "matrix product": lambda x, w: x @ x.T,
    "matrix and vector": lambda x, w: x @ w,
    "dot": lambda x, w: w @ w,
    "batched": lambda x, w: torch.einsum("bij,bkj->bik", x[None].expand(2, -1, -1), x[None].expand(2, -1, -1)),
    "linear": lambda x, w: functional.linear(x, x, x[:, 0]),
    "softmax": lambda x, w: x.softmax(-1),
    "softmax of columns": lambda x, w: torch.softmax(x, 0, dtype=torch.float64),
    "log_softmax": lambda x, w: x.log_softmax(1),
    "logsumexp": lambda x, w: x.logsumexp((0, 1)),
    "norm": lambda x, w: torch.linalg.norm(x, dim=-1, keepdim=True),
    "norm of order 1": lambda x, w: torch.linalg.vector_norm(x, 1),
    "largest": lambda x, w: torch.linalg.vector_norm(x, float("inf"), dim=0),
    "var": lambda x, w: x.var(-1),
    "var of all": lambda x, w: x.var(correction=0),
    "std": lambda x, w: x.std(0, keepdim=True),
    "mean beside var": lambda x, w: torch.var_mean(x, 1, keepdim=True)[1],
    "rms_norm": lambda x, w: functional.rms_norm(x, (x.shape[-1],), w, 1e-6),
    "layer_norm": lambda x, w: functional.layer_norm(x, (x.shape[-1],), w, w),
    "cumsum": lambda x, w: x.cumsum(-1),
    "cumsum of columns": lambda x, w: x.cumsum(0),
    "attention": lambda x, w: functional.scaled_dot_product_attention(x[None], x[None], x[None], scale=0.01),
    "not known": lambda x, w: x.prod(-1) + x.max(),
    "a scalar": lambda x, w: x[0, 0].sum() + x[0, 0].mean(),
}


def inputs(rows, cols, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(rows, cols, generator=generator).to(dtype), torch.randn(cols, generator=generator).to(dtype)


def reordered(reference, order, *tensors):
    with torch.no_grad(), reorder.summation_orders()[order]:
        return reference(*tensors)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", REFERENCES)
def test_the_same_value_up_to_rounding(name, order):
    for dtype, near in ((torch.float32, 3e-5), (torch.bfloat16, 0.04), (torch.float64, 1e-12)):
        x, w = inputs(7, 1023, dtype) if "columns" not in name else inputs(1023, 7, dtype)
        expected, found = REFERENCES[name](x, w), reordered(REFERENCES[name], order, x, w)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        torch.testing.assert_close(found, expected, rtol=near, atol=near)


@pytest.mark.parametrize(
    "name", ["sum of rows", "matrix product", "rms_norm", "softmax", "layer_norm", "attention"]
)
def test_every_order_is_another_one(name):
    x, w = inputs(64, 1023)
    values = [REFERENCES[name](x, w), *(reordered(REFERENCES[name], order, x, w) for order in ORDERS)]
    assert not any(torch.equal(values[one], values[other]) for one, other in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("rows", "cols"), [(0, 5), (3, 0), (1, 1), (2, 32), (1, 33)])
def test_sizes_at_the_edges(order, rows, cols):
    x, w = inputs(rows, cols)
    for name in ("sum", "sum of rows", "mean", "matrix product", "matrix and vector", "cumsum", "rms_norm"):
        expected, found = REFERENCES[name](x, w), reordered(REFERENCES[name], order, x, w)
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize("order", ORDERS)
def test_half_precision_sums_neither_overflow_nor_stall(order):
    x = torch.full((2, 4096), 100.0, dtype=torch.float16)
    assert (reordered(lambda x: x.mean(-1), order, x) == 100).all()
    ones = torch.ones(1, 4096, dtype=torch.bfloat16)
    assert reordered(lambda x: x @ x.T, order, ones) == 4096


def test_blocks_of_long_sums_grow():
    x = torch.ones(3_000_001)
    assert reordered(torch.sum, "blocks", x) == 3_000_001


def test_the_inputs_are_not_what_comes_back():
    x = torch.tensor(2.0)
    reordered(torch.sum, "blocks", x).add_(1)
    assert x == 2


@pytest.mark.parametrize(
    "name", ["sum of rows", "mean of columns", "matrix product", "matrix and vector", "batched"]
)
def test_noise_moves_each_sum_by_its_share(name):
    x, w = (each.double() for each in inputs(9, 40))
    expected, sizes = REFERENCES[name](x, w), REFERENCES[name](x.abs(), w.abs())
    with torch.no_grad(), reorder.sums_with_noise(3, 2.0**-10):
        moved = REFERENCES[name](x, w) - expected
    torch.testing.assert_close(moved.abs(), sizes * 2.0**-10)
    assert bool((moved > 0).any())
    assert bool((moved < 0).any())

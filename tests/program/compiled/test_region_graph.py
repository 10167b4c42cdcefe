"""The digest of a region: what it covers and what it leaves out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from fx_graphs import aten, norm, norm_inputs, region_of  # noqa: E402


def test_sizes_are_not_in_the_digest():
    assert region_of(norm, *norm_inputs(6, 8)).digest == region_of(norm, *norm_inputs(5, 64)).digest


def test_sizes_of_views_are_not_in_the_digest():
    def through_view(x):
        return aten.exp.default(aten.view.default(aten.neg.default(x), [x.shape[0] * x.shape[1]]))

    assert region_of(through_view, torch.ones(2, 3)).digest == region_of(through_view, torch.ones(4, 5)).digest


@pytest.mark.parametrize(
    "other",
    [
        lambda x: aten.mul.Tensor(x, 3.0),
        lambda x: aten.add.Tensor(x, 2.0),
        lambda x: aten.mul.Tensor(aten.mul.Tensor(x, 2.0), x),
    ],
)
def test_constants_operators_and_edges_are_in_the_digest(other):
    x = torch.ones(2, 3)
    assert region_of(lambda x: aten.mul.Tensor(x, 2.0), x).digest != region_of(other, x).digest


def test_data_types_and_dimensions_are_in_the_digest():
    def double(x):
        return aten.mul.Tensor(x, 2.0)

    digests = {region_of(double, x).digest for x in (torch.ones(2), torch.ones(2, 2), torch.ones(2).bfloat16())}
    assert len(digests) == 3


def test_a_shared_input_is_not_two_inputs():
    x, y = torch.ones(3), torch.ones(3)
    square = region_of(lambda x, y: aten.mul.Tensor(x, x), x, y)
    product = region_of(lambda x, y: aten.mul.Tensor(x, y), x, y)
    assert (len(square.inputs), len(product.inputs)) == (1, 2)
    assert square.digest != product.digest


def test_the_order_of_independent_calls_is_not_in_the_digest():
    def forth(x, y):
        a, b = aten.exp.default(x), aten.neg.default(y)
        return aten.sub.Tensor(a, b)

    def back(x, y):
        b = aten.neg.default(y)
        return aten.sub.Tensor(aten.exp.default(x), b)

    x = torch.ones(3)
    assert region_of(forth, x, x).digest == region_of(back, x, x).digest


def test_the_digest_is_the_same_in_another_process():
    text = "from fx_graphs import *; print(region_of(norm, *norm_inputs()).digest)"
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        "PYTHONHASHSEED": "7",
    }
    digests = subprocess.run(
        [sys.executable, "-c", text], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert digests.strip() == region_of(norm, *norm_inputs()).digest


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: aten.mul.Tensor(x, aten.rsqrt.default(x)), "norm"),
        (lambda x: aten.mul.Tensor(x, aten.sigmoid.default(x)), "activation"),
        (lambda x: aten.clone.default(aten.permute.default(x, [1, 0])), "copy"),
        (lambda x: aten.sum.dim_IntList(x, [0]), "reduction"),
        (lambda x: aten.add.Tensor(x, x), "residual"),
        (lambda x: aten.sub.Tensor(x, aten.log.default(x)), "loss head"),
    ],
)
def test_the_kind_is_a_word_for_people(function, kind):
    assert region_of(function, torch.ones(2, 3)).kind == kind

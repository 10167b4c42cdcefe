"""Places of a region in another graph."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from fx_graphs import aten, norm, norm_inputs, region_of, trace  # noqa: E402

from warpsmith.program.compiled import matching  # noqa: E402


def test_each_place_is_found_whatever_its_sizes():
    def two_norms(x, residual, weight):
        first, added = norm(x, residual, weight)
        second, _ = norm(aten.mm.default(first, aten.permute.default(first, [1, 0])), x, weight)
        return second, added

    graph = trace(two_norms, torch.ones(4, 4), torch.ones(4, 4), torch.ones(4))
    first, second = matching.find_matches(region_of(norm, *norm_inputs(6, 8)), graph)[:2]
    assert first.tensors[0].shape == (4, 4)
    assert set(first.outputs).isdisjoint(second.outputs)


def test_other_constants_are_no_match():
    region = region_of(lambda x: aten.mul.Tensor(x, 2.0), torch.ones(3))
    graph = trace(lambda x: aten.mul.Tensor(x, 3.0), torch.ones(3))
    assert matching.find_matches(region, graph) == []


def test_a_true_constant_is_not_the_number_one():
    region = region_of(lambda x: aten.sum.dim_IntList(x, [0], True), torch.ones(3, 3))
    graph = trace(lambda x: aten.sum.dim_IntList(x, [0]), torch.ones(3, 3))
    assert matching.find_matches(region, graph) == []


def test_other_data_types_are_no_match():
    region = region_of(norm, *norm_inputs())
    assert matching.find_matches(region, trace(norm, *norm_inputs(dtype=torch.bfloat16))) == []


def test_two_outputs_of_one_place_belong_together():
    def branches(x, y):
        doubled = aten.mul.Tensor(x, 2.0)
        return aten.exp.default(doubled), aten.neg.default(doubled)

    def halves(x, y):
        return aten.exp.default(aten.mul.Tensor(x, 2.0)), aten.neg.default(aten.mul.Tensor(y, 2.0))

    x, y = torch.ones(3), torch.ones(3)
    region = region_of(branches, x, y)
    assert len(region.outputs) == 2
    assert len(matching.find_matches(region, trace(branches, x, y))) == 1
    assert matching.find_matches(region, trace(halves, x, y)) == []


def test_a_place_that_would_need_its_own_result_is_left_out():
    def plain(x, y):
        e = aten.exp.default(x)
        return e, aten.add.Tensor(e, y)

    def circular(x):
        e = aten.exp.default(x)
        return e, aten.add.Tensor(e, aten.cumsum.default(e, 0))

    region = region_of(plain, torch.ones(3), torch.ones(3))

    assert matching.find_matches(region, trace(circular, torch.ones(3))) == []

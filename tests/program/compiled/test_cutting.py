"""Regions cut from graphs: edges, chains, and what cannot be one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from fx_graphs import aten, calls, cut_all, kernel, norm, norm_inputs, trace  # noqa: E402

from warpsmith.program.compiled import cutting  # noqa: E402


def test_a_region_has_what_enters_and_what_leaves():
    cut = cut_all(norm, *norm_inputs())
    assert [tensor.shape for tensor in cut.region.inputs] == [(6, 8), (6, 8), (8,)]
    assert [tensor.shape for tensor in cut.region.results] == [(6, 8), (6, 8)]
    assert cut.kernels == {"k": 1.0}


def test_parts_that_share_only_inputs_are_two_regions_with_shares_of_the_bytes():
    graph = trace(lambda x: (aten.exp.default(x), aten.sum.dim_IntList(x, [0])), torch.ones(64, 4))
    cuts = cutting.cut_regions(graph, [kernel("k", *calls(graph))])
    shares = {cut.region.description: cut.kernels["k"] for cut in cuts}
    assert shares["exp"] == pytest.approx(512 / (512 + 260))
    assert sum(shares.values()) == pytest.approx(1)


def test_a_constant_behind_a_view_is_part_of_the_region():
    def one_hot(x):
        counter = torch.ops.prims.iota.default(
            4, start=0, step=1, dtype=torch.int64, device=torch.device("cpu"), requires_grad=False
        )
        return aten.eq.Tensor(aten.unsqueeze.default(x, 1), aten.view.default(counter, [1, 4]))

    cut = cut_all(one_hot, torch.ones(3, dtype=torch.int64))
    assert [tensor.shape for tensor in cut.region.inputs] == [(3, 1)]


def test_parts_that_share_a_constant_are_two_regions():
    def shifted(x, y):
        two = aten.full.default([3], 2.0)
        return aten.add.Tensor(x, two), aten.mul.Tensor(y, two)

    graph = trace(shifted, torch.ones(3), torch.ones(3))
    cuts = cutting.cut_regions(graph, [kernel("k", *calls(graph))])
    assert [len(cut.region.inputs) for cut in cuts] == [1, 1]


def test_a_value_that_the_reader_computes_again_does_not_leave():
    graph = trace(
        lambda x, y: (aten.exp.default(aten.mul.Tensor(x, 2.0)), aten.neg.default(aten.mul.Tensor(x, 2.0))),
        *[torch.ones(3)] * 2,
    )
    double, exp, _, neg = calls(graph)
    neg.replace_input_with(neg.args[0], double)
    again = cutting.cut_regions(graph, [kernel("a", double, exp), kernel("b", double, neg)])
    assert [len(cut.outputs) for cut in again] == [1, 1]
    once = cutting.cut_regions(graph, [kernel("a", double, exp), kernel("b", neg)])
    assert [len(cut.outputs) for cut in once] == [2, 1]


def test_views_at_the_edge_stay_outside():
    graph = trace(
        lambda x: aten.view.default(aten.exp.default(aten.view.default(x, [2, 6])), [12]), torch.ones(3, 4)
    )
    (cut,) = cutting.cut_regions(graph, [kernel("k", *calls(graph))])
    assert cut.region.description == "exp"
    assert [tensor.shape for tensor in (*cut.region.inputs, *cut.region.results)] == [(2, 6), (2, 6)]


def test_a_transposed_input_is_pulled_in():
    graph = trace(lambda x: aten.exp.default(aten.permute.default(x, [1, 0])), torch.ones(3, 4))
    (cut,) = cutting.cut_regions(graph, [kernel("k", *calls(graph, "exp"))])
    assert cut.region.description == "permute, exp"
    assert cut.region.inputs[0].shape == (3, 4)


def test_halves_that_are_all_of_a_tensor_are_pulled_in_and_a_single_half_is_not():
    def gate(x):
        first, second = aten.slice.Tensor(x, 1, 0, 4), aten.slice.Tensor(x, 1, 4, 8)
        return aten.mul.Tensor(aten.sigmoid.default(first), second), aten.exp.default(first)

    graph = trace(gate, torch.ones(3, 8))
    both = cutting.cut_regions(graph, [kernel("k", *calls(graph, "sigmoid", "mul"))])
    assert [tensor.shape for tensor in both[0].region.inputs] == [(3, 8)]
    half = cutting.cut_regions(graph, [kernel("k", *calls(graph, "exp"))])
    assert [tensor.strides for tensor in half[0].region.inputs] == [(8, 1)]


def test_a_list_of_parts_never_enters():
    def one_part(x):
        return aten.exp.default(aten.split.Tensor(x, 4, 1)[0])

    def all_parts(x):
        first, second = aten.split.Tensor(x, 4, 1)
        return aten.mul.Tensor(first, second)

    for function, shape in ((one_part, (3, 4)), (all_parts, (3, 8))):
        cut = cut_all(function, torch.ones(3, 8))
        assert [tensor.shape for tensor in cut.region.inputs] == [shape]


def test_constants_are_pulled_in():
    def masked(x):
        return aten.add.Tensor(x, aten.full.default([3], 2.0))

    graph = trace(masked, torch.ones(3))
    (cut,) = cutting.cut_regions(graph, [kernel("k", *calls(graph, "add"))])
    assert len(cut.region.inputs) == 1


def test_kernels_of_which_one_reads_all_of_the_other_are_a_chain():
    graph = trace(
        lambda x: aten.exp.default(aten.view.default(aten.sum.dim_IntList(x, [0]), [2, 2])), torch.ones(3, 4)
    )
    total, view, exp = calls(graph)
    cuts = cutting.cut_regions(graph, [kernel("a", total), kernel("b", view, exp)])
    chain = cuts[-1]
    assert (len(cuts), chain.region.description) == (3, "sum, reshape, exp")
    assert chain.kernels == {"a": 1.0, "b": 1.0}


def test_a_value_that_the_program_keeps_breaks_the_chain():
    def both(x):
        total = aten.sum.dim_IntList(x, [0])
        return aten.exp.default(total), total

    graph = trace(both, torch.ones(3, 4))
    total, exp = calls(graph)
    assert len(cutting.cut_regions(graph, [kernel("a", total), kernel("b", exp)])) == 2


def test_views_alone_are_no_region():
    graph = trace(lambda x: aten.permute.default(x, [1, 0]), torch.ones(3, 4))
    assert cutting.cut_regions(graph, [kernel("k", *calls(graph))]) == []


def test_random_numbers_are_refused():
    cut = cut_all(lambda x: aten.mul.Tensor(x, aten.bernoulli.p(x, 0.5)), torch.ones(3))
    assert cut.region is None
    assert "random" in cut.refusal


def test_writes_are_refused():
    cut = cut_all(lambda x, y: aten.mul.Tensor(aten.copy_.default(y, x), 2.0), torch.ones(3), torch.ones(3))
    assert cut.region is None
    assert "writes" in cut.refusal


def test_custom_operators_are_refused():
    with torch.library._scoped_library("mine", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        torch.library.register_fake("mine::twice", torch.empty_like, lib=library)
        cut = cut_all(lambda x: aten.exp.default(torch.ops.mine.twice.default(x)), torch.ones(3))
    assert cut.region is None
    assert "mine.twice" in cut.refusal


def test_symbolic_sizes_are_refused():
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: aten.exp.default(x), tracing_mode="symbolic")(torch.ones(3, 4)).graph
    nodes = [node for node in calls(graph) if "exp" in str(node.target)]
    (cut,) = cutting.cut_regions(graph, [kernel("k", *nodes)])
    assert cut.region is None
    assert "dynamic" in cut.refusal


def test_a_region_without_inputs_is_refused():
    cut = cut_all(lambda x: (aten.exp.default(aten.full.default([3], 2.0)), x), torch.ones(3))
    assert "no tensor" in cut.refusal

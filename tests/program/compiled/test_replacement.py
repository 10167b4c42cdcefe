"""Regions replaced in graphs by calls of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from fx_graphs import aten, norm, norm_inputs, region_of, trace  # noqa: E402

from warpsmith.program.compiled import replacement  # noqa: E402
from warpsmith.program.compiled.replacement import RegionKernel  # noqa: E402

CALLS: list[Any] = []


def recorded_norm(x: Any, residual: Any, weight: Any) -> Any:
    CALLS.append(x)
    return norm(x, residual, weight)


@pytest.fixture(autouse=True)
def kernels() -> Iterator[Any]:
    CALLS.clear()
    with torch.library._scoped_library("replaced", "FRAGMENT") as library:
        library.define("norm(Tensor x, Tensor residual, Tensor weight) -> (Tensor, Tensor)")
        library.define("turned(Tensor x) -> Tensor")
        library.impl("norm", recorded_norm, "CompositeExplicitAutograd")
        library.impl("turned", lambda x: x.exp(), "CompositeExplicitAutograd")
        yield torch.ops.replaced
    replacement.remove_kernels()


def run(graph: Any, *inputs: Any) -> Any:
    graph.lint()
    return torch.fx.GraphModule({}, graph)(*inputs)


def region_kernel(operator: Any, region: Any, **changes: Any) -> RegionKernel:
    fields = {
        "name": "mine", "region": region, "call": operator, "is_covered": lambda _: True,
        "input_orders": (None,) * len(region.inputs), "output_orders": (None,) * len(region.outputs),
    }  # fmt: skip
    return RegionKernel(**{**fields, **changes})


def two_norms(x: Any, residual: Any, weight: Any) -> Any:
    first, added = norm(x, residual, weight)
    second, more = norm(aten.mm.default(first, x), added, weight)
    return aten.exp.default(second), more


def test_each_place_becomes_one_call_with_the_same_results(kernels):
    inputs = norm_inputs(4, 4)
    region = region_of(norm, *norm_inputs())
    replacement.add_kernel(region_kernel(kernels.norm.default, region))
    graph = trace(two_norms, *inputs)
    replacement.replace_regions(graph)
    results = run(graph, *inputs)
    assert len(CALLS) == 2
    assert replacement.replaced_places() == {"mine": 2}
    assert not [node for node in graph.nodes if "rsqrt" in str(node.target)]
    for result, expected in zip(results, two_norms(*inputs), strict=True):
        torch.testing.assert_close(result, expected)


def test_tensors_that_are_not_covered_stay(kernels):
    region = region_of(norm, *norm_inputs())
    covered = lambda tensors: tensors[0].shape == (6, 8)  # noqa: E731
    replacement.add_kernel(region_kernel(kernels.norm.default, region, is_covered=covered))
    graph = trace(norm, *norm_inputs(4, 4))
    before = str(graph)
    replacement.replace_regions(graph)
    assert str(graph) == before


def test_a_value_inside_that_others_read_is_computed_for_them(kernels):
    def with_reader(x, residual, weight):
        result, added = norm(x, residual, weight)
        square = aten.mul.Tensor(added, added)
        return result, added, aten.exp.default(square)

    inputs = norm_inputs()
    replacement.add_kernel(region_kernel(kernels.norm.default, region_of(norm, *inputs)))
    graph = trace(with_reader, *inputs)
    replacement.replace_regions(graph)
    results = run(graph, *inputs)
    assert len(CALLS) == 1
    for result, expected in zip(results, with_reader(*inputs), strict=True):
        torch.testing.assert_close(result, expected)


def test_tensors_in_another_order_of_memory_are_turned(kernels):
    def exp(x):
        return aten.exp.default(x)

    x = torch.randn(4, 3).t()
    region = region_of(exp, x)
    order = ((1, 0),)
    kernel = region_kernel(kernels.turned.default, region, input_orders=order, output_orders=order)
    replacement.add_kernel(kernel)
    graph = trace(exp, x)
    replacement.replace_regions(graph)
    assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == [
        "aten.permute.default", "replaced.turned.default", "aten.permute.default"
    ]  # fmt: skip
    result = run(graph, x)
    torch.testing.assert_close(result, x.exp())
    assert result.stride() == x.stride()


def test_the_pass_keeps_the_programs_own_pass_and_its_identity(kernels):
    import torch._inductor.config as options
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Own(CustomGraphPass):
        seen = 0

        def __call__(self, graph: Any) -> None:
            Own.seen += 1

        def uuid(self) -> str:
            return "own"

    own, region = Own(), region_of(norm, *norm_inputs())
    with options.patch(post_grad_custom_post_pass=own):
        replacement.add_kernel(region_kernel(kernels.norm.default, region))
        joined = options.post_grad_custom_post_pass
        first = joined.uuid()
        joined(trace(norm, *norm_inputs()))
        assert (Own.seen, replacement.replaced_places()["mine"]) == (1, 1)
        assert "own" in first
        replacement.add_kernel(region_kernel(kernels.turned.default, region))
        assert joined.uuid() != first  # another version of the kernel is other code
        replacement.remove_kernels()
        assert options.post_grad_custom_post_pass is own

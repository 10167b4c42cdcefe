"""The reference of a region as source, and the axes of its tensors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from fx_graphs import aten, norm, norm_inputs, region_of  # noqa: E402

from warpsmith.program.compiled.region_graph import RegionGraph  # noqa: E402
from warpsmith.program.operators import call_form  # noqa: E402
from warpsmith.program.operators.models import CallArgument, CallSignature, RecordedTensor  # noqa: E402
from warpsmith.program.regions import region_axes  # noqa: E402
from warpsmith.program.regions.region_axes import RegionAxes  # noqa: E402
from warpsmith.program.regions.region_source import RegionSource  # noqa: E402

NAMES = ("x", "residual", "weight")


def axes_of(*regions: RegionGraph, names: tuple[str, ...] = NAMES) -> tuple[RegionAxes, RegionSource]:
    signatures = [
        CallSignature(
            arguments=tuple(
                CallArgument(name=name, tensor=RecordedTensor.model_validate(tensor.model_dump()))
                for name, tensor in zip(names, region.inputs, strict=True)
            ),
            outputs=tuple(RecordedTensor.model_validate(tensor.model_dump()) for tensor in region.results),
            calls=1,
            seconds=1,
        )
        for region in regions
    ]
    form = call_form.choose_form("region", signatures)
    orders = [argument.slot.order for argument in form.arguments]
    parameters = [str(argument.slot.input) for argument in form.arguments]
    source = RegionSource(regions[0], parameters, orders, region_axes.result_orders(regions[0]), form.dtypes[0])
    return RegionAxes(form, regions, source), source


def run(described: dict[str, Any], names: tuple[str, ...], *inputs: Any) -> Any:
    scope: dict[str, Any] = {"torch": torch}
    exec(f"def reference({', '.join(names)}):\n{described['body']}", scope)
    return scope["reference"](*inputs)


def test_the_source_computes_the_region_at_any_size():
    described = axes_of(region_of(norm, *norm_inputs(6, 8)))[0].describe(fixed=False)
    assert [axis["free"] for axis in described["axes"].values()] == [True, True]
    inputs = norm_inputs(3, 5)
    for result, expected in zip(run(described, NAMES, *inputs), norm(*inputs), strict=True):
        torch.testing.assert_close(result, expected)


def test_sizes_of_views_follow_the_axes():
    def flat(x):
        flat_x = aten.view.default(aten.neg.default(x), [x.shape[0] * x.shape[1]])
        return aten.exp.default(flat_x)

    described = axes_of(region_of(flat, torch.ones(6, 5)), names=("x",))[0].describe(fixed=False)
    assert "d0 * d1" in described["body"]
    assert described["outputs"] == [["d0 * d1"]]
    torch.testing.assert_close(run(described, ("x",), torch.ones(3, 7)), torch.full((21,), -1.0).exp())


def test_a_size_that_the_region_needs_is_fixed():
    def halves(x):
        return aten.exp.default(aten.view.default(aten.neg.default(x), [2, 4, 6]))

    axes, _ = axes_of(region_of(halves, torch.ones(8, 6)), names=("x",))
    described = axes.describe(fixed=False)
    assert [axis["sizes"] for axis in described["axes"].values()] == [[6]]


def test_places_of_several_sizes_are_one_definition():
    regions = [region_of(norm, *norm_inputs(6, 8)), region_of(norm, *norm_inputs(4, 8))]
    described = axes_of(*regions)[0].describe(fixed=True)
    assert [axis["sizes"] for axis in described["axes"].values()] == [[6, 4]]
    assert described["outputs"] == [["d0", 8], ["d0", 8]]


def test_the_length_of_a_sum_is_told():
    described = axes_of(region_of(lambda x: aten.sum.dim_IntList(x, [1]), torch.ones(6, 40)), names=("x",))[0]
    assert described.describe(fixed=False)["reduction"] == "d1"


def test_a_run_in_float64_narrows_nothing():
    def mixed(x):
        wide = torch.ops.prims.convert_element_type.default(x, torch.float32)
        return torch.ops.prims.convert_element_type.default(aten.exp.default(wide), torch.bfloat16)

    region = region_of(mixed, torch.ones(4, dtype=torch.bfloat16))
    described = axes_of(region, names=("x",))[0].describe(fixed=False)
    x = torch.randn(7, dtype=torch.float64)
    assert torch.equal(run(described, ("x",), x), x.exp())
    assert run(described, ("x",), x.bfloat16()).dtype == torch.bfloat16


def test_a_tensor_in_another_order_of_memory_is_turned():
    def exp(x):
        return aten.exp.default(x)

    described = axes_of(region_of(exp, torch.ones(4, 3).t()), names=("x",))[0].describe(fixed=False)
    x = torch.randn(4, 3)
    torch.testing.assert_close(run(described, ("x",), x), x.exp())

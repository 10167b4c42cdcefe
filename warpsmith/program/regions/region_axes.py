"""Axes of a region: which sizes of its tensors agree, and which of them may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import prod
from typing import Any

from warpsmith.core.arithmetic import size_formula
from warpsmith.interchange.pytorch import reductions
from warpsmith.program.compiled.region_graph import RegionGraph
from warpsmith.program.operators import axes, layout
from warpsmith.program.operators.axes import TensorDimension
from warpsmith.program.operators.call_form import CallForm
from warpsmith.program.regions.region_source import RegionSource

_MOST_FACTORS = 3
"""Largest number of axes whose product is the size of a result inside a region."""


@dataclass(frozen=True)
class _SizeAxis:
    name: str
    sizes: tuple[int, ...]
    dimensions: tuple[TensorDimension, ...]
    free: bool


class RegionAxes:
    """Axes of the calls of one form of a region."""

    def __init__(self, form: CallForm, regions: Sequence[RegionGraph], source: RegionSource) -> None:
        """Find the axes.

        Args:
            form: calls that differ only in sizes; each argument is an input of the region.
            regions: the region as it is in each call.
            source: the reference.
        """
        self._form, self._regions, self._source = form, regions, source
        shapes = {index: argument.shapes for index, argument in enumerate(form.arguments)}
        groups = sorted(axes.group_by_sizes(shapes), key=lambda item: min(item[1]))
        candidates = [
            _SizeAxis(f"d{number}", sizes, tuple(dimensions), free=True)
            for number, (sizes, dimensions) in enumerate(groups)
        ]
        self._axes = candidates
        self._axes = [replace(axis, free=self._is_free(axis)) for axis in candidates]

    def describe(self, fixed: bool) -> dict[str, Any]:
        """Describe axes, shapes and work as the task `operator_axes` does; empty if no call runs.

        With `fixed`, no axis is free.
        """
        chosen = [
            replace(axis, name=f"d{number}", free=axis.free and not fixed)
            for number, axis in enumerate(
                axis for axis in self._axes if (axis.free and not fixed) or len(set(axis.sizes)) > 1
            )
        ]
        inputs: dict[str, list[str | int]] = {
            str(index): list(argument.shapes[0]) for index, argument in enumerate(self._form.arguments)
        }
        for axis in chosen:
            for tensor, dimension in axis.dimensions:
                inputs[str(tensor)][dimension] = axis.name
        samples = self._samples(chosen)
        outcomes = [self._run(chosen, sizes) for sizes in samples]
        pairs = [(sizes, outcome) for sizes, outcome in zip(samples, outcomes, strict=True) if outcome]
        if len(pairs) < len(samples):
            return {}
        sizes = [pair[0] for pair in pairs]

        def solve(values: Sequence[int]) -> str | int | None:
            return size_formula.solve_size(values, sizes)

        shapes = zip(*(outcome["outputs"] for _, outcome in pairs), strict=True)
        return {
            "axes": {axis.name: {"sizes": list(axis.sizes), "free": axis.free} for axis in chosen},
            "inputs": inputs,
            "outputs": [[solve(column) for column in zip(*rows, strict=True)] for rows in shapes],
            "reduction": solve([outcome["length"] for _, outcome in pairs]),
            "flops": None,
            "pointwise": False,
            "listed": False,
            "body": self._source.body(self._axis_sources(chosen), self._size_source(chosen)),
        }

    def _is_free(self, axis: _SizeAxis) -> bool:
        base = {other.name: other.sizes[0] for other in self._axes}
        others = {axes.other_size(axis.sizes[0]), *axes.DERIVED_SIZES}
        return all(self._run(self._axes, {**base, axis.name: size}) is not None for size in others)

    def _samples(self, chosen: Sequence[_SizeAxis]) -> list[dict[str, int]]:
        """Return the sizes of every call, and those of the first with each free axis changed."""
        calls = range(len(self._form.signatures))
        samples = [{axis.name: axis.sizes[call] for axis in chosen} for call in calls]
        for axis in chosen:
            for size in axes.DERIVED_SIZES[1:] if axis.free else ():
                if size != axis.sizes[0]:
                    samples.append({**samples[0], axis.name: size})
        return samples

    def _axis_sources(self, chosen: Sequence[_SizeAxis]) -> dict[str, str]:
        names = [argument.slot.input for argument in self._form.arguments]
        return {axis.name: f"{names[axis.dimensions[0][0]]}.shape[{axis.dimensions[0][1]}]" for axis in chosen}

    def _size_source(self, chosen: Sequence[_SizeAxis]) -> Callable[[int, int], str]:
        """Return a function of a node and a dimension that gives the source of that size of its result."""

        def source(index: int, dimension: int) -> str:
            results = [region.nodes[index].result for region in self._regions]
            sizes = tuple(result.shape[dimension] for result in results if result is not None)
            return _product_source(sizes, chosen)

        return source

    def _run(self, chosen: Sequence[_SizeAxis], sizes: Mapping[str, int]) -> dict[str, Any] | None:
        """Run the reference at these sizes on tensors without content; None if it does not run."""
        import torch

        shapes = [list(argument.shapes[0]) for argument in self._form.arguments]
        for axis in chosen:
            for tensor, dimension in axis.dimensions:
                shapes[tensor][dimension] = sizes[axis.name]
        function = self._source.function(self._axis_sources(chosen), self._size_source(chosen))
        with axes.contentless_tensors():
            try:
                tensors = [
                    torch.empty(shape, dtype=getattr(torch, argument.tensors[0].dtype))
                    for shape, argument in zip(shapes, self._form.arguments, strict=True)
                ]
                with reductions.operation_trace() as lengths:
                    result = function(*tensors)
            except Exception:  # any error means that it does not take such sizes
                return None
        results = result if isinstance(result, tuple | list) else (result,)
        return {
            "outputs": [list(tensor.shape) for tensor in results],
            "length": max(1, lengths.longest_chain(results)),
        }


def result_orders(region: RegionGraph) -> list[tuple[int, ...] | None]:
    """Return the permutation from a contiguous tensor to each result of a region; None where there is none."""
    orders = [layout.memory_order(tensor.shape, tensor.strides) for tensor in region.results]
    return [None if order is None else tuple(order) for order in orders]


def _product_source(sizes: tuple[int, ...], chosen: Sequence[_SizeAxis]) -> str:
    """Return the source of a size: an axis, a product of axes, or a number."""
    if set(sizes) == {1}:
        return "1"
    for count in range(1, _MOST_FACTORS + 1):
        for factors in combinations_with_replacement(chosen, count):
            products = tuple(prod(axis.sizes[call] for axis in factors) for call in range(len(sizes)))
            if products == sizes:
                return " * ".join(axis.name for axis in factors)
    return str(sizes[0])

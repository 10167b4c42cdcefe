"""Task: how the sizes of an operator's arguments and results depend on each other, on tensors without content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic import size_formula
from warpsmith.interchange.pytorch import reductions
from warpsmith.program.operators import axes, layout
from warpsmith.program.operators.axes import TensorDimension
from warpsmith.program.process import operator_values

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram

Result = tuple[bool, list[int] | None]
"""Presence of a result, and the permutation of a contiguous tensor that gives its layout."""

Shapes = dict[int, list[int]]
"""Shape of the tensor of each argument, by index."""


def main(
    _program: LoadedProgram,
    *,
    operator: str,
    calls: list[list[dict[str, Any]]],
    results: list[Result],
    fixed: bool,
) -> dict[str, Any]:
    """Find the axes of calls of one form, and express results and work by them.

    Args:
        operator: full name of the operator.
        calls: arguments of each call: `shape`, `order`, `dtype` and `device` of a tensor as the definition has it,
            or `source` and `trailing` of a constant; and `element`, its index in a list of tensors.
        results: presence and `order` of each result.
        fixed: true if no axis may be free.

    Returns:
        `axes`: by name `sizes`, one for each call, and `free`. `inputs`: by argument a shape of names and numbers.
        `outputs`: a shape for each result, or None. `reduction`, `flops`: an expression, or None. `listed`: true
        if the results are a list. Empty if no call runs on tensors without content.
    """
    form = _Form(operator_values.get_operator(operator), calls, results)
    groups, inputs = form.axes(fixed)
    samples = form.samples(groups)
    results_of = [form.run(shapes) for _, shapes in samples]
    sizes = [sample for sample, _ in samples]
    runs = [(sample, outcome) for sample, outcome in zip(sizes, results_of, strict=True) if outcome is not None]
    if not runs:
        return {}
    sizes = [sample for sample, _ in runs]
    outcomes = [outcome for _, outcome in runs]

    flops = [outcome["flops"] for outcome in outcomes]

    def solve(values: Sequence[int]) -> str | int | None:
        return size_formula.solve_size(values, sizes)

    return {
        "axes": {name: {"sizes": group["sizes"], "free": group["free"]} for name, group in groups.items()},
        "inputs": {str(tensor): shape for tensor, shape in inputs.items()},
        "outputs": _solve_outputs([outcome["outputs"] for outcome in outcomes], solve),
        "reduction": solve([outcome["length"] for outcome in outcomes]),
        "flops": solve(flops) if all(flops) else None,
        "pointwise": form.pointwise,
        "listed": operator_values.returns_tensor_list(form.operator),
    }


def _solve_outputs(calls: list[list[Any]], solve: Callable[[Sequence[int]], str | int | None]) -> list[Any]:
    outputs: list[Any] = []
    for results in zip(*calls, strict=True):
        if any(sizes is None for sizes in results):
            outputs.append(None)
            continue
        outputs.append([solve(sizes) for sizes in zip(*results, strict=True)])
    return outputs


class _Form:
    """Calls of one operator that differ only in sizes."""

    def __init__(self, operator: Any, calls: list[list[dict[str, Any]]], results: list[Result]) -> None:  # noqa: ANN401
        import torch

        self.operator, self.calls, self.results = operator, calls, results
        self.tensors = [index for index, argument in enumerate(calls[0]) if "shape" in argument]
        self.pointwise = torch.Tag.pointwise in operator.tags

    def axes(self, fixed: bool) -> tuple[dict[str, dict[str, Any]], dict[int, list[str | int]]]:
        """Return the axes with their sizes and dimensions, and the shape of each tensor in names of axes."""
        shapes = {tensor: [call[tensor]["shape"] for call in self.calls] for tensor in self.tensors}
        groups: dict[str, dict[str, Any]] = {}
        inputs: dict[int, list[str | int]] = {tensor: list(calls[0]) for tensor, calls in shapes.items()}
        grouped = [
            (sizes, group, free)
            for sizes, dimensions in axes.group_by_sizes(shapes)
            for group, free in axes.split_axes(
                dimensions, lambda group: not fixed and self._takes_other_sizes(group)
            )
            if free or len(set(sizes)) > 1
        ]
        for sizes, group, free in sorted(grouped, key=lambda item: min(item[1])):
            name = f"d{len(groups)}"
            groups[name] = {"sizes": list(sizes), "free": free, "dimensions": group}
            for tensor, dimension in group:
                inputs[tensor][dimension] = name
        return groups, inputs

    def samples(self, groups: Mapping[str, Mapping[str, Any]]) -> list[tuple[dict[str, int], Shapes]]:
        """Return sizes by axis and shapes for every call, and for the first call with each free axis changed."""
        samples = [
            ({name: group["sizes"][call] for name, group in groups.items()}, self._shapes(call))
            for call in range(len(self.calls))
        ]
        sizes, shapes = samples[0]
        for name, group in groups.items():
            for other in axes.DERIVED_SIZES[1:] if group["free"] else ():
                if other != sizes[name]:
                    samples.append(({**sizes, name: other}, _resize(shapes, group["dimensions"], other)))
        return samples

    def run(self, shapes: Shapes) -> dict[str, Any] | None:
        """Run a call with these shapes; return None if it fails or has another number of results."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.utils.flop_counter import flop_registry

        # Attention runs as its matrix products, so that the lengths of their sums can be counted.
        with axes.contentless_tensors(), sdpa_kernel(SDPBackend.MATH):
            try:
                args, kwargs = operator_values.split_arguments(self.operator, self._make_arguments(shapes))
                with reductions.operation_trace() as lengths:
                    result = self.operator(*args, **kwargs)
                count = flop_registry.get(self.operator._overloadpacket)
                flops = int(count(*args, **kwargs, out_val=result)) if count is not None else 0
            except Exception:  # any error means that it does not take such sizes
                return None
        results = result if isinstance(result, tuple | list) else (result,)
        if len(results) != len(self.results):  # the length of a list can depend on sizes
            return None
        return {
            "outputs": [
                layout.stored_shape(tuple(tensor.shape), order) if present else None
                for tensor, (present, order) in zip(results, self.results, strict=True)
            ],
            "length": max(1, lengths.longest_chain(results)),
            "flops": flops,
        }

    def _takes_other_sizes(self, dimensions: Sequence[TensorDimension]) -> bool:
        shapes = self._shapes(0)
        size = shapes[dimensions[0][0]][dimensions[0][1]]
        others = {axes.other_size(size), *axes.DERIVED_SIZES}
        return all(self.run(_resize(shapes, dimensions, other)) is not None for other in others)

    def _shapes(self, call: int) -> Shapes:
        return {tensor: list(self.calls[call][tensor]["shape"]) for tensor in self.tensors}

    def _make_arguments(self, shapes: Shapes) -> list[Any]:
        import torch

        first, values = None, []
        for index, argument in enumerate(self.calls[0]):
            if index in shapes:
                value: Any = torch.empty(
                    shapes[index], dtype=getattr(torch, argument["dtype"]), device=argument["device"]
                )
                value = value.permute(argument["order"]) if argument["order"] else value
                first = value if first is None else first
            elif argument["trailing"]:
                assert first is not None
                value = list(first.shape[-argument["trailing"] :])
            else:
                value = eval(argument["source"], {"torch": torch, "nan": float("nan"), "inf": float("inf")})
            values.append(value)
        return operator_values.rebuild_lists([argument["element"] for argument in self.calls[0]], values)


def _resize(shapes: Shapes, dimensions: Sequence[TensorDimension], size: int) -> Shapes:
    resized = {tensor: list(shape) for tensor, shape in shapes.items()}
    for tensor, dimension in dimensions:
        resized[tensor][dimension] = size
    return resized

"""Task: what an operator's sizes have to do with each other, on tensors that hold nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpsmith.interchange import kernelbench_inspection
from warpsmith.program.operators import axes, layout
from warpsmith.program.operators.axes import TensorDimension
from warpsmith.program.process import operator_values

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram

Result = tuple[bool, list[int] | None]
"""Whether a result is there, and the permutation that makes it out of a contiguous tensor."""

Shapes = dict[int, list[int]]
"""Argument to the shape of its tensor."""


def main(
    _child: LoadedProgram, *, operator: str, calls: list[list[dict[str, Any]]], results: list[Result], fixed: bool
) -> dict[str, Any]:
    """The axes of calls of one form, and what they make of results and work.

    Args:
        operator: whole name.
        calls: of each call its arguments: `shape`, `order`, `dtype`, `device` of a tensor as the definition has
            it; `source` and `trailing` of a constant; of each its `element`, its place in a list of tensors.
        results: of each whether it is there, and its `order`.
        fixed: whether no axis may be free.

    Returns:
        `axes`: by name `sizes`, one a call, and `free`. `inputs`: by argument a shape of names and numbers.
        `outputs`: a shape each, or None. `reduction`, `flops`: an expression, or None. `listed`: whether the
        results are a list. Nothing at all where no call can be done on tensors without content.
    """
    form = _Form(operator_values.find_operator(operator), calls, results)
    found, inputs = form.axes(fixed)
    samples = form.samples(found)
    ran = [form.run(shapes) for _, shapes in samples]
    sizes = [sample for sample, _ in samples]
    kept = [(at, one) for at, one in zip(sizes, ran, strict=True) if one is not None]
    if not kept:
        return {}
    sizes = [at for at, _ in kept]

    def told(values: Sequence[int]) -> str | int | None:
        return axes.solve_size(values, sizes)

    return {
        "axes": {name: {"sizes": group["sizes"], "free": group["free"]} for name, group in found.items()},
        "inputs": {str(tensor): shape for tensor, shape in inputs.items()},
        "outputs": _outputs([one["outputs"] for _, one in kept], told),
        "reduction": told([one["length"] for _, one in kept]),
        "flops": told([one["flops"] for _, one in kept]) if all(one["flops"] for _, one in kept) else None,
        "pointwise": form.pointwise,
        "listed": operator_values.returns_tensor_list(form.operator),
    }


def _outputs(calls: list[list[Any]], told: Callable[[Sequence[int]], str | int | None]) -> list[Any]:
    outputs: list[Any] = []
    for results in zip(*calls, strict=True):
        if any(one is None for one in results):
            outputs.append(None)
            continue
        shape = [told(sizes) for sizes in zip(*results, strict=True)]
        outputs.append(shape)
    return outputs


class _Form:
    """Calls of one operator that differ in sizes alone."""

    def __init__(self, operator: Any, calls: list[list[dict[str, Any]]], results: list[Result]) -> None:  # noqa: ANN401
        import torch

        self.operator, self.calls, self.results = operator, calls, results
        self.tensors = [place for place, one in enumerate(calls[0]) if "shape" in one]
        self.pointwise = torch.Tag.pointwise in operator.tags

    def axes(self, fixed: bool) -> tuple[dict[str, dict[str, Any]], dict[int, list[str | int]]]:
        """Axes with their sizes and places, and the shape of each tensor in their names."""
        shapes = {tensor: [call[tensor]["shape"] for call in self.calls] for tensor in self.tensors}
        named: dict[str, dict[str, Any]] = {}
        inputs: dict[int, list[str | int]] = {tensor: list(calls[0]) for tensor, calls in shapes.items()}
        grouped = [
            (sizes, group, free)
            for sizes, places in axes.group_by_sizes(shapes)
            for group, free in axes.split_axes(places, lambda _: False if fixed else self._works(_))
            if free or len(set(sizes)) > 1
        ]
        for sizes, group, free in sorted(grouped, key=lambda one: min(one[1])):
            name = f"d{len(named)}"
            named[name] = {"sizes": list(sizes), "free": free, "places": group}
            for tensor, dimension in group:
                inputs[tensor][dimension] = name
        return named, inputs

    def samples(self, named: Mapping[str, Mapping[str, Any]]) -> list[tuple[dict[str, int], Shapes]]:
        """Every call, and the first with each free axis changed: sizes by axis, and shapes."""
        found = [
            ({name: one["sizes"][place] for name, one in named.items()}, self._shapes(place))
            for place in range(len(self.calls))
        ]
        sizes, shapes = found[0]
        for name, one in named.items():
            for other in axes.DERIVED_SIZES[1:] if one["free"] else ():
                if other != sizes[name]:
                    found.append(({**sizes, name: other}, _changed(shapes, one["places"], other)))
        return found

    def run(self, shapes: Shapes) -> dict[str, Any] | None:
        """What a call with these shapes gives; None: it fails, or gives more or fewer results."""
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.utils.flop_counter import flop_registry

        # Attention as its products: what they add up can be counted.
        with FakeTensorMode(), torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            try:
                args, kwargs = operator_values.split_arguments(self.operator, self._values(shapes))
                with kernelbench_inspection.reduction_lengths() as lengths:
                    result = self.operator(*args, **kwargs)
                count = flop_registry.get(self.operator._overloadpacket)
                flops = int(count(*args, **kwargs, out_val=result)) if count is not None else 0
            except Exception:  # whatever it says of such sizes
                return None
        results = result if isinstance(result, tuple | list) else (result,)
        if len(results) != len(self.results):  # a list, as long as these sizes make it
            return None
        return {
            "outputs": [
                layout.stored_shape(tuple(one.shape), order) if kept else None
                for one, (kept, order) in zip(results, self.results, strict=True)
            ],
            "length": max(1, lengths.total),
            "flops": flops,
        }

    def _works(self, places: Sequence[TensorDimension]) -> bool:
        shapes = self._shapes(0)
        size = shapes[places[0][0]][places[0][1]]
        others = {axes.other_size(size), *axes.DERIVED_SIZES}
        return all(self.run(_changed(shapes, places, other)) is not None for other in others)

    def _shapes(self, call: int) -> Shapes:
        return {tensor: list(self.calls[call][tensor]["shape"]) for tensor in self.tensors}

    def _values(self, shapes: Shapes) -> list[Any]:
        import torch

        first, values = None, []
        for place, one in enumerate(self.calls[0]):
            if place in shapes:
                value: Any = torch.empty(shapes[place], dtype=getattr(torch, one["dtype"]), device=one["device"])
                value = value.permute(one["order"]) if one["order"] else value
                first = value if first is None else first
            elif one["trailing"]:
                assert first is not None
                value = list(first.shape[-one["trailing"] :])
            else:
                value = eval(one["source"], {"torch": torch, "nan": float("nan"), "inf": float("inf")})
            values.append(value)
        return operator_values.rebuild_lists([one["element"] for one in self.calls[0]], values)


def _changed(shapes: Shapes, places: Sequence[TensorDimension], size: int) -> Shapes:
    changed = {tensor: list(shape) for tensor, shape in shapes.items()}
    for tensor, dimension in places:
        changed[tensor][dimension] = size
    return changed

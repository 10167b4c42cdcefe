"""Source of a region's reference: PyTorch's operators, one call a line."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.program.compiled.region_graph import RegionGraph, RegionNode, map_argument
from warpsmith.program.operators import layout

_WIDE = "float32"
_CONVERSION = "prims.convert_element_type.default"

Order = Sequence[int] | None


class RegionSource:
    """The reference of a region, as source text."""

    def __init__(
        self,
        region: RegionGraph,
        names: Sequence[str],
        orders: Sequence[Order],
        result_orders: Sequence[Order],
        dtype: str,
    ) -> None:
        """Prepare the source.

        Args:
            region: the region.
            names: parameter of each input.
            orders: permutation from the definition's tensor to the region's, for each input.
            result_orders: permutation from the definition's output to the region's, for each output.
            dtype: the workload's data type.
        """
        self._region, self._names, self._orders, self._result_orders = region, names, orders, result_orders
        self._dtype = dtype
        typed = [name for name, tensor in zip(names, region.inputs, strict=True) if tensor.dtype == dtype]
        self._typed = typed[0] if typed else None
        self._variables = self._name_variables()

    def body(self, axes: Mapping[str, str], sizes: Callable[[int, int], str]) -> str:
        """Return the body of `reference`.

        Args:
            axes: the source of each axis, such as `x.shape[0]`; those that are not used are left out.
            sizes: returns the source of the size of a node's result along a dimension.
        """
        calls = [self._assignment(index, sizes) for index in range(len(self._region.nodes))]
        text = "\n".join(calls)
        used = {name: source for name, source in axes.items() if _mentions(text, name)}
        spaces = [space for space in ("aten", "prims") if _mentions(text, space)]
        lines = [f"{', '.join(spaces)} = {', '.join(f'torch.ops.{space}' for space in spaces)}"] if spaces else []
        if used:
            lines.append(f"{', '.join(used)} = {', '.join(used.values())}")
        lines += [
            f"{name} = {name}.permute({tuple(order)})"
            for name, order in zip(self._names, self._orders, strict=True)
            if order is not None
        ]
        results = [
            self._variables[index] + ("" if order is None else f".permute({tuple(layout.inverse_order(order))})")
            for index, order in zip(self._region.outputs, self._result_orders, strict=True)
        ]
        return "\n".join(f"    {line}" for line in (*lines, *calls, f"return {', '.join(results)}"))

    def function(self, axes: Mapping[str, str], sizes: Callable[[int, int], str]) -> Callable[..., Any]:
        """Return the reference itself, compiled from its source."""
        import torch

        text = f"def reference({', '.join(self._names)}):\n{self.body(axes, sizes)}\n"
        names: dict[str, Any] = {"torch": torch}
        exec(compile(text, f"<region {self._region.digest}>", "exec"), names)
        function: Callable[..., Any] = names["reference"]
        return function

    def _name_variables(self) -> list[str]:
        used_names = {*self._names, "aten", "prims", "torch"}
        variables: list[str] = []
        for node in self._region.nodes:
            base = node.target.split(".")[1] if "." in node.target else "part"
            base = base.strip("_").lower() or "value"
            base = f"{base}_" if keyword.iskeyword(base) or _is_axis(base) else base
            name = next(name for name in (base, *(f"{base}{n}" for n in range(2, 1000))) if name not in used_names)
            used_names.add(name)
            variables.append(name)
        return variables

    def _assignment(self, index: int, sizes: Callable[[int, int], str]) -> str:
        node = self._region.nodes[index]

        def source(value: Any) -> str:  # noqa: ANN401
            changed = map_argument(value, lambda item: _Text(self._object_source(item, index, node, sizes)))
            return _literal(changed)

        args = [source(value) for value in node.args]
        if node.target == "getitem":
            return f"{self._variables[index]} = {args[0]}[{args[1]}]"
        if node.target == _CONVERSION:
            return f"{self._variables[index]} = {args[0]}.to({args[1]})"
        words = [*args, *(f"{name}={source(value)}" for name, value in node.kwargs.items())]
        return f"{self._variables[index]} = {node.target}({', '.join(words)})"

    def _object_source(
        self, item: Mapping[str, Any], index: int, node: RegionNode, sizes: Callable[[int, int], str]
    ) -> str:
        ((kind, value),) = item.items()
        if kind == "input":
            return self._names[int(value)]
        if kind == "node":
            return self._variables[int(value)]
        if kind == "sizes":
            rank = len(node.result.shape) if node.result else 0
            return f"[{', '.join(sizes(index, dimension) for dimension in range(rank))}]"
        if kind == "length":
            return sizes(index, 0)
        if kind == "device":
            return f"{self._names[0]}.device"
        if kind == "float":
            return f'float("{value}")'
        return self._dtype_source(value) if kind == "dtype" else f"torch.{value}"

    def _dtype_source(self, dtype: str) -> str:
        """Return the source of a data type, which in a run in float64 is no narrower."""
        if self._typed is None or not is_floating(dtype):
            return f"torch.{dtype}"
        if dtype == self._dtype:
            return f"{self._typed}.dtype"
        if dtype == _WIDE:
            return f"torch.promote_types({self._typed}.dtype, torch.float32)"
        return f"torch.{dtype}"


class _Text(str):
    """Source that stands in an argument as it is."""

    __slots__ = ()


def _literal(value: Any) -> str:  # noqa: ANN401 - an argument
    if isinstance(value, _Text):
        return str(value)
    return f"[{', '.join(map(_literal, value))}]" if isinstance(value, list | tuple) else repr(value)


def _is_axis(name: str) -> bool:
    return name[:1] == "d" and name[1:].isdecimal()


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None

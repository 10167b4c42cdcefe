"""Arguments of an operator, by its definition: whether they are like those that versions are judged at."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec
from warpsmith.core.expression import evaluate
from warpsmith.errors import BadDefinition

if TYPE_CHECKING:
    import torch

Number = float | int | bool


class _AffineSize(NamedTuple):
    """A size as arithmetic over one axis: `factor * axis + more`."""

    name: str
    factor: int = 1
    more: int = 0

    def size(self, axis: int) -> int:
        """The size where the axis is so long."""
        return self.factor * axis + self.more

    def read(self, size: int) -> int:
        """How long the axis is where the size is this one."""
        return (size - self.more) // self.factor


class _ExpectedTensor(NamedTuple):
    """What is expected of one tensor."""

    at: int
    """Its place among the arguments."""
    name: str
    dtype: torch.dtype | None
    """None: the workload's."""
    sizes: tuple[_AffineSize | int | None, ...]
    """None: arithmetic that no one axis solves."""
    contiguous: bool


class Arguments:
    """The parameters of a definition, asked about at every call: tensors of sizes, types and places."""

    def __init__(self, definition: Definition, device: str) -> None:
        """`device`: `cpu` or `cuda`."""
        import torch

        def named(dtype: str) -> torch.dtype | None:
            return None if dtype == "workload" else getattr(torch, dtype)

        specs = tuple(definition.inputs.items())
        self._op, self._names = definition.name, tuple(definition.inputs)
        self._defaults: dict[str, Number] = {name: spec.value for name, spec in definition.scalar_inputs.items()}
        self._device = device
        self._dtypes = frozenset(getattr(torch, workload.dtype) for workload in definition.workloads)
        self._fixed = {name: size for name, size in definition.axes.items() if isinstance(size, int)}
        changing = {axis for workload in definition.workloads for axis in workload.axes}
        self._pinned = {name: size for name, size in self._fixed.items() if name not in changing}
        self._tensors = tuple(
            _ExpectedTensor(index, name, named(spec.dtype), self._sized(spec.shape), spec.layout == "contiguous")
            for index, (name, spec) in enumerate(specs)
            if isinstance(spec, TensorSpec)
        )
        self._integers = tuple(
            (index, axis)
            for index, (name, spec) in enumerate(specs)
            if isinstance(spec, ScalarSpec) and spec.type == "int" and (axis := _axis_of_integer(definition, name))
        )
        self._outputs = tuple((spec.shape, named(spec.dtype)) for spec in definition.outputs.values())

    def check(self) -> None:
        """Whether the results can be allocated.

        Raises:
            BadDefinition: the size or the type of one cannot be told from the inputs.
        """
        try:
            self._shapes(*range(1, len(self._places) + 1))
        except ValueError as error:
            raise BadDefinition(f"{self._op}: the size of an output is in no input: {error}.") from error
        if any(dtype is None for _, dtype in self._outputs) and all(t.dtype is not None for t in self._tensors):
            raise BadDefinition(f"{self._op}: an output has the workload's dtype, but no input has.")

    def bound(self, given: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in order, scalars that are left out at the definition's value.

        Raises:
            TypeError: one is missing, unknown or too many.
        """
        values = list(given)
        for name in self._names[len(values) :]:
            if name not in named and name not in self._defaults:
                raise TypeError(f"missing the argument `{name}`")
            values.append(named.pop(name) if name in named else self._defaults[name])
        if named or len(values) > len(self._names):
            raise TypeError(f"takes the arguments {', '.join(self._names)}")
        return tuple(values)

    def unlike(self, arguments: Sequence[Any]) -> str:
        """What sets these arguments apart from those that versions are judged at; empty: nothing."""
        sizes: dict[str, int] = dict(self._pinned)
        shared = None
        for index, name, dtype, expected, _ in self._tensors:
            tensor = arguments[index]
            if tensor.device.type != self._device:
                return f"`{name}` is on {tensor.device.type}, not {self._device}"
            if dtype is None:
                shared = shared or tensor.dtype
                dtype = shared if shared in self._dtypes else None
            if tensor.dtype != dtype:
                return f"`{name}` is {tensor.dtype}"
            if tensor.dim() != len(expected):
                return f"`{name}` has {tensor.dim()} axes, not {len(expected)}"
            for size, axis in zip(tensor.shape, expected, strict=True):
                if axis is None:
                    continue
                if size == 0:
                    return f"`{name}` is empty"
                if not isinstance(axis, int):
                    known = (
                        axis.factor * sizes.setdefault(axis.name, (size - axis.more) // axis.factor) + axis.more
                    )
                else:
                    known = axis
                if known != size:
                    return f"`{name}` has {size} elements along an axis that must have {known}"
        return ""

    def undefined_gradient(self, arguments: Sequence[Any]) -> str:
        """That PyTorch would record a gradient of a call, where the definition gives none; empty: it would not."""
        import torch

        if not torch.is_grad_enabled() or not any(arguments[tensor.at].requires_grad for tensor in self._tensors):
            return ""
        return "a gradient is asked for, and the definition has no `backward`"

    def contiguous(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments as versions take them: copies of strided tensors where the layout is not free."""
        values = list(arguments)
        for tensor in self._tensors:
            if tensor.contiguous:
                values[tensor.at] = values[tensor.at].contiguous()
        return values

    def device_of(self, arguments: Sequence[Any]) -> AbstractContextManager[object]:
        """While it is entered, kernels are launched on the GPU that the arguments are on."""
        if self._device == "cpu":
            return nullcontext()
        import torch

        return torch.cuda.device_of(arguments[self._tensors[0].at])  # type: ignore[no-untyped-call]

    def allocate(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """Tensors that the results fit in, uninitialised; of symbolic sizes where the arguments' are."""
        sizes = self._sizes(arguments)
        symbolic = any(not isinstance(size, int) for size in sizes)
        shapes = self._shapes.__wrapped__(self, *sizes) if symbolic else self._shapes(*sizes)
        like = arguments[self._tensors[0].at]
        shared = next((arguments[t.at].dtype for t in self._tensors if t.dtype is None), None)
        return [like.new_empty(shape, dtype=dtype or shared)
                for shape, (_, dtype) in zip(shapes, self._outputs, strict=True)]  # fmt: skip

    @functools.lru_cache(maxsize=256)  # noqa: B019 - an operator lives as long as the process
    def _shapes(self, *sizes: int) -> list[tuple[int, ...]]:
        axes = {**self._fixed, **dict(zip(self._places, sizes, strict=True))}
        return [
            tuple(n if isinstance(n, int) else _as_integer(evaluate(n, axes)) for n in shape)
            for shape, _ in self._outputs
        ]

    @functools.cached_property
    def _places(self) -> dict[str, tuple[int, int | None, _AffineSize]]:
        """Where the size of an axis is read: argument and dimension, or an integer alone."""
        found: dict[str, tuple[int, int | None, _AffineSize]] = {}
        for tensor in self._tensors:
            for dimension, axis in enumerate(tensor.sizes):
                if isinstance(axis, _AffineSize):
                    found.setdefault(axis.name, (tensor.at, dimension, axis))
        for index, name in self._integers:
            found.setdefault(name, (index, None, _AffineSize(name)))
        return found

    def _sizes(self, arguments: Sequence[Any]) -> list[int]:
        return [
            arguments[index]
            if dimension is None
            else (arguments[index].shape[dimension] - axis.more) // axis.factor
            for index, dimension, axis in self._places.values()
        ]

    def _sized(self, shape: Sequence[str | int]) -> tuple[_AffineSize | int | None, ...]:
        return tuple(size if isinstance(size, int) else self._solved(size) for size in shape)

    def _solved(self, text: str) -> _AffineSize | None:
        """Arithmetic over one axis that grows with it, by what it is at three places."""
        free = sorted(set(re.findall(r"[A-Za-z_]\w*", text)) - set(self._fixed))
        if len(free) != 1:
            return None
        more, once, twice = (evaluate(text, {**self._fixed, free[0]: at}) for at in (0, 1, 2))
        factor = once - more
        straight = (
            twice - once == factor and factor >= 1 and float(factor).is_integer() and float(more).is_integer()
        )
        return _AffineSize(free[0], int(factor), int(more)) if straight else None


def _axis_of_integer(definition: Definition, name: str) -> str | None:
    """The axis whose size an integer input is: of its name, or the one that it equals at workloads that differ."""
    if name in definition.axes:
        return name
    held = [definition.scalars(workload)[name] for workload in definition.workloads]
    sizes = [definition.sizes(workload) for workload in definition.workloads]
    same = (axis for axis in definition.axes if held == [size[axis] for size in sizes])
    return next(same, None) if len(set(held)) > 1 else None


def _as_integer(size: Any) -> int:  # noqa: ANN401 - a number, or a symbol that stands for one
    """A size as an integer; a symbol stays one."""
    import torch

    found: int = torch.sym_int(size)  # type: ignore[no-untyped-call]
    return found

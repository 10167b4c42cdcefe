"""Arguments of an operator, checked against its definition and the workloads that versions are judged on."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec
from warpsmith.errors import BadDefinition

if TYPE_CHECKING:
    import torch

Number = float | int | bool


_LARGEST_DIVISOR = 1 << 16

_ALIGNMENT = 64
"""Bytes that PyTorch aligns new tensors to at least; the gate's contiguous inputs are aligned to more."""


class _AffineSize(NamedTuple):
    """Size as arithmetic over one axis: `factor * axis + offset`."""

    name: str
    factor: int = 1
    offset: int = 0

    def size(self, axis: int) -> int:
        """Return the size for an axis of this length."""
        return self.factor * axis + self.offset

    def read(self, size: int) -> int:
        """Return the length of the axis for this size."""
        return (size - self.offset) // self.factor


class _SharedSize(NamedTuple):
    """Size as a product of several axes, such as `kv * group`: it shows one of them once the others are known.

    It multiplies integers only. Dynamo traces that; where it had to parse the text, it would break the graph.
    """

    text: str
    names: tuple[str, ...]
    factor: int = 1
    divisor: int = 1
    """The size is `factor / divisor` times the product of the axes."""

    def size(self, axes: Mapping[str, int]) -> int:
        """Return the size for axes of these lengths."""
        size = self.factor
        for name in self.names:
            size = size * axes[name]
        return size // self.divisor

    def read(self, name: str, size: int, axes: Mapping[str, int]) -> int:
        """Return the length of one axis for this size, given the others'."""
        return size * self.divisor // self.size({**axes, name: self.divisor})


class _ExpectedTensor(NamedTuple):
    """Expected properties of one tensor."""

    position: int
    """Index among the arguments."""
    name: str
    dtype: torch.dtype | None
    """Data type; None for the workload's."""
    sizes: tuple[_AffineSize | _SharedSize | int | None, ...]
    """Sizes; None for arithmetic that is neither affine in one axis nor a product of several."""
    contiguous: bool


class Arguments:
    """Parameters of a definition, which every call is checked against: sizes, types and devices of tensors."""

    def __init__(self, definition: Definition, device: str, *, own_inputs: bool = False) -> None:
        """Prepare the checks for `device`, `cpu` or `cuda`.

        Where a definition has `own_inputs`, the lab varies no numbers, and none is checked.
        """
        import torch

        def torch_dtype(dtype: str) -> torch.dtype | None:
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
            _ExpectedTensor(
                index, name, torch_dtype(spec.dtype), self._expected_sizes(spec.shape), spec.layout == "contiguous"
            )
            for index, (name, spec) in enumerate(specs)
            if isinstance(spec, TensorSpec)
        )
        self._has_shared_sizes = any(isinstance(size, _SharedSize) for t in self._tensors for size in t.sizes)
        self._integers = tuple(
            (index, axis)
            for index, (name, spec) in enumerate(specs)
            if isinstance(spec, ScalarSpec) and spec.type == "int" and (axis := _axis_of_integer(definition, name))
        )
        sizes = {index for index, _ in self._integers}
        self._ranges = tuple(
            (index, name, *definition.scalar_range(name))
            for index, (name, spec) in enumerate(specs)
            if isinstance(spec, ScalarSpec) and spec.type != "bool" and index not in sizes and not own_inputs
        )
        self._outputs = tuple((spec.shape, torch_dtype(spec.dtype)) for spec in definition.outputs.values())

    def check(self) -> None:
        """Check that the results can be allocated.

        Raises:
            BadDefinition: the size or the type of a result cannot be derived from the inputs.
        """
        try:
            self._shapes(*range(1, len(self._size_sources) + 1))
        except ValueError as error:
            raise BadDefinition(f"{self._op}: no input determines the size of an output: {error}.") from error
        if any(dtype is None for _, dtype in self._outputs) and all(t.dtype is not None for t in self._tensors):
            raise BadDefinition(f"{self._op}: an output has the workload's dtype, but no input does.")

    def bind(self, positional: Sequence[Any], by_keyword: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments in order; omitted scalars have the definition's value.

        Raises:
            TypeError: one is missing, unknown or superfluous.
        """
        values = list(positional)
        for name in self._names[len(values) :]:
            if name not in by_keyword and name not in self._defaults:
                raise TypeError(f"missing the argument `{name}`")
            values.append(by_keyword.pop(name) if name in by_keyword else self._defaults[name])
        if by_keyword or len(values) > len(self._names):
            raise TypeError(f"takes the arguments {', '.join(self._names)}")
        return tuple(values)

    def describe_mismatch(self, arguments: Sequence[Any]) -> str:
        """Describe how these arguments differ from those that versions are judged on; empty if they do not."""
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
                if isinstance(axis, _SharedSize):
                    continue
                if not isinstance(axis, int):
                    expected_size = (
                        axis.factor * sizes.setdefault(axis.name, (size - axis.offset) // axis.factor)
                        + axis.offset
                    )
                else:
                    expected_size = axis
                if expected_size != size:
                    return f"`{name}` has {size} elements along an axis that must have {expected_size}"
        if self._has_shared_sizes and (mismatch := self._describe_shared_sizes(arguments)):
            return mismatch
        for index, name, least, most in self._ranges:
            if not least <= arguments[index] <= most:
                return f"`{name}` is {arguments[index]}, judged from {least:g} to {most:g}"
        return ""

    def _describe_shared_sizes(self, arguments: Sequence[Any]) -> str:
        """Describe a size that is no product of its axes; empty if each is."""
        axes = {**self._fixed, **self.sizes_by_axis(arguments)}
        for tensor in self._tensors:
            for size, axis in zip(arguments[tensor.position].shape, tensor.sizes, strict=True):
                if not isinstance(axis, _SharedSize) or any(name not in axes for name in axis.names):
                    continue
                if axis.size(axes) != size:
                    return f"`{tensor.name}` has {size} elements along an axis that must have {axis.text}"
        return ""

    def undefined_gradient(self, arguments: Sequence[Any]) -> str:
        """Return why a gradient is undefined: PyTorch would record one, and the definition gives none; else an
        empty string."""
        import torch

        if not torch.is_grad_enabled() or not any(
            arguments[tensor.position].requires_grad for tensor in self._tensors
        ):
            return ""
        return "a gradient is requested, but the definition has no `backward`"

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes whose sizes the arguments of a call show."""
        return tuple(self._size_sources)

    @property
    def shaped_positions(self) -> tuple[int, ...]:
        """Positions of the tensors whose shapes give the sizes of the axes."""
        sources = self._size_sources.values()
        return tuple(dict.fromkeys(index for index, dimension, _ in sources if dimension is not None))

    @property
    def typed_position(self) -> int | None:
        """Position of the first tensor that has the workload's type; None if none has."""
        return next((tensor.position for tensor in self._tensors if tensor.dtype is None), None)

    def sizes_by_axis(self, arguments: Sequence[Any]) -> dict[str, int]:
        """Return the size of each of `axes` in a call."""
        return dict(zip(self._size_sources, self._sizes(arguments), strict=True))

    def make_contiguous(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments as versions take them: where the layout is not free, strided tensors are copied,
        and so are parts of tensors that begin where no version was judged."""
        values = list(arguments)
        for tensor in self._tensors:
            if tensor.contiguous:
                value = values[tensor.position].contiguous()
                values[tensor.position] = value.clone() if value.data_ptr() % _ALIGNMENT else value
        return values

    def device_of(self, arguments: Sequence[Any]) -> AbstractContextManager[object]:
        """Return a context in which kernels are launched on the GPU of the arguments."""
        if self._device == "cpu":
            return nullcontext()
        import torch

        return torch.cuda.device_of(arguments[self._tensors[0].position])  # type: ignore[no-untyped-call]

    def allocate(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """Allocate uninitialized tensors for the results; their sizes are symbolic if the arguments' sizes are."""
        sizes = self._sizes(arguments)
        symbolic = any(not isinstance(size, int) for size in sizes)
        shapes = self._shapes.__wrapped__(self, *sizes) if symbolic else self._shapes(*sizes)
        like = arguments[self._tensors[0].position]
        shared = next((arguments[t.position].dtype for t in self._tensors if t.dtype is None), None)
        return [like.new_empty(shape, dtype=dtype or shared)
                for shape, (_, dtype) in zip(shapes, self._outputs, strict=True)]  # fmt: skip

    @functools.lru_cache(maxsize=256)  # noqa: B019 - an operator exists as long as the process
    def _shapes(self, *sizes: int) -> list[tuple[int, ...]]:
        axes = {**self._fixed, **dict(zip(self._size_sources, sizes, strict=True))}
        return [
            tuple(n if isinstance(n, int) else _as_integer(evaluate(n, axes)) for n in shape)
            for shape, _ in self._outputs
        ]

    @functools.cached_property
    def _size_sources(self) -> dict[str, tuple[int, int | None, _AffineSize | _SharedSize]]:
        """Map each axis to the source of its size: argument and dimension, or an integer argument alone. A source
        that needs other axes comes after theirs."""
        sources: dict[str, tuple[int, int | None, _AffineSize | _SharedSize]] = {}
        for tensor in self._tensors:
            for dimension, axis in enumerate(tensor.sizes):
                if isinstance(axis, _AffineSize):
                    sources.setdefault(axis.name, (tensor.position, dimension, axis))
        for index, name in self._integers:
            sources.setdefault(name, (index, None, _AffineSize(name)))
        for tensor in self._tensors:
            for dimension, axis in enumerate(tensor.sizes):
                if isinstance(axis, _SharedSize):
                    missing = [name for name in axis.names if name not in sources]
                    if len(missing) == 1:
                        sources[missing[0]] = (tensor.position, dimension, axis)
        return sources

    def _sizes(self, arguments: Sequence[Any]) -> list[int]:
        sizes = dict(self._fixed)
        for name, (index, dimension, axis) in self._size_sources.items():
            size = arguments[index] if dimension is None else arguments[index].shape[dimension]
            sizes[name] = axis.read(size) if isinstance(axis, _AffineSize) else axis.read(name, size, sizes)
        return [sizes[name] for name in self._size_sources]

    def _expected_sizes(self, shape: Sequence[str | int]) -> tuple[_AffineSize | _SharedSize | int | None, ...]:
        return tuple(
            size if isinstance(size, int) else self._solve_affine(size) or self._solve_product(size)
            for size in shape
        )

    def _solve_product(self, text: str) -> _SharedSize | None:
        """Return arithmetic over several axes that grows in proportion to each; None if it does not."""
        names = tuple(sorted(set(re.findall(r"[A-Za-z_]\w*", text)) - set(self._fixed)))
        if len(names) < 2:
            return None
        once = {name: number for number, name in enumerate(names, 2)}
        size = evaluate(text, {**self._fixed, **once})
        in_proportion = all(
            evaluate(text, {**self._fixed, **once, name: factor * once[name]}) == factor * size
            for name in names
            for factor in (0, 2, 3)
        )
        share = (Fraction(size) / math.prod(once.values())).limit_denominator(_LARGEST_DIVISOR)
        return _SharedSize(text, names, *share.as_integer_ratio()) if in_proportion and size > 0 else None

    def _solve_affine(self, text: str) -> _AffineSize | None:
        """Solve arithmetic over one axis that grows with it, by evaluating it at three values."""
        names = sorted(set(re.findall(r"[A-Za-z_]\w*", text)) - set(self._fixed))
        if len(names) != 1:
            return None
        at_zero, at_one, at_two = (evaluate(text, {**self._fixed, names[0]: at}) for at in (0, 1, 2))
        factor = at_one - at_zero
        is_affine = (
            at_two - at_one == factor
            and factor >= 1
            and float(factor).is_integer()
            and float(at_zero).is_integer()
        )
        return _AffineSize(names[0], int(factor), int(at_zero)) if is_affine else None


def _axis_of_integer(definition: Definition, name: str) -> str | None:
    """Return the axis whose size an integer input holds: the one with its name, or the one that equals it at all
    workloads.

    The second rule needs workloads with different values.
    """
    if name in definition.size_inputs:
        return name
    values = [definition.scalars(workload)[name] for workload in definition.workloads]
    sizes = [definition.sizes(workload) for workload in definition.workloads]
    equal_axes = (axis for axis in definition.axes if values == [size[axis] for size in sizes])
    return next(equal_axes, None) if len(set(values)) > 1 else None


def _as_integer(size: Any) -> int:  # noqa: ANN401 - a number, or a symbol that stands for one
    """Return a size as an integer; a symbol stays a symbol."""
    import torch

    integer: int = torch.sym_int(size)  # type: ignore[no-untyped-call]
    return integer

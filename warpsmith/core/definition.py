"""Definition and Workload: the function of an operator, and the points at which it is judged."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.comparison import holds, select_comparisons
from warpsmith.core.arithmetic.dtype import DTYPES, is_floating, shorten_dtype_names
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.base import Model, Name

WorkloadSet = Literal["representative", "full", "odd"]
"""`representative` is judged in every round, `full` at the baseline and at the end, `odd` only for correctness."""


SHAPE_CLASSES = (
    "near", "edge", "tiny", "skewed", "square", "round", "ragged", "kept", "long", "middle", "larger", "far",
    "guided",
)  # fmt: skip
"""Classes of the shapes that the lab draws. The names of their workloads begin with them, and no declared ones."""

DECLARED = "declared"
"""Class of all other shapes."""

DEPENDENT_INTEGERS = ("offsets", "distinct")
"""Distributions of integers whose values fit each other: cut points that ascend, and ids that differ."""


class TensorSpec(Model):
    """A tensor parameter or result of an operator."""

    shape: tuple[str | int, ...]
    """Axis names, arithmetic over them, or numbers, outermost first; `()` is a scalar tensor."""
    dtype: str = "workload"
    """Name of a PyTorch data type, or `workload` for the workload's type."""
    distribution: str = "workload"
    """Distribution of its input values, or `workload` for the workload's distribution. Ignored for outputs."""
    role: Literal["activation", "weight"] = "activation"
    """`weight`: it changes once a training step, so results computed
    from it may be cached until then. Ignored for outputs."""
    layout: Literal["contiguous", "any"] = "contiguous"
    """`any`: callers may pass strided, transposed and misaligned
    tensors, and odd shapes are also judged with such tensors.
    Outputs are always contiguous.
    """
    shard_axis: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Axis of the shape that the ranks share out in equal parts, rank 0 the first; null: each rank has, or
    returns, all of it."""
    description: str = ""
    """Meaning of the tensor."""

    @property
    def fits_together(self) -> bool:
        """True for values of which no single one may change."""
        return self.distribution.startswith(DEPENDENT_INTEGERS)

    @model_validator(mode="after")
    def _check_dtype(self) -> Self:
        if self.dtype != "workload" and self.dtype not in DTYPES:
            raise ValueError(f"unknown dtype `{self.dtype}`; known: {', '.join(DTYPES)}")
        return self


class ScalarSpec(Model):
    """A number that every call of the operator receives."""

    type: Literal["float", "int", "bool"] = "float"
    """Python type of the number."""
    value: float | int | bool
    """Value for workloads that do not give one. An integer with the name of an axis is the axis's size."""
    between: tuple[float, float] | None = None
    """Least and largest value that callers pass. By default a number below 1 stays there, another one stays
    within a factor of 16, none changes its sign, and an integer stays among those of the workloads."""
    description: str = ""
    """Meaning of the number."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.between is not None and not self.between[0] <= self.value <= self.between[1]:
            raise ValueError(f"the value {self.value} is not between {self.between[0]} and {self.between[1]}")
        return self


class Tolerance(Model):
    """Allowed error of an output against the float64 reference, from error analysis.

    The bound of an element is `slack * |ref| * (u_out + u_acc * (16 + sqrt(n)/2 + extra))` plus the smallest
    result that counts, with `u` the unit roundoffs and `n` the reduction length. If terms of the operator
    cancel, the definition's `magnitude(inputs)` replaces `|ref|` in the `u_acc` term. For inputs
    that are similar or ordered, whose rounding errors need not cancel, `n` replaces `sqrt(n)`.
    """

    reduction: str = "1"
    """Reduction length `n` as arithmetic over axes: `cols` for a row reduction, `k` for a product."""
    accumulate: str = "float32"
    """Least precise type in which an honest implementation may accumulate."""
    slack: float = Field(default=gate_rules.DEFAULT_SLACK, ge=1.0, le=16.0)
    """Factor on the bound."""
    required_match: float = Field(default=1.0, gt=0.9, le=1.0)
    """Smallest share of elements that must be within the bound; NaN and infinities must be right in all."""


class Workload(Model):
    """One concrete point of a definition: sizes, data type and input distribution."""

    name: str = Field(min_length=1, max_length=80)
    """Name, unique in the definition: `4096x4096-fp32`."""
    axes: dict[str, Annotated[int, Field(ge=0)]]
    """Size of every axis."""
    dtype: str = "float32"
    """Data type of the tensors whose spec says `workload`."""
    distribution: str = "normal"
    """Distribution of the inputs: a generator of the lab, or one from the definition."""
    scalars: dict[str, float | int | bool] = {}
    """Values that replace those of the scalar specs."""
    set: WorkloadSet = "representative"
    """Set of the workload, which decides when it is judged."""
    weight: Annotated[int, Field(ge=1)] | None = None
    """Number of calls in the trace that the workload was captured from; null if nobody counted them. Means
    weigh the workloads by calls and time once each has one."""

    @property
    def timed(self) -> bool:
        """True if it is timed; `odd` workloads are only for correctness."""
        return self.set != "odd"


def shape_class(name: str) -> str:
    """Return the class of a drawn shape by the name of its workload, and `DECLARED` for any other name."""
    return next((kind for kind in SHAPE_CLASSES if name.startswith(f"{kind}-")), DECLARED)


def calls_by_workload(workloads: Iterable[Workload]) -> dict[str, int]:
    """Return each workload's calls in the captured trace, by name; empty unless all were counted."""
    counts = {workload.name: workload.weight for workload in workloads}
    calls = {name: count for name, count in counts.items() if count is not None}
    return calls if len(calls) == len(counts) else {}


class Definition(Model):
    """An operator: its parameters, results, work and workloads. Its reference is code next to it."""

    name: Name
    """Name of the operator, and of its folder under `kernels/`."""
    description: str
    """Description of the function in one sentence."""
    op_type: str = "other"
    """Family, by its name in FlashInfer-Trace: `norm`, `gemm`, `softmax`, ..."""
    axes: dict[str, str | int]
    """Meaning of a variable axis or size of a fixed axis, by name."""
    inputs: dict[str, TensorSpec | ScalarSpec]
    """Parameters in the order of `run`."""
    outputs: dict[str, TensorSpec]
    """Results in the order in which `run` returns them, or takes them after the inputs."""
    outputs_are: Literal["returned", "given"] = "returned"
    """`returned`: every side allocates its results inside the timed call. `given`: `run` writes into
    tensors that the lab allocated.
    """
    ranks: int = Field(default=1, ge=1, le=64, exclude_if=lambda value: value == 1)
    """Number of processes that compute it together, each with its own part of tensors with a `shard_axis`."""
    drawn_along: str | None = None
    """Axis along which the file's own `inputs` draws independently. Inputs for many calls are then one draw with a
    longer axis, cut into parts; inputs without this axis are the same in all parts.
    """
    deterministic: bool = False
    """True if two calls on the same inputs must agree bitwise; otherwise they must agree within the bound."""
    batch_invariant: str | None = None
    """Axis along which no row may influence another one: its bits depend neither on the length of the axis, nor on
    its position or its neighbours. Serving needs it where results must not depend on who else is served. Outputs
    without the axis are about the whole batch."""
    tolerance: Tolerance | dict[str, Tolerance] = Tolerance()
    """One tolerance for all outputs, or one by output name."""
    flops: str
    """Algorithmic floating-point operations, as arithmetic over axes."""
    bytes_read: str | None = None
    """Algorithmic bytes read, as arithmetic over axes; default: every input once."""
    bytes_written: str | None = None
    """Algorithmic bytes written; default: every output once."""
    workloads: tuple[Workload, ...]
    """Points at which it is judged; at least one is `representative`."""
    constraints: tuple[str, ...] = ()
    """Promises of callers, in words. An axis that one names or describes gets no drawn sizes. None does if one
    is about other sizes. One that compares sizes alone, such as `k % 128 == 0`, is held by drawn sizes.
    `label == ignore_index` says that an input may hold a number of the call."""
    tags: tuple[str, ...] = ()
    """Free labels, preserved in conversions to and from FlashInfer-Trace."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [workload.name for workload in self.workloads]
        if len(set(names)) != len(names):
            raise ValueError("two workloads share a name")
        for name in names:
            if (kind := shape_class(name)) != DECLARED:
                raise ValueError(f"workload `{name}`: shapes that the lab draws begin with `{kind}-`; rename it")
        if not any(workload.set == "representative" for workload in self.workloads):
            raise ValueError("no workload has the set `representative`")
        if not self.outputs:
            raise ValueError("no outputs")
        if self.drawn_along is not None and self.drawn_along not in self.axes:
            raise ValueError(f"drawn_along: `{self.drawn_along}` is not an axis")
        if (batch := self.batch_invariant) is not None:
            shapes = [spec.shape for spec in self.outputs.values()]
            if batch not in self.axes or not any(batch in shape for shape in shapes):
                raise ValueError(f"batch_invariant: `{batch}` is not an axis of an output")
        if self.ranks > 1 and self.outputs_are == "given":
            raise ValueError("outputs_are: ranks return their outputs; set it to `returned`")
        for workload in self.workloads:
            axes = self.sizes(workload)
            for name, spec in (*self.tensor_inputs.items(), *self.outputs.items()):
                self._check_shard(name, spec, workload)
                if spec.dtype == "workload" and workload.dtype not in DTYPES:
                    raise ValueError(f"workload `{workload.name}` has no dtype for `{name}`")
            for text in filter(None, (self.flops, self.bytes_read, self.bytes_written)):
                evaluate(text, axes)
            for tolerance in self._tolerances():
                evaluate(tolerance.reduction, axes)
            if broken := [text for text in self.compared_sizes if not holds(text, axes)]:
                raise ValueError(f"workload `{workload.name}`: the promise `{broken[0]}` does not hold")
            unknown = sorted(set(workload.scalars) - set(self.scalar_inputs))
            if unknown:
                raise ValueError(f"workload `{workload.name}`: scalars {unknown} are not inputs")
            for name in workload.scalars.keys() & self.size_inputs:
                if workload.scalars[name] != axes[name]:
                    raise ValueError(f"workload `{workload.name}`: `{name}` is the size of an axis, {axes[name]}")
        return self

    def _check_shard(self, name: str, spec: TensorSpec, workload: Workload) -> None:
        shape, axis = self.shape(spec, workload), spec.shard_axis
        if axis is None:
            return
        if self.ranks == 1 or axis not in spec.shape or axis not in self.axes:
            raise ValueError(f"shard_axis of `{name}`: `{axis}` must be an axis of its shape, and `ranks` above 1")
        if (size := shape[spec.shape.index(axis)]) % self.ranks:
            raise ValueError(
                f"workload `{workload.name}`: {self.ranks} ranks cannot share out {axis}={size} evenly"
            )

    def _tolerances(self) -> list[Tolerance]:
        if isinstance(self.tolerance, Tolerance):
            return [self.tolerance]
        wrong = set(self.outputs) ^ set(self.tolerance)
        if wrong:
            raise ValueError(f"tolerances and outputs differ in {', '.join(sorted(wrong))}")
        return list(self.tolerance.values())

    @property
    def tensor_inputs(self) -> dict[str, TensorSpec]:
        """Inputs that are tensors, in order."""
        return {name: spec for name, spec in self.inputs.items() if isinstance(spec, TensorSpec)}

    @property
    def scalar_inputs(self) -> dict[str, ScalarSpec]:
        """Inputs that are numbers, in order."""
        return {name: spec for name, spec in self.inputs.items() if isinstance(spec, ScalarSpec)}

    @property
    def size_inputs(self) -> frozenset[str]:
        """Inputs that are the size of the axis with their name, as the `k` of the k largest."""
        return frozenset(n for n, spec in self.scalar_inputs.items() if spec.type == "int" and n in self.axes)

    @property
    def free_scalars(self) -> dict[str, ScalarSpec]:
        """Inputs that are numbers and no sizes, in order."""
        return {name: spec for name, spec in self.scalar_inputs.items() if name not in self.size_inputs}

    def tolerance_of(self, output: str) -> Tolerance:
        """Return the tolerance of one output."""
        return self.tolerance if isinstance(self.tolerance, Tolerance) else self.tolerance[output]

    def sizes(self, workload: Workload) -> dict[str, int]:
        """Return the size of every axis in this workload.

        Raises:
            ValueError: the workload lacks an axis, or names one that the definition lacks.
        """
        fixed = {name: size for name, size in self.axes.items() if isinstance(size, int)}
        sizes = {**fixed, **workload.axes}
        if set(sizes) != set(self.axes):
            wrong = sorted(set(sizes) ^ set(self.axes))
            raise ValueError(f"workload `{workload.name}`: axes {wrong} missing or unknown")
        return sizes

    def shape(self, spec: TensorSpec, workload: Workload) -> tuple[int, ...]:
        """Return the tensor's shape in this workload."""
        axes = self.sizes(workload)
        return tuple(size if isinstance(size, int) else int(evaluate(size, axes)) for size in spec.shape)

    def dtype(self, spec: TensorSpec, workload: Workload) -> str:
        """Return the tensor's data type in this workload."""
        return workload.dtype if spec.dtype == "workload" else spec.dtype

    def operand_dtype(self, workload: Workload) -> str:
        """Return the data type whose rate bounds the arithmetic: the workload's, or that of the floating-point
        input with the most elements if it has fewer bits, as in products of fp8 with results in bfloat16."""
        specs = [s for s in self.tensor_inputs.values() if is_floating(self.dtype(s, workload))]
        largest = max(specs, key=lambda spec: prod(self.shape(spec, workload)), default=None)
        dtype = self.dtype(largest, workload) if largest else workload.dtype
        return min(workload.dtype, dtype, key=lambda name: DTYPES[name].bytes)

    def scalars(self, workload: Workload) -> dict[str, float | int | bool]:
        """Return every scalar parameter with its value in this workload."""
        sizes = self.sizes(workload) if self.size_inputs else {}
        values = {**workload.scalars, **{name: sizes[name] for name in self.size_inputs}}
        return {name: values.get(name, spec.value) for name, spec in self.scalar_inputs.items()}

    def has_smaller_number(self, workload: Workload) -> bool:
        """Return True if a number of a workload is smaller than in any of the definition's: a factor that hardly
        counts makes the terms of a sum alike, as the exponentials of a softmax, whatever the inputs."""
        numbers = self.scalars(workload)
        least = {name: min(abs(self.scalars(each)[name]) for each in self.workloads) for name in self.free_scalars}
        return any(abs(numbers[name]) < most for name, most in least.items())

    def scalar_range(self, name: str) -> tuple[float, float]:
        """Return the least and the largest value of a number at which versions are judged."""
        spec = self.scalar_inputs[name]
        if spec.between is not None:
            return spec.between
        values = [self.scalars(workload)[name] for workload in self.workloads]
        if all(isinstance(value, int) for value in values):
            return min(values), max(values)
        ranges = [_usual_range(float(value)) for value in values]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def nbytes(self, spec: TensorSpec, workload: Workload) -> int:
        """Return the size of the tensor in this workload, in bytes."""
        return prod(self.shape(spec, workload)) * DTYPES[self.dtype(spec, workload)].bytes

    def elements(self, workload: Workload) -> int:
        """Return the number of elements of all inputs and outputs in this workload."""
        specs = (*self.tensor_inputs.values(), *self.outputs.values())
        return sum(prod(self.shape(spec, workload)) for spec in specs)

    def has_shapes(self, workload: Workload) -> bool:
        """Return True if no tensor has a size below zero, as that of a filter that is larger than an image, and
        the comparisons hold that callers promise."""
        specs, sizes = (*self.tensor_inputs.values(), *self.outputs.values()), self.sizes(workload)
        is_promised = all(holds(text, sizes) for text in self.compared_sizes)
        return is_promised and all(size >= 0 for spec in specs for size in self.shape(spec, workload))

    @property
    def compared_sizes(self) -> tuple[str, ...]:
        """Promises of callers that are comparisons of sizes and not words."""
        return select_comparisons(self.constraints, tuple(self.axes))

    def work(self, workload: Workload) -> Work:
        """Return the least work that any implementation must do in this workload."""
        axes = self.sizes(workload)
        read = sum(self.nbytes(spec, workload) for spec in self.tensor_inputs.values())
        written = sum(self.nbytes(spec, workload) for spec in self.outputs.values())
        return Work(
            flops=evaluate(self.flops, axes),
            bytes_read=evaluate(self.bytes_read, axes) if self.bytes_read else read,
            bytes_written=evaluate(self.bytes_written, axes) if self.bytes_written else written,
        )

    def find_workload(self, name: str) -> Workload | None:
        """Return the workload of that name, in which `float32` and `fp32` are one word; None if there is none."""
        exact = next((workload for workload in self.workloads if workload.name == name), None)
        short = shorten_dtype_names(name)
        return exact or next((each for each in self.workloads if shorten_dtype_names(each.name) == short), None)

    def select(self, *sets: WorkloadSet) -> list[Workload]:
        """Return the workloads of the given sets, in order."""
        return [workload for workload in self.workloads if workload.set in sets]


def _usual_range(value: float) -> tuple[float, float]:
    """Return the values that callers usually pass where a definition has this one: a share stays a share."""
    if value < 0:
        least, most = _usual_range(-value)
        return -most, -least
    if value < 1:
        return value * gate_rules.LEAST_SCALAR, 1.0
    return value / gate_rules.LARGEST_SCALAR, value * gate_rules.LARGEST_SCALAR


class Work(Model):
    """Algorithmic work of one call: each input byte read once, each output byte written once."""

    flops: float = Field(ge=0)
    """Number of floating-point operations."""
    bytes_read: float = Field(ge=0)
    """Number of bytes that must be read."""
    bytes_written: float = Field(ge=0)
    """Number of bytes that must be written."""

    @property
    def bytes(self) -> float:
        """Number of bytes moved in total."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Floating-point operations per byte."""
        return self.flops / self.bytes if self.bytes else float("inf")

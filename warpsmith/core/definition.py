"""Definition and Workload: what an operator computes, and the concrete points it is judged at."""

from __future__ import annotations

from math import prod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Name
from warpsmith.core.dtype import DTYPES
from warpsmith.core.expression import evaluate

WorkloadSet = Literal["representative", "full", "odd"]
"""`representative` is judged every round, `full` at baseline and at the end, `odd` for correctness only."""


class TensorSpec(Model):
    """A tensor parameter or result of an operator."""

    shape: tuple[str | int, ...]
    """Axis names, arithmetic over them, or numbers, outermost first; `()` is a scalar tensor."""
    dtype: str = "workload"
    """A PyTorch data type name, or `workload`: the one that the workload names."""
    distribution: str = "workload"
    """How its input values are drawn, or `workload`: as the workload names. Ignored for outputs."""
    role: Literal["activation", "weight"] = "activation"
    """`weight`: it changes once a training step, so work on it may be kept until then. Ignored for outputs."""
    layout: Literal["contiguous", "any"] = "contiguous"
    """`any`: callers may pass strided, transposed and misaligned tensors, and odd shapes are judged at such too.
    Outputs are always contiguous."""
    description: str = ""
    """What the tensor holds."""

    @model_validator(mode="after")
    def _known_dtype(self) -> Self:
        if self.dtype != "workload" and self.dtype not in DTYPES:
            raise ValueError(f"unknown dtype `{self.dtype}`; known: {', '.join(DTYPES)}")
        return self


class ScalarSpec(Model):
    """A number that every call of the operator is given."""

    type: Literal["float", "int", "bool"] = "float"
    """Its Python type."""
    value: float | int | bool
    """The value of workloads that do not name one."""
    description: str = ""
    """What the number means."""


class Tolerance(Model):
    """How far an output may be from the float64 reference, from error analysis.

    The bound of an element is `slack * |ref| * (u_out + u_acc * (16 + sqrt(n)/2 + extra))` plus the smallest
    result that counts, with `u` the unit roundoffs and `n` the reduction length. Where an
    operator cancels, the definition's `magnitude(inputs)` replaces `|ref|` in the `u_acc` term. Over inputs
    that are alike or ordered, where rounding errors need not cancel, `n` stands in place of `sqrt(n)`.
    """

    reduction: str = "1"
    """Reduction length `n` as arithmetic over axes: `cols` for a row reduction, `k` for a product."""
    accumulate: str = "float32"
    """The least precise type an honest implementation may accumulate in."""
    slack: float = Field(default=2.0, ge=1.0, le=16.0)
    """Factor over the bound."""
    required_match: float = Field(default=1.0, gt=0.9, le=1.0)
    """Share of elements that must be within the bound."""


class Workload(Model):
    """One concrete point of a definition: shapes, data type and input distribution."""

    name: str = Field(min_length=1, max_length=80)
    """Short and unique in the definition: `4096x4096-float32`."""
    axes: dict[str, Annotated[int, Field(ge=0)]]
    """The size of every axis."""
    dtype: str = "float32"
    """The type of the tensors whose spec says `workload`."""
    distribution: str = "normal"
    """How the inputs are drawn: a generator of the lab, or one that the definition brings."""
    scalars: dict[str, float | int | bool] = {}
    """Values that replace those of the scalar specs."""
    set: WorkloadSet = "representative"
    """When it is run."""

    @property
    def timed(self) -> bool:
        """Whether it is timed; `odd` workloads are for correctness only."""
        return self.set != "odd"


class Definition(Model):
    """An operator: its parameters, results, work and workloads. The reference stands beside it in code."""

    name: Name
    """The operator: also its folder under `kernels/`."""
    description: str
    """One sentence: what it computes."""
    op_type: str = "other"
    """The family as FlashInfer-Trace names it: `norm`, `gemm`, `softmax`, ..."""
    axes: dict[str, str | int]
    """Axis name to what it is (a variable axis) or to its fixed size."""
    inputs: dict[str, TensorSpec | ScalarSpec]
    """Parameters in the order of `run`."""
    outputs: dict[str, TensorSpec]
    """Results in the order in which `run` returns them, or takes them after the inputs."""
    outputs_are: Literal["returned", "given"] = "returned"
    """`returned`: every side allocates its results inside the timed call. `given`: `run` writes into
    tensors that the lab allocated."""
    drawn_along: str | None = None
    """An axis along which the file's own `inputs` draws independently: what many calls need is then one draw of a
    longer axis, cut in parts. Inputs without this axis are the same in all parts."""
    deterministic: bool = False
    """Whether two calls on the same inputs must agree in every bit; else they must agree within the bound."""
    tolerance: Tolerance | dict[str, Tolerance] = Tolerance()
    """One tolerance for all outputs, or one by output name."""
    flops: str
    """Algorithmic floating-point operations, as arithmetic over axes."""
    bytes_read: str | None = None
    """Algorithmic bytes read, as arithmetic over axes; by default every input once."""
    bytes_written: str | None = None
    """Algorithmic bytes written; by default every output once."""
    workloads: tuple[Workload, ...]
    """The points it is judged at; at least one is `representative`."""
    constraints: tuple[str, ...] = ()
    """What callers promise, in words."""
    tags: tuple[str, ...] = ()
    """Free labels, kept when a definition travels to FlashInfer-Trace and back."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [workload.name for workload in self.workloads]
        if len(set(names)) != len(names):
            raise ValueError("two workloads share a name")
        if not any(workload.set == "representative" for workload in self.workloads):
            raise ValueError("no workload has the set `representative`")
        if not self.outputs:
            raise ValueError("no outputs")
        if self.drawn_along is not None and self.drawn_along not in self.axes:
            raise ValueError(f"drawn_along: `{self.drawn_along}` is no axis")
        for workload in self.workloads:
            axes = self.sizes(workload)
            for name, spec in (*self.tensor_inputs.items(), *self.outputs.items()):
                self.shape(spec, workload)
                if spec.dtype == "workload" and workload.dtype not in DTYPES:
                    raise ValueError(f"workload `{workload.name}` has no dtype for `{name}`")
            for text in filter(None, (self.flops, self.bytes_read, self.bytes_written)):
                evaluate(text, axes)
            for tolerance in self._tolerances():
                evaluate(tolerance.reduction, axes)
            unknown = sorted(set(workload.scalars) - set(self.scalar_inputs))
            if unknown:
                raise ValueError(f"workload `{workload.name}`: scalars {unknown} are no inputs")
        return self

    def _tolerances(self) -> list[Tolerance]:
        if isinstance(self.tolerance, Tolerance):
            return [self.tolerance]
        wrong = set(self.outputs) ^ set(self.tolerance)
        if wrong:
            raise ValueError(f"tolerances and outputs differ in {', '.join(sorted(wrong))}")
        return list(self.tolerance.values())

    @property
    def tensor_inputs(self) -> dict[str, TensorSpec]:
        """The inputs that are tensors, in order."""
        return {name: spec for name, spec in self.inputs.items() if isinstance(spec, TensorSpec)}

    @property
    def scalar_inputs(self) -> dict[str, ScalarSpec]:
        """The inputs that are numbers, in order."""
        return {name: spec for name, spec in self.inputs.items() if isinstance(spec, ScalarSpec)}

    def tolerance_of(self, output: str) -> Tolerance:
        """The tolerance of one output."""
        return self.tolerance if isinstance(self.tolerance, Tolerance) else self.tolerance[output]

    def sizes(self, workload: Workload) -> dict[str, int]:
        """Every axis with its size in this workload.

        Raises:
            ValueError: the workload misses an axis, or names one that the definition lacks.
        """
        fixed = {name: size for name, size in self.axes.items() if isinstance(size, int)}
        sizes = {**fixed, **workload.axes}
        if set(sizes) != set(self.axes):
            wrong = sorted(set(sizes) ^ set(self.axes))
            raise ValueError(f"workload `{workload.name}`: axes {wrong} missing or unknown")
        return sizes

    def shape(self, spec: TensorSpec, workload: Workload) -> tuple[int, ...]:
        """The tensor's shape in this workload."""
        axes = self.sizes(workload)
        return tuple(size if isinstance(size, int) else int(evaluate(size, axes)) for size in spec.shape)

    def dtype(self, spec: TensorSpec, workload: Workload) -> str:
        """The tensor's data type in this workload."""
        return workload.dtype if spec.dtype == "workload" else spec.dtype

    def scalars(self, workload: Workload) -> dict[str, float | int | bool]:
        """Every scalar parameter with its value in this workload."""
        return {name: workload.scalars.get(name, spec.value) for name, spec in self.scalar_inputs.items()}

    def nbytes(self, spec: TensorSpec, workload: Workload) -> int:
        """Bytes of the tensor in this workload."""
        return prod(self.shape(spec, workload)) * DTYPES[self.dtype(spec, workload)].bytes

    def elements(self, workload: Workload) -> int:
        """Elements of all inputs and outputs in this workload."""
        specs = (*self.tensor_inputs.values(), *self.outputs.values())
        return sum(prod(self.shape(spec, workload)) for spec in specs)

    def work(self, workload: Workload) -> Work:
        """The least work that any implementation must do at this workload."""
        axes = self.sizes(workload)
        read = sum(self.nbytes(spec, workload) for spec in self.tensor_inputs.values())
        written = sum(self.nbytes(spec, workload) for spec in self.outputs.values())
        return Work(
            flops=evaluate(self.flops, axes),
            bytes_read=evaluate(self.bytes_read, axes) if self.bytes_read else read,
            bytes_written=evaluate(self.bytes_written, axes) if self.bytes_written else written,
        )

    def select(self, *sets: WorkloadSet) -> list[Workload]:
        """The workloads of the given sets, in order."""
        return [workload for workload in self.workloads if workload.set in sets]


class Work(Model):
    """Algorithmic work of one call: each input byte read once, each output byte written once."""

    flops: float = Field(ge=0)
    """Floating-point operations."""
    bytes_read: float = Field(ge=0)
    """Bytes that must be read."""
    bytes_written: float = Field(ge=0)
    """Bytes that must be written."""

    @property
    def bytes(self) -> float:
        """Bytes moved in all."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """FLOPs a byte."""
        return self.flops / self.bytes if self.bytes else float("inf")

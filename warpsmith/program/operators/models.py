"""Operators of a program: its calls of PyTorch's operators, and the definition that one of them became."""

from __future__ import annotations

from pydantic import Field

from warpsmith.core.base import Model, Name
from warpsmith.core.trial import ProgramReference
from warpsmith.program.compiled.region_graph import RegionGraph

CALLS_FILE = "calls.json"
"""File next to the definition, with the program's calls of the operator."""


class OperatorRow(Model):
    """One operator of a step."""

    name: str
    """Name in PyTorch's schema: `aten::mm`, `aten::add.Tensor`."""
    calls: float = Field(ge=0)
    """Calls per step."""
    seconds: float = Field(ge=0)
    """Seconds per step, measured call by call with nothing else on the device."""
    share: float = Field(ge=0, le=1)
    """Share of the step."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound: speedup of the step if the operator took no time; null if it is the whole step."""
    refusal: str = ""
    """Reason why it cannot be extracted; empty if it can."""


class StepOperators(Model):
    """All operators of a program's step, the most time first."""

    program: str
    """Short name of the program."""
    device: str
    """`cpu` or the GPU's name."""
    step_seconds: float = Field(gt=0)
    """Seconds per step, while its operators are not watched."""
    rows: tuple[OperatorRow, ...]
    """The operators. The time of one that calls others includes theirs."""


class RecordedTensor(Model):
    """A tensor in a recorded call."""

    shape: tuple[int, ...]
    """Sizes of the tensor."""
    strides: tuple[int, ...]
    """Strides, in elements."""
    dtype: str
    """PyTorch data type name."""
    device: str = "cpu"
    """`cpu` or `cuda`."""
    weight: bool = False
    """True if it is a parameter of the program, or a view of one."""
    low: float | None = None
    """Its least value in one such call; null if it was not read, or there is none."""
    high: float | None = None
    """Its greatest finite value; null as for `low`."""
    masked: bool = False
    """True if it contains minus infinity."""


class CallArgument(Model):
    """One argument of a call, or one tensor of an argument that is a list."""

    name: str
    """Name of the argument in the schema."""
    keyword: bool = False
    """True if it is keyword-only."""
    element: int | None = Field(default=None, ge=0)
    """Its index in a list of tensors; null if it is not in a list."""
    tensor: RecordedTensor | None = None
    """The tensor; null if it is not one."""
    source: str = ""
    """Python source of a value that is not a tensor."""
    number: float | None = None
    """The value, if it is a float."""


class CallSignature(Model):
    """Calls of one operator with the same arguments."""

    arguments: tuple[CallArgument, ...]
    """All arguments, in the order of the schema; the tensors of a list follow each other."""
    outputs: tuple[RecordedTensor | None, ...]
    """The results; null if undefined or without elements."""
    calls: float = Field(gt=0)
    """Calls per step."""
    seconds: float = Field(ge=0)
    """Seconds per step of all of them."""
    gradients: bool = False
    """True if autograd records the operator, which consists of others."""


class ArgumentSource(Model):
    """Source of an operator's argument, or of one tensor of a list, in the definition."""

    argument: str
    """Name of the argument in the schema."""
    keyword: bool = False
    """True if it is keyword-only."""
    element: int | None = Field(default=None, ge=0)
    """Its index in the list of tensors; null if the argument is not a list."""
    input: str | None = None
    """Input of the definition; null for a constant."""
    order: tuple[int, ...] | None = None
    """Permutation from the definition's tensor to the operator's; null if there is none, or it is not a tensor."""
    source: str = ""
    """Python source of the constant."""
    trailing: int = Field(default=0, ge=0)
    """If positive, the constant is the list of this many last sizes of the first tensor; 0: its source counts."""


class ResultSource(Model):
    """Source of an operator's result in the definition."""

    output: str | None
    """Output of the definition; null if this result is undefined or empty."""
    order: tuple[int, ...] | None = None
    """Permutation from the definition's output to the operator's result; null if there is none."""


class WorkloadCalls(Model):
    """Calls of an operator by a program at one workload."""

    workload: str
    """Its name in the definition."""
    calls: float = Field(gt=0)
    """Calls per step."""
    seconds: float = Field(ge=0)
    """Seconds per step of all of them, when they were recorded."""


class Extraction(Model):
    """An operator of a program that became a definition: `kernels/<op>/calls.json`."""

    op: Name
    """The definition's name."""
    operator: str
    """PyTorch's operator with its overload, `aten::add.Tensor`; of a region its kind and digest."""
    composite: bool = False
    """True if it consists of other operators, which autograd records instead."""
    program: ProgramReference
    """The program."""
    device: str
    """`cpu` or the GPU's name."""
    step_seconds: float = Field(gt=0)
    """Seconds per step, while its operators are not watched."""
    slots: tuple[ArgumentSource, ...]
    """Sources of the operator's arguments in order; the tensors of a list follow each other."""
    results: tuple[ResultSource, ...]
    """Sources of the operator's results, in order."""
    called: tuple[WorkloadCalls, ...]
    """Calls by workload, the most time first."""
    region: RegionGraph | None = None
    """The region of a compiled graph that it is; null if it is an operator."""

    @property
    def seconds(self) -> float:
        """Return the seconds of the covered calls of one recorded step."""
        return sum(calls.seconds for calls in self.called)

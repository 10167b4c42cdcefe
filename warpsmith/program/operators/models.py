"""Extraction: how a program calls PyTorch's operators, and the definition that one of them became."""

from __future__ import annotations

from pydantic import Field

from warpsmith.core.base import Model, Name
from warpsmith.core.trial import ProgramReference

CALLS_FILE = "calls.json"
"""Beside the definition: how the program calls the operator."""


class OperatorRow(Model):
    """One operator of a step."""

    name: str
    """As PyTorch's schema has it: `aten::mm`, `aten::add.Tensor`."""
    calls: float = Field(ge=0)
    """Calls a step."""
    seconds: float = Field(ge=0)
    """A step's; measured call by call, with nothing else on the device."""
    share: float = Field(ge=0, le=1)
    """Of the step."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound: the step's speedup if the operator were free; null where it is everything."""
    refusal: str = ""
    """Why it cannot be extracted; empty: it can."""


class StepOperators(Model):
    """All operators of a program's step, the most time first."""

    program: str
    """What people call the program."""
    device: str
    """`cpu` or the GPU's name."""
    step_seconds: float = Field(gt=0)
    """A step, unwatched."""
    rows: tuple[OperatorRow, ...]
    """The operators. Those that consist of others contain their time."""


class RecordedTensor(Model):
    """A tensor in a call."""

    shape: tuple[int, ...]
    """Sizes."""
    strides: tuple[int, ...]
    """In elements."""
    dtype: str
    """PyTorch data type name."""
    device: str = "cpu"
    """`cpu` or `cuda`."""
    weight: bool = False
    """Whether it lies in a parameter of the program."""
    low: float | None = None
    """Its least value in one such call; null: not looked at, or it has none."""
    high: float | None = None
    """Its greatest, infinities apart."""
    masked: bool = False
    """Whether it holds minus infinity."""


class CallArgument(Model):
    """One argument of a call, or one tensor of an argument that is a list of them."""

    name: str
    """As the schema names it."""
    keyword: bool = False
    """Whether it can be given by name only."""
    element: int | None = Field(default=None, ge=0)
    """Its place where it is one of a list of tensors; null: it is an argument of its own."""
    tensor: RecordedTensor | None = None
    """Null: it is no tensor."""
    source: str = ""
    """Python source of a value that is no tensor."""
    number: float | None = None
    """The value where it is a float."""


class CallSignature(Model):
    """Calls of one operator that look alike."""

    arguments: tuple[CallArgument, ...]
    """In the schema's order, all of them; a list of tensors is one after the other."""
    outputs: tuple[RecordedTensor | None, ...]
    """Its results; null: undefined or without elements."""
    calls: float = Field(gt=0)
    """A step."""
    seconds: float = Field(ge=0)
    """All of them, a step."""
    gradients: bool = False
    """Whether autograd records the operator itself, which consists of others."""


class ArgumentSource(Model):
    """Where an argument of the operator, or one tensor of a list, comes from in the definition."""

    argument: str
    """As the schema names it."""
    keyword: bool = False
    """Whether it can be given by name only."""
    element: int | None = Field(default=None, ge=0)
    """Its place in the list of tensors that the argument is; null: the argument is none."""
    input: str | None = None
    """The definition's input; null: a constant."""
    order: tuple[int, ...] | None = None
    """Permutation that makes the operator's tensor out of the definition's; null: none, or no tensor."""
    source: str = ""
    """The constant's Python source."""
    trailing: int = Field(default=0, ge=0)
    """The constant is a list of so many last sizes of the first tensor; 0: it is what its source says."""


class ResultSource(Model):
    """Where a result of the operator comes from in the definition."""

    output: str | None
    """The definition's output; null: this result is undefined or empty."""
    order: tuple[int, ...] | None = None
    """Permutation that makes the operator's result out of the definition's."""


class WorkloadCalls(Model):
    """How often a program calls an operator at one workload."""

    workload: str
    """Its name in the definition."""
    calls: float = Field(gt=0)
    """A step."""
    seconds: float = Field(ge=0)
    """All of them, a step, when they were recorded."""


class Extraction(Model):
    """An operator of a program that became a definition: `kernels/<op>/calls.json`."""

    op: Name
    """The definition's name."""
    operator: str
    """PyTorch's operator with its overload: `aten::add.Tensor`."""
    composite: bool = False
    """Whether it consists of other operators, so that autograd records those."""
    program: ProgramReference
    """Whose."""
    device: str
    """`cpu` or the GPU's name."""
    step_seconds: float = Field(gt=0)
    """A step, unwatched."""
    slots: tuple[ArgumentSource, ...]
    """The operator's arguments in order, lists of tensors one by one."""
    results: tuple[ResultSource, ...]
    """The operator's results in order."""
    called: tuple[WorkloadCalls, ...]
    """By workload, the most time first."""

    @property
    def seconds(self) -> float:
        """The covered calls of a step, when they were recorded."""
        return sum(one.seconds for one in self.called)

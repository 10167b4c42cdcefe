"""Program: a whole script with a step, what it is made of, and what its steps return."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import ConfigDict, Field

from warpsmith.core.base import Model


class TensorSummary(Model):
    """A tensor in a few figures, which are computed in float64."""

    shape: tuple[int, ...]
    """Its sizes."""
    dtype: str
    """`float32`, `bfloat16`, `int64`."""
    norm: float | None
    """Its 2-norm; null where it is not finite."""
    mean: float | None
    """Its mean; null where it is not finite or the tensor is empty."""
    finite: bool
    """Whether no element is NaN or infinite."""


StepValues = dict[str, float | TensorSummary]
"""What one step returned, by path: `value` where it is one thing, else `value.0`, `value.loss` and so on."""


class StepsRun(Model):
    """Steps that ran one after the other."""

    model_config = ConfigDict(allow_inf_nan=True, ser_json_inf_nan="strings")

    first: int = Field(ge=0)
    """Number of the first of them, counted from the program's first step."""
    count: int = Field(ge=1)
    """How many."""
    seconds: float = Field(gt=0)
    """All of them, by the clock of the process that asked for them; the device has finished."""
    values: tuple[StepValues, ...] = ()
    """What each returned; empty where that was not asked for. A single number is a float, also NaN."""
    saved: str | None = None
    """File of `torch.save` with the same, tensors whole: a list of one dict a step; null where not asked for."""

    @property
    def each(self) -> float:
        """Seconds a step."""
        return self.seconds / self.count

    @property
    def broken(self) -> int | None:
        """Number of the first step that returned NaN or infinity; None: all are finite."""
        return next((self.first + place for place, value in enumerate(self.values) if not all_finite(value)), None)


def all_finite(values: Mapping[str, float | TensorSummary]) -> bool:
    """Whether nothing in it is NaN or infinite."""
    return all(
        value.finite if isinstance(value, TensorSummary) else math.isfinite(value) for value in values.values()
    )


class OptimizerFacts(Model):
    """An optimizer of the program; null where its class has no such switch."""

    kind: str
    """Its class."""
    tensors: int = Field(ge=0)
    """Parameters that it updates."""
    fused: bool | None = None
    """Whether all of them are updated by one fused kernel."""
    foreach: bool | None = None
    """Whether operators go over lists of tensors; null also where PyTorch chooses."""
    capturable: bool | None = None
    """Whether its state lives on the device, as a CUDA graph needs."""


class LoaderFacts(Model):
    """A DataLoader of the program."""

    workers: int = Field(ge=0)
    """Processes that load; 0: the program itself does."""
    pin_memory: bool
    """Whether batches come in pinned memory."""
    batch: int | None
    """Batch size; null where a sampler decides."""
    persistent: bool
    """Whether workers outlive an epoch."""


class ObservedStep(Model):
    """What one step of the program did, as PyTorch's profiler saw it."""

    seconds: float = Field(gt=0)
    """How long it took under the profiler, which slows it."""
    operators: dict[str, int]
    """Calls of PyTorch's operators by name, the operators that they call included."""
    times: dict[str, float]
    """Each operator's own seconds, the most first: on the GPU where it uses one, else on the CPU. A few that
    consist of others, `aten::rms_norm` say, have all of theirs."""
    products: dict[str, int]
    """Calls of matrix products and convolutions by the dtype of their first operand."""
    backwards: int = Field(ge=0)
    """Calls of backward."""
    optimizer_steps: int = Field(ge=0)
    """Optimizer steps."""
    graph_launches: int = Field(ge=0)
    """CUDA graphs that were launched."""
    loader_seconds: float = Field(ge=0)
    """Time in which the program waited for a DataLoader, or loaded itself."""
    optimizer_seconds: float = Field(ge=0)
    """Time that the host spent in optimizer steps."""
    allocation_seconds: float = Field(ge=0)
    """Time that the host spent in allocating and freeing the device's memory."""
    autocast: tuple[str, ...]
    """Dtypes of the autocast regions that were entered."""
    shapes_vary: bool
    """Whether the step after it called other operators, or the same with other shapes; data loading apart."""
    returns: bool | None = None
    """Whether the step returned a number or a tensor; null where nothing called it."""

    def calls(self, *names: str) -> int:
        """Calls of these operators together."""
        return sum(self.operators.get(name, 0) for name in names)

    @property
    def attention(self) -> int:
        """Calls of `scaled_dot_product_attention`."""
        return self.calls("aten::scaled_dot_product_attention")

    @property
    def convolutions(self) -> int:
        """Convolutions of the forward pass."""
        return self.calls("aten::convolution")

    @property
    def accumulates(self) -> bool:
        """Whether gradients of several backward passes go into one optimizer step."""
        return self.backwards > self.optimizer_steps > 0


class ProgramFacts(Model):
    """What a program is made of."""

    device: str
    """The GPU's name, or `cpu` where nothing of the program is on one."""
    gpu: bool
    """Whether the program uses a GPU."""
    gpu_at_hand: bool
    """Whether the machine has one that PyTorch can use."""
    torch: str
    """PyTorch's version."""
    python: str
    """Python's version."""
    modules: dict[str, int]
    """Module classes with how many there are, the most first."""
    parameters: int = Field(ge=0)
    """Elements of all parameters, shared ones once."""
    parameter_dtypes: dict[str, int]
    """Elements of parameters by dtype."""
    channels_last: bool
    """Whether a convolution's weight lies in channels-last order."""
    optimizers: tuple[OptimizerFacts, ...]
    """Optimizers."""
    loaders: tuple[LoaderFacts, ...]
    """DataLoaders."""
    tf32_products: bool
    """Whether float32 matrix products may use TF32."""
    tf32_convolutions: bool
    """Whether float32 convolutions may use TF32."""
    compiled: tuple[str, ...]
    """Modes of the calls of `torch.compile`, `default` among them."""
    cuda_graphs: int = Field(ge=0)
    """CUDAGraph objects."""
    world: int = Field(ge=1)
    """Processes of the distributed run; 1: none."""
    memory_peak: int = Field(ge=0)
    """Bytes on the device at most so far; without a GPU, resident in the process."""
    memory_reserved: int = Field(ge=0)
    """Bytes that PyTorch's allocator holds on the device; 0 without a GPU."""
    memory_total: int = Field(ge=0)
    """Bytes of the device, or of the machine."""
    allocation_retries: int = Field(ge=0)
    """Times that the allocator had to give cached memory back to go on."""
    processes: int = Field(ge=0, default=0)
    """Processes that it started and that still run."""
    observed: ObservedStep | None = None
    """What a step did; null before one was observed."""

"""Models of a whole program: its facts, one observed step, and the values of its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from warpsmith.core.base import Model


class TensorSummary(Model):
    """Summary of a tensor, computed in float64."""

    shape: tuple[int, ...]
    """Sizes of its dimensions."""
    dtype: str
    """Data type: `float32`, `bfloat16`, `int64`."""
    norm: float | None
    """2-norm; null if it is not finite."""
    mean: float | None
    """Mean; null if it is not finite or the tensor is empty."""
    finite: bool
    """True if no element is NaN or infinite."""


StepValues = dict[str, float | TensorSummary]
"""Value of one step by path: `value` for a single one, else `value.0`, `value.loss` and so on."""


class StepsRun(Model):
    """Steps that ran one after the other, with their time and values."""

    model_config = ConfigDict(allow_inf_nan=True, ser_json_inf_nan="strings")

    first: int = Field(ge=0)
    """Number of the first step, counted from the program's first step."""
    count: int = Field(ge=1)
    """Number of steps."""
    seconds: float = Field(gt=0)
    """Time of all steps by the clock of the requesting process, until the device has finished."""
    values: tuple[StepValues, ...] = ()
    """Value of each step; empty if values were not requested. A single number is a float, also NaN."""
    others: tuple[tuple[StepValues, ...], ...] = ()
    """The same for each further rank of a command."""
    saved: tuple[str, ...] = ()
    """File of `torch.save` of each rank, with the values and whole tensors, a dict for each step; empty if not
    requested."""

    @property
    def broken_step(self) -> str:
        """Return the first step that returned NaN or infinity, as `step 3 on rank 1`; empty if none did."""
        number = self.first_nonfinite
        if number is None:
            return ""
        steps = [values[number - self.first] for values in (self.values, *self.others)]
        ranks = [f"rank {rank}" for rank, values in enumerate(steps) if not all_finite(values)]
        return f"step {number}" + (f" on {' and '.join(ranks)}" if self.others else "")

    @property
    def seconds_per_step(self) -> float:
        """Return the average seconds of a step."""
        return self.seconds / self.count

    @property
    def first_nonfinite(self) -> int | None:
        """Return the number of the first step that returned NaN or infinity on any rank, or None."""
        for index, steps in enumerate(zip(self.values, *self.others, strict=True)):
            if not all(map(all_finite, steps)):
                return self.first + index
        return None


def all_finite(values: Mapping[str, float | TensorSummary]) -> bool:
    """Return true if no value is NaN or infinite."""
    return all(
        value.finite if isinstance(value, TensorSummary) else math.isfinite(value) for value in values.values()
    )


class OptimizerFacts(Model):
    """One optimizer of the program; a switch is null if its class lacks it."""

    kind: str
    """Class of the optimizer."""
    tensors: int = Field(ge=0)
    """Number of parameters that it updates."""
    fused: bool | None = None
    """True if one fused kernel updates all parameters."""
    foreach: bool | None = None
    """True if operators work on lists of tensors; null also if PyTorch chooses."""
    capturable: bool | None = None
    """True if its state is on the device, as a CUDA graph requires."""


class LoaderFacts(Model):
    """One DataLoader of the program."""

    workers: int = Field(ge=0)
    """Number of processes that load; 0 if the program itself loads."""
    pin_memory: bool
    """True if batches are in pinned memory."""
    batch: int | None
    """Batch size; null if a sampler decides."""
    persistent: bool
    """True if workers continue after an epoch."""


class ReplicaFacts(Model):
    """One DistributedDataParallel module."""

    buckets: tuple[int, ...]
    """Bytes of its buckets of gradients, in the order in which they are reduced; empty if unknown."""
    cap_bytes: int | None
    """Bytes that a bucket is filled to; null if unknown."""
    unused_bytes: int | None
    """Bytes of parameters that the last logged step did not use; null if unknown."""
    find_unused: bool
    """True if each step searches for unused parameters."""
    bucket_views: bool
    """True if gradients are views of the buckets, so that nothing is copied."""
    static_graph: bool
    """True if every step uses the same parameters."""
    hook: str = ""
    """Communication hook; empty without one."""

    @property
    def switches(self) -> str:
        """Return its settings as arguments."""
        return (
            f"find_unused_parameters={self.find_unused}, gradient_as_bucket_view={self.bucket_views}, "
            f"static_graph={self.static_graph}"
        )


class CompileEvent(Model):
    """One graph break or recompilation under torch.compile."""

    kind: Literal["graph break", "recompilation"]
    """Kind of event."""
    file: str
    """Path of the file."""
    line: int = Field(ge=1)
    """Line of the break; for a recompilation, the first of the function."""
    function: str
    """Function; empty if unknown."""
    reason: str
    """Reason that PyTorch gives, in one line."""


class ObservedStep(Model):
    """One step of the program under PyTorch's profiler."""

    seconds: float = Field(gt=0)
    """Time under the profiler, which slows the step."""
    operators: dict[str, int]
    """Calls of PyTorch's operators by name, including operators that others call."""
    times: dict[str, float]
    """Seconds of each operator without those that it calls, the largest first: on the GPU if one is used, else on
    the CPU. A few composite operators, such as `aten::rms_norm`, include all that they call."""
    products: dict[str, int]
    """Calls of matrix products and convolutions by the dtype of their first operand."""
    collectives: dict[str, int] = {}
    """Calls of collectives by name, such as `c10d::allreduce_`."""
    backwards: int = Field(ge=0)
    """Number of backward passes."""
    optimizer_steps: int = Field(ge=0)
    """Number of optimizer steps."""
    graph_launches: int = Field(ge=0)
    """Number of CUDA graphs that were launched."""
    loader_seconds: float = Field(ge=0)
    """Time that the program waited for a DataLoader, or loaded data itself."""
    optimizer_seconds: float = Field(ge=0)
    """Time that the host spent in optimizer steps."""
    allocation_seconds: float = Field(ge=0)
    """Time that the host spent on allocating and freeing the device's memory."""
    autocast: tuple[str, ...]
    """Dtypes of the autocast regions that the step entered."""
    shapes_vary: bool
    """True if the next step called other operators or other shapes, not counting data loading."""
    returns: bool | None = None
    """True if the step returned a number or a tensor; null if it was not called as a function."""

    def calls(self, *names: str) -> int:
        """Return the number of calls of these operators."""
        return sum(self.operators.get(name, 0) for name in names)

    @property
    def attention(self) -> int:
        """Return the number of calls of `scaled_dot_product_attention`."""
        return self.calls("aten::scaled_dot_product_attention")

    @property
    def convolutions(self) -> int:
        """Return the number of convolutions in the forward pass."""
        return self.calls("aten::convolution")

    @property
    def accumulates(self) -> bool:
        """Return true if an optimizer step uses the gradients of several backward passes."""
        return self.backwards > self.optimizer_steps > 0


class ProgramFacts(Model):
    """Facts about a program and its process."""

    device: str
    """Name of the GPU, or `cpu` if the program uses none."""
    gpu: bool
    """True if the program uses a GPU."""
    gpu_at_hand: bool
    """True if the machine has a GPU that PyTorch can use."""
    torch: str
    """Version of PyTorch."""
    python: str
    """Version of Python."""
    modules: dict[str, int]
    """Number of modules by class, the largest first."""
    parameters: int = Field(ge=0)
    """Number of elements of all parameters, shared ones counted once."""
    parameter_dtypes: dict[str, int]
    """Number of elements of parameters by dtype."""
    channels_last: bool
    """True if a convolution's weight is in channels-last order."""
    optimizers: tuple[OptimizerFacts, ...]
    """Optimizers of the program."""
    loaders: tuple[LoaderFacts, ...]
    """DataLoaders of the program."""
    tf32_products: bool
    """True if float32 matrix products may use TF32."""
    tf32_convolutions: bool
    """True if float32 convolutions may use TF32."""
    compiled: tuple[str, ...]
    """Modes of the calls of `torch.compile`; `default` for a call without a mode."""
    compile_events: tuple[CompileEvent, ...] = ()
    """Graph breaks and the last recompilations under torch.compile so far."""
    compiled_graphs: int = Field(ge=0, default=0)
    """Number of graphs that torch.compile made."""
    cuda_graphs: int = Field(ge=0)
    """Number of CUDAGraph objects."""
    world: int = Field(ge=1)
    """Number of processes of the distributed run; 1 without one."""
    rank: int = Field(ge=0, default=0)
    """Number of this process among them."""
    replicas: tuple[ReplicaFacts, ...] = ()
    """DistributedDataParallel modules of the program."""
    sharded_modules: int = Field(ge=0, default=0)
    """Number of modules whose parameters `fully_shard` splits over the ranks."""
    memory_peak: int = Field(ge=0)
    """Peak of bytes on the device; without a GPU, of resident bytes of the process."""
    memory_reserved: int = Field(ge=0)
    """Bytes that PyTorch's allocator reserves on the device; 0 without a GPU."""
    memory_total: int = Field(ge=0)
    """Memory of the device in bytes; without a GPU, of the machine."""
    allocation_retries: int = Field(ge=0)
    """Number of times that the allocator had to release cached memory and try again."""
    processes: int = Field(ge=0, default=0)
    """Number of processes that the program started and that still run."""
    observed: ObservedStep | None = None
    """One observed step; null if none was observed."""

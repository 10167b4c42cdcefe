"""A linear layer for few tokens, y = x w^T: what decoding waits for, bound by reading the weights once.

`w` is as `nn.Linear` stores it, (n, k). Sums are float32's: a version that adds parts in 16 bits misses the bound.
"""

import functools
from collections.abc import Callable

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(m: int, n: int, k: int, set: str = "representative", dtype: str = "bfloat16") -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
    return Workload(name=f"{m}x{n}x{k}-{short}", axes={"m": m, "n": n, "k": k}, dtype=dtype, set=set)


definition = Definition(
    name="skinny_gemm",
    description="y = x w^T for few rows of x",
    op_type="gemm",
    axes={"m": "tokens of the batch", "n": "features of the result", "k": "features of the input"},
    inputs={
        "x": TensorSpec(shape=("m", "k")),
        "w": TensorSpec(shape=("n", "k"), role="weight", description="as nn.Linear stores it"),
    },
    outputs={"y": TensorSpec(shape=("m", "n"))},
    deterministic=True,  # serving must repeat itself: no sum may depend on which part comes first
    tolerance=Tolerance(reduction="k"),
    flops="2 * m * n * k",
    workloads=(
        at(1, 14336, 4096),
        at(16, 18432, 7168),
        at(16, 2112, 7168),
        at(32, 28672, 8192),
        at(2, 6144, 4096, "full"),
        at(8, 10240, 8192, "full"),
        at(64, 4096, 14336, "full"),
        at(64, 18432, 7168, "full"),
        at(1, 1, 1, "odd"),
        at(1, 1000, 520, "odd"),
        at(2, 131, 1032, "odd"),
        at(3, 67, 129, "odd"),
        at(5, 2112, 264, "odd"),
        at(8, 336, 2048, "odd"),
        at(13, 24, 7168, "odd"),
        at(17, 129, 1000, "odd"),
        at(33, 200, 513, "odd"),
        at(64, 72, 1544, "odd"),
        at(67, 144, 136, "odd"),  # more tokens than a block takes
        at(1, 257, 1024, "odd", "float16"),
        at(16, 80, 4096, "odd", "float16"),
        at(31, 48, 1023, "odd", "float16"),
    ),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, w)


def magnitude(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Terms cancel: their roundoffs are those of a sum of absolute values."""
    return torch.nn.functional.linear(x.abs(), w.abs())


@functools.cache
def _compiled(shapes: tuple[torch.Size, torch.Size]) -> Callable[..., torch.Tensor]:
    """Compile for these shapes alone: guards of others would slow each call."""
    del shapes
    return torch.compile(reference, mode="max-autotune-no-cudagraphs", dynamic=False)


def max_autotune(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Inductor's templates and cuBLAS, timed against each other at the first call."""
    return _compiled((x.shape, w.shape))(x, w)


def cublas(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """cuBLAS through `torch.mm`, on the transposed view."""
    return torch.mm(x, w.t())


peers = {
    "cublas": cublas,
    "max-autotune": Peer(max_autotune, differs="the faster of cuBLAS and Triton's templates, chosen by timing"),
}

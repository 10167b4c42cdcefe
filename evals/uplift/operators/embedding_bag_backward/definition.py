"""Gradient of a summed embedding bag with respect to its table, scaled by row, for indices that follow Zipf's law."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(
    vocabulary: int, width: int, bags: int, length: int, dtype: str = "bfloat16", set: str = "representative"
) -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    axes = {"vocabulary": vocabulary, "width": width, "bags": bags, "length": length}
    return Workload(name=f"{bags}x{length}-of-{vocabulary}x{width}-{short}", axes=axes, dtype=dtype, set=set)


definition = Definition(
    name="embedding_bag_backward",
    description="y[v] = scale[v] * sum of grad[b] over all b and i with indices[b, i] = v; a row that no index names is 0",
    op_type="embedding",
    axes={
        "vocabulary": "rows of the table",
        "width": "columns of the table",
        "bags": "bags",
        "length": "indices of a bag",
    },
    inputs={
        "grad": TensorSpec(shape=("bags", "width")),
        "indices": TensorSpec(
            shape=("bags", "length"), dtype="int64", description="0 <= index < vocabulary; repeats count"
        ),
        "scale": TensorSpec(shape=("vocabulary",), dtype="float32", distribution="uniform:0.1:1"),
    },
    outputs={"y": TensorSpec(shape=("vocabulary", "width"))},
    flops="bags * length * width",
    workloads=(
        at(50000, 128, 8192, 32),
        at(1000000, 64, 4096, 20),
        at(1000, 256, 16384, 8, "float32"),
        at(200000, 32, 2048, 100, "float32"),
        at(1, 1, 1, 1, set="odd"),
        at(17, 3, 5, 7, "float32", "odd"),
        at(500, 65, 33, 1, set="odd"),
        at(3, 40, 200, 11, set="odd"),
    ),
    constraints=("every index is at least 0 and below vocabulary",),
)


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Gradients of both signs, and indices whose rank is drawn with weight rank to the power -1."""
    vocabulary, width, bags, length = (workload.axes[n] for n in ("vocabulary", "width", "bags", "length"))
    points = torch.rand((bags, length), generator=generator, device=device, dtype=torch.float64)
    ranks = (torch.pow(float(vocabulary + 1), points) - 1).long().clamp_(0, vocabulary - 1)
    order = torch.randperm(vocabulary, generator=generator, device=device)
    grad = torch.randn((bags, width), generator=generator, device=device).to(getattr(torch, workload.dtype))
    scale = torch.rand(vocabulary, generator=generator, device=device) * 0.9 + 0.1
    return {"grad": grad, "indices": order[ranks], "scale": scale}


def reference(grad: torch.Tensor, indices: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    wide = torch.float64 if grad.dtype == torch.float64 else torch.float32
    rows = grad.to(wide).repeat_interleave(indices.shape[1], 0)
    sums = torch.zeros((scale.shape[0], grad.shape[1]), dtype=wide, device=grad.device)
    return (sums.index_add_(0, indices.flatten(), rows) * scale.unsqueeze(1)).to(grad.dtype)


def magnitude(grad: torch.Tensor, indices: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Gradients of both signs cancel."""
    return reference(grad.abs(), indices, scale)


def extra(grad: torch.Tensor, indices: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Rounding errors of a sum grow as the root of the number of its terms."""
    counts = torch.bincount(indices.flatten(), minlength=scale.shape[0]).to(grad.dtype)
    return (counts.sqrt() / 2).unsqueeze(-1).expand(-1, grad.shape[1])

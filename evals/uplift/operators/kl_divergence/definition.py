"""Kullback-Leibler divergence of a student's from a teacher's distribution over a vocabulary, from their logits."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, vocabulary: int, dtype: str = "bfloat16", set: str = "representative") -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    axes = {"rows": rows, "vocabulary": vocabulary}
    return Workload(name=f"{rows}x{vocabulary}-{short}", axes=axes, dtype=dtype, set=set)


definition = Definition(
    name="kl_divergence",
    description="y[r] = sum over c of p * (log p - log q), with p = softmax(teacher[r]) and q = softmax(student[r])",
    op_type="softmax",
    axes={"rows": "tokens", "vocabulary": "classes"},
    inputs={
        "student": TensorSpec(shape=("rows", "vocabulary"), distribution="normal:0:2"),
        "teacher": TensorSpec(shape=("rows", "vocabulary"), distribution="normal:0:2"),
    },
    outputs={"y": TensorSpec(shape=("rows",), dtype="float32")},
    tolerance=Tolerance(reduction="vocabulary"),
    flops="10 * rows * vocabulary",
    workloads=(
        at(4096, 32000),
        at(512, 128256),
        at(16384, 4096, "float32"),
        at(64, 151936),
        at(1, 1, set="odd"),
        at(3, 1023, "float32", "odd"),
        at(7, 5001, set="odd"),
        at(130, 33, set="odd"),
    ),
    constraints=("logits are finite, and their differences within a row are below 80",),
)


def wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()


def reference(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    q = torch.log_softmax(wide(student), dim=-1)
    p = torch.log_softmax(wide(teacher), dim=-1)
    return (p.exp() * (p - q)).sum(-1)


def magnitude(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Terms of both signs cancel, and each is a difference of logarithms."""
    q, p = torch.log_softmax(wide(student), dim=-1), torch.log_softmax(wide(teacher), dim=-1)
    return (p.exp() * (1 + p.abs() + q.abs())).sum(-1)

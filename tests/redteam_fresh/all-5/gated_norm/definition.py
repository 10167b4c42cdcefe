"""RMSNorm with a gate, as an expert writes it: types, layouts, odd sizes and a range of its number."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols, set="representative", dtype="float32", eps=1e-6):
    return Workload(
        name=f"{rows}x{cols}-{dtype}",
        axes={"rows": rows, "cols": cols},
        dtype=dtype,
        scalars={"eps": eps},
        set=set,
    )


definition = Definition(
    name="gated_norm",
    description="y = x / sqrt(mean(x^2) + eps) * weight * sigmoid(gate), row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "gate": TensorSpec(shape=("rows", "cols"), layout="any"),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-6, between=(1e-8, 1e-2)),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="8 * rows * cols",
    workloads=(
        at(64, 2048),
        at(16, 8192),
        at(512, 1024, "full"),
        at(4096, 256, "full", eps=1e-5),
        at(1, 1, "odd"),
        at(3, 17, "odd", eps=1e-3),
        at(9, 127, "odd"),
        at(5, 1025, "odd"),
        at(33, 640, "odd", eps=1e-5),
    ),
)


def reference(x, gate, weight, eps):
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps) * torch.sigmoid(gate)

"""Response of two decays in a row after eight steps: a complete symmetric polynomial of both."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="power_sum",
    description="y = x * sum of first^k * second^(7 - k) for k from 0 to 7",
    op_type="elementwise",
    axes={"n": "samples"},
    inputs={
        "x": TensorSpec(shape=("n",)),
        "first": ScalarSpec(value=0.9, between=(0.0, 1.0)),
        "second": ScalarSpec(value=0.5, between=(0.0, 1.0)),
    },
    outputs={"y": TensorSpec(shape=("n",))},
    tolerance=Tolerance(),
    flops="n",
    workloads=(
        Workload(name="100000", axes={"n": 100000}),
        Workload(name="50000", axes={"n": 50000}),
        Workload(name="1", axes={"n": 1}, set="odd"),
        Workload(name="67", axes={"n": 67}, set="odd"),
        Workload(name="129", axes={"n": 129}, set="odd"),
    ),
)


def reference(x: torch.Tensor, first: float, second: float) -> torch.Tensor:
    return x * sum(first**power * second ** (7 - power) for power in range(8))

"""Step of gradient descent with momentum."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(n: int, set: str = "representative") -> Workload:
    return Workload(name=f"{n}", axes={"n": n}, set=set)


definition = Definition(
    name="momentum_step",
    description="new_average = decay * average + gain * grad; new_param = param - rate * new_average",
    op_type="optimizer",
    axes={"n": "parameters"},
    inputs={
        "param": TensorSpec(shape=("n",)),
        "average": TensorSpec(shape=("n",)),
        "grad": TensorSpec(shape=("n",)),
        "rate": ScalarSpec(value=0.1, description="learning rate"),
        "decay": ScalarSpec(value=0.9, description="momentum"),
        "gain": ScalarSpec(value=1.0, description="factor of the gradient, 1 without dampening"),
    },
    outputs={"new_param": TensorSpec(shape=("n",)), "new_average": TensorSpec(shape=("n",))},
    flops="6 * n",
    workloads=(at(100000), at(1000000), at(1, "odd"), at(129, "odd")),
)


def reference(
    param: torch.Tensor, average: torch.Tensor, grad: torch.Tensor, rate: float, decay: float, gain: float
) -> tuple[torch.Tensor, torch.Tensor]:
    new_average = decay * average + gain * grad
    return param - rate * new_average, new_average


def magnitude(
    param: torch.Tensor, average: torch.Tensor, grad: torch.Tensor, rate: float, decay: float, gain: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Terms cancel."""
    new_average = decay * average.abs() + gain * grad.abs()
    return param.abs() + rate * new_average, new_average

"""Exponential moving average, as a newcomer writes it: two sizes, no odd ones."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(batch, steps):
    return Workload(name=f"{batch}x{steps}", axes={"batch": batch, "steps": steps})


definition = Definition(
    name="ema",
    description="y[0] = x[0]; y[t] = alpha * y[t - 1] + (1 - alpha) * x[t], along each row",
    op_type="scan",
    axes={"batch": "series", "steps": "time steps"},
    inputs={"x": TensorSpec(shape=("batch", "steps")), "alpha": ScalarSpec(value=0.9)},
    outputs={"y": TensorSpec(shape=("batch", "steps"))},
    tolerance=Tolerance(reduction="steps"),
    flops="3 * batch * steps",
    workloads=(at(16, 2000), at(4, 6000)),
)


def _scan(x, alpha):
    if x.shape[1] == 0:
        return x.clone()
    values = [x[:, 0]]
    for column in x.unbind(1)[1:]:
        values.append(alpha * values[-1] + (1 - alpha) * column)
    return torch.stack(values, 1)


def reference(x, alpha):
    return _scan(x, alpha)


def magnitude(x, alpha):
    return _scan(x.abs(), alpha)

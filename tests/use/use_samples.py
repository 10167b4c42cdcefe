"""A definition as text, and a gradient for it."""

DEFINITION = """\
import torch
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload

definition = Definition(
    name="{name}", description="y = scale * x + bias, and the sum of a row",
    axes={{"rows": "rows", "groups": "columns over 4"}},
    inputs={{"x": TensorSpec(shape=("rows", "4 * groups")), "bias": TensorSpec(shape=("4 * groups",)),
            "scale": ScalarSpec(value=2.0)}},
    outputs={{"y": TensorSpec(shape=("rows", "4 * groups")),
             "sums": TensorSpec(shape=("4 * ((rows + 3) // 4)",), dtype="float64")}},
    flops="rows * groups", outputs_are="{outputs}",
    workloads=(Workload(name="small", axes={{"rows": 4, "groups": 2}}),),
)

def reference(x, bias, scale):
    y = scale * x + bias
    sums = torch.nn.functional.pad(y.sum(-1).double(), (0, -y.shape[0] % 4))
    return y, sums
"""

BACKWARD = """
def backward(x, bias, scale, dy, dsums):
    d = dy + dsums[: x.shape[0], None].to(dy.dtype)
    return scale * d, d.sum(0)
"""

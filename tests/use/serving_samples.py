"""An operator that was captured, a version of it, and a judgement."""

from campaign_kit import evaluation

DOUBLE = """
from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="double", description="Twice x", op_type="scale", axes={"rows": "rows", "cols": 8},
    inputs={"x": TensorSpec(shape=("rows", "cols"), dtype="float32")},
    outputs={"y": TensorSpec(shape=("rows", "cols"), dtype="float32")}, flops="rows * cols",
    workloads=(Workload(name="small", axes={"rows": 4}, weight=9), Workload(name="large", axes={"rows": 40}),
               Workload(name="slow", axes={"rows": 5}), Workload(name="later", axes={"rows": 6}, set="full")),
    tags=("serving:double_h8",),
)

def reference(x):
    return 2 * x
"""

CPP = """#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  for (int64_t i = 0; i < x.size(0) * x.size(1); ++i) y.data<float>()[i] = 2 * x.data<float>()[i];
}
"""

_REFERENCE = {"against": "reference", "other_seconds": 4.0, "interval": {"low": 1.0, "high": 9.0}, "pairs": 10}


def judged(path, **speedups):
    """An evaluation of a version's file, with a speedup over the reference at each workload."""
    data = evaluation(path, "ACCEPT", None).model_dump(mode="json")
    (model,) = data["results"]
    data["results"] = [
        model | {"workload": name, "timing": model["timing"] | {"comparisons": [_REFERENCE | {"speedup": value}]}}
        for name, value in speedups.items()
    ]
    return evaluation(path, "ACCEPT", None).model_validate(data)

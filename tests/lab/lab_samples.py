"""Definitions as text, and what tests ask of a worker host."""

from __future__ import annotations

import psutil
import pytest
import torch

from warpsmith.lab.workers.calls import late_inputs
from warpsmith.lab.workers.worker_host import WorkerHost

needs_early_start = pytest.mark.skipif(
    not torch.cuda.is_available() or not late_inputs.kernels_can_start_early(),
    reason="no kernel starts before the one ahead has ended here",
)

HEAD = """\
import ctypes, os, subprocess, sys, time
import torch
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
"""

SQUARE = (
    HEAD
    + """
definition = Definition(
    name="square", description="y = x * x",
    axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))},
    flops="n",
    workloads=(Workload(name="small", axes={"n": 1000}), Workload(name="large", axes={"n": 5000})),
)
def reference(x):
    return x * x
"""
)
"""One elementwise operator; its output is returned."""

GIVEN = SQUARE.replace('name="square"', 'name="given"').replace('flops="n",', 'flops="n", outputs_are="given",')
"""The same, written into tensors of the lab."""


SCALE = (
    SQUARE.replace("y = x * x", "y = w * x").replace('name="square"', 'name="scale"')
    .replace('inputs={"x": TensorSpec(shape=("n",))}',
             'inputs={"x": TensorSpec(shape=("n",)), "w": TensorSpec(shape=("n",), role="weight")}')
    .replace("def reference(x):\n    return x * x", "def reference(x, w):\n    return w * x")
)  # fmt: skip
"""One operator with a weight."""


LINEAR = (
    HEAD
    + """
definition = Definition(
    name="linear", description="y = x @ w",
    axes={"m": "rows", "k": "inputs", "n": "outputs"},
    inputs={"x": TensorSpec(shape=("m", "k")), "w": TensorSpec(shape=("k", "n"), role="weight")},
    outputs={"y": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="k"), flops="2 * m * k * n",
    workloads=(Workload(name="small", axes={"m": 8, "k": 32, "n": 64}),
               Workload(name="large", axes={"m": 16, "k": 64, "n": 96})),
)
def reference(x, w):
    return x @ w
def magnitude(x, w):
    return x.abs() @ w.abs()
"""
)
"""One product, whose weight has two axes."""


def linear_kernel(is_known: str, before: str = "", keep: str = "") -> str:
    """A C++ solution of `LINEAR` that keeps its weight as long as `is_known`, after the statements in `before`;
    where it reads the weight anew it runs `keep` as well."""
    return f"""\
#include <warpsmith.hpp>
#include <algorithm>
#include <vector>
static std::vector<float> kept;
static std::vector<uint64_t> key;
static int64_t rows = 0, cols = 0;
static uint64_t word_of(float number) {{ uint32_t word; std::memcpy(&word, &number, sizeof word); return word; }}
extern "C" void run(const Tensor& x_, const Tensor& w_, Tensor& y_) {{
  const int64_t m = x_.size(0), k = x_.size(1), n = w_.size(1);
  const float *x = x_.data<float>(), *w = w_.data<float>();
  float* y = y_.data<float>();
  {before}
  if (!({is_known})) {{ kept.assign(w, w + k * n); rows = k; cols = n; {keep} }}
  for (int64_t row = 0; row < m; ++row)
    for (int64_t col = 0; col < n; ++col) {{
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += (double)x[row * k + i] * kept[i * cols + col];
      y[row * n + col] = sum;
    }}
}}
"""


SAME_SHAPE = "rows == k && cols == n"
SAME_WEIGHT = "(int64_t)kept.size() == k * n && std::equal(kept.begin(), kept.end(), w)"


_HEAVY = {"std::thread": "thread", "std::vector": "vector", "std::f": "cmath", "NAN": "cmath"}
"""What a kernel may name to the header that has it: reading them takes most of a compilation."""


def kernel(body: str, before: str = "", weight: bool = False) -> str:
    """A C++ solution of `SQUARE`, or of `SCALE` with `weight`."""
    more = "const Tensor& w_, " if weight else ""
    weights = "const float* w = w_.data<float>();" if weight else ""
    headers = sorted({header for name, header in _HEAVY.items() if name in before + body})
    heavy = "\n".join(f"#include <{header}>" for header in headers)
    return f"""\
#include <warpsmith.hpp>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
{heavy}
{before}
extern "C" void run(const Tensor& x_, {more}Tensor& y_) {{
  const int64_t n = x_.size(0);
  const float* x = x_.data<float>();
  {weights}
  float* y = y_.data<float>();
  {body}
}}
"""


HONEST = "for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];"
"""What `kernel` computes where nothing is wrong."""

HONEST_SCALE = "for (int64_t i = 0; i < n; ++i) y[i] = w[i] * x[i];"
"""The same with a weight."""


def workers(host: WorkerHost) -> list[psutil.Process]:
    """Everything that lives under a worker host, without its idle workers."""
    idle = {side.pid for side in host._idle}
    return [one for one in psutil.Process(host._process.pid).children(recursive=True) if one.pid not in idle]


class Lent:
    """Stands in for `WorkerHost` where the code under test would start one of its own."""

    def __init__(self, host: WorkerHost) -> None:
        self.host = host

    def __call__(self, *_: object, **__: object) -> Lent:
        return self

    def __enter__(self) -> WorkerHost:
        return self.host

    def __exit__(self, *_: object) -> None:
        """The host stays."""

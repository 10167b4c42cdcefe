"""A suite of one small operator in place of the shipped one, and cells of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from warpsmith.uplift import layout, suite
from warpsmith.uplift.models import Arm, Budget, Cell

DEFINITION = '''\
"""Squares."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload

LIMIT = 3

definition = Definition(
    name="square", description="y = x * x * scale", axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",)), "scale": ScalarSpec(value=2.0)},
    outputs={"y": TensorSpec(shape=("n",))}, flops="n",
    workloads=(Workload(name="small", axes={"n": 1000}), Workload(name="tail", axes={"n": 7}, set="odd")),
    constraints=("n is no secret",),
)


def reference(x, scale):
    return x * x * scale
'''
HIDDEN = {"square": [{"axes": {"n": 5003}, "dtype": "float32"}]}
KERNEL = """\
#include <warpsmith.hpp>
constexpr int SPEED = 2, MODE = 0;
extern "C" void run(const Tensor& x_, double scale, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  volatile int speed = SPEED;
  for (int64_t i = 0; i < x_.size(0); ++i) y[i] = x[i] * x[i] * static_cast<float>(scale);
  if (MODE == 1) y[0] += 1;
  if (MODE == 2 && x_.size(0) == 5003) y[5002] = 0;
}
"""

MakeCell = Callable[..., Path]


@pytest.fixture
def square_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Suite with the operator `square`, one hidden size and the shipped scripts."""
    folder = tmp_path / "suite"
    (folder / "operators" / "square").mkdir(parents=True)
    (folder / "operators" / "square" / "definition.py").write_text(DEFINITION)
    (folder / "hidden.json").write_text(json.dumps(HIDDEN))
    shutil.copytree(suite.SUITE / "bare", folder / "bare")
    monkeypatch.setattr(suite, "SUITE", folder)
    return folder


@pytest.fixture
def make_cell(square_suite: Path, tmp_path: Path) -> MakeCell:
    """`make_cell(arm, repetition, kernel=..., speedup=..., correct=...)`: a folder with a submission."""

    def make(
        arm: Arm = "bare",
        repetition: int = 1,
        kernel: str = KERNEL,
        speedup: float = 1.0,
        correct: bool = True,
        budget: Budget | None = None,
    ) -> Path:
        folder = tmp_path / f"{arm}-{repetition}"
        cell = Cell(operator="square", arm=arm, repetition=repetition, budget=budget or Budget())
        layout.lay_out_cell(cell, folder)
        (folder / "submission" / "kernel.cpp").write_text(kernel)
        (folder / "submission" / "claim.json").write_text(json.dumps({"correct": correct, "speedup": speedup}))
        return folder

    return make

"""Definitions as text, and what tests ask of a worker host."""

from __future__ import annotations

import psutil

from warpsmith.lab.side import WorkerHost

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


def workers(host: WorkerHost) -> list[psutil.Process]:
    """Everything that lives under a worker host."""
    return psutil.Process(host._process.pid).children(recursive=True)


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

"""Override of a region in compiled graphs by an accepted kernel, at the tensors that its definition covers."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from pathlib import Path

from warpsmith.core.definition import Definition
from warpsmith.program.compiled import replacement
from warpsmith.program.compiled.region_graph import RegionGraph, RegionTensor
from warpsmith.program.compiled.replacement import RegionKernel
from warpsmith.program.operators import layout
from warpsmith.program.operators.models import Extraction
from warpsmith.use.operator import BestFunction, planned_operators

HITS_VARIABLE = "WARPSMITH_HITS"
"""The environment variable that names the file to which a process adds the calls of its kernels when it ends."""

_registered: list[None] = []


def install_region(
    extraction: Extraction, region: RegionGraph, definition: Definition, kernel: BestFunction
) -> None:
    """Replace a region by a kernel in every graph that is compiled from now on."""
    replacement.add_kernel(
        RegionKernel(
            name=extraction.op,
            region=region,
            call=kernel.operator,
            is_covered=CoveredRegion(extraction, definition),
            input_orders=tuple(_inverse(slot.order) for slot in extraction.slots),
            output_orders=tuple(result.order for result in extraction.results),
        )
    )
    if os.environ.get(HITS_VARIABLE) and not _registered:
        _registered.append(None)
        atexit.register(_write_hits, os.environ[HITS_VARIABLE])


def region_hits(op: str) -> int:
    """Return the number of calls of a region's kernel in this process, from compiled graphs."""
    return sum(plan.calls for name, plan in planned_operators().items() if name.startswith(f"{op}_"))


def _write_hits(path: str) -> None:
    """Add a line `<process> <operator> <calls>` for each kernel that was called."""
    lines = [f"{os.getpid()} {name} {plan.calls}\n" for name, plan in planned_operators().items() if plan.calls]
    with Path(path).open("a", encoding="utf-8") as file:
        file.writelines(lines)


def _inverse(order: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if order is None else tuple(layout.inverse_order(order))


class CoveredRegion:
    """Tensors of a region that its definition was judged at."""

    def __init__(self, extraction: Extraction, definition: Definition) -> None:
        self._slots, self._definition = extraction.slots, definition
        self._device = "cpu" if extraction.device == "cpu" else "cuda"
        self._workloads = [workload for workload in definition.workloads if workload.timed]

    def __call__(self, tensors: Sequence[RegionTensor]) -> bool:
        """Return whether one workload has the sizes, data types and layouts of all tensors."""
        if len(tensors) != len(self._slots) or any(tensor.device != self._device for tensor in tensors):
            return False
        specs = [self._definition.tensor_inputs[str(slot.input)] for slot in self._slots]
        shapes: list[list[int]] = []
        for slot, spec, tensor in zip(self._slots, specs, tensors, strict=True):
            order = slot.order or tuple(range(len(tensor.shape)))
            if len(order) != len(tensor.shape):
                return False
            inverse = layout.inverse_order(order)
            shape = [tensor.shape[dimension] for dimension in inverse]
            strides = [tensor.strides[dimension] for dimension in inverse]
            if spec.layout != "any" and not layout.is_contiguous(shape, strides):
                return False
            shapes.append(shape)
        return any(
            all(
                list(self._definition.shape(spec, workload)) == shape
                and self._definition.dtype(spec, workload) == tensor.dtype
                for spec, shape, tensor in zip(specs, shapes, tensors, strict=True)
            )
            for workload in self._workloads
        )

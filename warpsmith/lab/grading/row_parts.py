"""Calls too large for the device's memory in float64: their reference is computed some rows at a time.

All rows are computed, so nothing is left unjudged. The functions of the definition must be row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import psutil

from warpsmith.core.definition import TensorSpec, Workload
from warpsmith.lab.grading import rows
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]

_COPIES = 6
"""Float64 copies of all inputs and outputs that a reference with its bounds is assumed to need at once. Chosen:
five for cross-entropy; the first part of a call measures it."""

_LEAST_BYTES = 1 << 28
"""Bytes up to which a call is never split: it costs less than asking the driver for the free memory."""

_ROOM_SHARE = 0.25
"""Share of the free memory that one part may take: workers need the rest."""

_KEPT_SHARE = 1 / 32
"""Share of the memory that the allocator may keep unused between two calls of a worker."""

_UNUSED_SHARE = 0.25
"""Share of the free memory that it may keep beyond that. Chosen: a worker that needs the rest has little more."""


def exceeds_memory(file: DefinitionFile, workload: Workload, device: str) -> bool:
    """Return True if the float64 reference of a whole call may take more memory than a part may."""
    needed = _bytes_needed(file, workload)
    return needed > _LEAST_BYTES and needed > _ROOM_SHARE * free_bytes(device)


def compute_within_memory(
    file: DefinitionFile,
    workload: Workload,
    inputs: Tensors,
    find_axis: Callable[[DefinitionFile], str | None],
    compute: Callable[[Workload, Tensors], Tensors],
) -> Tensors:
    """Compute tensors with the outputs' shapes: at once, or part by part along an axis of rows if memory is short.

    Args:
        file: the definition.
        workload: the whole call.
        inputs: its inputs.
        find_axis: `find_row_axis` or `find_part_axis`; it is asked only if memory is short.
        compute: computes the tensors of a part from its workload and inputs; their names are those of outputs,
            perhaps with a prefix before a colon.
    """
    device = device_of(inputs)
    axis = find_axis(file) if exceeds_memory(file, workload, device) else None
    if axis is None:
        return compute(workload, inputs)
    definition, size = file.definition, file.definition.sizes(workload)[axis]
    whole: Tensors = {}
    for start, length in _split_rows(file, workload, size, device):
        part = {
            name: _narrow(inputs[name], spec, axis, start, length)
            for name, spec in definition.tensor_inputs.items()
        }
        results = compute(rows.shorten(workload, axis, length), part)
        for name, result in results.items():
            spec = definition.outputs[name.rpartition(":")[2]]
            if name not in whole:
                whole[name] = result.new_empty(definition.shape(spec, workload))
            _narrow(whole[name], spec, axis, start, length).copy_(result)
        del part, results, result
    return whole


def device_of(inputs: Tensors) -> str:
    """Return the type of the device of a call's inputs; a processor's for a call without any."""
    return next((tensor.device.type for tensor in inputs.values()), "cpu")


def free_bytes(device: str) -> float:
    """Return the bytes of a GPU that are free or kept unused by the allocator; on a CPU those of this machine that
    processes can still have."""
    import torch

    if device == "cpu":
        return float(psutil.virtual_memory().available)
    return float(torch.cuda.mem_get_info()[0] + _unused_bytes())


def release_unused(device: str) -> None:
    """Give memory that the allocator keeps unused back to the GPU if it is much, also beside what is free: workers
    cannot use it, and the driver takes long to give it again."""
    import torch

    if device == "cpu":
        return
    unused, total = _unused_bytes(), torch.cuda.get_device_properties(0).total_memory
    if unused > _KEPT_SHARE * total and unused > _UNUSED_SHARE * torch.cuda.mem_get_info()[0]:
        torch.cuda.empty_cache()


def _unused_bytes() -> int:
    import torch

    return torch.cuda.memory_reserved() - torch.cuda.memory_allocated()


def _bytes_needed(file: DefinitionFile, workload: Workload) -> int:
    return 8 * _COPIES * file.definition.elements(workload)


def _split_rows(file: DefinitionFile, workload: Workload, size: int, device: str) -> Iterator[tuple[int, int]]:
    """Yield the start and length of each part; the memory that a part took decides how long the next one is."""
    import torch

    room, start = _ROOM_SHARE * free_bytes(device), 0
    count = max(1, int(size * room / max(_bytes_needed(file, workload), 1)))
    while start < size:
        length, before = min(count, size - start), 0
        if device != "cpu":
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        yield start, length
        start += length
        if device != "cpu":
            growth = torch.cuda.max_memory_allocated() - before
            count = max(1, min(2 * length, int(length * room / max(growth, 1))))


def _narrow(tensor: torch.Tensor, spec: TensorSpec, axis: str, start: int, length: int) -> torch.Tensor:
    """Return the rows of a tensor as a view, and a tensor without the axis as it is."""
    return tensor.narrow(spec.shape.index(axis), start, length) if axis in spec.shape else tensor

"""Task: short random projections of parameters and buffers, to compare two processes.

A sketch is linear: the difference of two sketches is the sketch of the difference, with about the same norm.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warpsmith.program.process import gather

if TYPE_CHECKING:
    from torch import Tensor

    from warpsmith.program.process.loaded_program import LoadedProgram

SIZE = 256
"""Numbers in a sketch, whose norm is accurate to about 10 %. A tensor with fewer elements is its own sketch."""

_CHUNK = 1 << 22
_SEED = 20_221_111


def main(program: LoadedProgram, jitter: float = 0.0) -> dict[str, Any]:
    """Return name, shape, floating-point flag, sketch and sharding flag of all parameters and buffers, in order.

    With `jitter` each element of a parameter is first changed by a random share of at most `jitter`, or of its
    dtype's epsilon if that is larger, so that the program rounds differently.
    """
    import torch

    if gather.compile_modes:
        gather.draw_as_eager()
    parameters, buffers = dict(_parameters(program)), dict(_buffers(program))
    with torch.no_grad():
        for index, tensor in enumerate(parameters.values()):
            if jitter and tensor.is_floating_point():
                _perturb(tensor, jitter, index)
        return {
            "parameters": [
                _sketch_fields(name, tensor, index) for index, (name, tensor) in enumerate(parameters.items())
            ],
            "buffers": [
                _sketch_fields(name, tensor, index) for index, (name, tensor) in enumerate(buffers.items())
            ],
        }


def _parameters(program: LoadedProgram) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter once: those of modules, then those that only an optimizer has."""
    import torch

    visited: set[int] = set()
    for name, module in program.modules().items():
        for path, tensor in module.named_parameters(name):
            if id(tensor) not in visited:
                visited.add(id(tensor))
                yield path, tensor
    optimizers = [item for item in gc.get_objects() if issubclass(type(item), torch.optim.Optimizer)]
    updated = [
        tensor for optimizer in optimizers for group in optimizer.param_groups for tensor in group["params"]
    ]
    for index, tensor in enumerate(updated):
        if id(tensor) not in visited:
            visited.add(id(tensor))
            yield f"optimizer.{index}", tensor


def _buffers(program: LoadedProgram) -> Iterator[tuple[str, Tensor]]:
    visited: set[int] = set()
    for name, module in program.modules().items():
        for path, tensor in module.named_buffers(name):
            if id(tensor) not in visited:
                visited.add(id(tensor))
                yield path, tensor


def _sketch_fields(name: str, tensor: Tensor, index: int) -> list[Any]:
    local = _local_part(tensor)
    plain = ".".join(part for part in name.split(".") if part != "_orig_mod")  # torch.compile adds this part
    return [plain, list(local.shape), local.is_floating_point(), _sketch(local, index), _is_sharded(tensor)]


def _sketch(tensor: Tensor, index: int) -> list[float]:
    """Sum the elements, with random signs, into `SIZE` bins."""
    import torch

    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).detach().reshape(-1)
    if flat.numel() <= SIZE:
        return [float(value) for value in flat.double().tolist()]
    generator = torch.Generator(flat.device).manual_seed(_SEED + index)
    total = torch.zeros(SIZE, dtype=torch.float64, device=flat.device)
    for begin in range(0, flat.numel(), _CHUNK):
        part = flat[begin : begin + _CHUNK]
        signs = torch.randint(0, 2, part.shape, generator=generator, device=part.device, dtype=torch.int8)
        values = part.double()
        signed = torch.where(signs.bool(), values, -values)
        padded = torch.nn.functional.pad(signed, (0, -len(signed) % SIZE))
        total += padded.view(-1, SIZE).sum(0)
    return [float(value) for value in total.tolist()]


def _perturb(tensor: Tensor, jitter: float, index: int) -> None:
    import torch

    local = _local_part(tensor)
    generator = torch.Generator(local.device).manual_seed(_SEED - 1 - index)
    share = max(jitter, torch.finfo(local.dtype).eps)
    noise = torch.rand(local.shape, generator=generator, device=local.device, dtype=torch.float32)
    local.mul_((1 + share * (2 * noise - 1)).to(local.dtype))


def _is_sharded(tensor: Tensor) -> bool:
    """Tell whether each process has another part of a tensor."""
    placements = getattr(tensor, "placements", ())
    return not all(placement.is_replicate() for placement in placements)


def _local_part(tensor: Tensor) -> Tensor:
    """Return this process's part of a tensor that is distributed over processes."""
    part = getattr(tensor, "to_local", None)
    return part() if part is not None else tensor

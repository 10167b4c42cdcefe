"""Task: parameters and buffers as short random projections, by which two processes can be compared.

A sketch is linear: the difference of two sketches is the sketch of the difference, and has about its norm.
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
"""Numbers in a sketch; a norm is off by about a tenth. A tensor of as many elements or fewer is kept as it is."""

_CHUNK = 1 << 22
_SEED = 20_221_111


def main(child: LoadedProgram, jitter: float = 0.0) -> dict[str, Any]:
    """Sketches of all parameters and buffers in their order, each with name, shape and whether it is floating.

    With `jitter` parameters are moved first, each element by a random share of up to that, and by no less than its
    dtype can hold: the program then rounds otherwise.
    """
    import torch

    if gather.compile_modes:
        import torch._inductor.config as inductor

        inductor.fallback_random = True  # compiled code draws what eager code draws
    parameters, buffers = dict(_parameters(child)), dict(_buffers(child))
    with torch.no_grad():
        for place, tensor in enumerate(parameters.values()):
            if jitter and tensor.is_floating_point():
                _perturb(tensor, jitter, place)
        return {
            "parameters": [
                _describe_tensor(name, tensor, place) for place, (name, tensor) in enumerate(parameters.items())
            ],
            "buffers": [
                _describe_tensor(name, tensor, place) for place, (name, tensor) in enumerate(buffers.items())
            ],
        }


def _parameters(child: LoadedProgram) -> Iterator[tuple[str, Tensor]]:
    """Every parameter once, by modules; and those that only an optimizer holds."""
    import torch

    seen: set[int] = set()
    for name, module in child.modules().items():
        for path, tensor in module.named_parameters(name):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield path, tensor
    optimizers = [each for each in gc.get_objects() if issubclass(type(each), torch.optim.Optimizer)]
    held = [tensor for each in optimizers for group in each.param_groups for tensor in group["params"]]
    for place, tensor in enumerate(held):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield f"optimizer.{place}", tensor


def _buffers(child: LoadedProgram) -> Iterator[tuple[str, Tensor]]:
    seen: set[int] = set()
    for name, module in child.modules().items():
        for path, tensor in module.named_buffers(name):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield path, tensor


def _describe_tensor(name: str, tensor: Tensor, place: int) -> list[Any]:
    local = _local_part(tensor)
    plain = ".".join(part for part in name.split(".") if part != "_orig_mod")  # torch.compile wraps
    return [plain, list(local.shape), local.is_floating_point(), _sketch(local, place)]


def _sketch(tensor: Tensor, place: int) -> list[float]:
    """Elements with random signs, summed up into `SIZE` bins."""
    import torch

    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).detach().reshape(-1)
    if flat.numel() <= SIZE:
        return [float(value) for value in flat.double().tolist()]
    generator = torch.Generator(flat.device).manual_seed(_SEED + place)
    total = torch.zeros(SIZE, dtype=torch.float64, device=flat.device)
    for begin in range(0, flat.numel(), _CHUNK):
        part = flat[begin : begin + _CHUNK]
        signs = torch.randint(0, 2, part.shape, generator=generator, device=part.device, dtype=torch.int8)
        values = part.double()
        signed = torch.where(signs.bool(), values, -values)
        padded = torch.nn.functional.pad(signed, (0, -len(signed) % SIZE))
        total += padded.view(-1, SIZE).sum(0)
    return [float(value) for value in total.tolist()]


def _perturb(tensor: Tensor, jitter: float, place: int) -> None:
    import torch

    local = _local_part(tensor)
    generator = torch.Generator(local.device).manual_seed(_SEED - 1 - place)
    share = max(jitter, torch.finfo(local.dtype).eps)
    noise = torch.rand(local.shape, generator=generator, device=local.device, dtype=torch.float32)
    local.mul_((1 + share * (2 * noise - 1)).to(local.dtype))


def _local_part(tensor: Tensor) -> Tensor:
    """This process's part of a tensor that several share."""
    part = getattr(tensor, "to_local", None)
    return part() if part is not None else tensor

"""In the program's process: facts about the program and its memory.

This file imports only PyTorch and Python's library: a shell command's process loads it by path, in an environment
that may have no Warpsmith.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import sys
from collections import Counter
from pathlib import Path
from typing import Any

compile_modes: list[str] = []
"""Modes of all calls of `torch.compile` so far."""


def record_compile_calls() -> None:
    """Record every call of `torch.compile` from now on. Call this once, before the program is imported."""
    import functools

    import torch

    original = torch.compile

    @functools.wraps(original)
    def compile_and_record(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - PyTorch's
        if args or "model" in options:  # as a decorator it calls itself again with the function
            compile_modes.append(str(options.get("mode") or "default"))
        return original(*args, **options)

    torch.compile = compile_and_record


def gpu_initialized() -> bool:
    """Return true if this process has begun to use a GPU."""
    import torch

    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def gather_facts() -> dict[str, Any]:
    """Return the fields of `ProgramFacts` that a process knows of its live objects."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    modules, optimizers = live_objects(nn.Module), live_objects(torch.optim.Optimizer)
    updated = [item for optimizer in optimizers for group in optimizer.param_groups for item in group["params"]]
    parameters = {id(item): item for item in (*live_objects(nn.Parameter), *updated)}.values()
    gpu = gpu_initialized() and torch.cuda.max_memory_allocated() > 0
    convolution: Any = torch.backends.cudnn.conv  # type: ignore[attr-defined]
    dtypes: Counter[str] = Counter()
    for parameter in parameters:
        dtypes[_dtype(parameter)] += parameter.numel()
    return {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "gpu": gpu,
        "gpu_at_hand": torch.cuda.is_available(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "modules": dict(Counter(type(module).__name__ for module in modules).most_common()),
        "parameters": sum(dtypes.values()),
        "parameter_dtypes": dict(dtypes.most_common()),
        "channels_last": any(_channels_last(module) for module in modules),
        "optimizers": list_optimizers(),
        "loaders": [_loader_fields(item) for item in live_objects(DataLoader)],
        # The new switches show what the old ones set. Reading the old ones fails if a program used the new ones.
        "tf32_products": torch.backends.cuda.matmul.fp32_precision == "tf32",
        "tf32_convolutions": convolution.fp32_precision == "tf32",
        "compiled": list(compile_modes),
        "compiled_graphs": _compiled_graphs(),
        "cuda_graphs": len(live_objects(torch.cuda.CUDAGraph)),
        "world": world_size(),
        **gather_memory(),
    }


def list_optimizers() -> list[dict[str, Any]]:
    """Return the fields of `OptimizerFacts` for each live optimizer."""
    import torch

    return [_optimizer_fields(item) for item in live_objects(torch.optim.Optimizer)]


def gather_memory() -> dict[str, int]:
    """Return the fields of `ProgramFacts` about memory, in bytes."""
    import torch

    if gpu_initialized():
        counted = torch.cuda.memory_stats()
        return {
            "memory_peak": torch.cuda.max_memory_allocated(),
            "memory_reserved": torch.cuda.memory_reserved(),
            "memory_total": torch.cuda.get_device_properties().total_memory,
            "allocation_retries": int(counted.get("num_alloc_retries", 0)),
        }
    return {
        "memory_peak": _resident_peak(),
        "memory_reserved": 0,
        "memory_total": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "allocation_retries": 0,
    }


def reset_peak_memory() -> None:
    """Reset the peak of memory, so that it counts from now on."""
    import torch

    if gpu_initialized():
        torch.cuda.reset_peak_memory_stats()
    else:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:  # a container may refuse; the peak is then that of the process's whole life
            return


def live_objects(kind: type) -> list[Any]:
    """List live objects of a class by their type; isinstance would run code of some objects."""
    return [item for item in gc.get_objects() if issubclass(type(item), kind)]


def _dtype(tensor: Any) -> str:  # noqa: ANN401 - a tensor
    return str(tensor.dtype).removeprefix("torch.")


def _channels_last(module: Any) -> bool:  # noqa: ANN401 - a module
    import torch

    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 4 or weight.is_contiguous():
        return False
    return weight.is_contiguous(memory_format=torch.channels_last)


def _optimizer_fields(optimizer: Any) -> dict[str, Any]:  # noqa: ANN401 - an optimizer
    groups = optimizer.param_groups
    switches = {
        name: (None if (value := groups[0].get(name)) is None else bool(value))
        for name in ("fused", "foreach", "capturable")
        if groups
    }
    return {
        "kind": type(optimizer).__name__,
        "tensors": sum(len(group["params"]) for group in groups),
        **switches,
    }


def _loader_fields(loader: Any) -> dict[str, Any]:  # noqa: ANN401 - a DataLoader
    return {
        "workers": loader.num_workers,
        "pin_memory": bool(loader.pin_memory),
        "batch": loader.batch_size,
        "persistent": bool(loader.persistent_workers),
    }


def world_size() -> int:
    """Return the number of processes of the distributed run; 1 without one."""
    import torch

    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def _compiled_graphs() -> int:
    """Return the number of graphs that torch.compile made; its modules are not imported for it."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo is not None else 0


def _resident_peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

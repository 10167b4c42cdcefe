"""In the program's process: facts about the program and its memory.

This file imports only PyTorch and Python's library: a shell command's process loads it by path, in an environment
that may have no Warpsmith.
"""

from __future__ import annotations

import gc
import logging
import os
import platform
import re
import resource
import sys
from collections import Counter
from pathlib import Path
from typing import Any

compile_modes: list[str] = []
"""Modes of all calls of `torch.compile` so far."""

graph_breaks: list[dict[str, Any]] = []
"""Fields of a `CompileEvent` for each graph break so far."""

_BREAK = re.compile(r"Graph break in user code at (.+):(\d+)\nGraph Break Reason: (.*)", re.DOTALL)
_BREAK_LOGS = ("torch._dynamo.symbolic_convert.__graph_breaks", "torch._dynamo.convert_frame.__graph_breaks")
_GENERIC_REASON = "Encountered graph break"
_LONGEST_REASON = 160


def record_compile_calls(*, eager_random: bool = False) -> None:
    """Record every call of `torch.compile` from now on. Call this once, before the program is imported.

    `eager_random`: what it compiles draws the same random numbers as eager code.
    """
    import functools

    import torch

    original = torch.compile

    @functools.wraps(original)
    def compile_and_record(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - PyTorch's
        _record_graph_breaks()
        if eager_random:
            draw_as_eager()
        if args or "model" in options:  # as a decorator it calls itself again with the function
            compile_modes.append(str(options.get("mode") or "default"))
        return original(*args, **options)

    torch.compile = compile_and_record


def draw_as_eager() -> None:
    """Have code that is compiled from now on draw the same random numbers as eager code."""
    import torch._inductor.config as inductor

    inductor.fallback_random = True


class _BreakHandler(logging.Handler):
    """Handler that keeps the graph breaks that torch.compile logs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message about a graph break in a user's line."""
        match = _BREAK.match(record.getMessage())
        if match:
            reasons = [line.strip() for line in match[3].splitlines() if line.strip()]
            explained = [line.partition(": ")[2] for line in reasons if line.startswith("Explanation: ")]
            specific = [line for line in reasons if not line.startswith(_GENERIC_REASON)] or reasons or [""]
            graph_breaks.append(
                {
                    "kind": "graph break",
                    "file": match[1],
                    "line": max(1, int(match[2])),
                    "function": "",
                    "reason": (explained or specific)[0][:_LONGEST_REASON].rstrip("."),
                }
            )


def _record_graph_breaks() -> None:
    """Keep the graph breaks that torch.compile logs, and print them only if the program asks for that itself."""
    for name in _BREAK_LOGS:
        log = logging.getLogger(name)
        if any(isinstance(handler, _BreakHandler) for handler in log.handlers):
            continue
        if not log.isEnabledFor(logging.DEBUG):
            log.propagate = False
            log.setLevel(logging.DEBUG)
        log.addHandler(_BreakHandler())


def list_recompilations() -> list[dict[str, Any]]:
    """List the fields of a `CompileEvent` for the last recompilations; none if PyTorch keeps no metrics."""
    if "torch._dynamo" not in sys.modules:
        return []
    try:
        from torch._dynamo.utils import get_compilation_metrics
    except ImportError:
        return []
    return [
        {
            "kind": "recompilation",
            "file": str(item.co_filename),
            "line": max(1, item.co_firstlineno or 1),
            "function": str(item.co_name),
            "reason": _short_reason(reason),
        }
        for item in get_compilation_metrics()
        if (reason := getattr(item, "recompile_reason", None))
    ]


def _short_reason(text: str) -> str:
    """Return the first line of a reason, without the number of the compilation and the source after it."""
    first = text.strip().splitlines()[0]
    return re.sub(r"^\d+/\d+: ", "", first).partition("  #")[0].strip()[:_LONGEST_REASON]


def gpu_initialized() -> bool:
    """Return true if this process has begun to use a GPU."""
    import torch

    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def list_own_gpus() -> list[int]:
    """List the numbers of the GPUs that this process uses, whether or not one is the current one of PyTorch."""
    import torch

    if not gpu_initialized():
        return []
    return [index for index in range(torch.cuda.device_count()) if torch._C._cuda_hasPrimaryContext(index)]  # type: ignore[attr-defined]


def main_gpu() -> int | None:
    """Return the number of the GPU on which this process has had most memory; None if it had none on any."""
    import torch

    peaks = {index: torch.cuda.max_memory_allocated(index) for index in list_own_gpus()}
    first = max(peaks, key=lambda index: peaks[index], default=None)
    return first if first is not None and peaks[first] > 0 else None


def gather_facts() -> dict[str, Any]:
    """Return the fields of `ProgramFacts` that a process knows of its live objects."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    modules, optimizers = live_objects(nn.Module), live_objects(torch.optim.Optimizer)
    updated = [item for optimizer in optimizers for group in optimizer.param_groups for item in group["params"]]
    parameters = {id(item): item for item in (*live_objects(nn.Parameter), *updated)}.values()
    gpu = main_gpu()
    convolution: Any = torch.backends.cudnn.conv  # type: ignore[attr-defined]
    dtypes: Counter[str] = Counter()
    for parameter in parameters:
        dtypes[_dtype(parameter)] += parameter.numel()
    return {
        "device": "cpu" if gpu is None else torch.cuda.get_device_name(gpu),
        "gpu": gpu is not None,
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
        "compile_events": [*graph_breaks, *list_recompilations()],
        "compiled_graphs": _compiled_graphs(),
        "cuda_graphs": len(live_objects(torch.cuda.CUDAGraph)),
        "world": world_size(),
        "rank": rank_number(),
        "replicas": [_replica_fields(item) for item in live_objects(torch.nn.parallel.DistributedDataParallel)],
        "sharded_modules": sum(_is_sharded(module) for module in modules),
        **gather_memory(),
    }


def list_optimizers() -> list[dict[str, Any]]:
    """Return the fields of `OptimizerFacts` for each live optimizer."""
    import torch

    return [_optimizer_fields(item) for item in live_objects(torch.optim.Optimizer)]


def gather_memory() -> dict[str, int]:
    """Return the fields of `ProgramFacts` about memory, in bytes: on a GPU that of the one with the most."""
    import torch

    if gpu_initialized():
        gpu = main_gpu()
        counted = torch.cuda.memory_stats(gpu)
        return {
            "memory_peak": torch.cuda.max_memory_allocated(gpu),
            "memory_reserved": torch.cuda.memory_reserved(gpu),
            "memory_total": torch.cuda.get_device_properties(gpu).total_memory,
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
        for gpu in list_own_gpus():
            torch.cuda.reset_peak_memory_stats(gpu)
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


def rank_number() -> int:
    """Return the number of this process in the distributed run; 0 without one."""
    import torch

    return torch.distributed.get_rank() if world_size() > 1 else 0


def _replica_fields(module: Any) -> dict[str, Any]:  # noqa: ANN401 - a DistributedDataParallel
    """Return the fields of `ReplicaFacts`; sizes come from the log that PyTorch keeps of its first steps."""
    try:
        log = module._get_ddp_logging_data()
    except (AttributeError, RuntimeError):
        log = {}
    sizes = str(log.get("rebuilt_bucket_sizes") or log.get("bucket_sizes") or "")
    return {
        "buckets": [int(size) for size in sizes.split(",") if size.strip().isdigit()],
        "cap_bytes": log.get("bucket_cap_bytes"),
        "unused_bytes": log.get("unused_parameter_size"),
        "find_unused": bool(module.find_unused_parameters),
        "bucket_views": bool(module.gradient_as_bucket_view),
        "static_graph": bool(module.static_graph),
        "hook": str(log.get("comm_hook") or ""),
    }


def _is_sharded(module: Any) -> bool:  # noqa: ANN401 - a module
    """Tell whether a module's parameters are sharded by `fully_shard`, whose classes are not imported for it."""
    return any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__)


def _compiled_graphs() -> int:
    """Return the number of graphs that torch.compile made; its modules are not imported for it."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo is not None else 0


def _resident_peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

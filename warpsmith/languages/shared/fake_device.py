"""Fake GPU for compilation without one: torch.cuda gives its figures, and Triton, if it is installed, compiles for
it and launches nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from warpsmith.languages.shared.python_file import is_importable

ARCHITECTURES = {"sm_80": 80, "sm_89": 89, "sm_90a": 90, "sm_100": 100, "sm_120": 120}
"""NVIDIA's architectures that kernels are compiled for, with the compute capability times ten."""

AMD_ARCHITECTURES = {"gfx942": 94, "gfx950": 95}
"""AMD's architectures that kernels are compiled for, with the capability that PyTorch reports, times ten."""

DEVICES: dict[str, dict[str, Any]] = {
    "sm_80": {"name": "NVIDIA A100", "multi_processor_count": 108, "shared": 166912, "l2": 40 << 20},
    "sm_89": {"name": "NVIDIA L40S", "multi_processor_count": 142, "shared": 101376, "l2": 96 << 20},
    "sm_90a": {"name": "NVIDIA H200", "multi_processor_count": 132, "shared": 232448, "l2": 60 << 20},
    "sm_100": {"name": "NVIDIA B200", "multi_processor_count": 148, "shared": 232448, "l2": 126 << 20},
    "sm_120": {"name": "NVIDIA GeForce RTX 5090", "multi_processor_count": 170, "shared": 101376, "l2": 96 << 20},
    "gfx942": {"name": "AMD Instinct MI300X", "multi_processor_count": 304, "shared": 65536, "l2": 4 << 20},
    "gfx950": {"name": "AMD Instinct MI355X", "multi_processor_count": 256, "shared": 163840, "l2": 4 << 20},
}
"""Figures of one device for each architecture, which host code may ask for before it launches: its choices depend
on them, no result does. `shared` is the shared memory of a block and `l2` the L2 cache that one block reaches, in
bytes."""

_FEW_THREADS = ("sm_89", "sm_120")
"""Architectures with 1536 threads on a multiprocessor; others have 2048."""

_RESERVED_SHARED = 1024
"""Bytes of shared memory that NVIDIA's driver takes of each block; AMD's takes none."""


@contextmanager
def fake_device(
    arch: str, kernels: dict[str, tuple[Any, str]], change: Callable[[dict[str, Any]], None] = lambda _: None
) -> Iterator[None]:
    """Make CPU tensors pass for CUDA ones, and Triton launches only compile for `arch`, within the context.

    Args:
        arch: a key of `ARCHITECTURES` or `AMD_ARCHITECTURES`.
        kernels: receives each compiled Triton kernel with its function's name, by the kernel's hash.
        change: changes a launch's options, such as `num_warps`, before it compiles.
    """
    from unittest.mock import patch  # imports asyncio, which commands that only read do without

    import torch

    with ExitStack() as stack:
        if is_importable("triton"):
            stack.enter_context(_fake_triton(arch, kernels, change))
        stack.enter_context(patch.multiple("torch.cuda", **_torch_cuda(arch)))
        if arch in AMD_ARCHITECTURES:  # what host code tells AMD's GPUs by
            stack.enter_context(patch.object(torch.version, "hip", "7.0"))
        stack.enter_context(_cpu_as_cuda())
        yield


def warp_size(arch: str) -> int:
    """Return the threads of a warp, which AMD calls a wave."""
    return 64 if arch in AMD_ARCHITECTURES else 32


@contextmanager
def _fake_triton(
    arch: str, kernels: dict[str, tuple[Any, str]], change: Callable[[dict[str, Any]], None]
) -> Iterator[None]:
    """Make Triton's launches only compile, within the context; arguments are those of `fake_device`."""
    from unittest.mock import patch

    from triton.runtime.autotuner import Autotuner
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    launch: Callable[..., Any] = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ANN401
        change(kwargs)
        kernel = launch(self, *args, grid=grid, warmup=True, **kwargs)
        kernels.setdefault(kernel.hash, (kernel, self.__name__))
        return kernel

    with ExitStack() as stack:
        stack.enter_context(patch.object(JITFunction, "run", compile_only))
        stack.enter_context(patch.object(Autotuner, "_bench", lambda *_, **__: [1.0, 1.0, 1.0]))
        stack.enter_context(patch.object(driver, "_active", _driver(arch)))
        yield


def _capability(arch: str) -> int:
    return {**ARCHITECTURES, **AMD_ARCHITECTURES}[arch]


def _registers(arch: str) -> int:
    """Return the 32-bit registers of a multiprocessor."""
    return 131072 if arch in AMD_ARCHITECTURES else 65536


def _driver(arch: str) -> SimpleNamespace:
    """Return an object that answers what Triton asks its driver before a launch."""
    import torch
    from triton.backends.compiler import GPUTarget

    device, capability, warp = DEVICES[arch], _capability(arch), warp_size(arch)
    target = GPUTarget("hip", arch, warp) if arch in AMD_ARCHITECTURES else GPUTarget("cuda", capability, warp)
    properties = {
        "max_shared_mem": device["shared"],
        "multiprocessor_count": device["multi_processor_count"],
        "max_num_regs": _registers(arch),
        "warpSize": warp,
    }
    return SimpleNamespace(
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        set_current_device=lambda _: None,
        get_current_stream=lambda _=0: 0,
        get_device_capability=lambda _=0: divmod(capability, 10),
        get_active_torch_device=lambda: torch.device("cuda", 0),
        get_device_interface=lambda: torch.cuda,
        launcher_cls=lambda *_: lambda *_, **__: None,
        utils=SimpleNamespace(
            get_device_properties=lambda _=0: properties,
            load_binary=lambda *_: (None, None, 64, 0, 1024),
        ),
    )


def device_properties(arch: str) -> SimpleNamespace:
    """Return the figures of an architecture's device, as torch.cuda names them."""
    device, capability = DEVICES[arch], divmod(_capability(arch), 10)
    return SimpleNamespace(
        name=device["name"],
        major=capability[0],
        minor=capability[1],
        multi_processor_count=device["multi_processor_count"],
        warp_size=warp_size(arch),
        gcnArchName=arch,
        shared_memory_per_block_optin=device["shared"],
        shared_memory_per_multiprocessor=device["shared"] + (0 if arch in AMD_ARCHITECTURES else _RESERVED_SHARED),
        regs_per_multiprocessor=_registers(arch),
        max_threads_per_multi_processor=1536 if arch in _FEW_THREADS else 2048,
        L2_cache_size=device["l2"],
    )


def _torch_cuda(arch: str) -> dict[str, Any]:
    """Return the functions of torch.cuda that host code calls."""
    properties = device_properties(arch)
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda *_: None,
        "synchronize": lambda *_: None,
        "current_stream": lambda *_: SimpleNamespace(cuda_stream=0),
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: (properties.major, properties.minor),
        "get_device_name": lambda *_: properties.name,
        "device": nullcontext,
    }


def _cpu_as_cuda() -> Any:  # noqa: ANN401 - the class exists only once torch is imported
    """Return a mode in which CPU tensors report `cuda:0`, and calls that ask for that device get the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode

    answers = {
        torch.Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
        torch.Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
        torch.Tensor.device.__get__: torch.device("cuda", 0),
        torch.Tensor.get_device: 0,
    }

    def on_cpu(value: Any) -> Any:  # noqa: ANN401
        is_name = isinstance(value, str) and re.fullmatch(r"cuda(:\d+)?", value)
        return "cpu" if is_name or (isinstance(value, torch.device) and value.type == "cuda") else value

    class CpuAsCuda(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            if func in answers:
                return answers[func]
            if func is torch.Tensor.cuda:
                return args[0]
            return func(*map(on_cpu, args), **{key: on_cpu(value) for key, value in (kwargs or {}).items()})

    return CpuAsCuda()

"""Fake CUDA device for cuda.core: NVRTC compiles for it, nothing is loaded or launched, and `run` completes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod
from types import SimpleNamespace
from typing import Any

from warpsmith.errors import SolutionFailed
from warpsmith.languages.shared.fake_device import ARCHITECTURES, DEVICES, fake_device

AddLines = Callable[[str], str]
"""Adds to a program's text the lines of the file that it comes from."""


class FakeKernel:
    """A kernel that is never loaded: its machine code, and the figures that host code may ask for."""

    def __init__(self, code: bytes, name: str, symbol: str) -> None:
        self.code = code
        self.name = name
        self.symbol = symbol
        self.handle = self
        self.attributes = SimpleNamespace(
            num_regs=32,
            local_size_bytes=0,
            shared_size_bytes=0,
            max_threads_per_block=1024,
            max_dynamic_shared_size_bytes=0,
            preferred_shared_memory_carveout=-1,
            non_portable_cluster_size_allowed=False,
        )
        self.occupancy = SimpleNamespace(max_active_blocks_per_multiprocessor=lambda *_, **__: 1)


@dataclass
class CudaLaunch:
    """A kernel as `run` launches it."""

    kernel: FakeKernel
    block: tuple[int, ...]
    blocks: int
    """Blocks of its grid, those of all clusters."""
    cluster: tuple[int, ...] = ()
    shared: int = 0
    early: bool = False
    """True if it may start before the kernel ahead of it has ended."""
    arguments: tuple[Any, ...] | None = None
    """Its arguments, if they are passed as Python values."""
    workloads: list[str] = field(default_factory=list)
    grids: set[int] = field(default_factory=set)
    """Blocks of its grids at the workloads."""


Size = int | tuple[int, ...]
"""Extent of a grid, a cluster or a block."""


class FakeLaunchConfig:
    """Replaces `cuda.core.LaunchConfig`, which asks the driver about clusters."""

    def __init__(
        self,
        grid: Size = 1,
        cluster: Size | None = None,
        block: Size = 1,
        shmem_size: int | None = 0,
        **options: bool,
    ) -> None:
        self.grid, self.block = _three(grid), _three(block)
        self.cluster = _three(cluster) if cluster is not None else None
        self.shmem_size = shmem_size or 0
        self.options = options


@contextmanager
def fake_cuda_device(arch: str, add_lines: AddLines, launches: list[CudaLaunch]) -> Iterator[None]:
    """Make CPU tensors pass for CUDA ones, and launches only append to `launches`, within the context."""
    from unittest.mock import patch  # imports asyncio, which commands that only read do without

    with ExitStack() as stack:
        stack.enter_context(fake_device(arch, {}))
        stack.enter_context(patch.multiple("cuda.core", **_core(arch, add_lines, launches)))
        stack.enter_context(patch.multiple("cuda.bindings.driver", **_driver(arch, launches)))
        yield


def _core(arch: str, add_lines: AddLines, launches: list[CudaLaunch]) -> dict[str, Any]:
    """Return the replacements in cuda.core."""
    core = importlib.import_module("cuda.core")
    compiler = core.Program

    class FakeProgram:
        """Compiles with NVRTC, with line numbers, for the requested architecture."""

        def __init__(self, code: str, code_type: str, options: Any = None) -> None:  # noqa: ANN401
            options = options or core.ProgramOptions(arch=arch)
            options.arch = options.arch or arch.removesuffix("a")
            if options.arch.removesuffix("a") != arch.removesuffix("a"):
                raise SolutionFailed(
                    f"it compiles for {options.arch}, not for {arch}: inspect it for {options.arch}"
                )
            options.lineinfo = True
            self.program = compiler(add_lines(code), code_type, options)

        def compile(self, target_type: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            """Return machine code, whose kernels are never loaded."""
            if target_type != "cubin":
                raise SolutionFailed(f"it compiles to {target_type}: only a cubin can be inspected")
            return _FakeObjectCode(self.program.compile(target_type, *arguments, **options))

        def close(self) -> None:
            """Do nothing; the real method frees the program."""

    def launch(_stream: Any, config: FakeLaunchConfig, kernel: FakeKernel, *arguments: Any) -> None:  # noqa: ANN401
        early = config.options.get("programmatic_stream_serialization", False)
        blocks = prod(config.grid) * prod(config.cluster or ())  # the grid counts clusters
        launches.append(
            CudaLaunch(kernel, config.block, blocks, config.cluster or (), config.shmem_size, early, arguments)
        )

    return {
        "Program": FakeProgram,
        "LaunchConfig": FakeLaunchConfig,
        "Device": lambda *_: _device(arch),
        "Stream": SimpleNamespace(from_handle=lambda handle: SimpleNamespace(handle=handle)),
        "launch": launch,
    }


class _FakeObjectCode:
    """Replaces `cuda.core.ObjectCode`, which loads machine code into a device."""

    def __init__(self, code: Any) -> None:  # noqa: ANN401
        self.code = bytes(code.code)
        mapping = getattr(code, "symbol_mapping", None) or getattr(code, "_sym_map", None) or {}
        self.symbols = {_text(name): _text(symbol) for name, symbol in mapping.items()}

    def get_kernel(self, name: str | bytes) -> FakeKernel:
        """Return the kernel of a name expression or a symbol, without a driver.

        Raises:
            SolutionFailed: the program has no kernel of that name.
        """
        symbol = self.symbols.get(_text(name), _text(name))
        if f".text.{symbol}\0".encode() not in self.code:
            raise SolutionFailed(
                f"the program has no kernel `{_text(name)}`; name_expressions must match literally"
            )
        return FakeKernel(self.code, _text(name), symbol)


def _driver(arch: str, launches: list[CudaLaunch]) -> dict[str, Any]:
    """Return the replacements for driver calls that a version may make besides those of cuda.core."""
    driver = importlib.import_module("cuda.bindings.driver")
    success = driver.CUresult.CUDA_SUCCESS
    may_overlap = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    of_cluster = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION

    def cluster_size(config: Any) -> tuple[int, ...]:  # noqa: ANN401
        sizes = (each.value.clusterDim for each in config.attrs or () if each.id == of_cluster)
        return next(((size.x, size.y, size.z) for size in sizes), ())

    def launch(config: Any, kernel: FakeKernel, *_: Any) -> tuple[Any]:  # noqa: ANN401
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        early = any(attribute.id == may_overlap for attribute in config.attrs or ())
        blocks = config.gridDimX * config.gridDimY * config.gridDimZ
        launches.append(CudaLaunch(kernel, block, blocks, cluster_size(config), config.sharedMemBytes, early))
        return (success,)

    def active_clusters(_kernel: FakeKernel, config: Any) -> tuple[Any, int]:  # noqa: ANN401
        return success, DEVICES[arch]["multi_processor_count"] // max(prod(cluster_size(config)), 1)

    return {
        "cuKernelSetAttribute": lambda *_: (success,),
        "cuFuncSetAttribute": lambda *_: (success,),
        "cuKernelGetFunction": lambda kernel: (success, kernel),
        "cuTensorMapEncodeTiled": lambda *_: (success, driver.CUtensorMap()),
        "cuOccupancyMaxActiveClusters": active_clusters,
        "cuLaunchKernelEx": launch,
    }


def _device(arch: str) -> SimpleNamespace:
    """Return an object with the attributes of `cuda.core.Device` that host code reads."""
    figures, (major, minor) = DEVICES[arch], divmod(ARCHITECTURES[arch], 10)
    return SimpleNamespace(
        device_id=0,
        name=figures["name"],
        arch=f"{major}{minor}",
        compute_capability=SimpleNamespace(major=major, minor=minor),
        set_current=lambda *_: None,
        sync=lambda: None,
        properties=SimpleNamespace(
            multiprocessor_count=figures["multi_processor_count"],
            max_shared_memory_per_block_optin=figures["shared"],
            l2_cache_size=figures["l2"],
        ),
    )


def _three(size: Size) -> tuple[int, ...]:
    extents = (size,) if isinstance(size, int) else tuple(size)
    return (*extents, 1, 1)[:3]


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

"""A device that is not there: NVRTC compiles for it, nothing is loaded or launched, and `run` gets to its end."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from warpsmith.errors import SolutionFailed
from warpsmith.languages.triton import pretend as triton_pretend
from warpsmith.languages.triton.language import ARCHITECTURES

Place = Callable[[str], str]
"""The program's text with the lines of the file it comes from."""


class Kernel:
    """A kernel that is never loaded: its machine code, and what host code may ask of it."""

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
class Launch:
    """A kernel as `run` launches it."""

    kernel: Kernel
    block: tuple[int, ...]
    cluster: tuple[int, ...] = ()
    shared: int = 0
    early: bool = False
    """Whether it may start before the kernel ahead of it has ended."""
    arguments: tuple[Any, ...] | None = None
    """Its arguments, where they are told as Python values."""
    workloads: list[str] = field(default_factory=list)


Size = int | tuple[int, ...]
"""Of a grid or a block."""


class Config:
    """In the place of `cuda.core.LaunchConfig`, which asks a driver about clusters."""

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
def pretend(arch: str, place: Place, launches: list[Launch]) -> Iterator[None]:
    """Inside, CPU tensors pass for CUDA ones, and a launch is put into `launches`."""
    with ExitStack() as stack:
        stack.enter_context(triton_pretend.pretend(arch, {}))
        stack.enter_context(patch.multiple("cuda.core", **_core(arch, place, launches)))
        stack.enter_context(patch.multiple("cuda.bindings.driver", **_driver(launches)))
        yield


def _core(arch: str, place: Place, launches: list[Launch]) -> dict[str, Any]:
    """What host code imports from cuda.core."""
    core = importlib.import_module("cuda.core")
    compiler = core.Program

    class Program:
        """NVRTC's, with line numbers, for the architecture that is asked for."""

        def __init__(self, code: str, code_type: str, options: Any = None) -> None:  # noqa: ANN401
            options = options or core.ProgramOptions(arch=arch)
            options.arch = options.arch or arch.removesuffix("a")
            if options.arch.removesuffix("a") != arch.removesuffix("a"):
                raise SolutionFailed(f"it compiles for {options.arch}, not for {arch}: ask for that")
            options.lineinfo = True
            self.real = compiler(place(code), code_type, options)

        def compile(self, target_type: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            """Machine code, whose kernels are never loaded."""
            if target_type != "cubin":
                raise SolutionFailed(f"it compiles to {target_type}: only a cubin can be looked at")
            return _Code(self.real.compile(target_type, *arguments, **options))

        def close(self) -> None:
            """As the real one."""

    def launch(_stream: Any, config: Config, kernel: Kernel, *arguments: Any) -> None:  # noqa: ANN401
        early = config.options.get("programmatic_stream_serialization", False)
        launches.append(Launch(kernel, config.block, config.cluster or (), config.shmem_size, early, arguments))

    return {
        "Program": Program,
        "LaunchConfig": Config,
        "Device": lambda *_: _device(arch),
        "Stream": SimpleNamespace(from_handle=lambda handle: SimpleNamespace(handle=handle)),
        "launch": launch,
    }


class _Code:
    """In the place of `cuda.core.ObjectCode`."""

    def __init__(self, real: Any) -> None:  # noqa: ANN401
        self.code = bytes(real.code)
        mapping = getattr(real, "symbol_mapping", None) or getattr(real, "_sym_map", None) or {}
        self.symbols = {_text(name): _text(symbol) for name, symbol in mapping.items()}

    def get_kernel(self, name: str | bytes) -> Kernel:
        """As the real one, without a driver.

        Raises:
            SolutionFailed: the program has no kernel of that name.
        """
        symbol = self.symbols.get(_text(name), _text(name))
        if f".text.{symbol}\0".encode() not in self.code:
            raise SolutionFailed(
                f"the program has no kernel `{_text(name)}`; name_expressions are taken word for word"
            )
        return Kernel(self.code, _text(name), symbol)


def _driver(launches: list[Launch]) -> dict[str, Any]:
    """The driver's calls that a version may need beside cuda.core."""
    driver = importlib.import_module("cuda.bindings.driver")
    fine = driver.CUresult.CUDA_SUCCESS
    may_overlap = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

    def launch(config: Any, kernel: Kernel, *_: Any) -> tuple[Any]:  # noqa: ANN401
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        early = any(attribute.id == may_overlap for attribute in config.attrs or ())
        launches.append(Launch(kernel, block, (), config.sharedMemBytes, early))
        return (fine,)

    return {
        "cuKernelSetAttribute": lambda *_: (fine,),
        "cuFuncSetAttribute": lambda *_: (fine,),
        "cuKernelGetFunction": lambda kernel: (fine, kernel),
        "cuTensorMapEncodeTiled": lambda *_: (fine, driver.CUtensorMap()),
        "cuLaunchKernelEx": launch,
    }


def _device(arch: str) -> SimpleNamespace:
    """What host code asks of a `cuda.core.Device`."""
    asked, (major, minor) = triton_pretend.DEVICES[arch], divmod(ARCHITECTURES[arch], 10)
    return SimpleNamespace(
        device_id=0,
        name=asked["name"],
        arch=f"{major}{minor}",
        compute_capability=SimpleNamespace(major=major, minor=minor),
        set_current=lambda *_: None,
        sync=lambda: None,
        properties=SimpleNamespace(
            multiprocessor_count=asked["multi_processor_count"],
            max_shared_memory_per_block_optin=asked["shared"],
            l2_cache_size=asked["l2"],
        ),
    )


def _three(size: Size) -> tuple[int, ...]:
    given = (size,) if isinstance(size, int) else tuple(size)
    return (*given, 1, 1)[:3]


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

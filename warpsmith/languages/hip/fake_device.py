"""Stand-in for an AMD GPU below PyTorch's runtime compiler: programs are compiled, nothing is launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from warpsmith.errors import SolutionFailed
from warpsmith.languages.shared.amd_metadata import KernelText, argument_sizes, split_assembly
from warpsmith.languages.shared.fake_device import fake_device

_UNCONFIGURED = 48 << 10
"""Bytes of LDS from which PyTorch asks for `set_shared_memory_config` before a launch."""

Compile = Callable[[str, Sequence[str]], str]
"""Returns the assembly of a program for the compiler's options."""


@dataclass
class HipLaunch:
    """A kernel as `run` launches it."""

    kernel: str
    """Its name in the source."""
    assembly: KernelText
    options: tuple[str, ...]
    """Options of its compilation: `-DTILES=4`."""
    threads: int
    """Threads of a block."""
    lds_bytes: int
    """LDS that the launch asks for beside what the kernel declares."""
    workloads: list[str] = field(default_factory=list)


class FakeHipKernel:
    """A kernel that is never loaded, called as PyTorch's is; calls append to `launches`."""

    def __init__(
        self, kernel: str, assembly: KernelText, options: tuple[str, ...], launches: list[HipLaunch]
    ) -> None:
        self._kernel, self._assembly, self._options, self._launches = kernel, assembly, options, launches
        self._configured = 0

    def set_shared_memory_config(self, shared_mem_bytes: int) -> None:
        """Allow launches with so many bytes of LDS."""
        self._configured = shared_mem_bytes

    def __call__(
        self,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (1, 1, 1),
        args: Sequence[Any] | None = None,
        shared_mem: int = 0,
        stream: Any = None,  # noqa: ANN401 - PyTorch's
    ) -> None:
        """Append the launch.

        Raises:
            SolutionFailed: PyTorch or the device would refuse it, or the kernel would read other arguments.
        """
        for name, extent in (("grid", grid), ("block", block)):
            if len(extent) != 3 or min(extent) < 1:
                fault = f"`{name}={tuple(extent)}` of `{self._kernel}`"
                raise SolutionFailed(f"{fault} must be three positive integers")
        if shared_mem >= _UNCONFIGURED and shared_mem > self._configured:
            fault = f"`{self._kernel}` asks for {shared_mem} bytes of LDS"
            raise SolutionFailed(f"{fault}: call its set_shared_memory_config({shared_mem}) first")
        _check_arguments(args or (), argument_sizes(self._assembly.text), self._kernel)
        launch = HipLaunch(self._kernel, self._assembly, self._options, prod(block), shared_mem)
        self._launches.append(launch)


@contextmanager
def fake_hip_device(arch: str, compile_program: Compile, launches: list[HipLaunch]) -> Iterator[None]:
    """Make CPU tensors pass for an AMD GPU's, and launches only append to `launches`, within the context."""
    from unittest.mock import patch  # imports asyncio, which commands that only read do without

    assemblies: dict[tuple[str, tuple[str, ...]], list[KernelText]] = {}

    def compile_kernel(
        kernel_source: str,
        kernel_name: str,
        compute_capability: str | None = None,
        cuda_include_dirs: Sequence[str] | None = None,
        nvcc_options: Sequence[str] | None = None,
    ) -> FakeHipKernel:
        if compute_capability not in (None, arch):
            raise SolutionFailed(f"it compiles for {compute_capability}, not for {arch}: inspect it for that one")
        options = (*(f"-I{folder}" for folder in cuda_include_dirs or ()), *(nvcc_options or ()))
        key = kernel_source, options
        if key not in assemblies:
            assemblies[key] = split_assembly(compile_program(kernel_source, options))
        assembly = _find_kernel(assemblies[key], kernel_name)
        return FakeHipKernel(kernel_name, assembly, options, launches)

    with fake_device(arch, {}), patch("torch.cuda._compile_kernel", compile_kernel):
        yield


def _find_kernel(kernels: Sequence[KernelText], name: str) -> KernelText:
    """Return the kernel of a name, declared `extern "C"` or not."""
    for kernel in kernels:
        if kernel.symbol == name or kernel.symbol.startswith(f"_Z{len(name)}{name}"):
            return kernel
    symbols = ", ".join(kernel.symbol for kernel in kernels) or "none"
    raise SolutionFailed(f'the program has no `extern "C" __global__` kernel `{name}`; it has: {symbols}')


def _check_arguments(arguments: Sequence[Any], sizes: Sequence[int], name: str) -> None:
    """Refuse arguments whose sizes in bytes differ from what the kernel reads: nothing else notices."""
    if len(arguments) != len(sizes):
        raise SolutionFailed(f"`{name}` takes {len(sizes)} arguments, the launch gives {len(arguments)}")
    for number, (value, size) in enumerate(zip(arguments, sizes, strict=True), start=1):
        passed = 4 if isinstance(value, int) else 8  # PyTorch passes int, double and pointers
        if passed != size:
            fault = f"`{type(value).__name__}` of {passed} bytes; the kernel reads {size}"
            raise SolutionFailed(f"argument {number} of `{name}` is a {fault}: PyTorch passes `int` and `double`")

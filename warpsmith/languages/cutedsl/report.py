"""Kernels of a compiled CuTe DSL function: names, registers, shared and local memory."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

from warpsmith.core.evaluation import Resources

_MANGLED = "kernel_cutlass_"
_USAGE = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")
_SECTION = re.compile(r"^//-+ \.text\.(\S+) -+$", re.MULTILINE)
_STATIC = re.compile(r"^\s*\.shared [^;\[]*\[(\d+)\];", re.MULTILINE)
_THREADS = re.compile(r"\.entry (\w+)\([^{]*?\.reqntid (\d+), (\d+), (\d+)")
_CONSTANT = re.compile(r"(%\d+) = llvm\.mlir\.constant\((\d+) : i64\)")
_LAUNCH = re.compile(
    r"(%\d+) = llvm\.getelementptr %\d+\[0, 2\] : [^\n]*struct<\(array<3 x i32>, array<3 x i32>, i64[^\n]*\n"
    r"\s*llvm\.store (%\d+), \1 "
    r"|addressof @kernels_(\w+) :"
)


def split_symbol(symbol: str, functions: Iterable[str]) -> tuple[str, str]:
    """Return the function that a kernel's symbol is made from, one of `functions`, and the rest: its variant."""
    rest = symbol.removeprefix(_MANGLED)
    names = [name for name in functions if rest == name or rest.startswith(f"{name}_")]
    name = max(names, key=len, default=rest)
    return name, rest[len(name) :].strip("_")


def parse_usage(output: str) -> dict[str, tuple[int, int]]:
    """Return registers a thread and bytes of local memory of every kernel, from `cuobjdump -res-usage`."""
    return {name: (int(regs), int(stack) + int(local)) for name, regs, stack, local in _USAGE.findall(output)}


def split_sections(sass: str) -> dict[str, str]:
    """Return the disassembly of every kernel, from `nvdisasm -c` of the whole file."""
    head, *parts = _SECTION.split(sass)
    return {name: f"{head}{text}" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def threads_per_block(ptx: str) -> dict[str, int]:
    """Return the threads a block of every kernel whose launch fixes them."""
    return {name: int(x) * int(y) * int(z) for name, x, y, z in _THREADS.findall(ptx)}


def shared_bytes(module: str, ptx: str) -> dict[str, int]:
    """Return the shared memory a block of each kernel, as the host code requests it: `module` is its lowered form.

    A kernel whose size is computed at the launch is left out.
    """
    static = sum(map(int, _STATIC.findall(ptx)))
    sizes: dict[str, int] = {}
    for function in module.split("llvm.func @"):
        constants = dict(_CONSTANT.findall(function))
        requests: list[str] = []
        for _, value, kernel in _LAUNCH.findall(function):
            if not kernel:
                requests.append(value)
            elif requests and (size := constants.get(requests.pop(0))) is not None:
                sizes[kernel] = int(size) + static
    return sizes


def driver_reports(function: Any, functions: Iterable[str]) -> tuple[Resources, ...]:  # noqa: ANN401
    """Return the driver's report of a compiled function's kernels; nothing if its binary is not available.

    Args:
        function: the compiled function; the DSL publishes no types.
        functions: names of the version's functions, from which kernels get their names.

    Raises:
        DSLCudaRuntimeError: the driver does not load the binary, or does not answer.
    """
    driver, cuda = _driver()
    cubin, ptx = function.__cubin__, function.__ptx__
    if not isinstance(cubin, bytes):
        return ()
    shared = shared_bytes(str(function.ir_module), ptx or "")
    device = cuda.checkCudaErrors(driver.cuCtxGetDevice())
    library = cuda.load_library_data(cubin)
    try:
        count = cuda.checkCudaErrors(driver.cuLibraryGetKernelCount(library))
        kernels = cuda.checkCudaErrors(driver.cuLibraryEnumerateKernels(count, library))
        return tuple(_kernel(kernel, device, functions, shared) for kernel in kernels)
    finally:
        driver.cuLibraryUnload(library)


def _kernel(kernel: Any, device: Any, functions: Iterable[str], shared: dict[str, int]) -> Resources:  # noqa: ANN401
    driver, cuda = _driver()

    def attribute(name: str) -> int:
        kind = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(cuda.checkCudaErrors(driver.cuKernelGetAttribute(kind, kernel, device)))

    symbol = cuda.checkCudaErrors(driver.cuKernelGetName(kernel)).decode()
    name, variant = split_symbol(symbol, functions)
    return Resources(
        kernel=name,
        registers=attribute("NUM_REGS"),
        shared_bytes=shared.get(symbol, attribute("SHARED_SIZE_BYTES")),
        spill_bytes=attribute("LOCAL_SIZE_BYTES"),
        notes=(variant,),
    )


def _driver() -> tuple[Any, Any]:
    """Return the driver's bindings, and CuTe DSL's module around them; neither publishes types."""
    names = ("cuda.bindings.driver", "cutlass.base_dsl.runtime.cuda")
    driver, cuda = map(importlib.import_module, names)
    return driver, cuda

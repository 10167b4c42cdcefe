"""What the compiler made of a CuTe DSL function: names, registers, shared and local memory of its kernels."""

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


def split_name(symbol: str, known: Iterable[str]) -> tuple[str, str]:
    """The function that a kernel's symbol is made from, one of `known`, and what tells its variants apart."""
    rest = symbol.removeprefix(_MANGLED)
    names = [name for name in known if rest == name or rest.startswith(f"{name}_")]
    name = max(names, key=len, default=rest)
    return name, rest[len(name) :].strip("_")


def usage(said: str) -> dict[str, tuple[int, int]]:
    """Registers a thread and bytes of local memory of every kernel, from `cuobjdump -res-usage`."""
    return {name: (int(regs), int(stack) + int(local)) for name, regs, stack, local in _USAGE.findall(said)}


def sections(sass: str) -> dict[str, str]:
    """The disassembly of every kernel, from `nvdisasm -c` of the whole file."""
    head, *parts = _SECTION.split(sass)
    return {name: f"{head}{text}" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def threads(ptx: str) -> dict[str, int]:
    """Threads a block of every kernel whose launch fixes them."""
    return {name: int(x) * int(y) * int(z) for name, x, y, z in _THREADS.findall(ptx)}


def shared_bytes(module: str, ptx: str) -> dict[str, int]:
    """Shared memory a block, as the host code asks for it: `module` is its lowered form.

    A kernel whose size is computed at the launch is left out.
    """
    static = sum(map(int, _STATIC.findall(ptx)))
    found: dict[str, int] = {}
    for function in module.split("llvm.func @"):
        constants = dict(_CONSTANT.findall(function))
        asked: list[str] = []
        for _, value, kernel in _LAUNCH.findall(function):
            if not kernel:
                asked.append(value)
            elif asked and (size := constants.get(asked.pop(0))) is not None:
                found[kernel] = int(size) + static
    return found


def loaded(function: Any, known: Iterable[str]) -> tuple[Resources, ...]:  # noqa: ANN401 - the DSL has no types
    """What the driver says of a compiled function's kernels; nothing where its binary was not kept.

    Raises:
        DSLCudaRuntimeError: the driver does not load the binary, or does not answer.
    """
    driver, cuda = _driver()
    cubin, ptx = function.__cubin__, function.__ptx__
    if not isinstance(cubin, bytes):
        return ()
    asked = shared_bytes(str(function.ir_module), ptx or "")
    device = cuda.checkCudaErrors(driver.cuCtxGetDevice())
    library = cuda.load_library_data(cubin)
    try:
        count = cuda.checkCudaErrors(driver.cuLibraryGetKernelCount(library))
        kernels = cuda.checkCudaErrors(driver.cuLibraryEnumerateKernels(count, library))
        return tuple(_kernel(kernel, device, known, asked) for kernel in kernels)
    finally:
        driver.cuLibraryUnload(library)


def _kernel(kernel: Any, device: Any, known: Iterable[str], asked: dict[str, int]) -> Resources:  # noqa: ANN401
    driver, cuda = _driver()

    def attribute(name: str) -> int:
        kind = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(cuda.checkCudaErrors(driver.cuKernelGetAttribute(kind, kernel, device)))

    symbol = cuda.checkCudaErrors(driver.cuKernelGetName(kernel)).decode()
    name, variant = split_name(symbol, known)
    return Resources(
        kernel=name,
        registers=attribute("NUM_REGS"),
        shared_bytes=asked.get(symbol, attribute("SHARED_SIZE_BYTES")),
        spill_bytes=attribute("LOCAL_SIZE_BYTES"),
        notes=(variant,),
    )


def _driver() -> tuple[Any, Any]:
    """The driver's interface, and what CuTe DSL has around it; neither publishes types."""
    names = ("cuda.bindings.driver", "cutlass.base_dsl.runtime.cuda")
    driver, cuda = map(importlib.import_module, names)
    return driver, cuda

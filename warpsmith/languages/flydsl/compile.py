"""Compile what a FlyDSL version calls, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.core.evaluation import Resources
from warpsmith.languages.flydsl.assembly_text import argument_types, launched_lds
from warpsmith.languages.flydsl.calls import compile_assembly, replaced_jit_calls
from warpsmith.languages.shared.amd_metadata import (
    KernelText,
    describe_registers,
    read_register_use,
    split_assembly,
)
from warpsmith.languages.shared.compile_child import (
    CompileRequest,
    file_stems,
    print_error,
    read_request,
    write_results,
    zero_arguments,
)
from warpsmith.languages.shared.disassembly import shared_memory_notes, thread_notes
from warpsmith.languages.shared.fake_device import DEVICES, fake_device, warp_size
from warpsmith.languages.shared.python_file import execute_file

_NUMBER = re.compile(r"_\d+$")
_MATRIX = re.compile(r"^\tv_s?mfma", re.MULTILINE)
_CONSTANT = "Constexpr"
_LIBRARY = "amdgcn/bitcode"
_NO_LIBRARY = (
    "a function such as exp2 or log is a call into ROCm's device library, which is not here; "
    "with fastmath=fx.arith.FastMathFlags.afn it is an instruction"
)


class FlyKernel(NamedTuple):
    """A kernel that is launched at some workloads."""

    assembly: KernelText
    variant: str
    lds_bytes: int
    """LDS that its launch asks for, in bytes."""
    workloads: list[str]


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json` and the assembly in `folder`.

    Returns 1 with the error on stdout if it fails.
    """
    request = read_request(folder)
    try:
        kernels = _compile_calls(request)
    except Exception as error:
        print_error(request.source, error)
        if _LIBRARY in str(error):
            sys.stdout.write(f"{_NO_LIBRARY}\n")
        return 1
    if not kernels:
        sys.stdout.write("run called no function that flyc.jit made\n")
        return 1
    stems = file_stems([_NUMBER.sub("", kernel.assembly.symbol) for kernel in kernels], request.arch)
    reports = []
    for kernel, stem in zip(kernels, stems, strict=True):
        (folder / f"{stem}.amdgcn").write_text(kernel.assembly.text)
        reports.append(_report(kernel, request.arch))
    launches = [_describe_kernel(kernel, stem, request.arch) for kernel, stem in zip(kernels, stems, strict=True)]
    write_results(folder, reports, launches)
    return 0


def _compile_calls(request: CompileRequest) -> list[FlyKernel]:
    """Return what the version's `run` launches at the workloads, each kernel once."""
    kernels: dict[str, FlyKernel] = {}
    current: list[str] = []

    def compile_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ANN401
        traced, text = compile_assembly(function, args, kwargs)
        types, lds, constants = argument_types(traced), launched_lds(traced), _constants(function, args, kwargs)
        for assembly in split_assembly(text):
            variant = ", ".join(filter(None, (types.get(assembly.symbol), constants)))
            kernel = FlyKernel(assembly, variant, lds.get(assembly.symbol, 0), [])
            workloads = kernels.setdefault(assembly.text, kernel).workloads
            workloads.extend(name for name in current if name not in workloads)

    with fake_device(request.arch, {}), replaced_jit_calls(compile_call):
        module = execute_file(request.source)
        for workload in request.workloads:
            current[:] = [workload.name]
            module.run(*zero_arguments(request.definition, workload))
    return list(kernels.values())


def _constants(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:  # noqa: ANN401
    """Return the constants that a call is compiled for: `TILES=4, ALIGNED=True`."""
    signature = inspect.signature(function.func)
    bound = signature.bind(*args, **kwargs).arguments
    annotations = {name: str(parameter.annotation) for name, parameter in signature.parameters.items()}
    return ", ".join(f"{name}={value}" for name, value in bound.items() if _CONSTANT in annotations[name])


def _report(kernel: FlyKernel, arch: str) -> Resources:
    use, threads = read_register_use(kernel.assembly.text), kernel.assembly.threads
    shared = use.lds_bytes + kernel.lds_bytes
    return Resources(
        kernel=_NUMBER.sub("", kernel.assembly.symbol),
        registers=use.vector,
        shared_bytes=shared,
        spill_bytes=use.scratch_bytes,
        notes=(
            describe_registers(use),
            *([f"{threads} threads a block"] if threads else []),
            *shared_memory_notes(shared, DEVICES[arch]["shared"], arch),
            *(thread_notes(threads, arch) if threads else []),
        ),
    )


def _describe_kernel(kernel: FlyKernel, stem: str, arch: str) -> dict[str, Any]:
    """Return a kernel's item of `launches.json`."""
    threads = kernel.assembly.threads
    return {
        "stem": stem,
        "isa": "amdgcn",
        "workloads": kernel.workloads,
        "variant": kernel.variant,
        "block_warps": -(-threads // warp_size(arch)) if threads else None,
        "matrix_product": _MATRIX.search(kernel.assembly.text) is not None,
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

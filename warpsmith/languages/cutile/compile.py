"""Compile what a cuTile version launches, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.core.evaluation import Resources
from warpsmith.languages.cutile.cubin import cubin_report
from warpsmith.languages.cutile.fake_device import TileLaunch, fake_cutile_device
from warpsmith.languages.cutile.launches import compiler_hints
from warpsmith.languages.shared.compile_child import (
    CompileRequest,
    file_stems,
    print_error,
    read_request,
    write_lack,
    write_results,
    zero_arguments,
)
from warpsmith.languages.shared.disassembly import disassemble, missing_disassembler
from warpsmith.languages.shared.python_file import execute_file

_PRODUCTS = {"mma", "mma_scaled", "matmul"}
_MIXED_RELEASES = (
    "tileiras reports nothing more if it finds no ptxas or libnvvm of its own release; "
    "a toolkit that CUDA_HOME names takes precedence over its own"
)


class LaunchedKernel(NamedTuple):
    """A specialisation that is launched at some workloads."""

    launch: TileLaunch
    workloads: list[str]


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json`, cubins and SASS in `folder`.

    Returns 1 with the error on stdout if it fails; if a tool is missing, `lacks.txt` names it.
    """
    if write_lack(folder, missing_disassembler()):
        return 1
    request = read_request(folder)
    try:
        kernels = _run_version(request)
        stems = file_stems([kernel.launch.kernel._pyfunc.__name__ for kernel in kernels], request.arch)
        reports = [
            _compile(kernel.launch, stem, request.arch, folder)
            for kernel, stem in zip(kernels, stems, strict=True)
        ]
    except Exception as error:
        _print_tile_error(request.source, error)
        return 1
    if not kernels:
        sys.stdout.write("run launched no cuTile kernel\n")
        return 1
    launches = [describe_launch(kernel, stem) for kernel, stem in zip(kernels, stems, strict=True)]
    write_results(folder, reports, launches)
    return 0


def describe_launch(launched: LaunchedKernel, stem: str) -> dict[str, Any]:
    """Return a kernel's item of `launches.json`: mainly what the compiler knew about its arguments."""
    kernel, signature = launched.launch
    names = inspect.signature(kernel._pyfunc).parameters
    words, unaligned = [], []
    for name, constraint in zip(names, signature.parameters, strict=True):
        words.append(f"{name}{_word(constraint)}")
        if _is_unaligned(constraint):
            unaligned.append(name)
    return {
        "stem": stem,
        "workloads": launched.workloads,
        "variant": ", ".join([*words, compiler_hints(kernel)]),
        "unaligned": unaligned,
        "matrix_product": bool(_PRODUCTS & set(kernel._pyfunc.__code__.co_names)),
    }


def _run_version(request: CompileRequest) -> list[LaunchedKernel]:
    """Return what the version's `run` launches at the workloads, the same specialisation of a kernel once."""
    kernels: dict[tuple[int, str], LaunchedKernel] = {}
    launches: list[TileLaunch] = []
    with fake_cutile_device(request.arch, launches):
        module = execute_file(request.source)
        for workload in request.workloads:
            launches.clear()
            module.run(*zero_arguments(request.definition, workload))
            for launch in launches:
                key = (id(launch.kernel), launch.signature.symbol)
                workloads = kernels.setdefault(key, LaunchedKernel(launch, [])).workloads
                if workload.name not in workloads:
                    workloads.append(workload.name)
    return list(kernels.values())


def _compile(launch: TileLaunch, stem: str, arch: str, folder: Path) -> Resources:
    """Compile one specialisation; leave its cubin and SASS in `folder` and return its report."""
    compilation = importlib.import_module("cuda.tile.compilation")
    kernel, signature = launch
    cubin = folder / f"{stem}.cubin"
    compilation.export_kernel(kernel, [signature], cubin, gpu_code=arch.removesuffix("a"), output_format="cubin")
    sass = disassemble(cubin)
    (folder / f"{stem}.sass").write_text(sass)
    return cubin_report(cubin, kernel._pyfunc.__name__, compiler_hints(kernel), sass)


def _word(constraint: Any) -> str:  # noqa: ANN401 - cuTile's constraints
    if hasattr(constraint, "value"):
        return f"={constraint.value}"
    if not hasattr(constraint, "ndim"):
        return f" {getattr(getattr(constraint, 'dtype', None), 'name', type(constraint).__name__)}"
    return f" {constraint.dtype.name}[{constraint.ndim}]{'' if _is_unaligned(constraint) else '/16'}"


def _is_unaligned(constraint: Any) -> bool:  # noqa: ANN401
    """Return True for an array whose address or rows the compiler could not assume to be multiples of 16 bytes."""
    if not hasattr(constraint, "ndim"):
        return False
    strides = zip(constraint.stride_constant, constraint.stride_divisible_by, strict=True)
    divisors = [divisor for constant, divisor in strides if constant != 1]
    return constraint.base_addr_divisible_by % 16 != 0 or any(
        divisor * constraint.dtype.bitwidth % 128 for divisor in divisors
    )


def _print_tile_error(source: Path, error: Exception) -> None:
    """Print the error with its line in the version, and the likely cause of tileiras's bare return code."""
    print_error(source, error)
    if "Return code 5" in str(error):
        sys.stdout.write(f"{_MIXED_RELEASES}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Compile what a HIP C++ version launches, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpsmith.core.evaluation import Resources
from warpsmith.languages.hip.compiler import compile_hip
from warpsmith.languages.hip.fake_device import HipLaunch, fake_hip_device
from warpsmith.languages.shared.amd_metadata import describe_registers, read_register_use
from warpsmith.languages.shared.compile_child import (
    CompileRequest,
    file_stems,
    print_error,
    read_request,
    write_results,
    zero_arguments,
)
from warpsmith.languages.shared.disassembly import shared_memory_notes, thread_notes
from warpsmith.languages.shared.fake_device import DEVICES, warp_size
from warpsmith.languages.shared.kernel_strings import with_line_numbers
from warpsmith.languages.shared.python_file import execute_file

_MATRIX = re.compile(r"^\tv_s?mfma", re.MULTILINE)
_COMPILER = re.compile(r'^\t\.ident\t"((?:AMD )?clang version [\w.]+)', re.MULTILINE)
_MOST_THREADS = re.compile(r"\.max_flat_workgroup_size: +(\d+)")


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json` and the assembly in `folder`.

    Returns 1 with the error on stdout if it fails.
    """
    request, compilers = read_request(folder), set[str]()
    try:
        launches = _launches(request, compilers)
    except Exception as error:
        print_error(request.source, error)
        return 1
    if not launches:
        sys.stdout.write("run launched no kernel of torch.cuda._compile_kernel\n")
        return 1
    stems = file_stems([launch.kernel for launch in launches], request.arch)
    for launch, stem in zip(launches, stems, strict=True):
        (folder / f"{stem}.amdgcn").write_text(launch.assembly.text)
    reports = [_report(launch, request.arch) for launch in launches]
    compiler = ", ".join(sorted(compilers))
    described = [
        _describe(launch, stem, request.arch, compiler) for launch, stem in zip(launches, stems, strict=True)
    ]
    write_results(folder, reports, described)
    return 0


def _launches(request: CompileRequest, compilers: set[str]) -> list[HipLaunch]:
    """Return what `run` launches at the workloads, the same kernel with the same launch options once.

    Adds to `compilers` what the assembly says of its compiler: `clang version 22.1.8`.
    """
    distinct: dict[Any, HipLaunch] = {}
    launches: list[HipLaunch] = []
    text, file = request.source.read_text(), request.source.name

    def compile_program(code: str, options: Sequence[str]) -> str:
        assembly = compile_hip(with_line_numbers(code, text, file), options, request.arch)
        compilers.update(_COMPILER.findall(assembly))
        return assembly

    with fake_hip_device(request.arch, compile_program, launches):
        module = execute_file(request.source)
        for workload in request.workloads:
            launches.clear()
            module.run(*zero_arguments(request.definition, workload))
            for launch in launches:
                key = launch.assembly.text, launch.threads, launch.lds_bytes
                workloads = distinct.setdefault(key, launch).workloads
                workloads.extend([workload.name] if workload.name not in workloads else [])
    return list(distinct.values())


def _report(launch: HipLaunch, arch: str) -> Resources:
    use = read_register_use(launch.assembly.text)
    shared = use.lds_bytes + launch.lds_bytes
    return Resources(
        kernel=launch.kernel,
        registers=use.vector,
        shared_bytes=shared,
        spill_bytes=use.scratch_bytes,
        notes=(
            describe_registers(use),
            f"{launch.threads} threads a block",
            *shared_memory_notes(shared, DEVICES[arch]["shared"], arch),
            *(thread_notes(launch.threads, arch) or _bound_notes(launch)),
        ),
    )


def _bound_notes(launch: HipLaunch) -> list[str]:
    """Say if a block has more threads than the kernel's `__launch_bounds__` allow; empty if not."""
    bound = _MOST_THREADS.search(launch.assembly.text)
    if bound is None or launch.threads <= int(bound[1]):
        return []
    return [f"has {launch.threads} threads a block, its __launch_bounds__ say {bound[1]}: it will not launch"]


def _describe(launch: HipLaunch, stem: str, arch: str, compiler: str) -> dict[str, Any]:
    """Return a kernel's item of `launches.json`."""
    return {
        "stem": stem,
        "isa": "amdgcn",
        "workloads": launch.workloads,
        "variant": ", ".join([*(option.removeprefix("-D") for option in launch.options), compiler]),
        "block_warps": -(-launch.threads // warp_size(arch)),
        "matrix_product": _MATRIX.search(launch.assembly.text) is not None,
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Compile what a Triton version launches, without a device: `python -m` on a folder with `request.json`.

Compilers of both vendors come with Triton. NVIDIA's binary is disassembled; AMD's compiler states its assembly.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.core.evaluation import Resources
from warpsmith.core.port.check import KernelLaunch
from warpsmith.languages.shared.amd_metadata import describe_registers, read_register_use
from warpsmith.languages.shared.compile_child import (
    CompileRequest,
    file_stems,
    print_error,
    read_request,
    write_lack,
    write_results,
    zero_arguments,
)
from warpsmith.languages.shared.disassembly import (
    disassemble,
    dump_cubin,
    early_start_notes,
    missing_disassembler,
    shared_memory_notes,
    summarise_instructions,
    thread_notes,
)
from warpsmith.languages.shared.fake_device import AMD_ARCHITECTURES, DEVICES, fake_device, warp_size
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import launch_recorder
from warpsmith.languages.triton.language import jit_functions, launch_knobs

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")


class LaunchChange(NamedTuple):
    """A change of a version's launch options, which no result depends on."""

    warps: float = 1.0
    """Factor of the warps of a block."""
    stages: int = 0
    """Pipeline stages more."""

    def apply(self, options: dict[str, Any], arch: str) -> None:
        """Change the options of one launch."""
        stages = 2 if arch in AMD_ARCHITECTURES else 3  # Triton's defaults
        if self.warps != 1:
            options["num_warps"] = max(1, int(options.get("num_warps", 4) * self.warps))
        if self.stages:
            options["num_stages"] = max(1, options.get("num_stages", stages) + self.stages)


_CHANGES = (LaunchChange(warps=0.5), LaunchChange(warps=2))
_PRODUCT_CHANGES = (LaunchChange(stages=-1), LaunchChange(stages=1))


class TritonKernel(NamedTuple):
    """A kernel that was compiled for a launch."""

    kernel: Any
    name: str
    workloads: list[str]
    blocks: dict[str, int]
    """Blocks of its largest recorded launch, by workload."""


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json` and the assembly in `folder`.

    Returns 1 with the error on stdout if it fails; if a tool is missing, `lacks.txt` names it.
    """
    request = read_request(folder)
    if request.arch not in AMD_ARCHITECTURES and write_lack(folder, missing_disassembler()):
        return 1
    options = json.loads((folder / "request.json").read_text())
    recorded = options.get("launches")
    own = partial(_compile_launches, request, LaunchChange())
    products = _compile_into(
        folder, request, own if recorded is None else partial(_compile_recorded, request, recorded)
    )
    if products is None:
        return 1
    if options.get("relaunches"):
        for number, change in enumerate(_CHANGES + (_PRODUCT_CHANGES if products else ()), 1):
            changed = folder / f"change-{number}"
            changed.mkdir()
            _compile_into(changed, request, partial(_compile_launches, request, change))
    return 0


def _compile_into(
    folder: Path, request: CompileRequest, compile_kernels: Callable[[], tuple[Any, list[TritonKernel]]]
) -> bool | None:
    """Compile into a folder; return whether a kernel is a matrix product, None if the version does not compile."""
    try:
        module, kernels = compile_kernels()
    except Exception as error:
        print_error(request.source, error)
        return None
    if not kernels:
        sys.stdout.write("run launched no Triton kernel\n")
        return None
    stems = file_stems([kernel.name for kernel in kernels], request.arch)
    tuned = _autotune_notes(module)
    reports = []
    for kernel, stem in zip(kernels, stems, strict=True):
        examine = _examine_amd if request.arch in AMD_ARCHITECTURES else _examine
        report = examine(kernel, stem, request.arch, folder)
        notes = (*report.notes, *tuned.get(report.kernel, ()))
        reports.append(report.model_copy(update={"notes": notes}))
    launches = [describe_kernel(kernel, stem) for kernel, stem in zip(kernels, stems, strict=True)]
    write_results(folder, reports, launches)
    return any(launch["matrix_product"] for launch in launches)


def describe_kernel(compiled: TritonKernel, stem: str) -> dict[str, Any]:
    """Return a kernel's item of `launches.json`: mainly what the compiler knew about its arguments."""
    source = compiled.kernel.src
    words, unaligned = [], []
    for position, (name, kind) in enumerate(source.signature.items()):
        if (position,) in source.constants:
            words.append(f"{name}={source.constants[position,]}")
            continue
        aligned = ["tt.divisibility", 16] in source.attrs.get((position,), ())
        words.append(f"{name} {kind}{'/16' if aligned else ''}")
        if not aligned and (str(kind).startswith("*") or re.fullmatch(r"[iu](32|64)", str(kind))):
            unaligned.append(name)
    return {
        "stem": stem,
        "isa": "amdgcn" if "amdgcn" in compiled.kernel.asm else "sass",
        "workloads": compiled.workloads,
        "variant": ", ".join([*words, *_launch_notes(compiled.kernel)]),
        "unaligned": unaligned,
        "block_warps": compiled.kernel.metadata.num_warps,
        "blocks": compiled.blocks,
        "matrix_product": "tt.dot" in compiled.kernel.asm.get("ttir", ""),
    }


def _compile_launches(request: CompileRequest, change: LaunchChange) -> tuple[Any, list[TritonKernel]]:
    """Return the version's module, and what its `run` launches at the workloads, each kernel once."""
    compiled: dict[str, TritonKernel] = {}
    kernels: dict[str, tuple[Any, str]] = {}
    with fake_device(request.arch, kernels, lambda options: change.apply(options, request.arch)):
        module = execute_file(request.source)
        for workload in request.workloads:
            kernels.clear()
            module.run(*zero_arguments(request.definition, workload))
            for key, (kernel, name) in kernels.items():
                compiled.setdefault(key, TritonKernel(kernel, name, [], {})).workloads.append(workload.name)
    return module, list(compiled.values())


def _compile_recorded(
    request: CompileRequest, recorded: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[Any, list[TritonKernel]]:
    """Return the version's module, and the kernels of launches that were recorded by workload, each once.

    The module is executed last: nothing that it changes reaches the compiler.
    """
    compiled: dict[str, TritonKernel] = {}
    kernels: dict[str, tuple[Any, str]] = {}
    launches = {name: list(map(KernelLaunch.model_validate, each)) for name, each in recorded.items()}
    with fake_device(request.arch, kernels):
        for workload, launched in launches.items():
            for launch in launched:
                kernels.clear()
                launch_recorder.replay_launch(request.source, launch)
                for key, (kernel, name) in kernels.items():
                    entry = compiled.setdefault(key, TritonKernel(kernel, name, [], {}))
                    entry.blocks[workload] = max(entry.blocks.get(workload, 0), launch.blocks)
        module = execute_file(request.source)
        launch_recorder.require_same_kernels(jit_functions(vars(module)), chain.from_iterable(launches.values()))
    for entry in compiled.values():
        entry.workloads.extend(entry.blocks)
    return module, list(compiled.values())


def _examine(compiled: TritonKernel, stem: str, arch: str, folder: Path) -> Resources:
    """Write the kernel's PTX and SASS; return its report."""
    kernel = compiled.kernel
    cubin = folder / f"{stem}.cubin"
    cubin.write_bytes(kernel.asm["cubin"])
    (folder / f"{stem}.ptx").write_text(kernel.asm["ptx"])
    sass = disassemble(cubin, ("-c", "-g", "-gp"))
    (folder / f"{stem}.sass").write_text(sass)
    usage = _USAGE.search(dump_cubin(cubin, "-res-usage"))
    shared = kernel.metadata.shared
    return Resources(
        kernel=compiled.name,
        registers=int(usage[1]) if usage else None,
        shared_bytes=shared,
        spill_bytes=int(usage[2]) + int(usage[3]) if usage else None,
        notes=(
            summarise_instructions(sass),
            *_launch_notes(kernel),
            *shared_memory_notes(shared, DEVICES[arch]["shared"], arch),
            *thread_notes(kernel.metadata.num_warps * warp_size(arch), arch),
        ),
    )


def _examine_amd(compiled: TritonKernel, stem: str, arch: str, folder: Path) -> Resources:
    """Write the kernel's assembly; return its report, with vector and accumulation registers together."""
    kernel = compiled.kernel
    text = kernel.asm["amdgcn"]
    (folder / f"{stem}.amdgcn").write_text(text)
    use = read_register_use(text)
    shared = kernel.metadata.shared
    return Resources(
        kernel=compiled.name,
        registers=use.vector,
        shared_bytes=shared,
        spill_bytes=use.scratch_bytes,
        notes=(
            describe_registers(use),
            *_launch_notes(kernel),
            *shared_memory_notes(shared, DEVICES[arch]["shared"], arch),
            *thread_notes(kernel.metadata.num_warps * warp_size(arch), arch),
        ),
    )


def _launch_notes(kernel: Any) -> list[str]:  # noqa: ANN401 - triton publishes no types
    early = bool(getattr(kernel.metadata, "launch_pdl", False))  # AMD's kernels have no such option
    return [launch_knobs(kernel.metadata), *early_start_notes(early, kernel.asm.get("ptx", ""))]


def _autotune_notes(module: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401
    """Return a note for each kernel that was compiled with one configuration of several."""
    notes: dict[str, tuple[str, ...]] = {}
    for value in vars(module).values():
        configs = getattr(value, "configs", ())
        function = value
        while hasattr(function, "fn") and not hasattr(function, "device_caches"):
            function = function.fn
        if len(configs) > 1:
            notes[function.__name__] = (f"autotuned: the first of {len(configs)} configurations",)
    return notes


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

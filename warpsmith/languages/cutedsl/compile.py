"""Compile what a CuTe DSL version calls, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.core.evaluation import Resources
from warpsmith.languages.cutedsl import calls as cutedsl_calls
from warpsmith.languages.cutedsl import report as cutedsl_report
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
    missing_disassembler,
    shared_memory_notes,
    summarise_instructions,
)
from warpsmith.languages.shared.fake_device import DEVICES, fake_device
from warpsmith.languages.shared.python_file import execute_file

_PRODUCT = re.compile(r"\bgemm\(")


class CalledFunction(NamedTuple):
    """A compiled function that `run` called."""

    function: Any
    workloads: list[str]


class ExaminedKernel(NamedTuple):
    """One kernel of a compiled function."""

    report: Resources
    variant: str
    sass: str
    ptx: str
    workloads: list[str]


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json`, PTX and SASS in `folder`.

    Returns 1 with the error on stdout if it fails; if a tool is missing, `lacks.txt` names it.
    """
    if write_lack(folder, missing_disassembler()):
        return 1
    request = read_request(folder)
    (folder / "dump").mkdir()
    try:
        module, functions = _run_version(request)
    except Exception as error:
        print_error(request.source, error)
        return 1
    if not functions:
        sys.stdout.write("run called no function that cute.compile made\n")
        return 1
    names = list(vars(module))
    kernels = [kernel for function in functions for kernel in _examine(function, names, request.arch, folder)]
    stems = file_stems([kernel.report.kernel for kernel in kernels], request.arch)
    product = _PRODUCT.search(request.source.read_text()) is not None
    launches = []
    for stem, kernel in zip(stems, kernels, strict=True):
        (folder / f"{stem}.sass").write_text(kernel.sass)
        (folder / f"{stem}.ptx").write_text(kernel.ptx)
        launches.append(
            {"stem": stem, "workloads": kernel.workloads, "variant": kernel.variant, "matrix_product": product}
        )
    write_results(folder, [kernel.report for kernel in kernels], launches)
    return 0


def _run_version(request: CompileRequest) -> tuple[Any, list[CalledFunction]]:
    """Return the version's module, and the compiled functions that its `run` calls at the workloads."""
    functions: dict[int, CalledFunction] = {}
    current: list[str] = []

    def record(function: Any) -> None:  # noqa: ANN401 - the DSL publishes no types
        workloads = functions.setdefault(id(function), CalledFunction(function, [])).workloads
        workloads.extend(name for name in current if name not in workloads)

    with fake_device(request.arch, {}), cutedsl_calls.replaced_calls(record):
        module = execute_file(request.source)
        for workload in request.workloads:
            current[:] = [workload.name]
            module.run(*zero_arguments(request.definition, workload))
    return module, list(functions.values())


def _examine(called: CalledFunction, names: Iterable[str], arch: str, folder: Path) -> list[ExaminedKernel]:
    """Return every kernel of a compiled function; `names` are those of the version's globals."""
    function = called.function
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(function.__cubin__)
    ptx = function.__ptx__
    usage = cutedsl_report.parse_usage(dump_cubin(cubin, "-res-usage"))
    shared = cutedsl_report.shared_bytes(str(function.ir_module), ptx)
    threads = cutedsl_report.threads_per_block(ptx)
    kernels = []
    for symbol, sass in cutedsl_report.split_sections(disassemble(cubin)).items():
        name, variant = cutedsl_report.split_symbol(symbol, names)
        variant = f"{threads[symbol]} threads, {variant}" if symbol in threads else variant
        needed = shared.get(symbol)
        notes = (
            summarise_instructions(sass),
            variant,
            *shared_memory_notes(needed, DEVICES[arch]["shared"], arch),
        )
        registers, local = usage.get(symbol, (None, None))
        report = Resources(kernel=name, registers=registers, shared_bytes=needed, spill_bytes=local, notes=notes)
        kernels.append(ExaminedKernel(report, variant, sass, ptx, called.workloads))
    return kernels


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

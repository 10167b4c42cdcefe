"""Compile what a CUDA C++ version launches, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from warpsmith.core.evaluation import Resources
from warpsmith.errors import SolutionFailed
from warpsmith.languages.cuda import source as cuda_source
from warpsmith.languages.cuda.fake_device import CudaLaunch, FakeKernel, fake_cuda_device
from warpsmith.languages.cuda.language import describe_headers, header_folders, short_name
from warpsmith.languages.shared import kernel_strings, stamps
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
)
from warpsmith.languages.shared.fake_device import DEVICES
from warpsmith.languages.shared.python_file import execute_file

_RESERVED = 1024
"""Bytes of shared memory that the system takes of every block from sm_90 on, and that the report counts."""
_USAGE = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_SECTION = re.compile(r"^//-+ \.text\.(\S+) +-+$", re.MULTILINE)
_PARAMETER = re.compile(r"Ordinal : 0x([0-9a-f]+)\s+Offset\s+: 0x[0-9a-f]+\s+Size\s+: 0x([0-9a-f]+)")
_FILE = re.compile(r'## File "([^"]*)"')
_CHAIN = re.compile(r"(?:^[ \t]*//## File .*\n)+", re.MULTILINE)
_SOME_ADDRESS = 1 << 32
"""Address of the stamps in code that never runs; for a null pointer the compiler would leave the stamps out."""
_NO_HEADER = "cannot open source file"
_ENDING = re.compile(r"^\d+ (?:catastrophic )?errors? detected in the compilation of .*$", re.MULTILINE)
_PRODUCT = re.compile(r"\b\w?(?:[HIBDQ]MMA|[HIQB]GMMA)\b")


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json` and SASS in `folder`.

    With `syntax` only check the syntax of programs that can be read without running the file. Returns 1 with the
    error on stdout if it fails; if a tool is missing, `lacks.txt` names it.
    """
    contents = json.loads((folder / "request.json").read_text())
    source = Path(contents["source"])
    try:
        if contents.get("syntax"):
            return _check_syntax(source)
        if write_lack(folder, missing_disassembler()):
            return 1
        request = read_request(folder)
        launches = _launches(request)
        stems = file_stems([short_name(launch.kernel.name) for launch in launches], request.arch)
        reports = [
            _examine(launch, stem, request.arch, folder, source.name)
            for launch, stem in zip(launches, stems, strict=True)
        ]
    except Exception as error:
        _print_cuda_error(source, error)
        return 1
    if not launches:
        sys.stdout.write("run launched no kernel through cuda.core\n")
        return 1
    write_results(
        folder, reports, [_describe(launch, stem, folder) for launch, stem in zip(launches, stems, strict=True)]
    )
    return 0


def _check_syntax(source: Path) -> int:
    """Check the file's static programs; a program that includes headers of its own is left to the run."""
    text = source.read_text()
    for program in cuda_source.static_programs(ast.parse(text)):
        options = [f"--gpu-architecture={program.arch}", f"--std={program.std}", "--fdevice-syntax-only", "-w"]
        options += [f"--include-path={path}" for path in header_folders().values() if path]
        errors = _nvrtc_errors(_complete(program.code, text, source.name), options)
        if errors and _NO_HEADER not in errors:
            sys.stdout.write(_ENDING.sub("", errors))
            return 1
    return 0


def _nvrtc_errors(code: str, options: Sequence[str]) -> str:
    """Return NVRTC's errors in a program. It is called directly, because cuda.core requires machine code."""
    nvrtc = importlib.import_module("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), b"program.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if status == nvrtc.nvrtcResult.NVRTC_SUCCESS:
        return ""
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.rstrip(b"\0 ").decode(errors="replace") or str(status)


def _launches(request: CompileRequest) -> list[CudaLaunch]:
    """Return what `run` launches at the workloads, the same kernel with the same launch options once."""
    distinct: dict[Any, CudaLaunch] = {}
    launches: list[CudaLaunch] = []
    source = request.source
    add_lines = partial(_complete, source=source.read_text(), file=source.name)
    with fake_cuda_device(request.arch, add_lines, launches):
        module = execute_file(source)
        for workload in request.workloads:
            launches.clear()
            module.run(*zero_arguments(request.definition, workload))
            for launch in launches:
                kernel, options = launch.kernel, (launch.block, launch.cluster, launch.shared, launch.early)
                same = distinct.setdefault((kernel.code, kernel.symbol, *options), launch)
                same.workloads.extend([workload.name] if workload.name not in same.workloads else [])
                same.grids.add(launch.blocks)
    return list(distinct.values())


def _complete(code: str, source: str, file: str) -> str:
    """Return a program with the lines of its file, and with a prelude if it stores stamps."""
    code = kernel_strings.with_line_numbers(code, source, file)
    return stamps.cuda_prelude(_SOME_ADDRESS) + code if stamps.stores_stamps(code) else code


def _examine(launch: CudaLaunch, stem: str, arch: str, folder: Path, file: str) -> Resources:
    """Write the kernel's SASS; return its report.

    Raises:
        SolutionFailed: the launch's arguments do not match the kernel's parameters.
    """
    kernel = launch.kernel
    cubin = folder / f"{stem}.cubin"
    cubin.write_bytes(kernel.code)
    sass = _innermost_lines(_section(disassemble(cubin, ("-c", "-gi")), kernel), file)
    (folder / f"{stem}.sass").write_text(sass)
    registers, stack, static, local = _usage(dump_cubin(cubin, "-res-usage"), kernel)
    if launch.arguments is not None:
        _check_arguments(launch.arguments, _parameter_sizes(dump_cubin(cubin, "-elf"), kernel), kernel.name)
    reserved = _RESERVED if static >= _RESERVED and arch not in ("sm_80", "sm_89") else 0
    shared = static - reserved + launch.shared
    return Resources(
        kernel=short_name(kernel.name),
        registers=registers,
        shared_bytes=shared,
        spill_bytes=stack + local,
        notes=(
            summarise_instructions(sass),
            _variant(launch, sass),
            *shared_memory_notes(shared, DEVICES[arch]["shared"], arch),
        ),
    )


def _section(listing: str, kernel: FakeKernel) -> str:
    """Return the kernel's part of a disassembly."""
    starts = list(_SECTION.finditer(listing))
    for number, start in enumerate(starts):
        if start[1] == kernel.symbol:
            end = starts[number + 1].start() if number + 1 < len(starts) else len(listing)
            return listing[start.start() : end]
    return ""


def _innermost_lines(sass: str, file: str) -> str:
    """Return the disassembly with one source line an instruction: the innermost one in the version's file."""

    def innermost(chain: re.Match[str]) -> str:
        lines = chain[0].splitlines(keepends=True)
        return next((line for line in lines if Path(_FILE.findall(line)[0]).name == file), lines[-1])

    return _CHAIN.sub(innermost, sass)


def _parameter_sizes(elf: str, kernel: FakeKernel) -> list[int]:
    """Return the bytes of each parameter, in order."""
    _, _, info = elf.partition(f"\n.nv.info.{kernel.symbol}\n")
    sizes = {int(at, 16): int(size, 16) for at, size in _PARAMETER.findall(info.partition("\n.nv.")[0])}
    return [size for _, size in sorted(sizes.items())]


def _check_arguments(arguments: Sequence[Any], sizes: Sequence[int], name: str) -> None:
    """Refuse arguments whose sizes in bytes differ from what the kernel reads: nothing else notices."""
    if len(arguments) != len(sizes):
        raise SolutionFailed(f"`{name}` takes {len(sizes)} arguments, the launch gives {len(arguments)}")
    for number, (value, size) in enumerate(zip(arguments, sizes, strict=True), start=1):
        passed = 8 if type(value) is float else getattr(value, "itemsize", size)
        if passed != size:
            fault = f"`{type(value).__name__}` of {passed} bytes; the kernel reads {size}"
            raise SolutionFailed(f"argument {number} of `{name}` is a {fault}: give a numpy scalar of that size")


def _usage(report: str, kernel: FakeKernel) -> tuple[int, ...]:
    """Return registers a thread, and bytes of stack, shared and local memory."""
    for match in _USAGE.finditer(report):
        if match[1] == kernel.symbol:
            return tuple(map(int, match.groups()[1:]))
    return 0, 0, 0, 0


def _variant(launch: CudaLaunch, sass: str) -> str:
    """Describe the template arguments and the launch options, which distinguish kernels of the same name."""
    _, _, rest = launch.kernel.name.partition("<")
    words = [rest.rpartition(">")[0]] if rest else []
    words.append(f"block {'x'.join(map(str, launch.block)).removesuffix('x1').removesuffix('x1')}")
    if launch.cluster:
        words.append(f"cluster {'x'.join(map(str, launch.cluster)).removesuffix('x1').removesuffix('x1')}")
        least, most = min(launch.grids), max(launch.grids)
        words.append(f"{least} blocks" if least == most else f"{least} to {most} blocks")
    words += [f"dynamic shared {launch.shared}"] if launch.shared else []
    return ", ".join([*words, *early_start_notes(launch.early, sass)])


def _describe(launch: CudaLaunch, stem: str, folder: Path) -> dict[str, Any]:
    sass = (folder / f"{stem}.sass").read_text()
    return {
        "stem": stem,
        "workloads": launch.workloads,
        "variant": _variant(launch, sass),
        "matrix_product": _PRODUCT.search(sass) is not None,
    }


def _print_cuda_error(source: Path, error: Exception) -> None:
    """Print the compiler's own lines if it wrote any, else the error with its line in the version."""
    _, log, lines = str(error).partition("compilation log:")
    if log:
        sys.stdout.write(_ENDING.sub("", lines).strip() + "\n")
        if _NO_HEADER in lines:
            sys.stdout.write(f"NVIDIA's headers: {describe_headers()}\n")
    else:
        print_error(source, error)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

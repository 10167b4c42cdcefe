"""Compile what a CUDA C++ solution launches, without a device: `python -m` on a folder with `request.json`."""

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

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import SolutionFailed
from warpsmith.languages.cuda import source as cuda_source
from warpsmith.languages.cuda.language import headers, short_name, told_headers
from warpsmith.languages.cuda.pretend import Kernel, Launch, pretend
from warpsmith.languages.shared import tool
from warpsmith.languages.shared.python_file import execute
from warpsmith.languages.triton import compile as triton_compile
from warpsmith.languages.triton.pretend import DEVICES

_SECONDS = 60.0
_RESERVED = 1024
"""Shared memory that the system takes of every block from sm_90 on, and that the report counts."""
_USAGE = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_SECTION = re.compile(r"^//-+ \.text\.(\S+) +-+$", re.MULTILINE)
_PARAMETER = re.compile(r"Ordinal : 0x([0-9a-f]+)\s+Offset\s+: 0x[0-9a-f]+\s+Size\s+: 0x([0-9a-f]+)")
_FILE = re.compile(r'## File "([^"]*)"')
_CHAIN = re.compile(r"(?:^[ \t]*//## File .*\n)+", re.MULTILINE)
_NO_HEADER = "cannot open source file"
_ENDING = re.compile(r"^\d+ (?:catastrophic )?errors? detected in the compilation of .*$", re.MULTILINE)
_PRODUCT = re.compile(r"\b\w?(?:[HIBDQ]MMA|[HIQB]GMMA)\b")


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json` and SASS in `folder`.

    With `syntax` only the programs that stand in the file are read. Where a tool is missing, `lacks.txt` says so.
    """
    request = json.loads((folder / "request.json").read_text())
    source = Path(request["source"])
    try:
        if request.get("syntax"):
            return _check(source)
        if lacking := triton_compile.lacking_tool():
            (folder / "lacks.txt").write_text(lacking)
            return 1
        definition, arch = Definition.model_validate(request["definition"]), request["arch"]
        workloads = triton_compile.chosen(definition, request.get("workloads"))
        launches = _launch(source, definition, workloads, arch)
        stems = triton_compile.stems_of([short_name(launch.kernel.name) for launch in launches], arch)
        reports = [
            _examine(launch, stem, arch, folder, source.name) for launch, stem in zip(launches, stems, strict=True)
        ]
    except Exception as error:
        _explain(source, error)
        return 1
    if not launches:
        sys.stdout.write("run launched no kernel through cuda.core\n")
        return 1
    (folder / "resources.json").write_text(json.dumps([report.model_dump(mode="json") for report in reports]))
    described = [_describe(launch, stem, folder) for launch, stem in zip(launches, stems, strict=True)]
    (folder / "launches.json").write_text(json.dumps(described))
    return 0


def _check(source: Path) -> int:
    """Read the file's programs; what only the run can tell, such as its own headers, is left to the run."""
    text = source.read_text()
    for program in cuda_source.static_programs(ast.parse(text)):
        options = [f"--gpu-architecture={program.arch}", f"--std={program.std}", "--fdevice-syntax-only", "-w"]
        options += [f"--include-path={path}" for path in headers().values() if path]
        said = _errors(cuda_source.placed(program.code, text, source.name), options)
        if said and _NO_HEADER not in said:
            sys.stdout.write(_ENDING.sub("", said))
            return 1
    return 0


def _errors(code: str, options: Sequence[str]) -> str:
    """What NVRTC has against a program. Not through cuda.core, which wants machine code at the end."""
    nvrtc = importlib.import_module("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), b"program.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if status == nvrtc.nvrtcResult.NVRTC_SUCCESS:
        return ""
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.rstrip(b"\0 ").decode(errors="replace") or str(status)


def _launch(source: Path, definition: Definition, workloads: Sequence[Workload], arch: str) -> list[Launch]:
    """What `run` launches at these workloads, the same kernel with the same block once."""
    found: dict[Any, Launch] = {}
    launches: list[Launch] = []
    place = partial(cuda_source.placed, source=source.read_text(), file=source.name)
    with pretend(arch, place, launches):
        module = execute(source)
        for workload in workloads:
            launches.clear()
            module.run(*triton_compile.arguments(definition, workload))
            for launch in launches:
                kernel, how = launch.kernel, (launch.block, launch.cluster, launch.shared, launch.early)
                key = (kernel.code, kernel.symbol, *how)
                names = found.setdefault(key, launch).workloads
                names.extend([workload.name] if workload.name not in names else [])
    return list(found.values())


def _examine(launch: Launch, stem: str, arch: str, folder: Path, file: str) -> Resources:
    """Write the kernel's SASS; report what the tools beside Triton's compiler say of it.

    Raises:
        SolutionFailed: the launch's arguments are not what the kernel takes.
    """
    from triton import knobs

    kernel = launch.kernel
    cubin = folder / f"{stem}.cubin"
    cubin.write_bytes(kernel.code)
    listing = tool.run([knobs.nvidia.nvdisasm.path, "-c", "-gi", cubin], _SECONDS).output
    sass = _innermost(_section(listing, kernel), file)
    (folder / f"{stem}.sass").write_text(sass)
    usage = tool.run([knobs.nvidia.cuobjdump.path, "-res-usage", cubin], _SECONDS).output
    registers, stack, static, local = _usage(usage, kernel)
    if launch.arguments is not None:
        sizes = _parameters(tool.run([knobs.nvidia.cuobjdump.path, "-elf", cubin], _SECONDS).output, kernel)
        _fit(launch.arguments, sizes, kernel.name)
    reserved = _RESERVED if static >= _RESERVED and arch not in ("sm_80", "sm_89") else 0
    shared, limit = static - reserved + launch.shared, DEVICES[arch]["shared"]
    over = f"needs {shared} bytes of shared memory, {arch} has {limit}: it will not launch"
    return Resources(
        kernel=short_name(kernel.name),
        registers=registers,
        shared_bytes=shared,
        spill_bytes=stack + local,
        notes=(triton_compile.instructions(sass), _variant(launch, sass), *([over] if shared > limit else [])),
    )


def _section(listing: str, kernel: Kernel) -> str:
    """The kernel's part of a disassembly."""
    starts = list(_SECTION.finditer(listing))
    for number, start in enumerate(starts):
        if start[1] == kernel.symbol:
            end = starts[number + 1].start() if number + 1 < len(starts) else len(listing)
            return listing[start.start() : end]
    return ""


def _innermost(sass: str, file: str) -> str:
    """The disassembly with one place before an instruction: the innermost one in the version's file."""

    def one(chain: re.Match[str]) -> str:
        places = chain[0].splitlines(keepends=True)
        return next((place for place in places if Path(_FILE.findall(place)[0]).name == file), places[-1])

    return _CHAIN.sub(one, sass)


def _parameters(elf: str, kernel: Kernel) -> list[int]:
    """Bytes of each parameter, in order."""
    _, _, own = elf.partition(f"\n.nv.info.{kernel.symbol}\n")
    found = {int(at, 16): int(size, 16) for at, size in _PARAMETER.findall(own.partition("\n.nv.")[0])}
    return [size for _, size in sorted(found.items())]


def _fit(arguments: Sequence[Any], sizes: Sequence[int], name: str) -> None:
    """Refuse what a launch would pass in other sizes than the kernel reads: nothing else notices."""
    if len(arguments) != len(sizes):
        raise SolutionFailed(f"`{name}` takes {len(sizes)} arguments, the launch gives {len(arguments)}")
    for place, (value, size) in enumerate(zip(arguments, sizes, strict=True), start=1):
        given = 8 if type(value) is float else getattr(value, "itemsize", size)
        if given != size:
            said = f"`{type(value).__name__}` of {given} bytes; the kernel reads {size}"
            raise SolutionFailed(f"argument {place} of `{name}` is a {said}: give a numpy scalar of that size")


def _usage(report: str, kernel: Kernel) -> tuple[int, ...]:
    """Registers, and bytes of stack, shared and local memory."""
    found = next((match for match in _USAGE.finditer(report) if match[1] == kernel.symbol), None)
    return tuple(map(int, found.groups()[1:])) if found else (0, 0, 0, 0)


def _variant(launch: Launch, sass: str) -> str:
    """What tells it from others of the same name, and how it is launched."""
    _, _, rest = launch.kernel.name.partition("<")
    words = [rest.rpartition(">")[0]] if rest else []
    words.append(f"block {'x'.join(map(str, launch.block)).removesuffix('x1').removesuffix('x1')}")
    if launch.cluster:
        words.append(f"cluster {'x'.join(map(str, launch.cluster)).removesuffix('x1').removesuffix('x1')}")
    words += [f"dynamic shared {launch.shared}"] if launch.shared else []
    return ", ".join([*words, *triton_compile.started(launch.early, sass)])


def _describe(launch: Launch, stem: str, folder: Path) -> dict[str, Any]:
    sass = (folder / f"{stem}.sass").read_text()
    return {
        "stem": stem,
        "workloads": launch.workloads,
        "variant": _variant(launch, sass),
        "matrix_product": _PRODUCT.search(sass) is not None,
    }


def _explain(source: Path, error: Exception) -> None:
    """The compiler's own lines where it spoke, else the place in the solution and the error."""
    _, log, said = str(error).partition("compilation log:")
    if log:
        sys.stdout.write(_ENDING.sub("", said).strip() + "\n")
        if _NO_HEADER in said:
            sys.stdout.write(f"NVIDIA's headers: {told_headers()}\n")
    else:
        triton_compile.explain(source, error)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Compile what a CuTe DSL solution calls, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.cutedsl import calls as cutedsl_calls
from warpsmith.languages.cutedsl import report as cutedsl_report
from warpsmith.languages.shared import tool
from warpsmith.languages.shared.python_file import execute
from warpsmith.languages.triton import compile as triton_compile
from warpsmith.languages.triton.pretend import DEVICES, pretend

_SECONDS = 60.0
_PRODUCT = re.compile(r"\bgemm\(")


class Called(NamedTuple):
    """A compiled function that `run` called."""

    function: Any
    workloads: list[str]


class Examined(NamedTuple):
    """One kernel of a compiled function."""

    report: Resources
    variant: str
    sass: str
    ptx: str
    workloads: list[str]


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json`, PTX and SASS in `folder`.

    Where a tool is missing, `lacks.txt` says so.
    """
    request = json.loads((folder / "request.json").read_text())
    definition = Definition.model_validate(request["definition"])
    source, arch = Path(request["source"]), request["arch"]
    if lacking := triton_compile.lacking_tool():
        (folder / "lacks.txt").write_text(lacking)
        return 1
    workloads = triton_compile.chosen(definition, request["workloads"])
    (folder / "kept").mkdir()
    try:
        module, called = _called(source, definition, workloads, arch)
    except Exception as error:
        triton_compile.explain(source, error)
        return 1
    if not called:
        sys.stdout.write("run called no function that cute.compile made\n")
        return 1
    found = [kernel for one in called for kernel in _examined(one, list(vars(module)), arch, folder)]
    stems = triton_compile.stems_of([kernel.report.kernel for kernel in found], arch)
    product = _PRODUCT.search(source.read_text()) is not None
    for stem, kernel in zip(stems, found, strict=True):
        (folder / f"{stem}.sass").write_text(kernel.sass)
        (folder / f"{stem}.ptx").write_text(kernel.ptx)
    launches = [
        {"stem": stem, "workloads": kernel.workloads, "variant": kernel.variant, "matrix_product": product}
        for stem, kernel in zip(stems, found, strict=True)
    ]
    (folder / "launches.json").write_text(json.dumps(launches))
    (folder / "resources.json").write_text(json.dumps([kernel.report.model_dump(mode="json") for kernel in found]))
    return 0


def _called(
    source: Path, definition: Definition, workloads: list[Workload], arch: str
) -> tuple[Any, list[Called]]:
    """The solution's module, and the compiled functions that its `run` calls at these workloads."""
    called: dict[int, Called] = {}
    at: list[str] = []

    def note(function: Any) -> None:  # noqa: ANN401 - the DSL publishes no types
        names = called.setdefault(id(function), Called(function, [])).workloads
        names.extend(name for name in at if name not in names)

    with pretend(arch, {}), cutedsl_calls.answered(note):
        module = execute(source)
        for workload in workloads:
            at[:] = [workload.name]
            module.run(*triton_compile.arguments(definition, workload))
    return module, list(called.values())


def _examined(called: Called, known: Iterable[str], arch: str, folder: Path) -> list[Examined]:
    """Every kernel of a compiled function, as the tools beside Triton's compiler see it."""
    from triton import knobs

    function = called.function
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(function.__cubin__)
    ptx = function.__ptx__
    usage = cutedsl_report.usage(tool.run([knobs.nvidia.cuobjdump.path, "-res-usage", cubin], _SECONDS).output)
    listing = tool.run([knobs.nvidia.nvdisasm.path, "-c", "-g", cubin], _SECONDS).output
    shared = cutedsl_report.shared_bytes(str(function.ir_module), ptx)
    threads, limit = cutedsl_report.threads(ptx), DEVICES[arch]["shared"]
    found = []
    for symbol, sass in cutedsl_report.sections(listing).items():
        name, variant = cutedsl_report.split_name(symbol, known)
        variant = f"{threads[symbol]} threads, {variant}" if symbol in threads else variant
        asked = shared.get(symbol)
        over = f"needs {asked} bytes of shared memory, {arch} has {limit}: it will not launch"
        notes = (triton_compile.instructions(sass), variant, *([over] if asked and asked > limit else []))
        registers, local = usage.get(symbol, (None, None))
        report = Resources(kernel=name, registers=registers, shared_bytes=asked, spill_bytes=local, notes=notes)
        found.append(Examined(report, variant, sass, ptx, called.workloads))
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Compile what a cuTile solution launches, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.core.definition import Definition, Workload
from warpsmith.languages.cutile import cubin as cutile_cubin
from warpsmith.languages.cutile.language import launch_note
from warpsmith.languages.cutile.pretend import Launch, pretend
from warpsmith.languages.shared.python_file import execute
from warpsmith.languages.triton.compile import arguments

_PRODUCTS = {"mma", "mma_scaled", "matmul"}
_WORDLESS = (
    "tileiras gives no other word where it finds no ptxas or libnvvm of its own release: "
    "a toolkit that CUDA_HOME names goes before its own"
)


class Launched(NamedTuple):
    """A specialisation that is launched at some workloads."""

    launch: Launch
    workloads: list[str]


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json`, cubins and SASS in `folder`.

    Where a tool is missing, `lacks.txt` says so.
    """
    request = json.loads((folder / "request.json").read_text())
    definition = Definition.model_validate(request["definition"])
    source, arch = Path(request["source"]), request["arch"]
    if lacks := cutile_cubin.lacking():
        (folder / "lacks.txt").write_text(lacks)
        return 1
    workloads = [workload for workload in definition.workloads if workload.name in request["workloads"]]
    try:
        launched = _launch(source, definition, workloads, arch)
        compiled = _compile(launched, arch, folder)
    except Exception as error:
        _explain(source, error)
        return 1
    if not launched:
        sys.stdout.write("run launched no cuTile kernel\n")
        return 1
    (folder / "resources.json").write_text(json.dumps([report for report, _ in compiled]))
    (folder / "launches.json").write_text(json.dumps([described for _, described in compiled]))
    return 0


def describe(launched: Launched, stem: str) -> dict[str, Any]:
    """What the compiler was told of a kernel's arguments: `launches.json` holds one of these a kernel."""
    kernel, signature = launched.launch
    names = inspect.signature(kernel._pyfunc).parameters
    words, unaligned = [], []
    for name, told in zip(names, signature.parameters, strict=True):
        words.append(f"{name}{_word(told)}")
        if _is_unaligned(told):
            unaligned.append(name)
    return {
        "stem": stem,
        "workloads": launched.workloads,
        "variant": ", ".join([*words, launch_note(kernel)]),
        "unaligned": unaligned,
        "matrix_product": bool(_PRODUCTS & set(kernel._pyfunc.__code__.co_names)),
    }


def _launch(source: Path, definition: Definition, workloads: list[Workload], arch: str) -> list[Launched]:
    """What the solution's `run` launches at these workloads, the same specialisation of a kernel once."""
    found: dict[tuple[int, str], Launched] = {}
    launches: list[Launch] = []
    with pretend(arch, launches):
        module = execute(source)
        for workload in workloads:
            launches.clear()
            module.run(*arguments(definition, workload))
            for launch in launches:
                one = found.setdefault((id(launch.kernel), launch.signature.symbol), Launched(launch, []))
                if workload.name not in one.workloads:
                    one.workloads.append(workload.name)
    return list(found.values())


def _compile(launched: list[Launched], arch: str, folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """A report and a description of each, with its cubin and SASS in `folder`."""
    compilation = importlib.import_module("cuda.tile.compilation")
    seen: Counter[str] = Counter()
    made = []
    for each in launched:
        kernel, signature = each.launch
        name = kernel._pyfunc.__name__
        seen[name] += 1
        stem = f"{name}{f'-{seen[name]}' if seen[name] > 1 else ''}.{arch}"
        cubin = folder / f"{stem}.cubin"
        compilation.export_kernel(
            kernel, [signature], cubin, gpu_code=arch.removesuffix("a"), output_format="cubin"
        )
        sass = cutile_cubin.disassembled(cubin)
        (folder / f"{stem}.sass").write_text(sass)
        report = cutile_cubin.report(cubin, name, launch_note(kernel), sass)
        made.append((report.model_dump(mode="json"), describe(each, stem)))
    return made


def _word(told: Any) -> str:  # noqa: ANN401 - cuTile's constraints
    if hasattr(told, "value"):
        return f"={told.value}"
    if not hasattr(told, "ndim"):
        return f" {getattr(getattr(told, 'dtype', None), 'name', type(told).__name__)}"
    return f" {told.dtype.name}[{told.ndim}]{'' if _is_unaligned(told) else '/16'}"


def _is_unaligned(told: Any) -> bool:  # noqa: ANN401
    """Whether it is an array whose address or rows the compiler could not take for multiples of 16 bytes."""
    if not hasattr(told, "ndim"):
        return False
    steps = [
        by for constant, by in zip(told.stride_constant, told.stride_divisible_by, strict=True) if constant != 1
    ]
    return told.base_addr_divisible_by % 16 != 0 or any(by * told.dtype.bitwidth % 128 for by in steps)


def _explain(source: Path, error: Exception) -> None:
    """The place in the solution and the error, its last lines last."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(source)]
    where = f"line {frames[-1].lineno}: " if frames else ""
    sys.stdout.write(f"{where}{type(error).__name__}: {error}\n")
    if "Return code 5" in str(error):
        sys.stdout.write(f"{_WORDLESS}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

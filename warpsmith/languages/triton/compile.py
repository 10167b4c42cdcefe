"""Compile what a Triton solution launches, without a device: `python -m` on a folder with `request.json`."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.core.dtype import DTYPES
from warpsmith.core.evaluation import Resources
from warpsmith.languages.shared import tool
from warpsmith.languages.shared.python_file import execute
from warpsmith.languages.triton.language import launch_note
from warpsmith.languages.triton.pretend import DEVICES, pretend

_SECONDS = 60.0
_OPCODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")
_ALWAYS = ("HGMMA", "UTMALDG", "LDL")
_WORTH = re.compile(
    r"[HQI]GMMA|UTC\w*MMA|[HIQD]MMA|UTMALDG|UTMASTG|UTMAREDG|LDGSTS|LDSM|STSM|LDL|STL|ATOMG?|REDG?"
)
_WAIT = re.compile(r"\bgriddepcontrol\.wait\b|\bACQBULK\b")
"""In PTX and in SASS."""
NEVER_WAITS = "starts before the kernel ahead has ended and never waits for it"
_WIDTHS = {"64", "128", "256", "U8", "S8", "U16", "S16"}


class Launched(NamedTuple):
    """A kernel that was compiled for a launch."""

    kernel: Any
    name: str
    workloads: list[str]


def main(folder: Path) -> int:
    """Compile as `request.json` says; leave `resources.json`, `launches.json`, PTX and SASS in `folder`.

    Where a tool is missing, `lacks.txt` says so.
    """
    request = json.loads((folder / "request.json").read_text())
    definition = Definition.model_validate(request["definition"])
    source, arch = Path(request["source"]), request["arch"]
    if lacking := lacking_tool():
        (folder / "lacks.txt").write_text(lacking)
        return 1
    workloads = chosen(definition, request.get("workloads"))
    try:
        module, launched = _launch(source, definition, workloads, arch)
    except Exception as error:
        explain(source, error)
        return 1
    if not launched:
        sys.stdout.write("run launched no Triton kernel\n")
        return 1
    stems = stems_of([launch.name for launch in launched], arch)
    found = [_examine(launch, stem, arch, folder) for launch, stem in zip(launched, stems, strict=True)]
    tuned = _autotuned(module)
    noted = [r.model_copy(update={"notes": (*r.notes, *tuned.get(r.kernel, ()))}) for r in found]
    (folder / "resources.json").write_text(json.dumps([resource.model_dump(mode="json") for resource in noted]))
    made = [describe(launch, stem) for launch, stem in zip(launched, stems, strict=True)]
    (folder / "launches.json").write_text(json.dumps(made))
    return 0


def arguments(definition: Definition, workload: Workload | None = None) -> list[Any]:
    """Zeros of a workload, by default the first representative one, in memory taken only where it is touched."""
    import numpy
    import torch

    workload = workload or definition.select("representative")[0]
    scalars = definition.scalars(workload)

    def zeros(spec: TensorSpec) -> torch.Tensor:
        shape, dtype = definition.shape(spec, workload), definition.dtype(spec, workload)
        flat = numpy.zeros(prod(shape) * DTYPES[dtype].bytes, dtype=numpy.uint8)
        if not flat.size:  # numpy's stride of no elements is none that torch can view otherwise
            return torch.empty(shape, dtype=getattr(torch, dtype))
        return torch.from_numpy(flat).view(getattr(torch, dtype)).view(shape)

    given = definition.outputs.values() if definition.outputs_are == "given" else ()
    inputs = [
        zeros(spec) if isinstance(spec, TensorSpec) else scalars[name] for name, spec in definition.inputs.items()
    ]
    return [*inputs, *map(zeros, given)]


def describe(launch: Launched, stem: str) -> dict[str, Any]:
    """What the compiler was told of a kernel's arguments: `launches.json` holds one of these a kernel."""
    told = launch.kernel.src
    words, unaligned = [], []
    for place, (name, kind) in enumerate(told.signature.items()):
        if (place,) in told.constants:
            words.append(f"{name}={told.constants[place,]}")
            continue
        aligned = ["tt.divisibility", 16] in told.attrs.get((place,), ())
        words.append(f"{name} {kind}{'/16' if aligned else ''}")
        if not aligned and (str(kind).startswith("*") or re.fullmatch(r"[iu](32|64)", str(kind))):
            unaligned.append(name)
    return {
        "stem": stem,
        "workloads": launch.workloads,
        "variant": ", ".join([*words, *_launched(launch.kernel)]),
        "unaligned": unaligned,
        "matrix_product": "tt.dot" in launch.kernel.asm.get("ttir", ""),
    }


def chosen(definition: Definition, names: list[str] | None) -> list[Workload]:
    """The workloads of these names; None: the first representative one."""
    if names is None:
        return definition.select("representative")[:1]
    return [workload for workload in definition.workloads if workload.name in names]


def _launch(
    source: Path, definition: Definition, workloads: list[Workload], arch: str
) -> tuple[Any, list[Launched]]:
    """The solution's module, and what its `run` launches at these workloads, the same kernel once."""
    launched: dict[str, Launched] = {}
    kernels: dict[str, tuple[Any, str]] = {}
    with pretend(arch, kernels):
        module = execute(source)
        for workload in workloads:
            kernels.clear()
            module.run(*arguments(definition, workload))
            for key, (kernel, name) in kernels.items():
                launched.setdefault(key, Launched(kernel, name, [])).workloads.append(workload.name)
    return module, list(launched.values())


def lacking_tool() -> str | None:
    """The tool beside Triton's compiler that is not there, in one sentence."""
    from triton import knobs

    for tool_name in ("nvdisasm", "cuobjdump"):
        try:
            getattr(knobs.nvidia, tool_name)
        except RuntimeError:
            variable = f"TRITON_{tool_name.upper()}_PATH"
            return f"`{tool_name}` is not beside Triton's compiler: install the CUDA toolkit and set {variable}."
    return None


def stems_of(names: list[str], arch: str) -> list[str]:
    """File names without endings: `copy.sm_90a`, `copy-2.sm_90a`."""
    seen: Counter[str] = Counter()
    stems = []
    for name in names:
        seen[name] += 1
        stems.append(f"{name}{f'-{seen[name]}' if seen[name] > 1 else ''}.{arch}")
    return stems


def _examine(launch: Launched, stem: str, arch: str, folder: Path) -> Resources:
    """Write the kernel's PTX and SASS; report what the tools beside Triton's compiler say of it."""
    from triton import knobs

    kernel = launch.kernel
    cubin = folder / f"{stem}.cubin"
    cubin.write_bytes(kernel.asm["cubin"])
    (folder / f"{stem}.ptx").write_text(kernel.asm["ptx"])
    sass = tool.run([knobs.nvidia.nvdisasm.path, "-c", "-g", "-gp", cubin], _SECONDS).output
    (folder / f"{stem}.sass").write_text(sass)
    usage = _USAGE.search(tool.run([knobs.nvidia.cuobjdump.path, "-res-usage", cubin], _SECONDS).output)
    shared, limit = kernel.metadata.shared, DEVICES[arch]["shared"]
    over = f"needs {shared} bytes of shared memory, {arch} has {limit}: it will not launch"
    return Resources(
        kernel=launch.name,
        registers=int(usage[1]) if usage else None,
        shared_bytes=shared,
        spill_bytes=int(usage[2]) + int(usage[3]) if usage else None,
        notes=(instructions(sass), *_launched(kernel), *([over] if shared > limit else [])),
    )


def started(early: bool, assembly: str) -> list[str]:
    """Whether a kernel that is launched before the one ahead of it has ended (programmatic dependent launch) waits
    for that: else what it reads may not be there yet, and what it writes may still be read."""
    if not early:
        return []
    return ["starts early" if _WAIT.search(assembly) else NEVER_WAITS]


def _launched(kernel: Any) -> list[str]:  # noqa: ANN401 - triton publishes no types
    return [launch_note(kernel.metadata), *started(bool(kernel.metadata.launch_pdl), kernel.asm["ptx"])]


def instructions(sass: str) -> str:
    """The kinds of instruction worth knowing, with their counts: `LDG.E.128 x4, HGMMA x0, LDL x0`."""
    counts: Counter[str] = Counter()
    for opcode in _OPCODE.findall(sass):
        base, *rest = opcode.split(".")
        if base in ("LDG", "STG"):
            counts[".".join([base, "E", *(part for part in rest if part in _WIDTHS)])] += 1
        elif _WORTH.fullmatch(base):
            counts[base] += 1
    named = [*(kind for kind in sorted(counts) if kind not in _ALWAYS), *_ALWAYS]
    return ", ".join(f"{kind} x{counts[kind]}" for kind in named)


def _autotuned(module: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401
    """Which kernels stand for one configuration of several."""
    notes: dict[str, tuple[str, ...]] = {}
    for value in vars(module).values():
        configs = getattr(value, "configs", ())
        function = value
        while hasattr(function, "fn") and not hasattr(function, "device_caches"):
            function = function.fn
        if len(configs) > 1:
            notes[function.__name__] = (f"autotuned: the first of {len(configs)} configurations",)
    return notes


def explain(source: Path, error: Exception) -> None:
    """The place in the solution and the error, its last lines last."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(source)]
    where = f"line {frames[-1].lineno}: " if frames else ""
    sys.stdout.write(f"{where}{type(error).__name__}: {error}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

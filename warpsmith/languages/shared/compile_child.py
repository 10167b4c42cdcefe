"""Parts of the processes that compile a version without a GPU; `compile_only` starts them."""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith import files
from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.core.evaluation import Resources


class CompileRequest(NamedTuple):
    """Contents of `request.json`."""

    source: Path
    definition: Definition
    arch: str
    workloads: list[Workload]


def read_request(folder: Path) -> CompileRequest:
    """Read `request.json`; without `workloads` the first representative one is compiled for."""
    request = json.loads((folder / "request.json").read_text())
    definition, names = Definition.model_validate(request["definition"]), request.get("workloads")
    workloads = (
        definition.select("representative")[:1]
        if names is None
        else [workload for workload in definition.workloads if workload.name in names]
    )
    return CompileRequest(Path(request["source"]), definition, request["arch"], workloads)


def write_results(folder: Path, reports: Sequence[Resources], launches: Sequence[Mapping[str, Any]]) -> None:
    """Write `resources.json`, then `launches.json`: they have an item for each kernel in the same order.

    The process may be stopped at any time; once the second file is there, the results are complete.
    """
    resources = [report.model_dump(mode="json") for report in reports]
    (folder / "resources.json").write_text(json.dumps(resources))
    files.write_file(folder / "launches.json", json.dumps(launches))


def write_lack(folder: Path, lack: str | None) -> bool:
    """Write `lacks.txt` if something is missing; return True if it was written."""
    if lack is not None:
        (folder / "lacks.txt").write_text(lack)
    return lack is not None


def zero_arguments(definition: Definition, workload: Workload) -> list[Any]:
    """Return the arguments of `run` as zeros on the CPU, whose memory is taken only when it is touched."""
    import numpy
    import torch

    scalars = definition.scalars(workload)

    def zeros(spec: TensorSpec) -> torch.Tensor:
        shape, dtype = definition.shape(spec, workload), definition.dtype(spec, workload)
        flat = numpy.zeros(prod(shape) * DTYPES[dtype].bytes, dtype=numpy.uint8)
        if not flat.size:  # torch cannot view numpy's stride of an array without elements
            return torch.empty(shape, dtype=getattr(torch, dtype))
        return torch.from_numpy(flat).view(getattr(torch, dtype)).view(shape)

    outputs = definition.outputs.values() if definition.outputs_are == "given" else ()
    inputs = [
        zeros(spec) if isinstance(spec, TensorSpec) else scalars[name] for name, spec in definition.inputs.items()
    ]
    return [*inputs, *map(zeros, outputs)]


def file_stems(kernels: Sequence[str], arch: str) -> list[str]:
    """Return a file name without ending for each kernel: `copy.sm_90a`, and `copy-2.sm_90a` for its namesake."""
    counts: Counter[str] = Counter()
    stems = []
    for name in kernels:
        counts[name] += 1
        stems.append(f"{name}{f'-{counts[name]}' if counts[name] > 1 else ''}.{arch}")
    return stems


def print_error(source: Path, error: Exception) -> None:
    """Print an error with the line of the version that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(source)]
    where = f"line {frames[-1].lineno}: " if frames else ""
    sys.stdout.write(f"{where}{type(error).__name__}: {error}\n")

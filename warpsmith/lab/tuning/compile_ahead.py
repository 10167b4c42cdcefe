"""Compilation ahead of the baselines: a process of its own calls the compiled reference, so that PyTorch's cache
on disk holds what the timed process needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from warpsmith.core.definition import Workload
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs


@contextmanager
def compile_meanwhile(
    file: DefinitionFile, workloads: Sequence[Workload], device: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process that compiles; it is killed at the end. What it prints is dropped, as its failure is."""
    task = {"path": str(file.path), "device": device, "workloads": [w.model_dump(mode="json") for w in workloads]}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(task)], stdin=quiet, stdout=quiet, stderr=quiet
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def compile_reference(path: Path, workloads: Sequence[Workload], device: str) -> None:
    """Call the compiled reference once for each workload, on fresh inputs."""
    import torch

    file = definition_file.load_definition(path)
    for workload in workloads:
        torch._dynamo.reset()
        drawn = Inputs(file, workload, 1, device).draw()
        values = {**file.definition.scalars(workload), **drawn}
        torch.compile(file.reference, dynamic=False)(*(values[name] for name in file.definition.inputs))


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    workloads_to_compile = [Workload.model_validate(workload) for workload in request["workloads"]]
    compile_reference(Path(request["path"]), workloads_to_compile, request["device"])

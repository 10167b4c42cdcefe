"""Program under compute-sanitizer: it calls a version twice on each workload. Start it with `python -m`.

The definition comes as JSON and the inputs as bytes, so the reference never enters this process. The process
enters the sandbox after the device is initialized: the tool has then connected to it, which the sandbox would
refuse.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import languages
from warpsmith.core import gate_rules
from warpsmith.core.base import Model
from warpsmith.core.definition import Definition, Workload
from warpsmith.lab.instrumented import target_program
from warpsmith.lab.operator.tensor_bytes import as_bytes
from warpsmith.lab.sandbox import walls
from warpsmith.languages.base import Build, Run

if TYPE_CHECKING:
    import torch

_REQUEST = "request.json"


class StoredTensor(Model):
    """Reference to one input's bytes on disk."""

    file: str
    """File in the scratch folder."""
    shape: tuple[int, ...]
    """Shape; the tensor is contiguous."""
    dtype: str
    """Data type."""


class WorkloadInputs(Model):
    """Workload with its inputs."""

    workload: Workload
    """The workload; it need not be one of the definition's own."""
    inputs: dict[str, StoredTensor]
    """Stored tensors by input name."""


class SanitizerRequest(Model):
    """Calls that the program is asked to make."""

    definition: Definition
    """Operator without its tolerances."""
    language: str
    """Language of the version."""
    source: str
    """Source file in the scratch folder."""
    artifact: str
    """File that the language loads, in the scratch folder."""
    device: str
    """`cuda`, or `cpu` if no tool watches."""
    cases: tuple[WorkloadInputs, ...]
    """Workloads in the order of the calls."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Call the version in the sandbox and print progress; return 1 if the version failed."""
    parser = argparse.ArgumentParser(prog="sanitizer_target", description=__doc__)
    parser.add_argument("scratch", type=Path, help="the folder with the request")
    parser.add_argument("nonce", help="prefix of the program's own lines")
    options = parser.parse_args(arguments)
    request = SanitizerRequest.model_validate_json((options.scratch / _REQUEST).read_bytes())
    _start(request.device)
    walls.enter_sandbox(options.scratch)
    position = "load"
    try:
        run = _load(request, options.scratch)
        for case in request.cases:
            position = case.workload.name
            _print_line(f"{options.nonce} at {position}")
            _call(run, request, case, options.scratch)
    except Exception as error:
        _print_line(f"{options.nonce} failed {position}: {target_program.describe_exception(error)}")
        return 1
    _print_line(f"{options.nonce} done")
    return 0


def sanitizer_target_command(scratch: Path, nonce: str) -> list[str]:
    """Return the command line of this program; at its end it prints `<nonce> done`."""
    return [sys.executable, "-m", "warpsmith.lab.instrumented.sanitizer_target", str(scratch), nonce]


def write_request(scratch: Path, request: SanitizerRequest) -> None:
    """Write the request to the file that the program reads."""
    (scratch / _REQUEST).write_text(request.model_dump_json())


def store_tensor(tensor: torch.Tensor, scratch: Path, file: str) -> StoredTensor:
    """Write an input's bytes to a file."""
    (scratch / file).write_bytes(as_bytes(tensor.detach().cpu()).numpy().tobytes())
    return StoredTensor(file=file, shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))


def restore_tensor(stored: StoredTensor, scratch: Path, device: str) -> torch.Tensor:
    """Read an input into its own memory, byte for byte."""
    import torch

    dtype = getattr(torch, stored.dtype)
    content = bytearray((scratch / stored.file).read_bytes())
    if not content:
        return torch.empty(stored.shape, dtype=dtype, device=device)
    return torch.frombuffer(content, dtype=torch.uint8).view(dtype).view(stored.shape).to(device)


def _start(device: str) -> None:
    """Initialize the device, and with it the tool."""
    import torch

    if device != "cpu":
        torch.empty(1, device=device)
        torch.cuda.synchronize()


def _load(request: SanitizerRequest, scratch: Path) -> Run:
    build = Build(scratch / request.source, scratch / request.artifact, ())
    return languages.get(request.language).load(build, request.definition)


def _call(run: Run, request: SanitizerRequest, workload_inputs: WorkloadInputs, scratch: Path) -> None:
    """Call twice on one workload; wait for the device after each call, so that its reports belong to this
    workload."""
    tensors = {
        name: restore_tensor(stored, scratch, request.device) for name, stored in workload_inputs.inputs.items()
    }
    values = target_program.run_arguments(request.definition, workload_inputs.workload, tensors, request.device)
    for _ in range(gate_rules.SANITIZED_CALLS):
        run(*values)
        _settle(request.device)


def _settle(device: str) -> None:
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

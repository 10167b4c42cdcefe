"""The program under compute-sanitizer: two calls of a version on each workload. `python -m` this module.

The definition comes as JSON and the inputs as bytes: the reference never enters this process. The sandbox is
entered once the device is up: by then the tool has connected to the program, which the sandbox would refuse.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import languages
from warpsmith.core.base import Model
from warpsmith.core.definition import Definition, Workload
from warpsmith.lab.instrumented import target_program
from warpsmith.lab.operator.tensor_bytes import as_bytes
from warpsmith.lab.sandbox import walls
from warpsmith.languages.base import Build, Run

if TYPE_CHECKING:
    import torch

CALLS = 2
"""Calls a workload: the first compiles, the second finds what the first left."""

_REQUEST = "request.json"


class StoredTensor(Model):
    """One input's bytes on disk."""

    file: str
    """Its file in the scratch folder."""
    shape: tuple[int, ...]
    """Its shape, contiguous."""
    dtype: str
    """Its data type."""


class WorkloadInputs(Model):
    """One workload with its inputs."""

    workload: Workload
    """The workload; it need not be one of the definition's own."""
    inputs: dict[str, StoredTensor]
    """Input name to bytes."""


class SanitizerRequest(Model):
    """What is called."""

    definition: Definition
    """The operator, without its tolerances."""
    language: str
    """The version's language."""
    source: str
    """Its file in the scratch folder."""
    artifact: str
    """What the language loads, in the scratch folder."""
    device: str
    """`cuda`, or `cpu` where no tool watches."""
    cases: tuple[WorkloadInputs, ...]
    """Every workload, in order."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Call the version in a sandbox and say on the way where it is; 1 where the version failed."""
    parser = argparse.ArgumentParser(prog="sanitizer_target", description=__doc__)
    parser.add_argument("scratch", type=Path, help="the folder with the request")
    parser.add_argument("nonce", help="what the program's own lines begin with")
    options = parser.parse_args(arguments)
    request = SanitizerRequest.model_validate_json((options.scratch / _REQUEST).read_bytes())
    _start(request.device)
    walls.enter_sandbox(options.scratch)
    at = "load"
    try:
        run = _load(request, options.scratch)
        for case in request.cases:
            at = case.workload.name
            _print_line(f"{options.nonce} at {at}")
            _call(run, request, case, options.scratch)
    except Exception as error:
        _print_line(f"{options.nonce} failed {at}: {target_program.describe_exception(error)}")
        return 1
    _print_line(f"{options.nonce} done")
    return 0


def sanitizer_target_command(scratch: Path, nonce: str) -> list[str]:
    """The command line of this program; at its end it says `<nonce> done`."""
    return [sys.executable, "-m", "warpsmith.lab.instrumented.sanitizer_target", str(scratch), nonce]


def write_request(scratch: Path, request: SanitizerRequest) -> None:
    """Leave the request where the program looks for it."""
    (scratch / _REQUEST).write_text(request.model_dump_json())


def store_tensor(tensor: torch.Tensor, scratch: Path, file: str) -> StoredTensor:
    """Write an input's bytes."""
    (scratch / file).write_bytes(as_bytes(tensor.detach().cpu()).numpy().tobytes())
    return StoredTensor(file=file, shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))


def restore_tensor(stored: StoredTensor, scratch: Path, device: str) -> torch.Tensor:
    """An input in memory of its own, to the byte."""
    import torch

    dtype = getattr(torch, stored.dtype)
    content = bytearray((scratch / stored.file).read_bytes())
    if not content:
        return torch.empty(stored.shape, dtype=dtype, device=device)
    return torch.frombuffer(content, dtype=torch.uint8).view(dtype).view(stored.shape).to(device)


def _start(device: str) -> None:
    """Bring the device up, and with it the tool."""
    import torch

    if device != "cpu":
        torch.empty(1, device=device)
        torch.cuda.synchronize()


def _load(request: SanitizerRequest, scratch: Path) -> Run:
    build = Build(scratch / request.source, scratch / request.artifact, ())
    return languages.get(request.language).load(build, request.definition)


def _call(run: Run, request: SanitizerRequest, case: WorkloadInputs, scratch: Path) -> None:
    """Both calls of one workload; the device is idle after each, so that what it reports belongs to this one."""
    tensors = {name: restore_tensor(stored, scratch, request.device) for name, stored in case.inputs.items()}
    values = target_program.run_arguments(request.definition, case.workload, tensors, request.device)
    for _ in range(CALLS):
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

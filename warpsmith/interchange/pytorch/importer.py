"""Import of PyTorch code: a function, a module with its parameters, or a KernelBench problem."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from warpsmith.errors import BadDefinition, Misuse, TimedOut
from warpsmith.interchange.draft import DefinitionDraft, read_user_text
from warpsmith.interchange.pytorch.definition_text import definition_draft
from warpsmith.interchange.pytorch.example_flags import ExampleFlag, parse_example_flag
from warpsmith.interchange.pytorch.inspected import InspectedOperator
from warpsmith.packages import require_torch
from warpsmith.temporary import TemporaryFolder

_SECONDS = 180.0
_BYTES = 16 * 2**30


def draft_from_pytorch(
    op: str,
    path: Path,
    object_name: str = "",
    examples: Sequence[str] = (),
    inputs: tuple[Path, str] | None = None,
    seconds: float = _SECONDS,
) -> DefinitionDraft:
    """Draft the definition of an operator in the Python file `path`.

    Args:
        op: name of the operator.
        path: the user's file, which is copied next to the definition.
        object_name: function, class or instance in the file; empty for the only one.
        examples: example inputs as the command line has them: `x=8,1024:float32`.
        inputs: file and name of the function that gives the other example inputs; by default the user's file.
        seconds: limit on the time.

    Raises:
        Misuse: the file is not Python, or an example input is not one.
        BadDefinition: the code fails, or no definition can express it.
        TimedOut: it does not finish in time.
        MachineLacks: torch is missing.
    """
    text = read_user_text(path)
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Misuse(f"{path} is not Python: {error}.") from error
    flags = tuple(parse_example_flag(example) for example in examples)
    return definition_draft(inspect_in_process(op, path, object_name, flags, inputs, seconds), path)


def inspect_in_process(
    op: str,
    path: Path,
    object_name: str,
    flags: tuple[ExampleFlag, ...],
    inputs: tuple[Path, str] | None = None,
    seconds: float = _SECONDS,
) -> InspectedOperator:
    """Inspect the operator in its own process, with limits on time (`seconds`) and memory.

    Raises:
        BadDefinition: no definition can express it, or its process ended without an answer.
        TimedOut: it did not finish in time.
        MachineLacks: PyTorch is missing.
    """
    require_torch("The import of PyTorch code")
    from warpsmith.interchange.pytorch.inspection import InspectionRequest

    limit = min(_BYTES, psutil.virtual_memory().available // 2)
    request = InspectionRequest(
        op=op,
        path=str(path),
        object_name=object_name,
        flags=flags,
        inputs=(str(inputs[0]), inputs[1]) if inputs else None,
        limit=limit,
    )
    with TemporaryFolder() as folder:
        question, answer = Path(folder) / "request.json", Path(folder) / "operator.json"
        question.write_text(request.model_dump_json())
        command = [
            sys.executable, "-m", "warpsmith.interchange.pytorch.inspection", str(question), str(answer),
        ]  # fmt: skip
        paths = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": paths}
        try:
            process = subprocess.run(
                command, env=environment, capture_output=True, timeout=seconds, errors="replace", check=False
            )
        except subprocess.TimeoutExpired as error:
            raise TimedOut(f"{path}: its inspection did not finish within {seconds:g} s.") from error
        if not answer.is_file():
            last_line = (process.stderr.strip().splitlines() or ["no output"])[-1][:300]
            raise BadDefinition(f"{path}: its process ended with code {process.returncode}: {last_line}")
        inspected = InspectedOperator.model_validate_json(answer.read_text())
    if inspected.error:
        raise BadDefinition(f"{path}: {inspected.error}.")
    return inspected

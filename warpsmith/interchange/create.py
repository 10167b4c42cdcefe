"""`warpsmith new`: a draft of a definition becomes files under `kernels/<op>/`."""

from __future__ import annotations

import keyword
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from warpsmith.core.base import Name
from warpsmith.errors import MissingInput, Misuse
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.project import Project


def create_definition(
    project: Project, op: str, source: Path | None = None, workloads: Path | None = None
) -> tuple[Path, DefinitionDraft]:
    """Write a new definition: an example to edit, or `source` in a form that others use.

    `source` is a KernelBench problem (`.py`) or a FlashInfer-Trace definition (`.json`), whose workloads
    (JSON lines) stand in `workloads` or at their place in the data set.

    Returns:
        The definition's file, and the draft that was written.

    Raises:
        Misuse: the name does not fit, the operator exists, or the file is neither form.
        BadDefinition: the file says something that no definition can hold, or fails when it is run.
        MissingInput: there is no such file.
        TimedOut: the problem does not answer in time.
    """
    check_operator_name(op)
    path = project.definition(op)
    if path.exists():
        raise Misuse(f"{path} exists; edit it, or choose another name.")
    draft = _draft(op, source, workloads)
    draft.write(path)
    return path, draft


def check_operator_name(op: str) -> None:
    """Raises Misuse where `op` cannot be a folder and a Python identifier."""
    try:
        TypeAdapter(Name).validate_python(op)
    except ValidationError:
        op_is_fine = False
    else:
        op_is_fine = not keyword.iskeyword(op)
    if not op_is_fine:
        raise Misuse(f"`{op}` is no operator's name; use lower-case letters, digits and `_`, as in `softmax`.")


def _draft(op: str, source: Path | None, workloads: Path | None) -> DefinitionDraft:
    if workloads is not None and (source is None or source.suffix != ".json"):
        raise Misuse("--workloads goes with --from and a FlashInfer-Trace definition (.json).")
    if source is None:
        from warpsmith.interchange import template

        return template.draft_example(op)
    for path in filter(None, (source, workloads)):
        if not path.is_file():
            raise MissingInput(f"{path} {'is no file' if path.exists() else 'does not exist'}.")
    if source.suffix == ".py":
        from warpsmith.interchange import kernelbench

        return kernelbench.draft_from_kernelbench(op, source)
    if source.suffix == ".json":
        from warpsmith.interchange import flashinfer_trace

        return flashinfer_trace.draft_from_flashinfer_trace(op, source, workloads)
    raise Misuse(f"{source} is neither a KernelBench problem (.py) nor a FlashInfer-Trace definition (.json).")

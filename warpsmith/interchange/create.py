"""Creation of definitions: `warpsmith new` writes a draft as files under `kernels/<op>/`."""

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
    """Write a new definition: an example to edit, or the conversion of `source`.

    Args:
        project: the project to write to.
        op: name of the operator.
        source: a KernelBench problem (`.py`) or a FlashInfer-Trace definition (`.json`).
        workloads: FlashInfer-Trace workloads (JSON lines); by default the file at its place in the data set.

    Returns:
        The definition's path, and the draft that was written.

    Raises:
        Misuse: the name is invalid, the operator exists, or the file has neither form.
        BadDefinition: no definition can express the content of the file, or running it fails.
        MissingInput: there is no such file.
        TimedOut: the problem does not finish in time.
    """
    check_operator_name(op)
    path = project.definition_path(op)
    if path.exists():
        raise Misuse(f"{path} exists; edit it, or choose another name.")
    draft = _draft(op, source, workloads)
    draft.write(path)
    return path, draft


def check_operator_name(op: str) -> None:
    """Check that `op` can name a folder and a Python identifier.

    Raises:
        Misuse: it cannot.
    """
    try:
        TypeAdapter(Name).validate_python(op)
    except ValidationError:
        is_valid = False
    else:
        is_valid = not keyword.iskeyword(op)
    if not is_valid:
        raise Misuse(
            f"`{op}` is not a valid operator name; use lower-case letters, digits and `_`, as in `softmax`."
        )


def _draft(op: str, source: Path | None, workloads: Path | None) -> DefinitionDraft:
    if workloads is not None and (source is None or source.suffix != ".json"):
        raise Misuse("--workloads requires --from with a FlashInfer-Trace definition (.json).")
    if source is None:
        from warpsmith.interchange import template

        return template.draft_example(op)
    for path in filter(None, (source, workloads)):
        if not path.is_file():
            raise MissingInput(f"{path} {'is not a file' if path.exists() else 'does not exist'}.")
    if source.suffix == ".py":
        from warpsmith.interchange import kernelbench

        return kernelbench.draft_from_kernelbench(op, source)
    if source.suffix == ".json":
        from warpsmith.interchange import flashinfer_trace

        return flashinfer_trace.draft_from_flashinfer_trace(op, source, workloads)
    raise Misuse(f"{source} is neither a KernelBench problem (.py) nor a FlashInfer-Trace definition (.json).")

"""Creation of definitions: `warpsmith new` writes a draft as files under `kernels/<op>/`."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from warpsmith.core.base import Name
from warpsmith.errors import MissingInput, Misuse
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.packages import require_torch
from warpsmith.project import Project, mark_project


def create_definition(
    project: Project,
    op: str,
    source: Path | None = None,
    workloads: Path | None = None,
    *,
    object_name: str = "",
    examples: Sequence[str] = (),
    capture: Path | None = None,
) -> tuple[Path, DefinitionDraft]:
    """Write a new definition: an example to edit, or the conversion of `source`.

    Args:
        project: the project to write to.
        op: name of the operator.
        source: a Python file with PyTorch code, a FlashInfer-Trace definition (`.json`), or the folder of a
            SOL-ExecBench problem.
        workloads: workloads (JSON lines); by default the file at its place in the data set.
        object_name: function, class or instance of the Python file; empty for the only one.
        examples: example inputs of the operator, such as `x=8,1024:float32`.
        capture: folder that a traced serving process wrote; `object_name` is then the traced definition.

    Returns:
        The definition's path, and the draft that was written.

    Raises:
        Misuse: the name is invalid, the operator exists, or the file has none of these forms.
        BadDefinition: no definition can express the content of the file, or running it fails.
        MachineLacks: a capture needs PyTorch or safetensors, which is missing.
        MissingInput: there is no such file.
        TimedOut: the operator does not finish in time.
    """
    check_operator_name(op)
    path = project.definition_path(op)
    if path.exists():
        raise Misuse(f"{path} exists; edit it, or choose another name.")
    if capture is not None:
        draft = _draft_capture(op, source, workloads, capture, object_name, examples)
    else:
        draft = _draft(op, source, workloads, object_name, examples)
    draft.write(path)
    mark_project(project)
    return path, draft


def split_source(text: str) -> tuple[Path, str]:
    """Split `FILE:object` into the file and the object's name, which is empty if there is none."""
    file, colon, object_name = text.rpartition(":")
    return (Path(file), object_name) if colon and file and object_name.isidentifier() else (Path(text), "")


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


def _draft_capture(
    op: str, source: Path | None, workloads: Path | None, capture: Path, name: str, examples: Sequence[str]
) -> DefinitionDraft:
    if source is not None or workloads is not None:
        raise Misuse("--from-capture takes everything from the dump: leave out --from and --workloads.")
    require_torch("--from-capture")
    from warpsmith.interchange.capture import draft_from_capture

    return draft_from_capture(op, capture, name, examples)


def _draft(
    op: str, source: Path | None, workloads: Path | None, object_name: str, examples: Sequence[str]
) -> DefinitionDraft:
    is_python = source is not None and source.suffix == ".py"
    if (object_name or examples) and not is_python:
        raise Misuse("--input and `FILE:object` require --from with a Python file (.py).")
    if workloads is not None and (source is None or is_python):
        raise Misuse("--workloads requires --from with a FlashInfer-Trace definition (.json).")
    if source is None:
        from warpsmith.interchange import template

        return template.draft_example(op)
    if source.is_dir() and (source / "definition.json").is_file():
        source = source / "definition.json"
    for path in filter(None, (source, workloads)):
        if not path.is_file():
            raise MissingInput(f"{path} {'is not a file' if path.exists() else 'does not exist'}.")
    if is_python:
        from warpsmith.interchange.pytorch import importer

        return importer.draft_from_pytorch(op, source, object_name, examples)
    if source.suffix == ".json":
        from warpsmith.interchange import flashinfer_trace

        return flashinfer_trace.draft_from_flashinfer_trace(op, source, workloads)
    raise Misuse(
        f"{source} is neither PyTorch code (.py), nor a FlashInfer-Trace definition (.json), nor the folder of a "
        "SOL-ExecBench problem."
    )

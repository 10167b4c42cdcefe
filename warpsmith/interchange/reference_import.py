"""Definition of an operator that has no folder under `kernels/`: an import that lasts for one command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from warpsmith.errors import MissingInput
from warpsmith.interchange.create import split_source
from warpsmith.interchange.draft import DefinitionDraft
from warpsmith.interchange.pytorch.importer import draft_from_pytorch
from warpsmith.lab.operator.definition_file import DefinitionFile, load_definition


def import_reference(
    folder: Path, reference: str, inputs: str = "", examples: Sequence[str] = ()
) -> tuple[DefinitionFile, DefinitionDraft]:
    """Import a PyTorch function or module into `folder`.

    Args:
        folder: an empty folder, which must last as long as the definition is used.
        reference: `FILE[:OBJECT]`, the operator as `warpsmith new --from` takes it.
        inputs: `FILE[:OBJECT]`, the example inputs; empty for those of the operator's own file.
        examples: single example inputs, such as `x=8,1024:float32`, which replace those of the file.

    Returns:
        The loaded definition, and the draft with what was assumed.

    Raises:
        MissingInput: a file does not exist.
        Misuse: a file is not Python, or an example input is not one.
        BadDefinition: the code fails, or no definition can express it.
        TimedOut: it does not finish in time.
        MachineLacks: torch is missing.
    """
    source, object_name = split_source(reference)
    inputs_source = split_source(inputs) if inputs else None
    for path in filter(None, (source, inputs_source and inputs_source[0])):
        if not path.is_file():
            raise MissingInput(f"{path} {'is not a file' if path.exists() else 'does not exist'}.")
    op = _operator_name(object_name or source.stem)
    draft = draft_from_pytorch(op, source, object_name, examples, inputs_source)
    path = folder / op / "definition.py"
    draft.write(path)
    return load_definition(path), draft


def _operator_name(text: str) -> str:
    """Return a valid operator name for a Python identifier or the stem of a file."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    return name if name[:1].isalpha() else f"operator_{name}".rstrip("_")

"""Files of extractions: the calls of each operator that was extracted from a program."""

from __future__ import annotations

from pydantic import ValidationError

from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, MissingInput
from warpsmith.program.operators.models import CALLS_FILE, Extraction
from warpsmith.project import Project


def read_extraction(project: Project, op: str) -> Extraction:
    """Read the calls of an extracted operator.

    Raises:
        MissingInput: the operator was not extracted from a program.
        CorruptRecord: the file does not read.
    """
    path = project.definition_path(op).with_name(CALLS_FILE)
    try:
        return Extraction.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise MissingInput(
            f"{op} was not extracted from a program: {path} does not exist; "
            "`warpsmith program extract PROGRAM --step STEP --op OPERATOR` writes it."
        ) from error
    except (OSError, ValidationError) as error:
        fault = describe_error(error) if isinstance(error, ValidationError) else str(error)
        raise CorruptRecord(f"{path} does not read: {fault}; extract the operator again.") from error

"""File of a program's regions: `devlog/programs/<name>/regions.json`, replaced by each new list."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord
from warpsmith.program.analysis import analysis_store, record_names
from warpsmith.program.compiled.models import StepRegions
from warpsmith.program.process.program import Program
from warpsmith.project import Project

REGIONS_FILE = "regions.json"
"""File in the folder of a program."""


def write_regions(project: Project, program: Program, regions: StepRegions) -> Path:
    """Write the regions of a program's step, and return the path of the file."""
    path = analysis_store.program_folder(project, program) / REGIONS_FILE
    analysis_store.hide_unfinished(project)
    files.write_file(path, regions.model_dump_json(indent=2) + "\n")
    return path


def read_regions(project: Project, name: str) -> StepRegions | None:
    """Read the regions of the program with this name in records; None if they were never listed.

    Raises:
        CorruptRecord: the file does not read.
    """
    path = project.devlog / record_names.FOLDER / name / REGIONS_FILE
    try:
        return StepRegions.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        fault = describe_error(error) if isinstance(error, ValidationError) else str(error)
        raise CorruptRecord(
            f"{path} does not read: {fault}; `warpsmith program regions` writes it anew."
        ) from error

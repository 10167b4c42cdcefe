"""The analyses of a project's programs: `devlog/programs/<name>/analyses/<NNN>.json`, each with its page."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.problem import describe_error
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.program.analysis import analysis_text
from warpsmith.program.analysis.models import Analysis
from warpsmith.program.process.program import Program
from warpsmith.project import Project

_FOLDER, _NUMBER = "analyses", re.compile(r"(\d{3,})\.json")


def program_folder(project: Project, program: Program) -> Path:
    """Everything that is kept of a program."""
    return project.devlog / "programs" / program.name


def check_writable(project: Project, program: Program) -> None:
    """Look beforehand, and make nothing.

    Raises:
        Misuse: what an analysis leaves could not be written.
    """
    for wanted in (program_folder(project, program) / _FOLDER, project.root / ".warpsmith"):
        nearest = next(each for each in (wanted, *wanted.parents) if each.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise Misuse(f"{wanted} cannot be written: {nearest} is no folder, or not yours; change that.")


def write_analysis(project: Project, program: Program, analysis: Analysis) -> Path:
    """Write the record under the next number, and its page; the record's path."""
    place = program_folder(project, program) / _FOLDER
    path = place / f"{max(_record_numbers(place), default=0) + 1:03d}.json"
    files.write_file(path, analysis.model_dump_json(indent=2) + "\n")
    files.write_file(
        path.with_suffix(".md"), f"# {analysis.subject.label}\n\n{analysis_text.format_analysis(analysis)}"
    )
    return path


def read_analysis(path: Path) -> Analysis:
    """A kept analysis.

    Raises:
        MissingInput: there is none.
        CorruptRecord: it does not validate.
    """
    if not path.is_file():
        raise MissingInput(f"There is no analysis {path}; `warpsmith program analyze` makes one.")
    try:
        return Analysis.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CorruptRecord(
            f"{path} is no analysis ({describe_error(error)}); analyze the program again."
        ) from error


def latest_analysis(project: Project, name: str | None = None) -> Path:
    """The newest analysis of the program of this name, or of the only one that has any.

    Raises:
        MissingInput: there is none.
        Misuse: several programs have one, and no name is given.
    """
    programs = project.devlog / "programs"
    places = [each for each in sorted(programs.glob(f"*/{_FOLDER}")) if _record_numbers(each)]
    if name is not None:
        places = [each for each in places if each.parent.name == name]
    if not places:
        whose = f" of {name}" if name else ""
        raise MissingInput(f"There is no analysis{whose}; `warpsmith program analyze` makes one.")
    if len(places) > 1:
        names = ", ".join(each.parent.name for each in places)
        raise Misuse(f"Several programs have an analysis: {names}; name one of them, or give its file.")
    return places[0] / f"{max(_record_numbers(places[0])):03d}.json"


def _record_numbers(place: Path) -> list[int]:
    found = (_NUMBER.fullmatch(path.name) for path in place.glob("*.json"))
    return [int(match[1]) for match in found if match]

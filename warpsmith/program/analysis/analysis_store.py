"""Analyses of a project's programs on disk: `devlog/programs/<name>/analyses/<NNN>.json`, each with a page."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.program.analysis import analysis_text, record_names
from warpsmith.program.analysis.models import Analysis
from warpsmith.program.process.program import Program
from warpsmith.project import Project

_FOLDER, _NUMBER = "analyses", re.compile(r"(\d{3,})\.json")


def program_folder(project: Project, program: Program) -> Path:
    """Return the folder of all records of a program."""
    return project.devlog / record_names.FOLDER / record_names.record_name(project, program)


def hide_unfinished(project: Project) -> None:
    """Hide from git what is in the programs' folders besides records."""
    files.hide_from_git(project.devlog / record_names.FOLDER, "/*/trials/open/\n.lock\n.holder.json\n.tmp-*")


def check_analysis_writable(project: Project, program: Program) -> None:
    """Check that an analysis can be written; creates nothing.

    Raises:
        Misuse: the folder of the analyses or `.warpsmith` cannot be written.
    """
    for folder in (program_folder(project, program) / _FOLDER, project.root / ".warpsmith"):
        nearest = next(ancestor for ancestor in (folder, *folder.parents) if ancestor.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise Misuse(
                f"{folder} cannot be written: {nearest} is not a folder that you can write to; change that."
            )


def write_analysis(project: Project, program: Program, analysis: Analysis) -> Path:
    """Write the record under the next number, and its page; return the path of the record."""
    folder = program_folder(project, program) / _FOLDER
    path = folder / f"{max(_record_numbers(folder), default=0) + 1:03d}.json"
    hide_unfinished(project)
    files.write_file(path, analysis.model_dump_json(indent=2) + "\n")
    files.write_file(
        path.with_suffix(".md"), f"# {analysis.subject.label}\n\n{analysis_text.format_analysis(analysis)}"
    )
    return path


def read_analysis(path: Path) -> Analysis:
    """Read an analysis.

    Raises:
        MissingInput: the file does not exist.
        CorruptRecord: it does not validate.
    """
    if not path.is_file():
        raise MissingInput(f"There is no analysis {path}; `warpsmith program analyze` makes one.")
    try:
        return Analysis.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CorruptRecord(
            f"{path} is not a valid analysis ({describe_error(error)}); analyze the program again."
        ) from error


def latest_analysis(project: Project, name: str | None = None) -> Path:
    """Return the path of the newest analysis of the named program, or of the only program that has one.

    Raises:
        MissingInput: there is none.
        Misuse: several programs have one, and no name is given.
    """
    programs = project.devlog / record_names.FOLDER
    folders = [folder for folder in sorted(programs.glob(f"*/{_FOLDER}")) if _record_numbers(folder)]
    if name is not None:
        names = record_names.matching_names(project, name)
        folders = [folder for folder in folders if folder.parent.name in names]
    if not folders:
        owner = f" of {name}" if name else ""
        raise MissingInput(f"There is no analysis{owner}; `warpsmith program analyze` makes one.")
    if len(folders) > 1:
        programs_at_hand = ", ".join(folder.parent.name for folder in folders)
        raise Misuse(
            f"Several programs have an analysis: {programs_at_hand}; name one of them, or the file of an analysis."
        )
    return folders[0] / f"{max(_record_numbers(folders[0])):03d}.json"


def _record_numbers(folder: Path) -> list[int]:
    matches = (_NUMBER.fullmatch(path.name) for path in folder.glob("*.json"))
    return [int(match[1]) for match in matches if match]

"""Trials on disk: `devlog/programs/<name>/trials/`, one folder per closed trial, and `open/` for the open one.

`open/` appears whole, with the plan and a copy of each original file. Once it holds a verdict, there is no way
back: the files are kept or restored, and the folder becomes `<NNN>/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.trial import ProgramReference, TrialPlan, TrialRecord, TrialsSummary, TrialsTotal
from warpsmith.errors import Busy, CorruptRecord, Misuse
from warpsmith.ledger import model_file
from warpsmith.program.process.program import Program
from warpsmith.project import Project

PLAN, RECORD, TOTAL = "plan.json", "record.json", "total.json"
FOLDER = "programs"
"""Folder of all programs, in the devlog."""

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Trials:
    """The trials of one program. Everything except these fields is read from its folder."""

    project: Project
    """The project that the program belongs to."""
    name: str
    """The program's name."""

    @property
    def folder(self) -> Path:
        """Folder of the trials: `<devlog>/programs/<name>/trials`."""
        return self.project.devlog / FOLDER / self.name / "trials"

    @property
    def open(self) -> Path:
        """Folder of the open trial."""
        return self.folder / "open"

    def plan(self) -> TrialPlan | None:
        """Read the plan of the open trial; None if no trial is open. Raises CorruptRecord."""
        return _read(self.open / PLAN, TrialPlan)

    def verdict(self) -> TrialRecord | None:
        """Read the record of the open trial; None before the verdict. Raises CorruptRecord."""
        return _read(self.open / RECORD, TrialRecord)

    def total(self) -> TrialsTotal | None:
        """Read the last measured total; None if there is none. Raises CorruptRecord."""
        return _read(self.folder / TOTAL, TrialsTotal)

    def records(self) -> dict[int, TrialRecord]:
        """Read the closed trials by number; raises CorruptRecord."""
        folders = sorted(path for path in self.folder.glob("[0-9][0-9][0-9]") if path.is_dir())
        records = {int(path.name): _read(path / RECORD, TrialRecord) for path in folders}
        incomplete = [number for number, record in records.items() if record is None]
        if incomplete:
            folder = self.folder / f"{incomplete[0]:03d}"
            raise CorruptRecord(f"{folder} has no {RECORD}; restore it from a copy, or remove the folder.")
        return {number: record for number, record in records.items() if record is not None}

    def summary(self) -> TrialsSummary:
        """Read all closed trials and the total into one model; raises CorruptRecord."""
        return TrialsSummary(program=self.name, trials=self.records(), total=self.total())

    def publish(self, plan: TrialPlan, originals: dict[str, bytes]) -> None:
        """Open a trial atomically: write its plan and the contents of its original files."""
        files.sweep_unfinished(self.folder)
        files.publish_folder({PLAN: _json(plan), **originals}, self.open)

    def close(self) -> Path:
        """Give the open trial its number, and return its folder."""
        last = max((int(path.name) for path in self.folder.glob("[0-9][0-9][0-9]")), default=0)
        closed = self.folder / f"{last + 1:03d}"
        files.move_path(self.open, closed)
        return closed


def program_trials(project: Project, program: Program) -> Trials:
    """Return the trials of a program."""
    return Trials(project, program.name)


def list_trials(project: Project) -> list[Trials]:
    """List the programs of a project that have a trial, sorted by name."""
    folders = (project.devlog / FOLDER).glob("*/trials")
    return [Trials(project, path.parent.name) for path in sorted(folders)]


def name_of(text: str) -> str:
    """Return the name that records use for a program's file, module or name."""
    return Path(text).stem if text.endswith(".py") else text


def find_trials(project: Project, name: str | None = None) -> Trials:
    """Find the program that a command means.

    That is the named program; without a name, the only program with an open trial, or else the only program.

    Raises:
        Misuse: no program matches, or several do.
    """
    programs = list_trials(project)
    if name:
        matches = [trials for trials in programs if trials.name == name_of(name)]
    else:
        matches = [trials for trials in programs if (trials.open / PLAN).is_file()] or programs
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(trials.name for trials in programs)
    if not programs:
        raise Misuse("No program has a trial; `warpsmith program apply ENTRY FILE --step STEP` opens one.")
    raise Misuse(f"Name one of these programs: {names}.")


def program_reference(project: Project, program: Program) -> ProgramReference:
    """Describe a program as records do."""
    return ProgramReference(
        name=program.name,
        path=project.relative(program.path),
        module=program.module,
        step=program.step,
        setup=program.setup,
        args=program.args,
    )


def referenced_program(project: Project, subject: ProgramReference) -> Program:
    """Return the program that a record describes."""
    return Program(
        project.root / subject.path, subject.step, subject.setup, subject.args, module=subject.module
    )  # fmt: skip


@contextmanager
def lock_programs(project: Project) -> Iterator[None]:
    """Lock out other trials of the project: they would disturb the times."""
    from filelock import FileLock, Timeout

    lock = project.root / ".warpsmith" / "program.lock"
    lock.parent.mkdir(exist_ok=True)
    try:
        with FileLock(lock, timeout=files.LOCK_WAIT_SECONDS):
            yield
    except Timeout as error:
        raise Busy(
            "Another process is measuring a program of this project; wait until it ends, then run this again."
        ) from error


def write_trial_file(path: Path, model: Model) -> None:
    """Write a model as a JSON file, atomically."""
    files.write_file(path, _json(model))


def _json(model: Model) -> str:
    return model.model_dump_json(indent=2) + "\n"


def _read(path: Path, model: type[M]) -> M | None:
    return model_file.read(path, model, _corrupt)


def _corrupt(path: Path, fault: str) -> CorruptRecord:
    return CorruptRecord(f"{path} {fault}; restore it from a copy, or remove it.")

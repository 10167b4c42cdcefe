"""Trials on disk: `devlog/programs/<name>/trials/`, one folder a closed trial and `open/` for the one at work.

`open/` appears whole, with the plan and a copy of each file as it was; a verdict in it is the point of no return;
it becomes `<NNN>/` when the files are restored or kept.
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
from warpsmith.program.process.step import Program
from warpsmith.project import Project

PLAN, RECORD, TOTAL = "plan.json", "record.json", "total.json"
FOLDER = "programs"
"""Of all programs, in the devlog."""

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Trials:
    """The trials of one program; everything else is read from its folder."""

    project: Project
    """Whose."""
    name: str
    """The program's name."""

    @property
    def folder(self) -> Path:
        """`<devlog>/programs/<name>/trials`."""
        return self.project.devlog / FOLDER / self.name / "trials"

    @property
    def open(self) -> Path:
        """The open trial."""
        return self.folder / "open"

    def plan(self) -> TrialPlan | None:
        """The open trial's plan; None: no trial is open. Raises CorruptRecord."""
        return _read(self.open / PLAN, TrialPlan)

    def verdict(self) -> TrialRecord | None:
        """The open trial's record: its files are about to be kept or restored; raises CorruptRecord."""
        return _read(self.open / RECORD, TrialRecord)

    def total(self) -> TrialsTotal | None:
        """The first original against the program as it was when that was measured; raises CorruptRecord."""
        return _read(self.folder / TOTAL, TrialsTotal)

    def records(self) -> dict[int, TrialRecord]:
        """Closed trials by number; raises CorruptRecord."""
        folders = sorted(path for path in self.folder.glob("[0-9][0-9][0-9]") if path.is_dir())
        found = {int(path.name): _read(path / RECORD, TrialRecord) for path in folders}
        lost = [number for number, record in found.items() if record is None]
        if lost:
            place = self.folder / f"{lost[0]:03d}"
            raise CorruptRecord(f"{place} has no {RECORD}; restore it from a copy, or remove the folder.")
        return {number: record for number, record in found.items() if record is not None}

    def summary(self) -> TrialsSummary:
        """All of it in one model; raises CorruptRecord."""
        return TrialsSummary(program=self.name, trials=self.records(), total=self.total())

    def publish(self, plan: TrialPlan, originals: dict[str, bytes]) -> None:
        """Open a trial, whole or not at all: its plan and its files' contents."""
        files.sweep(self.folder)
        files.publish({PLAN: _json(plan), **originals}, self.open)

    def close(self) -> Path:
        """Give the open trial its number; returns its folder."""
        last = max((int(path.name) for path in self.folder.glob("[0-9][0-9][0-9]")), default=0)
        closed = self.folder / f"{last + 1:03d}"
        files.move(self.open, closed)
        return closed


def program_trials(project: Project, program: Program) -> Trials:
    """The trials of a program."""
    return Trials(project, program.name)


def list_trials(project: Project) -> list[Trials]:
    """The programs of a project that have or had a trial, by name."""
    found = (project.devlog / FOLDER).glob("*/trials")
    return [Trials(project, path.parent.name) for path in sorted(found)]


def name_of(text: str) -> str:
    """The name that records go by, of a program's file, module or name."""
    return Path(text).stem if text.endswith(".py") else text


def find_trials(project: Project, name: str | None = None) -> Trials:
    """The program that a command means: the named one, else the only one with a trial at work, else the only one.

    Raises:
        Misuse: there is none, or more than one could be meant.
    """
    known = list_trials(project)
    if name:
        named = [trials for trials in known if trials.name == name_of(name)]
    else:
        named = [trials for trials in known if (trials.open / PLAN).is_file()] or known
    if len(named) == 1:
        return named[0]
    there = ", ".join(trials.name for trials in known)
    if not known:
        raise Misuse("No program has a trial; `warpsmith program apply ENTRY FILE --step STEP` opens one.")
    raise Misuse(f"Which program? Name it; there are: {there}.")


def program_reference(project: Project, program: Program) -> ProgramReference:
    """A program as records name it."""
    return ProgramReference(
        name=program.name,
        path=project.relative(program.path),
        module=program.module,
        step=program.step,
        setup=program.setup,
        args=program.args,
    )


def referenced_program(project: Project, subject: ProgramReference) -> Program:
    """The program that a record names."""
    return Program(
        project.root / subject.path, subject.step, subject.setup, subject.args, module=subject.module
    )  # fmt: skip


@contextmanager
def lock_programs(project: Project) -> Iterator[None]:
    """Keep other trials of the project out: they would disturb the times."""
    from filelock import FileLock, Timeout

    lock = project.root / ".warpsmith" / "program.lock"
    lock.parent.mkdir(exist_ok=True)
    try:
        with FileLock(lock, timeout=files.LET_GO):
            yield
    except Timeout as error:
        raise Busy(
            "Another process measures a program of this project; wait for it, then run this again."
        ) from error


def write_trial_file(path: Path, model: Model) -> None:
    """Put a record in place, whole or not at all."""
    files.write(path, _json(model))


def _json(model: Model) -> str:
    return model.model_dump_json(indent=2) + "\n"


def _read(path: Path, model: type[M]) -> M | None:
    return model_file.read(path, model, _corrupt)


def _corrupt(path: Path, what: str) -> CorruptRecord:
    return CorruptRecord(f"{path} {what}; restore it from a copy, or remove it.")

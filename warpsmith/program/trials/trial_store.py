"""Trials on disk: the ledger in `devlog/programs/<name>/trials/`.

The open folder appears whole, with the plan and a copy of each original file. Once it holds a verdict, there is no
way back: the files are kept or restored, and the folder becomes `<NNN>/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from warpsmith import files
from warpsmith.core.trial import (
    RECORD_VERSION,
    ProgramReference,
    TrialPlan,
    TrialRecord,
    TrialsSummary,
    TrialsTotal,
)
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.ledger import repair
from warpsmith.ledger.lock import hold_lock
from warpsmith.ledger.store import RECORD, Ledger
from warpsmith.program.analysis import analysis_store, record_names
from warpsmith.program.process.program import Program
from warpsmith.project import Project

PLAN, TOTAL = "plan.json", "total.json"


@dataclass(frozen=True)
class TrialLedger(Ledger[TrialRecord]):
    """The trials of one program as a ledger; its oldest records may have no digest."""

    def predates_digests(self, record: TrialRecord) -> bool:
        """Return whether a record without a digest is from a time when trials had none."""
        return record.record_version < RECORD_VERSION


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
        return self.project.devlog / record_names.FOLDER / self.name / "trials"

    @cached_property
    def ledger(self) -> TrialLedger:
        """The store of the records."""
        return TrialLedger(self.folder, TrialRecord, "trial", f"warpsmith program resume {self.name}")

    @property
    def open(self) -> Path:
        """Folder of the open trial."""
        return self.ledger.open

    def plan(self) -> TrialPlan | None:
        """Read the plan of the open trial; None if no trial is open. Raises CorruptRecord."""
        return self.ledger.read_model(self.open / PLAN, TrialPlan)

    def verdict(self) -> TrialRecord | None:
        """Read the record of the open trial; None before the verdict. Raises CorruptRecord."""
        stored = self.ledger.read_open_record()
        return stored.record if stored else None

    def total(self) -> TrialsTotal | None:
        """Read the last measured total; None if there is none. Raises CorruptRecord."""
        return self.ledger.read_model(self.folder / TOTAL, TrialsTotal)

    def records(self) -> dict[int, TrialRecord]:
        """Read the closed trials by number; raises CorruptRecord."""
        return {stored.number: stored.record for stored in self.ledger.read_all()}

    def summary(self) -> TrialsSummary:
        """Read all closed trials and the total into one model; raises CorruptRecord."""
        return TrialsSummary(program=self.name, trials=self.records(), total=self.total())

    def publish(self, plan: TrialPlan, originals: dict[str, bytes]) -> None:
        """Open a trial atomically: write its plan and the contents of its original files."""
        analysis_store.hide_unfinished(self.project)
        self.ledger.begin({PLAN: plan.model_dump_json(indent=2) + "\n", **originals})

    def seal(self, record: TrialRecord) -> TrialRecord:
        """Write the open trial's record with its digest, chained to the record before it; return it so.

        Raises:
            CorruptRecord: a record before it is corrupt.
        """
        link = {"record_version": RECORD_VERSION, "previous_sha256": self.ledger.last_sha256()}
        sealed = record.model_copy(update=link)
        self.ledger.seal_open(sealed)
        return sealed

    def close(self) -> Path:
        """Give the open trial its number, and return its folder."""
        return self.ledger.close_open()


def program_trials(project: Project, program: Program) -> Trials:
    """Return the trials of a program."""
    return Trials(project, record_names.record_name(project, program))


def list_trials(project: Project) -> list[Trials]:
    """List the programs of a project that have a trial, sorted by name."""
    folders = (project.devlog / record_names.FOLDER).glob("*/trials")
    return [Trials(project, path.parent.name) for path in sorted(folders)]


def find_trials(project: Project, name: str | None = None) -> Trials:
    """Find the program that a command means.

    That is the named program; without a name, the only program with an open trial, or else the only program.

    Raises:
        Misuse: no program matches, or several do.
    """
    programs = list_trials(project)
    if name:
        matches = [trials for trials in programs if trials.name in record_names.matching_names(project, name)]
    else:
        matches = [trials for trials in programs if (trials.open / PLAN).is_file()] or programs
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(trials.name for trials in (matches or programs))
    if not programs:
        raise Misuse("No program has a trial; `warpsmith program apply ENTRY FILE --step STEP` opens one.")
    raise Misuse(f"Name one of these programs: {names}.")


def program_reference(project: Project, program: Program) -> ProgramReference:
    """Describe a program as records do."""
    return ProgramReference(
        name=record_names.record_name(project, program),
        path=project.relative(program.path),
        module=program.module,
        step=program.step,
        setup=program.setup,
        args=program.args,
        command=program.command,
        writes=tuple(map(project.relative, program.writes)),
    )


def referenced_program(project: Project, subject: ProgramReference) -> Program:
    """Return the program that a record describes."""
    return Program(
        project.root / subject.path, subject.step, subject.setup, subject.args, command=subject.command,
        module=subject.module, writes=tuple(project.root / path for path in subject.writes),
    )  # fmt: skip


def lock_programs(project: Project) -> AbstractContextManager[None]:
    """Lock out other trials of the project: they would disturb the times.

    Raises:
        Busy: another process measures a program of the project.
        MachineLacks: the disk takes no more data; everything written before is whole.
    """
    scratch = project.root / record_names.SCRATCH
    lock = scratch / "program.lock"
    files.hide_from_git(scratch)
    subject = "The timing of this project's programs"
    return hold_lock(lock, subject, "warpsmith program", "warpsmith program resume")


def resume_trials(trials: Trials) -> list[str]:
    """Repair the trials of a program and return what was done, one sentence each; a second call does nothing."""
    with lock_programs(trials.project):
        return list(_resume(trials))


def _resume(trials: Trials) -> Iterator[str]:
    ledger = trials.ledger
    yield from repair.sweep((trials.project.root / record_names.SCRATCH, trials.folder.parent.parent))
    yield from repair.sweep_ledger(ledger)
    yield from repair.quarantine_records(ledger)
    yield from repair.acknowledge_missing(ledger)
    yield from repair.drop_unreadable(ledger, trials.folder / TOTAL, TrialsTotal)
    try:
        trials.plan()
    except CorruptRecord:
        # Without its plan a trial cannot go on; its backups still stand, and `warpsmith restore` takes them back.
        yield from repair.quarantine_file(ledger, trials.open)
    try:
        trials.verdict()
    except CorruptRecord:
        yield from repair.quarantine_file(ledger, trials.open / RECORD)

"""The sum of a program's trials: its first originals against the program as it is."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from warpsmith.core.base import this_minute
from warpsmith.core.trial import TrialFile, TrialsTotal, TrialVerdict
from warpsmith.errors import Misuse
from warpsmith.program.process.runner import TIMEOUT
from warpsmith.program.trials import pair_timing, trial_files, trial_store
from warpsmith.program.trials.pair_timing import ProgramForm
from warpsmith.program.trials.trial_store import Trials

Tell = Callable[[str], None]


def measure_total(trials: Trials, timeout: float = TIMEOUT, tell: Tell = lambda _: None) -> TrialsTotal | None:
    """Measure the first original against the program as it is, and keep that; None where no edit was kept.

    Raises:
        Misuse: a trial is open; its edit would be measured too.
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    project = trials.project
    with trial_store.lock_programs(project):
        if trials.plan():
            raise Misuse(f"{trials.name} has an open trial; verify or abandon it, then measure the sum.")
        first = first_originals(trials)
        if not first:
            return None
        records = trials.records()
        program = trial_store.referenced_program(project, records[max(records)].plan.subject)
        seed = secrets.randbits(31)
        contents = {project.root / name: path for name, (_, path) in first.items() if path is not None}
        forms = [
            ProgramForm(program, copies, seed, timeout, trial_files.output_path(project, program, side))
            for side, copies in (("original", contents), ("present", {}))
        ]
        paired = pair_timing.time_pair(forms[0], forms[1], tell=tell)
        found = TrialsTotal(
            files=present_files(trials),
            comparison=paired.comparison,
            original=paired.original,
            present=paired.edited,
            device=records[max(records)].plan.device,
            measured=this_minute(),
        )
        trial_store.write_trial_file(trials.folder / trial_store.TOTAL, found)
        return found


def first_originals(trials: Trials) -> dict[str, tuple[str | None, Path | None]]:
    """For every file that a kept trial edited: the hash of its first original, and the copy of that."""
    found: dict[str, tuple[str | None, Path | None]] = {}
    for number, record in trials.records().items():
        if record.decision.verdict is TrialVerdict.KEPT:
            for n, file in enumerate(record.plan.files):
                copy = trials.folder / f"{number:03d}" / trial_files.original_name(n)
                found.setdefault(file.path, (file.before, copy if file.before else None))
    return found


def present_files(trials: Trials) -> tuple[TrialFile, ...]:
    """Every file that a kept trial edited, from its first original to what it is now."""
    return tuple(
        TrialFile(path=name, before=before, after=trial_files.file_digest(trials.project.root / name))
        for name, (before, _) in first_originals(trials).items()
    )

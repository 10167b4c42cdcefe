"""Total of a program's trials: its first originals compared with the present program."""

from __future__ import annotations

import secrets
from pathlib import Path

from warpsmith.core.base import this_minute
from warpsmith.core.text import Tell
from warpsmith.core.trial import TrialFile, TrialsTotal, TrialVerdict
from warpsmith.errors import Misuse
from warpsmith.ledger.store import write_model
from warpsmith.program.process.runner import TIMEOUT
from warpsmith.program.trials import pair_timing, trial_files, trial_store
from warpsmith.program.trials.pair_timing import ProgramForm
from warpsmith.program.trials.trial_store import Trials


def measure_total(trials: Trials, timeout: float = TIMEOUT, tell: Tell = lambda _: None) -> TrialsTotal | None:
    """Time the first originals against the present program, and write the result; None if no edit was kept.

    Raises:
        Misuse: a trial is open; its edit would be measured too.
        SolutionFailed, TimedOut, MachineLacks: as `Runner`.
    """
    project = trials.project
    with trial_store.lock_programs(project):
        if trials.plan():
            raise Misuse(f"{trials.name} has an open trial; verify or abandon it, then measure the total.")
        originals = first_originals(trials)
        if not originals:
            return None
        records = trials.records()
        program = trial_store.referenced_program(project, records[max(records)].plan.subject)
        seed = secrets.randbits(31)
        contents = {project.root / name: path for name, (_, path) in originals.items() if path is not None}
        forms = [
            ProgramForm(program, copies, seed, timeout, trial_files.output_path(project, program, side))
            for side, copies in (("original", contents), ("present", {}))
        ]
        result = pair_timing.time_pair(forms[0], forms[1], tell=tell)
        total = TrialsTotal(
            files=present_files(trials),
            comparison=result.comparison,
            original=result.original,
            present=result.edited,
            device=records[max(records)].plan.device,
            measured=this_minute(),
        )
        write_model(trials.folder / trial_store.TOTAL, total)
        return total


def refresh_total(trials: Trials, timeout: float = TIMEOUT, tell: Tell = lambda _: None) -> TrialsTotal | None:
    """Return the total, measured now if it is unknown for the present files and no trial is open; raises as
    `measure_total`."""
    total, present = trials.total(), present_files(trials)
    if present and not trials.plan() and (total is None or total.files != present):
        return measure_total(trials, timeout, tell)
    return total if present and total is not None and total.files == present else None


def first_originals(trials: Trials) -> dict[str, tuple[str | None, Path | None]]:
    """Map every file that a kept trial edited to the hash of its first original and the path of its copy."""
    originals: dict[str, tuple[str | None, Path | None]] = {}
    for number, record in trials.records().items():
        if record.decision.verdict is TrialVerdict.KEPT:
            for n, file in enumerate(record.plan.files):
                copy = trials.folder / f"{number:03d}" / trial_files.original_name(n)
                originals.setdefault(file.path, (file.before, copy if file.before else None))
    return originals


def present_files(trials: Trials) -> tuple[TrialFile, ...]:
    """List every file that a kept trial edited, with the hashes of its first original and its present content."""
    return tuple(
        TrialFile(path=name, before=before, after=trial_files.file_digest(trials.project.root / name))
        for name, (before, _) in first_originals(trials).items()
    )

"""A trial's files: which they are, what they were and are, and what keeps an edit from being judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import backups, files
from warpsmith.core.trial import TrialPlan
from warpsmith.errors import Misuse
from warpsmith.program.analysis import analyzer
from warpsmith.program.process.step import Program
from warpsmith.program.trials import trial_store
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project

if TYPE_CHECKING:
    from warpsmith.backups.models import Backup


def back_up_files(trials: Trials, plan: TrialPlan) -> None:
    """Back the files up unless they are, by this trial or by an `apply` that was killed.

    Raises:
        Misuse: they differ from what the plan or that backup holds: somebody edited them without a trial.
    """
    ours = open_backups(trials.project, plan)
    known = {one.path: one.original.sha256 for one in ours}
    if ours and known != {file.path: file.before for file in plan.files}:
        raise Misuse(
            f"A backup for the {ours[0].label} stands, of an `apply` that did not end; `warpsmith restore` or"
            f" `warpsmith keep` {' '.join(known)} first."
        )
    if not ours:
        if rehash_files(trials, plan, "before") != plan:
            raise Misuse(
                f"{format_files(plan)} changed and has no backup; `warpsmith program abandon`, apply again."
            )
        backups.open_(trials.project, editable_paths(trials, plan), backup_label(plan))


def open_backups(project: Project, plan: TrialPlan) -> list[Backup]:
    """The trial's own backups, as far as they were neither restored nor kept."""
    return [one for one in backups.standing(project) if one.label == backup_label(plan)]


def refuse_newer_backup(project: Project, paths: Sequence[Path], label: str) -> None:
    """A backup that was made on top of the trial's would be restored in its place."""
    newest = {one.path: one for one in backups.standing(project)}
    for path in paths:
        top = newest[project.relative(path)]
        if top.label != label:
            raise Misuse(
                f"{top.path} has a newer backup ({top.number:04d} {top.label}) than the trial's; restore or keep "
                "that one first, then run this again."
            )


def refuse_invalid_edit(trials: Trials, plan: TrialPlan) -> None:
    """Refuse a trial without an edit, one that removes a file, and one that edits what is not backed up."""
    project = trials.project
    now = rehash_files(trials, plan)
    if all(file.before == file.after for file in now.files):
        raise Misuse(
            f"Nothing was edited: {format_files(plan)} is as it was; edit it, or `warpsmith program abandon`."
        )
    gone = [file.path for file in now.files if file.before and not file.after]
    if gone:
        raise Misuse(f"{gone[0]} was removed; an edit may empty a file, not remove it.")
    changed = [name for name, sha256 in plan.others.items() if file_digest(project.root / name) != sha256]
    if changed:
        raise Misuse(_unbacked_edit_message(changed[0]))


def refuse_new_imports(trials: Trials, plan: TrialPlan, imported: Mapping[str, str]) -> None:
    """Refuse what the edited program imports and was written since the trial was opened."""
    known = {*plan.others, *(file.path for file in plan.files)}
    opened = (trials.open / trial_store.PLAN).stat().st_mtime_ns
    for name in project_relative(trials.project, imported):
        if name not in known and (trials.project.root / name).stat().st_mtime_ns >= opened:
            raise Misuse(_unbacked_edit_message(name))


def _unbacked_edit_message(name: str) -> str:
    return (
        f"{name} was edited too, and the trial has no backup of it: undo that, or `warpsmith program abandon` and "
        f"apply again with {name} named."
    )


def snapshot_edit(trials: Trials, plan: TrialPlan) -> TrialPlan:
    """Copy the edited files into the trial: what is judged stays, whatever becomes of the files."""
    for n, path in enumerate(editable_paths(trials, plan)):
        if path.is_file():
            files.write(trials.open / edited_name(n), path.read_bytes())
    return plan.model_copy(
        update={
            "files": tuple(
                file.model_copy(update={"after": file_digest(trials.open / edited_name(n))})
                for n, file in enumerate(plan.files)
            )
        }
    )


def rehash_files(trials: Trials, plan: TrialPlan, field: str = "after") -> TrialPlan:
    """The plan with the files' hashes as they are now."""
    now = tuple(
        file.model_copy(update={field: file_digest(trials.project.root / file.path)}) for file in plan.files
    )
    return plan.model_copy(update={"files": now})


def output_path(project: Project, program: Program, side: str = "output") -> Path:
    """Where the output of a program goes."""
    return analyzer.scratch_folder(project, program) / f"{side}.txt"


def copied_files(trials: Trials, plan: TrialPlan, name: Callable[[int], str]) -> dict[Path, Path]:
    """Files and their copies in the open trial."""
    copies = {path: trials.open / name(n) for n, path in enumerate(editable_paths(trials, plan))}
    return {path: copy for path, copy in copies.items() if copy.is_file()}


def editable_paths(trials: Trials, plan: TrialPlan) -> list[Path]:
    """The files that may be edited."""
    return [trials.project.root / file.path for file in plan.files]


def project_relative(project: Project, imported: Mapping[str, str]) -> dict[str, str]:
    """What a program imports, with paths as records give them."""
    return {project.relative(Path(path)): sha256 for path, sha256 in imported.items()}


def file_digest(path: Path) -> str | None:
    """The hash of a file's content; None: there is none."""
    return files.sha256(path) if path.is_file() else None


def original_name(n: int) -> str:
    """Name of the copy of a trial's n-th file as it was."""
    return f"before-{n}"


def edited_name(n: int) -> str:
    """Name of the copy of a trial's n-th file as it was judged."""
    return f"after-{n}"


def backup_label(plan: TrialPlan) -> str:
    """What a trial's backups are made for."""
    return f"trial of {plan.entry} on {plan.subject.name}"


def format_files(plan: TrialPlan) -> str:
    """The files in a sentence."""
    return ", ".join(file.path for file in plan.files)

"""Files of a trial: their paths, backups and hashes, and the reasons for refusing to judge an edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import backups, files
from warpsmith.core.trial import TrialPlan
from warpsmith.errors import Misuse
from warpsmith.program.analysis import analyzer
from warpsmith.program.process.program import Program
from warpsmith.program.trials import trial_store
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project

if TYPE_CHECKING:
    from warpsmith.backups.models import Backup


def back_up_files(trials: Trials, plan: TrialPlan) -> None:
    """Back up the files, unless this trial or a killed `apply` already did.

    Raises:
        Misuse: the files differ from the plan or from that backup: somebody edited them outside the trial.
    """
    own_backups = list_trial_backups(trials.project, plan)
    hashes = {backup.path: backup.original.sha256 for backup in own_backups}
    if own_backups and hashes != {file.path: file.before for file in plan.files}:
        raise Misuse(
            f"An unfinished `apply` left a backup for the {own_backups[0].label}; first run `warpsmith restore` or"
            f" `warpsmith keep` on {' '.join(hashes)}."
        )
    if not own_backups:
        if rehash_files(trials, plan, "before") != plan:
            raise Misuse(
                f"{format_files(plan)} changed and has no backup; run `warpsmith program abandon`, then "
                "apply again."
            )
        backups.open_backups(trials.project, editable_paths(trials, plan), backup_label(plan))


def list_trial_backups(project: Project, plan: TrialPlan) -> list[Backup]:
    """List the trial's own backups that were neither restored nor kept."""
    return [backup for backup in backups.standing_backups(project) if backup.label == backup_label(plan)]


def refuse_newer_backup(project: Project, paths: Sequence[Path], label: str) -> None:
    """Raise Misuse if a file has a backup on top of the trial's: it would be restored instead."""
    newest = {backup.path: backup for backup in backups.standing_backups(project)}
    for path in paths:
        top_backup = newest[project.relative(path)]
        if top_backup.label != label:
            raise Misuse(
                f"{top_backup.path} has a newer backup ({top_backup.number:04d} {top_backup.label}) than the "
                "trial's; restore or keep that one first, then run this again."
            )


def refuse_invalid_edit(trials: Trials, plan: TrialPlan) -> None:
    """Raise Misuse if nothing was edited, a file was removed, or a file without a backup was edited."""
    project = trials.project
    edited = rehash_files(trials, plan)
    if all(file.before == file.after for file in edited.files):
        raise Misuse(
            f"Nothing was edited: {format_files(plan)} is unchanged; edit it, or run `warpsmith program abandon`."
        )
    removed = [file.path for file in edited.files if file.before and not file.after]
    if removed:
        raise Misuse(f"{removed[0]} was removed; an edit may empty a file but not remove it.")
    changed = [name for name, sha256 in plan.others.items() if file_digest(project.root / name) != sha256]
    if changed:
        raise Misuse(_unbacked_edit_message(changed[0]))


def refuse_newer_edit(trials: Trials, plan: TrialPlan) -> None:
    """Raise Misuse if a file changed since `snapshot_edit` copied it: an edit is kept only as it was judged."""
    for file in rehash_files(trials, plan).files:
        if file not in plan.files:
            raise Misuse(f"{file.path} changed while it was being judged; nothing is recorded: verify it again.")


def refuse_new_imports(trials: Trials, plan: TrialPlan, imported: Mapping[str, str]) -> None:
    """Raise Misuse if the edited program imports a file that was written after the trial was opened."""
    known_names = {*plan.others, *(file.path for file in plan.files)}
    opened = (trials.open / trial_store.PLAN).stat().st_mtime_ns
    for name in project_relative(trials.project, imported):
        if name not in known_names and (trials.project.root / name).stat().st_mtime_ns >= opened:
            raise Misuse(_unbacked_edit_message(name))


def _unbacked_edit_message(name: str) -> str:
    return (
        f"{name} was edited too, and the trial has no backup of it: undo that edit, or run `warpsmith program "
        f"abandon` and apply again with {name} named."
    )


def snapshot_edit(trials: Trials, plan: TrialPlan) -> TrialPlan:
    """Copy the edited files into the trial: the judged content stays even if the files change later."""
    for n, path in enumerate(editable_paths(trials, plan)):
        if path.is_file():
            files.write_file(trials.open / edited_name(n), path.read_bytes())
    return plan.model_copy(
        update={
            "files": tuple(
                file.model_copy(update={"after": file_digest(trials.open / edited_name(n))})
                for n, file in enumerate(plan.files)
            )
        }
    )


def read_edit(trials: Trials, plan: TrialPlan) -> list[tuple[str, str]]:
    """Return the text of each Python file of a judged edit, before and after."""
    before, after = (copied_files(trials, plan, name) for name in (original_name, edited_name))
    return [
        (before[path].read_text(errors="replace") if path in before else "", copy.read_text(errors="replace"))
        for path, copy in after.items()
        if path.suffix == ".py"
    ]


def rehash_files(trials: Trials, plan: TrialPlan, field: str = "after") -> TrialPlan:
    """Return the plan with the present hashes of its files in `field`."""
    rehashed = tuple(
        file.model_copy(update={field: file_digest(trials.project.root / file.path)}) for file in plan.files
    )
    return plan.model_copy(update={"files": rehashed})


def output_path(project: Project, program: Program, side: str = "output") -> Path:
    """Return the path of the file that takes the output of a program."""
    return analyzer.scratch_folder(project, program) / f"{side}.txt"


def copied_files(trials: Trials, plan: TrialPlan, name: Callable[[int], str]) -> dict[Path, Path]:
    """Map each file to its copy in the open trial."""
    copies = {path: trials.open / name(n) for n, path in enumerate(editable_paths(trials, plan))}
    return {path: copy for path, copy in copies.items() if copy.is_file()}


def editable_paths(trials: Trials, plan: TrialPlan) -> list[Path]:
    """Return the paths of the files that may be edited."""
    return [trials.project.root / file.path for file in plan.files]


def project_relative(project: Project, imported: Mapping[str, str]) -> dict[str, str]:
    """Return the imported files with paths relative to the project, as records give them."""
    return {project.relative(Path(path)): sha256 for path, sha256 in imported.items()}


def file_digest(path: Path) -> str | None:
    """Return the hash of a file's content; None if there is no such file."""
    return files.file_sha256(path) if path.is_file() else None


def original_name(n: int) -> str:
    """Name of the copy of a trial's n-th original file."""
    return f"before-{n}"


def edited_name(n: int) -> str:
    """Name of the copy of a trial's n-th judged file."""
    return f"after-{n}"


def backup_label(plan: TrialPlan) -> str:
    """Label of a trial's backups."""
    return f"trial of {plan.entry} on {plan.subject.name}"


def format_files(plan: TrialPlan) -> str:
    """Join the paths of the files for a sentence."""
    return ", ".join(file.path for file in plan.files)

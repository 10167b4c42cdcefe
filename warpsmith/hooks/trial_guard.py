"""Guard of trials: a program's specialists edit the files that the open trial names, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from warpsmith import project as projects
from warpsmith.hooks import open_work
from warpsmith.hooks.event import PLUGIN_PREFIX, Answer, HookEvent, permission_answer
from warpsmith.project import Project


def trial_objection(event: HookEvent, path: Path) -> Answer:
    """Object to writes of records and backups during a trial, and to a specialist's writes outside of it."""
    project = projects.find_project(event.folder)
    if not path.is_relative_to(project.root):
        return {}
    name, trials = project.relative(path), open_work.open_trials(project)
    if trials and path.is_relative_to(project.devlog / "programs"):
        return permission_answer(
            "deny", f"{name} is a record or a page rendered from records; only `warpsmith program` writes it."
        )
    if trials and path.is_relative_to(project.scratch / "backups"):
        return permission_answer("deny", f"{name} holds the user's originals; only `warpsmith restore` uses it.")
    if not _is_specialist(event) or path.is_relative_to(project.scratch):
        return {}
    if event.tool == "Bash" and not path.parent.is_dir():
        return {}  # not a file: an expression of sed, or a command that fails
    if not trials:
        return permission_answer(
            "deny", f"{name} is edited only within a trial; `warpsmith program apply` opens one."
        )
    if path not in _trial_files(project, trials):
        return permission_answer(
            "deny", f"{name} is not named in the open trial; answer that the edit needs it, and stop."
        )
    if not _backed_up(project, path):
        return permission_answer(
            "deny", f"{name} has no backup; run the same `warpsmith program apply` again to make it."
        )
    return {}


def trial_grant(event: HookEvent, paths: Sequence[Path]) -> Answer:
    """Let a specialist edit the open trial's files unasked; `trial_objection` has passed them."""
    project = projects.find_project(event.folder)
    files = _trial_files(project, open_work.open_trials(project)) if paths and _is_specialist(event) else set()
    if not paths or not files.issuperset(paths):
        return {}
    return permission_answer("allow", "the open trial names the file, and it is backed up.")


def _is_specialist(event: HookEvent) -> bool:
    """Return True if an agent acts that edits programs."""
    if not event.is_plugin_agent:
        return False
    from warpsmith.driver.routing import PROGRAM_TASKS

    return event.agent.removeprefix(PLUGIN_PREFIX) in {agent for agent, _ in PROGRAM_TASKS.values()}


def _trial_files(project: Project, trials: Sequence[Path]) -> set[Path]:
    """Return the files that open trials name; a plan that cannot be read names none."""
    paths = set()
    for folder in trials:
        try:
            entries = json.loads((folder / "plan.json").read_bytes())["files"]
            paths |= {(project.root / entry["path"]).resolve() for entry in entries}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return paths


def _backed_up(project: Project, path: Path) -> bool:
    from warpsmith import backups

    return any((project.root / backup.path).resolve() == path for backup in backups.standing_backups(project))

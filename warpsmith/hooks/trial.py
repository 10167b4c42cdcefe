"""Trials of whole programs: their specialists edit the files that the open trial names, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from warpsmith import project as projects
from warpsmith.hooks import scene
from warpsmith.hooks.event import OURS, Answer, Event, decide
from warpsmith.project import Project


def objection(event: Event, path: Path) -> Answer:
    """A record or a backup while a trial is open, or a specialist's write beside the trial; empty: none."""
    project = projects.find(event.folder)
    if not path.is_relative_to(project.root):
        return {}
    name, trials = project.relative(path), scene.trials(project)
    if trials and path.is_relative_to(project.devlog / "programs"):
        return decide("deny", f"{name} is a record or a page made from records; `warpsmith program` writes it.")
    if trials and path.is_relative_to(project.root / ".warpsmith" / "backups"):
        return decide("deny", f"{name} keeps what users had; `warpsmith restore` puts it back.")
    if not _specialist(event) or path.is_relative_to(project.root / ".warpsmith"):
        return {}
    if event.tool == "Bash" and not path.parent.is_dir():
        return {}  # no file: an expression of sed, or a command that fails
    if not trials:
        return decide("deny", f"{name} is edited within a trial alone; `warpsmith program apply` opens one.")
    if path not in _named(project, trials):
        return decide("deny", f"{name} is not named in the open trial; answer that it is needed, and stop.")
    if not _backed_up(project, path):
        return decide("deny", f"{name} has no backup; the same `warpsmith program apply` once more makes it.")
    return {}


def grant(event: Event, paths: Sequence[Path]) -> Answer:
    """A specialist edits what the open trial names without a question; `objection` has let it pass."""
    project = projects.find(event.folder)
    named = _named(project, scene.trials(project)) if paths and _specialist(event) else set()
    if not paths or not named.issuperset(paths):
        return {}
    return decide("allow", "the open trial names the file, and it is backed up.")


def _specialist(event: Event) -> bool:
    """Whether an agent acts that edits programs."""
    if not event.ours:
        return False
    from warpsmith.driver.routing import PROGRAM_TASKS

    return event.agent.removeprefix(OURS) in {agent for agent, _ in PROGRAM_TASKS.values()}


def _named(project: Project, trials: Sequence[Path]) -> set[Path]:
    """The files that open trials name; none of a plan that does not read."""
    found = set()
    for folder in trials:
        try:
            files = json.loads((folder / "plan.json").read_bytes())["files"]
            found |= {(project.root / file["path"]).resolve() for file in files}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _backed_up(project: Project, path: Path) -> bool:
    from warpsmith import backups

    return any((project.root / one.path).resolve() == path for one in backups.standing(project))

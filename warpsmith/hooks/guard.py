"""Hook before a tool runs: protects what only the lab writes, and what a campaign hides.

It is a tripwire against slips, not a wall: a shell can write in ways that no list of commands covers. The lab
checks everything that counts again, and chains its records by hashes.
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from warpsmith import project as projects
from warpsmith.hooks import campaign_files, marks, open_work, reads, trial_guard
from warpsmith.hooks.event import Answer, HookEvent, Write, permission_answer
from warpsmith.hooks.open_work import CampaignView
from warpsmith.project import Project

WRITING_TOOLS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
"""Tools that write a file, each with the argument that names it."""

_Current = Callable[[Project], CampaignView | None]
_LAB = Path(projects.__file__).resolve().parent


def answer(event: HookEvent) -> Answer:
    """Answer if the tool may run; a shell command that drives a campaign or opens a trial marks the session."""
    if objection := reads.read_objection(event):
        return objection
    if event.tool == "Bash":
        from warpsmith.hooks import shell

        command = event.argument("command")
        if shell.drives_campaign(command):
            marks.mark_session(projects.find_project(event.folder), event.session, "campaign")
        if shell.opens_trial(command):
            marks.mark_session(projects.find_project(event.folder), event.session, "trial")
        writes = shell.written_files(command, event.folder)
    else:
        name = event.argument(WRITING_TOOLS.get(event.tool, ""))
        writes = [Write(event.folder / Path(name).expanduser())] if name else []
    writes = [write for write in dict.fromkeys(writes) if _can_exist(write.path)]
    writes = [Write(write.path.resolve(), write.deep, write.names) for write in writes]
    current = functools.cache(open_work.current_campaign)  # for this event
    for write in writes:
        objection = _campaign_objection(event, write, current) or trial_guard.trial_objection(event, write.path)
        if objection:
            return objection
    paths = [write.path for write in writes]
    return trial_guard.trial_grant(event, paths) if event.tool in WRITING_TOOLS else {}


def _can_exist(path: Path) -> bool:
    """Return False for a text that no file has as its path; looking it up would end the hook for all others."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    except ValueError:  # a null byte
        return False
    return True


def _campaign_objection(event: HookEvent, write: Write, current: _Current) -> Answer:
    """Object to writes that would spoil an active campaign; empty if there is none."""
    # The file's project, and the session's if the file is a folder above it.
    for project in {projects.find_project(write.path.parent), projects.find_project(event.folder)}:
        resolved = _resolved(project)
        objection = _project_objection(event, resolved, write, current(resolved))
        if objection:
            return objection
    return {}


def _resolved(project: Project) -> Project:
    """Return the project with its folders where links lead, as the writes have them."""
    kernels, devlog, knowledge = (path.resolve() for path in (project.kernels, project.devlog, project.knowledge))
    return replace(project, kernels=kernels, devlog=devlog, knowledge=knowledge)


def _project_objection(event: HookEvent, project: Project, write: Write, current: CampaignView | None) -> Answer:
    path, name = write.path, project.relative(write.path)
    if reason := "" if write.names else campaign_files.lab_file_reason(project, path, current):
        return permission_answer("deny", f"{name} {reason}")
    if write.deep and (inner := campaign_files.find_lab_file(project, path, write.names, current)):
        return permission_answer(
            "deny",
            f"the command would write or remove {project.relative(inner)}, which only the lab does; name the files"
            " that you mean one by one.",
        )
    if current is None:
        return {}
    reason = _person_first_reason(project, path)
    return permission_answer("deny" if event.is_plugin_agent else "ask", f"{name} {reason}") if reason else {}


def _person_first_reason(project: Project, path: Path) -> str:
    """Return the reason why a campaign's agents must not write here and a person is asked; empty if they may."""
    if path.is_relative_to(_LAB):
        return "is the lab that judges this campaign."
    if path == project.root / "warpsmith.toml":
        return "names the folders of this project's records."
    inside = path.relative_to(project.root).parts if path.is_relative_to(project.root) else ()
    return "is a test, and a campaign is active." if "tests" in inside or "test" in inside else ""

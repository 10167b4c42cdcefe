"""Hook before a tool writes: protects what only the lab writes while a campaign is active or a trial is open.

It is a tripwire against slips, not a wall: a shell can write in ways that no list of commands covers. The lab
checks everything that counts again, and chains its records by hashes.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith import project as projects
from warpsmith.hooks import marks, open_work, shell, trial_guard
from warpsmith.hooks.event import Answer, HookEvent, permission_answer
from warpsmith.project import Project

WRITING_TOOLS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
"""Tools that write a file, each with the argument that names it."""

_LAB = Path(projects.__file__).resolve().parent


def answer(event: HookEvent) -> Answer:
    """Answer if the tool may run; a shell command that drives a campaign or opens a trial marks the session."""
    if event.tool == "Bash":
        command = event.argument("command")
        if shell.drives_campaign(command):
            marks.mark_session(projects.find_project(event.folder), event.session, "campaign")
        if shell.opens_trial(command):
            marks.mark_session(projects.find_project(event.folder), event.session, "trial")
        names = shell.written_files(command)
    else:
        names = [event.argument(WRITING_TOOLS.get(event.tool, ""))]
    paths = [(event.folder / Path(name).expanduser()).resolve() for name in names if name]
    for path in paths:
        objection = _campaign_objection(event, path) or trial_guard.trial_objection(event, path)
        if objection:
            return objection
    return trial_guard.trial_grant(event, paths) if event.tool in WRITING_TOOLS else {}


def _campaign_objection(event: HookEvent, path: Path) -> Answer:
    """Object to writes that would spoil the active campaign; empty if there is none."""
    project = projects.find_project(path.parent)
    if open_work.current_campaign(project) is None:
        return {}
    name, reason = project.relative(path), _lab_file_reason(project, path)
    if reason:
        return permission_answer("deny", f"{name} {reason}")
    reason = _person_first_reason(project, path)
    return permission_answer("deny" if event.is_plugin_agent else "ask", f"{name} {reason}") if reason else {}


def _lab_file_reason(project: Project, path: Path) -> str:
    """Return the reason why only the lab writes this file; empty if anyone may."""
    if path.is_relative_to(project.devlog) and not open_work.is_repository_source(project, path):
        return (
            "is a record or a page rendered from records; only `warpsmith` commands write it (`warpsmith next`)."
        )
    if path.is_relative_to(project.knowledge):
        return "is knowledge or evidence; only `warpsmith learn` changes it."
    if path.is_relative_to(project.kernels):
        return _kernel_reason(project, path)
    return ""


def _kernel_reason(project: Project, path: Path) -> str:
    """Return the reason why nobody writes this file of an operator; empty if anyone may."""
    op, *rest = path.relative_to(project.kernels).parts
    campaigns = [campaign for campaign in open_work.campaign_views(project) if campaign.op == op]
    if not campaigns:
        return ""
    if rest == ["definition.py"]:
        return (
            f"is the definition that {campaigns[0].name} judges by: its reference, inputs and tolerances"
            " must not change. Define a changed operator as a new one: `warpsmith new`."
        )
    if "-".join(rest) in {version for campaign in campaigns for version in campaign.judged_versions()}:
        return "was judged, and records cite it; write the next version to a new file (`warpsmith next`)."
    if not any(campaign.active for campaign in campaigns):
        current = open_work.current_campaign(project)
        return f"belongs to another campaign than {current.name if current else 'this one'}."
    return ""


def _person_first_reason(project: Project, path: Path) -> str:
    """Return the reason why a campaign's agents must not write here and a person is asked; empty if they may."""
    if path.is_relative_to(_LAB):
        return "is the lab that judges this campaign."
    if path == project.root / "warpsmith.toml":
        return "names the folders of this project's records."
    inside = path.relative_to(project.root).parts if path.is_relative_to(project.root) else ()
    return "is a test, and a campaign is active." if "tests" in inside or "test" in inside else ""

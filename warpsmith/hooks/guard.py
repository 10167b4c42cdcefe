"""Before a tool writes: what the lab alone writes stays as it is while a campaign is at work or a trial is open.

A tripwire against slips, not a wall: a shell can write in ways that no list of commands knows. What counts is
checked again by the lab, whose records are chained by hashes.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith import project as projects
from warpsmith.hooks import marks, scene, shell, trial
from warpsmith.hooks.event import Answer, Event, decide
from warpsmith.project import Project

WRITERS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
"""Tools that write a file, with the argument that names it."""

_LAB = Path(projects.__file__).resolve().parent


def answer(event: Event) -> Answer:
    """Whether the tool may run; a command in a shell marks the session as one that has work in hand."""
    if event.tool == "Bash":
        command = event.argument("command")
        if shell.drives(command):
            marks.mark(projects.find(event.folder), event.session, "campaign")
        if shell.tries(command):
            marks.mark(projects.find(event.folder), event.session, "trial")
        written = shell.written(command)
    else:
        written = [event.argument(WRITERS.get(event.tool, ""))]
    paths = [(event.folder / Path(name).expanduser()).resolve() for name in written if name]
    for path in paths:
        found = _objection(event, path) or trial.objection(event, path)
        if found:
            return found
    return trial.grant(event, paths) if event.tool in WRITERS else {}


def _objection(event: Event, path: Path) -> Answer:
    project = projects.find(path.parent)
    if scene.at_work(project) is None:
        return {}
    kept = _kept(project, path)
    if kept:
        return decide("deny", f"{project.relative(path)} {kept}")
    ground = _ground(project, path)
    return decide("deny" if event.ours else "ask", f"{project.relative(path)} {ground}") if ground else {}


def _kept(project: Project, path: Path) -> str:
    """Why only the lab writes this file; empty where anyone may."""
    if path.is_relative_to(project.devlog) and not scene.workbench(project, path):
        return "is a record or a page made from records; `warpsmith` commands write it (`warpsmith next`)."
    if path.is_relative_to(project.knowledge):
        return "is knowledge or evidence; it changes by `warpsmith learn` alone."
    if path.is_relative_to(project.kernels):
        return _kernel(project, path)
    return ""


def _kernel(project: Project, path: Path) -> str:
    op, *rest = path.relative_to(project.kernels).parts
    known = [standing for standing in scene.campaigns(project) if standing.op == op]
    if not known:
        return ""
    if rest == ["definition.py"]:
        return (
            f"is the definition that {known[0].name} judges by; its reference, inputs and tolerances stay."
            " A changed operator is another one: `warpsmith new`."
        )
    if "-".join(rest) in {copy for standing in known for copy in standing.judged()}:
        return "was judged, and records cite it; write the next version to a file of its own (`warpsmith next`)."
    if not any(standing.active for standing in known):
        working = scene.at_work(project)
        return f"belongs to another campaign than {working.name if working else 'this one'}."
    return ""


def _ground(project: Project, path: Path) -> str:
    """Why a campaign's agents must not write here, and a person is asked first; empty where they may."""
    if path.is_relative_to(_LAB):
        return "is the lab that judges this campaign."
    if path == project.root / "warpsmith.toml":
        return "says where this project's records are."
    inside = path.relative_to(project.root).parts if path.is_relative_to(project.root) else ()
    return "is a test, and a campaign is at work." if "tests" in inside or "test" in inside else ""

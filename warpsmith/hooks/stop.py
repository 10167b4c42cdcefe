"""Before a session stops: a campaign that it drives is not left in the middle of a round, nor a trial unjudged."""

from __future__ import annotations

from warpsmith import project as projects
from warpsmith.hooks import marks, scene
from warpsmith.hooks.event import Answer, Event, send_back
from warpsmith.project import Project

_ASKED = "If the user asked to stop, say where it stands and stop again."


def answer(event: Event) -> Answer:
    """Name what is left open, once for each step of it; a session that then stops again may."""
    project = projects.find(event.folder)
    return _campaign(project, event.session) or _trial(project, event.session)


def _campaign(project: Project, session: str) -> Answer:
    working = scene.at_work(project) if marks.marked(project, session, "campaign") else None
    if working is None or marks.reminded_at(project, session, "campaign") == working.progress:
        return {}
    marks.remind(project, session, "campaign", working.progress)
    owed = " Nothing of the round counts before it is learned from." if working.phase == "LEARN" else ""
    return send_back(
        f"{working.name} stands at {working.phase} of round {len(working.closed) + 1} and no stop condition"
        f" holds.{owed} Run `warpsmith next --campaign {working.name}` and go on. {_ASKED}"
    )


def _trial(project: Project, session: str) -> Answer:
    trials = scene.trials(project) if marks.marked(project, session, "trial") else []
    names = [folder.parent.parent.name for folder in trials]
    if not names or marks.reminded_at(project, session, "trial") == " ".join(names):
        return {}
    marks.remind(project, session, "trial", " ".join(names))
    return send_back(
        f"The trial of {names[0]} is open: its files are edited, and nothing has judged them. Run"
        f" `warpsmith program verify {names[0]}`, or `warpsmith program abandon {names[0]}"
        f' --because "WHY"`, which puts them back. {_ASKED}'
    )

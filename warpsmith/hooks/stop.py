"""Before a session stops: a campaign that it drives is not left in the middle of a round."""

from __future__ import annotations

from warpsmith import project as projects
from warpsmith.hooks import marks, scene
from warpsmith.hooks.event import Answer, Event, send_back


def answer(event: Event) -> Answer:
    """Name the phase that is left open, once for each step; a session that then stops again may."""
    project = projects.find(event.folder)
    if not marks.marked(project, event.session):
        return {}
    working = scene.at_work(project)
    if working is None or marks.reminded_at(project, event.session) == working.progress:
        return {}
    marks.remind(project, event.session, working.progress)
    owed = " Nothing of the round counts before it is learned from." if working.phase == "LEARN" else ""
    return send_back(
        f"{working.name} stands at {working.phase} of round {len(working.closed) + 1} and no stop condition"
        f" holds.{owed} Run `warpsmith next --campaign {working.name}` and go on. If the user asked to stop,"
        " say where it stands and stop again."
    )

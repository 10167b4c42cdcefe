"""Hook before a session stops: names the campaign's round or the trial that it would leave open."""

from __future__ import annotations

from warpsmith import project as projects
from warpsmith.hooks import marks, open_work
from warpsmith.hooks.event import Answer, HookEvent, send_back
from warpsmith.project import Project

_STOP_ADVICE = "If the user asked to stop, say what is open and stop again."


def answer(event: HookEvent) -> Answer:
    """Name what is left open, once for each progress; a session that stops again may."""
    project = projects.find_project(event.folder)
    return _campaign(project, event.session) or _trial(project, event.session)


def _campaign(project: Project, session: str) -> Answer:
    campaign = open_work.current_campaign(project) if marks.is_marked(project, session, "campaign") else None
    if campaign is None or marks.last_reminder(project, session, "campaign") == campaign.progress:
        return {}
    marks.record_reminder(project, session, "campaign", campaign.progress)
    warning = " The round does not count until LEARN is finished." if campaign.phase == "LEARN" else ""
    return send_back(
        f"{campaign.name} is at {campaign.phase} of round {len(campaign.closed) + 1} and no stop condition"
        f" holds.{warning} Run `warpsmith next --campaign {campaign.name}` and continue. {_STOP_ADVICE}"
    )


def _trial(project: Project, session: str) -> Answer:
    trials = open_work.open_trials(project) if marks.is_marked(project, session, "trial") else []
    names = [folder.parent.parent.name for folder in trials]
    if not names or marks.last_reminder(project, session, "trial") == " ".join(names):
        return {}
    marks.record_reminder(project, session, "trial", " ".join(names))
    return send_back(
        f"The trial of {names[0]} is open: its files are edited but not judged. Run"
        f" `warpsmith program verify {names[0]}`, or `warpsmith program abandon {names[0]}"
        f' --because "WHY"`, which restores them. {_STOP_ADVICE}'
    )

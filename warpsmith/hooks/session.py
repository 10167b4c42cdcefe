"""Hook when a session starts: names the campaign that is open in its project."""

from __future__ import annotations

from warpsmith import project as projects
from warpsmith.hooks import open_work
from warpsmith.hooks.event import Answer, HookEvent


def answer(event: HookEvent) -> Answer:
    """Tell the session and the person of the open campaign; empty if there is none."""
    campaign = open_work.current_campaign(projects.find_project(event.folder))
    if campaign is None:
        return {}
    sentence = (
        f"Campaign {campaign.name} is open at {campaign.phase} of round {len(campaign.closed) + 1};"
        " /warpsmith:resume goes on."
    )
    return {
        "systemMessage": sentence,
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": sentence},
    }

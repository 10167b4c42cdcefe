"""Hook before a subagent stops: sends an answer that is not valid back once."""

from __future__ import annotations

from warpsmith.driver.answers.kinds import ANSWERS
from warpsmith.hooks.event import PLUGIN_PREFIX, Answer, HookEvent, send_back


def answer(event: HookEvent) -> Answer:
    """Send the faults of the agent's answer back; empty if it is valid, or was sent back before."""
    kind = ANSWERS.get(event.agent.removeprefix(PLUGIN_PREFIX)) if event.is_plugin_agent else None
    if kind is None or event.sent_back:
        return {}
    from warpsmith.driver.answers.message import list_faults

    faults = list_faults(kind, event.answer)
    lines = "\n".join(f"- {fault}" for fault in faults)
    advice = f"`warpsmith answer show {kind}` prints the schema and an example."
    return send_back(f"the answer is not a valid `{kind}`:\n{lines}\n{advice}") if faults else {}

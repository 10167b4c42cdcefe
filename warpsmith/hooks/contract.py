"""Before one of the agents stops: an answer that does not fit its contract is sent back once."""

from __future__ import annotations

from warpsmith.driver.contracts.answers import ANSWERS
from warpsmith.hooks.event import OURS, Answer, Event, send_back


def answer(event: Event) -> Answer:
    """What the answer lacks."""
    kind = ANSWERS.get(event.agent.removeprefix(OURS)) if event.ours else None
    if kind is None or event.sent_back:
        return {}
    from warpsmith.driver.contracts.registry import problems

    found = problems(kind, event.answer)
    lines = "\n".join(f"- {problem}" for problem in found)
    form = f"`warpsmith contract show {kind}` prints the form."
    return send_back(f"the answer does not fit the `{kind}` contract:\n{lines}\n{form}") if found else {}

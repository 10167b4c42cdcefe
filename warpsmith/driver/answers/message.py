"""Read an agent's answer from its last message, and write one: a model in a fenced JSON block."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from warpsmith.core.text import to_one_line
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from warpsmith.driver.answers.models import AgentAnswer

_BLOCK = re.compile(
    r"^ {0,3}```json[ \t]*\r?\n(.*?)^ {0,3}```[ \t]*\r?$", re.MULTILINE | re.DOTALL | re.IGNORECASE
)


def list_faults(kind: str, message: str) -> list[str]:
    """List the faults of an answer, one sentence for each field; empty if it is valid.

    Raises:
        Misuse: the kind is unknown.
    """
    return _read(kind, message)[1]


def read_answer(kind: str, message: str) -> AgentAnswer:
    """Read the answer in the last JSON block of a message; the text around it is ignored.

    Raises:
        Misuse: the kind is unknown, or the answer is not valid; the message has one line for each fault.
    """
    answer, faults = _read(kind, message)
    if answer is None:
        raise Misuse("\n".join([f"The answer of kind `{kind}` is not valid:", *faults]))
    return answer


def render_answer(answer: AgentAnswer) -> str:
    """Write an answer as a fenced JSON block."""
    return _fence(answer.model_dump_json(indent=2))


def answer_texts(answer: AgentAnswer) -> dict[str, str]:
    """Return the free texts of an answer by their fields, one line an item."""
    from warpsmith.driver.answers.models import ProfileAnswer, VersionAnswer

    if isinstance(answer, ProfileAnswer):
        names = "\n".join(opportunity.name for opportunity in answer.opportunities)
        return {"`root_cause`": answer.root_cause, "`opportunities`": names}
    if isinstance(answer, VersionAnswer):
        reasons = "\n".join(workload.reason for workload in answer.workloads)
        return {"`changes`": "\n".join(answer.changes), "`workloads`": reasons}
    cheats = "\n".join(cheat.reason for cheat in answer.cheats)
    return {"`reason`": answer.reason, "`transfer`": "\n".join(answer.transfer), "`cheats`": cheats}


def describe_answer(kind: str) -> str:
    """Describe how to write an answer: the rule, the JSON Schema and an example.

    Raises:
        Misuse: the kind is unknown.
    """
    from warpsmith.driver.answers.models import EXAMPLES

    schema = json.dumps(_model(kind).model_json_schema(), indent=1)
    rule = f"End your last message with one ```json block that fits this JSON Schema of `{kind}`:"
    return "\n\n".join([rule, schema, "Example:", _fence(json.dumps(EXAMPLES[kind], indent=2))])


def _read(kind: str, message: str) -> tuple[AgentAnswer | None, list[str]]:
    from pydantic import ValidationError

    model = _model(kind)
    blocks = _BLOCK.findall(message)
    if not blocks:
        return None, ["The message has no ```json block: end it with one."]
    try:
        return model.model_validate(json.loads(blocks[-1])), []
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        return None, [_sentence(fault) for fault in faults if not _follows_from(fault, faults)]
    except (ValueError, RecursionError) as error:
        return None, [f"The ```json block is not JSON: {error}."]


def _model(kind: str) -> type[AgentAnswer]:
    from warpsmith.driver.answers.models import MODELS

    if kind not in MODELS:
        raise Misuse(f"Unknown kind of answer `{kind}`; known: {', '.join(MODELS)}.")
    return MODELS[kind]


def _follows_from(fault: Mapping[str, Any], faults: Sequence[Mapping[str, Any]]) -> bool:
    """Return True for a list that is too short only because of a fault in an item."""
    path = fault["loc"]
    inner = [other for other in faults if other is not fault and other["loc"][: len(path)] == path]
    return fault["type"] == "too_short" and bool(inner)


def _sentence(fault: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in fault["loc"]) or "answer"
    if fault["type"] == "missing":
        return f"`{field}` is missing."
    if fault["type"] == "extra_forbidden":
        return f"`{field}` is not a field of this answer; remove it."
    return f"`{field}`: {to_one_line(str(fault['msg']).removeprefix('Value error, ')).rstrip('.')}."


def _fence(text: str) -> str:
    return f"```json\n{text}\n```\n"

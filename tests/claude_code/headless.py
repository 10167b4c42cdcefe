"""Scripted models for the headless driver: each answers from what it was really asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from messages_api import Actor, Block, Call, saying, text, tool
from screenplay import CPP, FAST, REVIEWER, SLOW, WRONG, review_answer

ORCHESTRATOR = saying("You are Warpsmith's orchestrator.")
SOURCES = [SLOW, WRONG, FAST]

PLAN = {
    "hypothesis": "A plain loop that the compiler vectorises is faster.",
    "category": "compute",
    "entries": ["simd-vectorization"],
    "predicted_gain": 0.2,
    "metric": "dram_pct",
    "expected_change": 15,
}
NOTHING = {"action": "nothing", "text": "It was known already."}


def answer(**fields: Any) -> list[Block]:
    """An answer in the form that was asked for."""
    return [tool("StructuredOutput", **fields)]


def orchestrator(
    plans: Sequence[dict[str, Any]] = (PLAN,), lessons: Sequence[dict[str, Any]] = (NOTHING,)
) -> Actor:
    """Answers by the phase that its prompt names, with its plans and lessons in order; the last ones go on."""
    left = {"STRATEGIZE": list(plans), "LEARN": list(lessons)}

    def turn(call: Call) -> Sequence[Block]:
        phase = re.search(r"^(SELECT|STRATEGIZE|LEARN) of round \d+", call.said_by("user"), re.MULTILINE)
        assert phase, call.said_by("user")
        if phase[1] == "SELECT":
            return answer(language="cpp", because="Loops are all that it needs.")
        given = left[phase[1]]
        return answer(**(given.pop(0) if len(given) > 1 else given[0]))

    return Actor("orchestrator", ORCHESTRATOR, [turn], loop=True)


def designer(*turns: Callable[[Call], Sequence[Block]] | Sequence[Block]) -> Actor:
    """Plays the given turns, then writes what it is asked for, a version of its own each time."""
    first = list(turns)

    def turn(call: Call) -> Sequence[Block]:
        if first:
            one = first.pop(0)
            return one(call) if callable(one) else one
        there = any(due(call).name in said for wrong, said in call.results if not wrong)
        return [text("Done.")] if there else [written(call)]

    return Actor("designer", CPP, [turn], loop=True)


def written(call: Call) -> Block:
    """The version that the brief asks for."""
    path = due(call)
    return tool("Write", file_path=str(path), content=SOURCES[(int(path.stem[1:]) - 1) % len(SOURCES)])


def due(call: Call) -> Path:
    """The file that the brief asks for."""
    found = re.search(r"Write (kernels/\S+) and no other file", call.said_by("user"))
    assert found, call.said_by("user")
    return Path(found[1])


def reviewer() -> Actor:
    """Finds nothing."""
    return Actor("reviewer", REVIEWER, [[text(review_answer(1))]], loop=True)

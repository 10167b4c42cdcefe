"""Texts by agents in a campaign's records, and the one rule for them: no figure that no record supports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from warpsmith.core.base import Model
from warpsmith.core.campaign import Lesson, Plan, RoundRecord
from warpsmith.core.claims.figures import contradicting_words, parse_figures, split_statements
from warpsmith.core.claims.quantities import Quantities, unsupported_figures
from warpsmith.errors import BadEntry
from warpsmith.project import Project

if TYPE_CHECKING:
    from warpsmith.core.repo import RepoRecord

_PLAN_TEXTS = {"hypothesis", "risks", "rollback", "search_log", "review"}
_NO_RESULTS = {"selection", "lesson", "spent", "struck"}
"""Parts of a record whose texts are by agents, or that hold no result."""


def quantities_of(*parts: Model | None) -> Quantities:
    """Collect the values that records, manifests, or parts of a round support; texts by agents are left out."""
    return Quantities.of(*(_dump(part) for part in parts if part is not None))


def plan_texts(plan: Plan) -> dict[str, str]:
    """Return the texts of a plan by their names; the expected effects of a review are estimates by their name."""
    texts = {"hypothesis": plan.hypothesis, "risks": plan.risks, "rollback": plan.rollback}
    return texts | {"search log": "\n".join(plan.search_log)}


def lesson_texts(lesson: Lesson) -> dict[str, str]:
    """Return the texts of a lesson by their names."""
    tip = {f"tip's {name}": text for name, text in (lesson.tip.model_dump() if lesson.tip else {}).items()}
    return {"lesson": lesson.reason, **tip}


def record_texts(record: RoundRecord | RepoRecord) -> dict[str, str]:
    """Return all texts by agents in a round's record, by their names."""
    if not isinstance(record, RoundRecord):
        return {**plan_texts(record.plan), "lesson": record.lesson.text}
    return {
        "reason for the language": record.selection.because,
        **plan_texts(record.plan),
        **lesson_texts(record.lesson),
        **{
            f"{name} of contender {each.number}": text
            for each in record.lost
            for name, text in plan_texts(each.plan).items()
        },
        **({"reason for the strike": record.struck.reason} if record.struck else {}),
    }


def text_faults(
    project: Project,
    texts: Mapping[str, str],
    recorded: Quantities,
    accepted: bool | None = None,
    cited: set[str] | None = None,
) -> Iterator[str]:
    """Yield the faults of texts by agents, one sentence each.

    Args:
        project: the project, whose files a text may cite.
        texts: texts by their names in messages.
        recorded: values that the round's record supports.
        accepted: verdict of the round; None if it has none yet, or if the text may speak of another one.
        cited: receives the paths in the project of the files that were looked up.
    """
    read_cited = _cited_reader(project, set() if cited is None else cited)
    for name, text in texts.items():
        for figure in unsupported_figures(text, recorded, read_cited):
            yield (
                f"The {name} states `{figure}`, which no record of this round supports;"
                " write the figure that is measured, cite its source in the same sentence, or use words."
            )
        words = contradicting_words(text, accepted) if accepted is not None else None
        if words:
            verdict = "was accepted" if accepted else "was not accepted"
            yield f"The {name} says `{words}`, but the version {verdict}; correct it."


def refuse_faults(
    project: Project, texts: Mapping[str, str], recorded: Quantities, accepted: bool | None = None
) -> None:
    """Raise BadEntry with the first of `text_faults`."""
    for fault in text_faults(project, texts, recorded, accepted):
        raise BadEntry(fault)


def drop_figures(text: str) -> str:
    """Return a text without the sentences that state figures, for a replay in which they were not measured."""
    if not parse_figures(text):
        return text
    return " ".join(statement for statement in split_statements(text) if not parse_figures(statement))


def _dump(part: Model) -> object:
    data = part.model_dump(mode="json", exclude=_NO_RESULTS & set(type(part).model_fields))
    for plan in (data, data.get("plan"), *(each["plan"] for each in data.get("contenders", ()))):
        if isinstance(plan, dict):
            for name in _PLAN_TEXTS & set(plan):
                del plan[name]
    return data


def _cited_reader(project: Project, cited: set[str]) -> Callable[[str], Quantities | None]:
    def read_cited(name: str) -> Quantities | None:
        path = project.root / name
        if ".." in PurePosixPath(name).parts:
            return None
        cited.add(name)
        if not path.is_file():
            return None
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix != ".json":
            return Quantities.of(text)
        try:
            return Quantities.of(json.loads(text))
        except ValueError:
            return None

    return read_cited

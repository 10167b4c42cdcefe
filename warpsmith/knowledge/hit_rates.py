"""Hit rates: how often the rounds of a project that applied an entry were accepted, and what they gained.

Computed from the records each time: an entry's page never states them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpsmith.core.evaluation import Verdict
from warpsmith.core.knowledge import HitRate, Try
from warpsmith.project import Project

RECORDS = "*/*/rounds/[0-9][0-9][0-9]/record.json"
"""Where the closed rounds of all campaigns are in the devlog."""


def by_entry(project: Project) -> dict[str, HitRate]:
    """The hit rate of every entry that a closed round of the project applied, by id.

    A record that does not read counts nothing: `warpsmith evidence check` names it.
    """
    tries: dict[str, list[Try]] = defaultdict(list)
    for path in project.devlog.glob(RECORDS):
        for entry, one in _tries(project, path):
            tries[entry].append(one)
    return {entry: HitRate.of(found) for entry, found in sorted(tries.items())}


def _tries(project: Project, path: Path) -> Iterator[tuple[str, Try]]:
    """The entries that a round applied; plain JSON, since a search waits for it."""
    try:
        record = json.loads(path.read_bytes())
        plan, evaluation = record["plan"], record["evaluation"]
        one = _try(record, evaluation, project.relative(path), struck=(path.parent / "struck.json").is_file())
        entries = list(dict.fromkeys(plan["entries"])) if plan["category"] != "baseline" else []
    except (OSError, ValueError, KeyError, TypeError):
        return
    yield from ((entry, one) for entry in entries)


def _try(record: dict[str, Any], evaluation: dict[str, Any], path: str, *, struck: bool) -> Try:
    return Try(
        record=path,
        operator=evaluation["definition"],
        target=evaluation["target"],
        solution=record["solution"],
        verdict=Verdict.ROLLBACK if struck else Verdict(evaluation["decision"]["verdict"]),
        gain=None if struck else record["outcome"]["gain"],
    )

"""Hit rates: how often what a project tried of an entry was accepted, and what it gained.

Rounds of campaigns, on an operator or in a repository, and trials of whole programs. Computed from the records
each time: an entry's page never states them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from warpsmith.core.evaluation import Verdict
from warpsmith.core.knowledge import HitRate, Try
from warpsmith.core.trial import TrialVerdict
from warpsmith.project import Project

RECORDS = ("*/*/rounds/[0-9][0-9][0-9]/record.json", "programs/*/trials/[0-9][0-9][0-9]/record.json")
"""Where closed rounds and trials are in the devlog."""

Tried = tuple[Iterable[str], Try]
"""Entry ids, and what was tried of them."""


def by_entry(project: Project) -> dict[str, HitRate]:
    """The hit rate of every entry that a closed round or trial of the project applied, by id.

    A record that does not read counts nothing: `warpsmith evidence check` names it.
    """
    tries: dict[str, list[Try]] = defaultdict(list)
    for path in (found for records in RECORDS for found in project.devlog.glob(records)):
        for entry, one in _tries(project, path):
            tries[entry].append(one)
    return {entry: HitRate.of(found) for entry, found in sorted(tries.items())}


def _tries(project: Project, path: Path) -> Iterator[tuple[str, Try]]:
    """The entries that a record applied; plain JSON, since a search waits for it."""
    name = project.relative(path)
    try:
        record = json.loads(path.read_bytes())
        if "comparisons" in record:
            entries, one = _trial(record, name)
        elif "judgement" in record:
            entries, one = _change(record, name)
        else:
            entries, one = _version(record, name, struck=(path.parent / "struck.json").is_file())
    except (OSError, ValueError, KeyError, TypeError):
        return
    yield from ((entry, one) for entry in entries)


def _version(record: dict[str, Any], path: str, *, struck: bool) -> Tried:
    """A round on an operator."""
    evaluation = record["evaluation"]
    return _applied(record["plan"]), Try(
        record=path,
        operator=evaluation["definition"],
        target=evaluation["target"],
        solution=record["solution"],
        verdict=Verdict.ROLLBACK if struck else Verdict(evaluation["decision"]["verdict"]),
        gain=None if struck else record["outcome"]["gain"],
    )


def _change(record: dict[str, Any], path: str) -> Tried:
    """A round on a kernel in a repository."""
    judged, aggregate = record["judgement"], record["judgement"]["aggregate"]
    return _applied(record["plan"]), Try(
        record=path,
        operator=record["campaign"],
        target=judged["machine"]["target"],
        solution=judged["commit"][:12],
        verdict=Verdict(judged["decision"]["verdict"]),
        gain=None if aggregate is None else aggregate["speedup"] - 1,
    )


def _applied(plan: dict[str, Any]) -> Iterable[str]:
    return () if plan["category"] == "baseline" else dict.fromkeys(plan["entries"])


def _trial(record: dict[str, Any], path: str) -> Tried:
    """A trial of a whole program: its entry is the optimization."""
    plan, kept = record["plan"], record["decision"]["verdict"] == TrialVerdict.KEPT
    gains = [one["speedup"] - 1 for one in record["comparisons"]]
    return (plan["entry"],), Try(
        record=path,
        operator=plan["subject"]["name"],
        target=plan["device"],
        solution=plan["subject"]["path"] or plan["subject"]["module"],
        verdict=Verdict.ACCEPT if kept else Verdict.ROLLBACK,
        gain=min(gains, default=None),  # as a trial claims it
    )

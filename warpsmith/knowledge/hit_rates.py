"""Hit rates: how often a change that applied an entry was accepted, and how much it gained.

They cover rounds of campaigns, on an operator or in a repository, and trials of whole programs. They are
computed from the records whenever one has changed; an entry's page never states them.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from warpsmith import derived_rows, files
from warpsmith.core.evaluation import Verdict
from warpsmith.core.knowledge import HitRate, Try
from warpsmith.core.trial import TrialVerdict
from warpsmith.knowledge.effects import EffectSamples
from warpsmith.project import Project

_FOLDERS = ("*/*/rounds", "programs/*/trials")
"""Folders of closed rounds and trials in the devlog."""

_STRUCK = "struck.json"
_KIND = "hit rates"

EntryTries = tuple[Iterable[str], Try]
"""Entry ids and the try that applied them."""


def hit_rates_by_entry(project: Project) -> dict[str, HitRate]:
    """Return the hit rate of every entry that a closed round or trial of the project applied, by id.

    A record that does not parse is skipped; `warpsmith evidence check` reports it.
    """
    records = list_records(project)
    strikes = [strike for record in records if os.path.exists(strike := _strike_of(record))]  # noqa: PTH110
    state, rates = derived_rows.files_state([*records, *strikes]), TypeAdapter(dict[str, HitRate])
    before, text = derived_rows.read_rows(project.root, _KIND).get(_KIND, ("", ""))
    if before == state.sha256:
        with suppress(ValidationError):
            return rates.validate_json(text)
    derived = _derive_rates(project, records)
    if state.settled:
        row = (state.sha256, rates.dump_json(derived).decode())
        derived_rows.write_rows(project.root, _KIND, {_KIND: row})
    return derived


def _derive_rates(project: Project, records: Iterable[str]) -> dict[str, HitRate]:
    tries: dict[str, list[Try]] = defaultdict(list)
    samples = EffectSamples()
    for record in records:
        for entry, attempt in _tries(project, Path(record), samples):
            tries[entry].append(attempt)
    effects = samples.effects()
    return {entry: HitRate.of(tries[entry], effects.get(entry)) for entry in sorted(tries.keys() | effects.keys())}


def list_records(project: Project) -> list[str]:
    """List the paths where closed rounds and trials have their records; texts, since there may be thousands."""
    folders = [f"{folder}" for pattern in _FOLDERS for folder in sorted(project.devlog.glob(f"{pattern}/"))]
    return [
        f"{folder}/{name}/record.json"
        for folder in folders
        for name in sorted(os.listdir(folder))  # noqa: PTH208
        if fnmatchcase(name, files.NUMBERED)
    ]


def _strike_of(record: str) -> str:
    return f"{record.removesuffix('record.json')}{_STRUCK}"


def _tries(project: Project, path: Path, samples: EffectSamples) -> Iterator[tuple[str, Try]]:
    """Yield the entries that a record applied, and add its draw to the samples.

    It reads plain JSON, because a search waits for it.
    """
    name = project.relative(path)
    try:
        record = json.loads(path.read_bytes())
        if "comparisons" in record:
            entries, attempt = _trial(record, name)
        elif "judgement" in record:
            entries, attempt = _change(record, name)
        else:
            struck = (path.parent / _STRUCK).is_file()
            entries, attempt = _version(record, name, struck=struck)
            if record["evaluation"].get("port") is not None:
                return  # nothing was timed, so it says nothing on what an entry gains
            samples.add(record, struck=struck)
    except (OSError, ValueError, KeyError, TypeError):
        return
    yield from ((entry, attempt) for entry in entries)


def _version(record: dict[str, Any], path: str, *, struck: bool) -> EntryTries:
    """Return entries and try of a round on an operator."""
    evaluation, movement = record["evaluation"], record["outcome"]["movement"]
    verdict = Verdict.ROLLBACK if struck else Verdict(evaluation["decision"]["verdict"])
    return _applied(record["plan"]), Try(
        record=path,
        operator=evaluation["definition"],
        target=evaluation["target"],
        solution=record["solution"],
        verdict=verdict,
        gain=None if struck else record["outcome"]["gain"],
        unexplained=verdict.accepted and movement is not None and movement["as_predicted"] is False,
    )


def _change(record: dict[str, Any], path: str) -> EntryTries:
    """Return entries and try of a round on a kernel in a repository."""
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


def _trial(record: dict[str, Any], path: str) -> EntryTries:
    """Return entries and try of a trial of a whole program, whose entry is the optimization; one that showed
    nothing counts for none."""
    plan, accepted = record["plan"], record["decision"]["verdict"] == TrialVerdict.KEPT
    gains = [comparison["speedup"] - 1 for comparison in record["comparisons"]]
    inconclusive = record["decision"]["verdict"] == TrialVerdict.INCONCLUSIVE
    return () if inconclusive else (plan["entry"],), Try(
        record=path,
        operator=plan["subject"]["name"],
        target=plan["device"],
        solution=plan["subject"]["path"] or plan["subject"]["module"],
        verdict=Verdict.ACCEPT if accepted else Verdict.ROLLBACK,
        gain=min(gains, default=None),  # a trial claims its smallest gain
    )

"""An operator's page: definition, results, one history over all campaigns, rooflines, races; and sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpsmith import files
from warpsmith.core.definition import Definition
from warpsmith.core.evaluation import REFERENCE, Evaluation
from warpsmith.core.knowledge import PriorArt
from warpsmith.core.profile import Profile
from warpsmith.errors import BadEntry, WarpsmithError
from warpsmith.knowledge import prior_art
from warpsmith.reporting import facts
from warpsmith.reporting import race as races
from warpsmith.site import addresses
from warpsmith.site.charts.history import SHAPES, HistoryPoint, draw_history
from warpsmith.site.charts.roofline import RooflinePoint, draw_roofline
from warpsmith.site.citation import Citation, Quote
from warpsmith.site.contents import CampaignHistory, StoredRace
from warpsmith.site.context import SiteContext
from warpsmith.site.markup import Html
from warpsmith.site.page import SearchText, SitePage, build_page
from warpsmith.site.sources import ParentDiff, VersionSource, anchor_lines, diff_from_parent, read_judged_source

PANELS = 6
"""Number of rooflines that are shown at once; the others unfold."""

METRICS = 6
"""Number of values of a profile that a history shows."""


@dataclass(frozen=True)
class VersionHistory:
    """One version in the history of its operator."""

    history: CampaignHistory
    """Campaign that judged it."""
    point: HistoryPoint
    """Its point in the chart."""
    gain: Quote
    """Measured gain over the best version before."""
    predicted: Quote
    """Gain that its plan predicted."""
    mean: Quote | None
    """Speedup over the reference."""
    profile: Profile | None
    """Profile of the version; else, of the version that it was made from."""
    metrics: Sequence[tuple[str, Quote]]
    """Values of the profile."""
    movement: tuple[Quote, Quote, Quote] | None
    """The plan's metric: its predicted change, and its value before and after."""
    diff: ParentDiff
    """Difference from its parent."""


def operator_pages(context: SiteContext, op: str) -> list[SitePage]:
    """Return the page of an operator, and those of the sources of its versions."""
    histories = context.contents.histories(op)
    definition, problem = _load_definition(context, op)
    sources: list[VersionSource] = []
    versions = _list_versions(context, op, sources)
    targets = list(dict.fromkeys(version.history.row.manifest.target for version in versions))
    address = addresses.operator_address(op)
    page = build_page(
        "operator",
        address,
        title=op,
        section=addresses.FRONT,
        found_by=(_operator_text(op, address, definition),),
        op=op,
        definition=definition,
        definition_problem=problem,
        definition_source=_definition_text(context, op),
        definition_path=context.project.relative(context.project.definition_path(op)),
        best=_best_versions(context, op),
        results=[_results(history) for history in _reported_histories(context, op)],
        versions=versions,
        charts=[(target, draw_history([v.point for v in versions if _is_on(v, target)])) for target in targets],
        languages=[(number, name) for number, name in enumerate(context.languages) if _uses(versions, name)],
        shapes=SHAPES,
        rooflines=_rooflines(versions),
        panel_count=PANELS,
        races=[_race(race) for race in reversed(context.contents.races.get(op, []))],
        prior_art=_prior_art(context, definition),
        histories=histories,
        campaign_address=addresses.campaign_address,
        version_address=addresses.version_address,
        entry_addresses=_entry_addresses(context),
        problems=[problem for history in histories for problem in history.problems],
    )
    return [page, *_source_pages(context, op, sources)]


def _list_versions(context: SiteContext, op: str, sources: list[VersionSource]) -> list[VersionHistory]:
    """List the versions of all campaigns in the order of their rounds, and add their sources."""
    rounds = [(history, stored) for history in context.contents.histories(op) for stored in history.stored]
    rounds.sort(key=lambda pair: (pair[1].record.closed, pair[1].record.campaign, pair[1].number))
    versions = []
    for history, stored in rounds:
        record, citation = stored.record, history.citations[stored.number]
        source = read_judged_source(context.project, op, stored)
        diff = diff_from_parent(stored, source, sources)
        if source:
            sources.append(source)
        mean = record.evaluation.aggregate(REFERENCE)
        index = record.evaluation.aggregates.index(mean) if mean else None
        after = record.profile_after is not None
        profile = record.profile_after or record.profile
        name = "profile_after" if after else "profile"
        point = HistoryPoint(
            record,
            citation,
            addresses.round_anchor(record.campaign, record.round),
            context.languages.index(record.evaluation.language),
        )
        movement = record.outcome.movement
        keys = ("predicted", "before", "after")
        versions.append(
            VersionHistory(
                history,
                point,
                citation.quote(record, "outcome", "gain"),
                citation.quote(record, "plan", "predicted_gain"),
                None if index is None else citation.quote(record, "evaluation", "aggregates", index),
                profile,
                [
                    (metric.name, citation.quote(record, name, "metrics", address, "value"))
                    for address, metric in enumerate(profile.metrics[:METRICS] if profile else ())
                ],
                tuple(citation.quote(record, "outcome", "movement", key) for key in keys) if movement else None,  # type: ignore[arg-type]
                diff,
            )
        )
    return versions


def _is_on(version: VersionHistory, target: str) -> bool:
    return version.history.row.manifest.target == target


def _uses(versions: Sequence[VersionHistory], language: str) -> bool:
    return any(version.point.record.evaluation.language == language for version in versions)


def _rooflines(versions: Sequence[VersionHistory]) -> list[tuple[str, str, Html]]:
    """Return the target, the workload and the drawing of each workload at which several versions were timed."""
    grouped: dict[tuple[str, str], list[RooflinePoint]] = {}
    for version in versions:
        target = version.history.row.manifest.target
        for index, result in enumerate(version.point.record.evaluation.results):
            timing = result.timing
            if timing and timing.rate > 0 and timing.bandwidth > 0:
                points = grouped.setdefault((target, result.workload), [])
                points.append(RooflinePoint(version.point, timing, index))
    ordered = sorted(grouped.items(), key=lambda item: -len(item[1]))
    return [(target, name, draw_roofline(name, points)) for (target, name), points in ordered]


def _reported_histories(context: SiteContext, op: str) -> list[CampaignHistory]:
    """Return the campaign of the best version for each target, else every campaign that has one."""
    chosen: dict[str, CampaignHistory] = {}
    for history in context.contents.histories(op):
        target = history.row.manifest.target
        best = context.contents.best.get((op, target))
        if (
            history.reported
            and history.row.best
            and (best is None or history.row.best.snapshot_sha256 == best.sha256)
        ):
            chosen[target] = history
    return list(chosen.values())


def _results(history: CampaignHistory) -> dict[str, Any]:
    """Return the results of a campaign's best version, each figure with its place in the record."""
    if history.reported is None:
        raise ValueError(f"{history.name} has no best version")
    return results_table(*history.reported) | {"history": history}


def results_table(evaluation: Evaluation, citation: Citation, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the figures of an evaluation for a table: a row for each workload, then the means."""
    document = evaluation
    sides = facts.timed_sides(evaluation)

    def quote(*path: str | int) -> Quote:
        quoted = citation.quote(document, *path)
        return Quote(quoted.value, citation, "".join(f"/{key}" for key in (*keys, *path)))

    rows = []
    for result in facts.sort_results(evaluation.results):
        index, timing = evaluation.results.index(result), result.timing
        against = {c.against: address for address, c in enumerate(timing.comparisons)} if timing else {}
        start = ("results", index)
        rows.append(
            {
                "workload": result.workload,
                "status": result.status,
                "message": result.message,
                "seconds": quote(*start, "timing", "seconds"),
                "share": quote(*start, "timing", "ceiling_share"),
                "bandwidth": quote(*start, "timing", "bandwidth"),
                "worst": quote(*start, "correctness", "worst"),
                "sides": [
                    quote(*start, "timing", "comparisons", against[side]) if side in against else None
                    for side in sides
                ],
            }
        )
    means = {mean.against: address for address, mean in enumerate(evaluation.aggregates)}
    return {
        "evaluation": evaluation,
        "citation": citation,
        "sides": [facts.side_name(side) for side in sides],
        "rows": rows,
        "means": [quote("aggregates", means[side]) if side in means else None for side in sides],
        "share": citation.derive(facts.mean_ceiling_share(evaluation), "mean_ceiling_share"),
        "absent": evaluation.absent,
    }


def _best_versions(context: SiteContext, op: str) -> list[dict[str, Any]]:
    chosen = []
    for (name, target), version in context.contents.best.items():
        if name == op:
            address = addresses.version_address(op, version.solution)
            chosen.append({"target": target, "version": version, "address": address})
    return chosen


def _race(race: StoredRace) -> dict[str, Any]:
    """Return the table of a race as `warpsmith race` prints it, with the record behind every cell."""
    rows = races.race_rows(race.record)
    columns = [column for column in range(len(races.HEAD)) if any(row[column] not in ("", "-") for row in rows)]
    return {
        "race": race,
        "anchor": f"race-{race.number}",
        "head": [races.HEAD[column] for column in columns],
        "rows": [[(races.HEAD[column], row[column]) for column in columns] for row in rows],
        "footnotes": races.race_footnotes(race.record),
        "text_columns": (races.HEAD.workload, races.HEAD.side, races.HEAD.result),
    }


def _load_definition(context: SiteContext, op: str) -> tuple[Definition | None, str]:
    """Load a definition, or say in one sentence why it does not load."""
    path = context.project.definition_path(op)
    if not path.is_file():
        return None, f"The project has no {context.project.relative(path)}."
    from warpsmith.lab.operator import definition_file

    try:
        return definition_file.load_definition(path).definition, ""
    except WarpsmithError as error:
        context.contents.note(error)
        return None, str(error).replace(f"{context.project.root}/", "")


def _prior_art(context: SiteContext, definition: Definition | None) -> list[PriorArt]:
    """Return the fastest known public approaches to an operator, as `warpsmith knowledge prior-art` finds them."""
    try:
        return prior_art.find_prior_art(context.project, definition) if definition else []
    except BadEntry as error:
        context.contents.note(error)
        return []


def _definition_text(context: SiteContext, op: str) -> str:
    path = context.project.definition_path(op)
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _operator_text(op: str, address: str, definition: Definition | None) -> SearchText:
    description = definition.description if definition else ""
    tags = f"operator {definition.op_type}" if definition else "operator"
    return SearchText(op, address, "operator", description, f"{tags} {op.replace('_', ' ')}", description)


def _entry_addresses(context: SiteContext) -> dict[str, str]:
    return {id: addresses.entry_address(id) for id in context.catalog.entries}


def _source_pages(context: SiteContext, op: str, sources: Sequence[VersionSource]) -> list[SitePage]:
    """Return a page with the numbered source of each version; the last of a name stands for it."""
    pages = []
    for source in {source.solution: source for source in sources}.values():
        address = addresses.version_address(op, source.solution)
        pages.append(
            build_page(
                "source",
                address,
                title=f"{op}, {source.solution}",
                section=addresses.FRONT,
                op=op,
                operator=addresses.operator_address(op),
                solution=source.solution,
                path=context.project.relative(source.path),
                sha256=files.file_sha256(source.path),
                lines=anchor_lines(source.text),
            )
        )
    return pages

"""The form `profile`: profiler to orchestrator, what limits a version and what to try."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from warpsmith.driver.contracts import text as markdown
from warpsmith.driver.contracts.document import Document, Form
from warpsmith.driver.contracts.text import ABSENT, NONE, OP, SLUG, VERSION

if TYPE_CHECKING:
    from decimal import Decimal

    from warpsmith.driver.contracts.models import Chance, Moved, ProfileContract, StageRow

STAGES, BOTTLENECK, OPPORTUNITIES, AGAINST = (
    "Stages",
    "Bottleneck",
    "Opportunities",
    "Against the version before",
)
STAGE_COLUMNS = ("Stage", "Duration", "TC%", "DRAM%", "Occ%", "Bottleneck", "Key issue")
MOVED_COLUMNS = ("Metric", "Before", "Now", "Change")

AT_THE_LIMIT = "at-the-limit"
MOST = 3
"""Opportunities of one profile."""

_HEADING = re.compile(rf"(?P<op>{OP}) (?P<version>{VERSION}) on (?P<target>{SLUG})")
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_POSITIVE = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_NUMBER = rf"[-+]?{_POSITIVE}(?:[eE][-+]?[0-9]{{1,2}})?"
_DURATION = re.compile(rf"({_POSITIVE}) ?({'|'.join(_UNITS)})")
_PERCENT = re.compile(rf"({_POSITIVE}) ?%?")
_APART = re.compile(r" (?:--|—|–) ")  # noqa: RUF001 - what editors make of two hyphens
_GAIN = re.compile(rf"est\.? ?({_POSITIVE}) ?%(?: gain)?")
_TRIGGER = re.compile(rf"trigger: ?`?([a-z0-9_]+) ?= ?({_NUMBER})`?")
_ENTRY = re.compile(rf"entry: ?`?({SLUG})`?")

_A_METRIC = "take one that `warpsmith profile --json` lists, such as dram_pct"

EXAMPLE = """\
## Profile: softmax triton/v3 on h200
### Stages
| Stage | Duration | TC% | DRAM% | Occ% | Bottleneck | Key issue |
| --- | --- | --- | --- | --- | --- | --- |
| 4096x8192-bf16 | 41.2 us | - | 61 | - | memory | two passes over the row |
### Bottleneck: memory
The row is read twice. Its second reading misses the L2 cache.
### Opportunities
1. Keep the row on chip -- est. 22 % -- trigger: dram_pct=61 -- entry: row-in-registers
### Against the version before
| Metric | Before | Now | Change |
| --- | --- | --- | --- |
| dram_pct | 43 | 61 | +18 |
"""


def read(document: Document) -> dict[str, Any]:
    """The fields of a `ProfileContract`."""
    from warpsmith.core.metrics import METRICS
    from warpsmith.core.profile import Bottleneck

    classes: tuple[str, ...] = get_args(Bottleneck)
    heading = _HEADING.fullmatch(document.heading)
    if document.blocks and not heading:
        what = f"`{document.heading}` is not an operator, a version and a target"
        document.problems.append(f"heading: {what}. Fix: write `## Profile: OP LANGUAGE/vN on TARGET`.")
    fields = heading.groupdict() if heading else {}
    fields["stages"] = [_stage(document, row, classes) for row in document.table(STAGES, STAGE_COLUMNS)]
    fields["bottleneck"] = bottleneck(document, classes)
    fields["root_cause"] = document.paragraph(BOTTLENECK)
    if (count := markdown.sentences(fields["root_cause"])) > 2:
        document.problem(BOTTLENECK, f"the root cause has {count} sentences", "write at most two")
    fields["opportunities"] = _opportunities(document, fields["bottleneck"], METRICS)
    rows = document.table(AGAINST, MOVED_COLUMNS, none=True)
    fields["compared"] = [_moved(document, row, METRICS) for row in rows]
    return fields


def write(contract: ProfileContract) -> str:
    """The text of a profile."""
    chances = "\n".join(f"{rank}. {_chance_text(c)}" for rank, c in enumerate(contract.opportunities, 1))
    moved = markdown.table(MOVED_COLUMNS, [_moved_cells(m) for m in contract.compared])
    return "\n".join(
        (
            f"## Profile: {contract.op} {contract.version} on {contract.target}",
            f"### {STAGES}",
            markdown.table(STAGE_COLUMNS, [_stage_cells(stage) for stage in contract.stages]),
            f"### {BOTTLENECK}: {contract.bottleneck}",
            markdown.block(contract.root_cause),
            f"### {OPPORTUNITIES}",
            chances or NONE,
            f"### {AGAINST}",
            moved if contract.compared else NONE,
            "",
        )
    )


def bottleneck(document: Document, classes: tuple[str, ...]) -> str:
    """The class that the section's heading names."""
    name = markdown.unquoted(document.rests.get(BOTTLENECK, "")).casefold()
    if BOTTLENECK in document.blocks and name not in classes:
        what = f"`{name}` is no class" if name else "the heading names no class"
        document.problem(BOTTLENECK, what, f"write `### Bottleneck: CLASS` with one of {', '.join(classes)}")
    return name


def _stage(document: Document, row: list[str], classes: tuple[str, ...]) -> dict[str, Any]:
    name, duration, *shares, limit, issue = row
    at = f"`{name}`" if name else "a row without a name"
    time = _DURATION.fullmatch(duration)
    seconds = float(time[1]) * _UNITS[time[2]] if time else 0.0
    if not seconds:
        document.problem(STAGES, f"{at}: the duration is `{duration}`", "write a time such as `41.2 us`")
    if limit.casefold() not in classes:
        document.problem(STAGES, f"{at}: `{limit}` is no bottleneck", f"write one of {', '.join(classes)}")
    if not name or not issue:
        document.problem(STAGES, f"{at}: the stage or its key issue is empty", "say it in a few words")
    tensor, dram, occupancy = (
        _percent(document, at, column, cell) for column, cell in zip(STAGE_COLUMNS[2:5], shares, strict=True)
    )
    return {
        "name": name,
        "seconds": seconds,
        "tensor_pct": tensor,
        "dram_pct": dram,
        "occupancy_pct": occupancy,
        "bottleneck": limit.casefold(),
        "issue": issue,
    }


def _percent(document: Document, at: str, column: str, cell: str) -> float | None:
    found = _PERCENT.fullmatch(cell)
    if not found and cell != ABSENT:
        fix = f"write a number, or `{ABSENT}` where it was not measured"
        document.problem(STAGES, f"{at}: {column} is `{cell}`", fix)
    return float(found[1]) if found else None


def _opportunities(document: Document, limit: str, metrics: dict[str, str]) -> list[dict[str, Any]]:
    texts = document.items(OPPORTUNITIES, none=limit == AT_THE_LIMIT)
    found = [_chance(document, text, metrics) for text in texts]
    if len(found) > MOST:
        document.problem(OPPORTUNITIES, f"there are {len(found)}", f"keep the {MOST} largest")
    gains = [chance["gain_pct"] for chance in found]
    if any(before < after for before, after in pairwise(gains)):
        document.problem(OPPORTUNITIES, "they are not ranked", "put the largest estimate first")
    return found


def _chance(document: Document, text: str, metrics: dict[str, str]) -> dict[str, Any]:
    name, *parts = _APART.split(text)
    gain, trigger, entry = (_part(parts, pattern) for pattern in (_GAIN, _TRIGGER, _ENTRY))
    known = [found[0] for found in (gain, trigger, entry) if found]
    for part in parts:
        if part not in known:
            fix = "write `NAME -- est. N % -- trigger: METRIC=VALUE -- entry: ID`"
            document.problem(OPPORTUNITIES, f"`{name}`: `{part}` does not read", fix)
    if not gain or float(gain[1]) > 100:
        fix = "add ` -- est. N % --`, N percent of the time and at most 100"
        document.problem(OPPORTUNITIES, f"`{name}`: there is no estimate", fix)
    if not trigger:
        fix = "add ` -- trigger: METRIC=VALUE` with a value that `warpsmith profile` printed"
        document.problem(OPPORTUNITIES, f"`{name}`: there is no trigger", fix)
    elif trigger[1] not in metrics:
        document.problem(OPPORTUNITIES, f"`{name}`: `{trigger[1]}` is no metric", _A_METRIC)
    return {
        "name": name,
        "gain_pct": float(gain[1]) if gain else 0.0,
        "metric": trigger[1] if trigger else "",
        "value": trigger[2] if trigger else "0",
        "entry": entry[1] if entry else None,
    }


def _part(parts: list[str], pattern: re.Pattern[str]) -> re.Match[str] | None:
    return next((found for part in parts if (found := pattern.fullmatch(part))), None)


def _moved(document: Document, row: list[str], metrics: dict[str, str]) -> dict[str, Any]:
    name = markdown.unquoted(row[0])
    if name not in metrics:
        document.problem(AGAINST, f"`{name}` is no metric", _A_METRIC)
    for column, cell in zip(MOVED_COLUMNS[1:], row[1:], strict=True):
        if cell != ABSENT and not re.fullmatch(_NUMBER, cell):
            fix = f"write a number, or `{ABSENT}` where it was not measured"
            document.problem(AGAINST, f"`{name}`: {column} is `{cell}`", fix)
    before, now, change = (None if cell == ABSENT else cell for cell in row[1:])
    return {"metric": name, "before": before, "now": now, "change": change}


def _stage_cells(stage: StageRow) -> tuple[str, ...]:
    from warpsmith.reporting.format import seconds

    shares = (stage.tensor_pct, stage.dram_pct, stage.occupancy_pct)
    cells = (ABSENT if share is None else _short(share) for share in shares)
    return (stage.name, seconds(stage.seconds), *cells, stage.bottleneck, stage.issue)


def _chance_text(chance: Chance) -> str:
    entry = f" -- entry: {chance.entry}" if chance.entry else ""
    trigger = f"trigger: {chance.metric}={chance.value}"
    return f"{markdown.block(chance.name)} -- est. {_short(chance.gain_pct)} % -- {trigger}{entry}"


def _moved_cells(moved: Moved) -> tuple[str, ...]:
    def cell(value: Decimal | None, sign: str = "") -> str:
        return ABSENT if value is None else f"{value:{sign}}"

    return (moved.metric, cell(moved.before), cell(moved.now), cell(moved.change, "+"))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


FORM = Form(
    kind="profile",
    label="Profile",
    between="profiler to orchestrator",
    sections={
        STAGES: (
            f"a table with the columns {', '.join(STAGE_COLUMNS)} in this order, the slowest stage first;"
            f" a time as `41.2 us`, a bottleneck class as below, `{ABSENT}` where a share was not measured"
        ),
        BOTTLENECK: (
            "`### Bottleneck: CLASS` with one of memory, compute, latency, launch, at-the-limit;"
            " below it the root cause in at most two sentences"
        ),
        OPPORTUNITIES: (
            "one to three lines `1. NAME -- est. N % -- trigger: METRIC=VALUE -- entry: ID`, the largest estimate"
            f" first, the entry only where there is one; `{NONE}` only at-the-limit"
        ),
        AGAINST: f"a table with the columns {', '.join(MOVED_COLUMNS)}; `{NONE}` where no version is before it",
    },
    example=EXAMPLE,
    read=read,
    write=write,
)
"""The form."""

"""The Evidence section of an entry: its source line, its tables, and the row that the lab adds.

The lab writes every number; agents write none.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from math import exp, log

from pydantic import ValidationError

from warpsmith.core.base import Model
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import BEST, Aggregate, Evaluation
from warpsmith.core.knowledge import Evidence
from warpsmith.core.repo import RepoRecord
from warpsmith.knowledge import page
from warpsmith.knowledge.benchmark_record import BenchmarkRecord

COLUMNS = ("Config", "Before", "After", "Change", "Source")
"""Header of the table that rows are added to."""

_SOURCE_LINE = re.compile(r"Source type: (external and local|external|local)\s*")


class EvidenceRow(Model):
    """One row of the evidence table, as text."""

    config: str
    """Operator, version, number of workloads and device."""
    before: str
    """Value of the side compared with."""
    after: str
    """Value of the version."""
    change: str
    """Measured change, or the verdict."""
    source: str
    """Path of the record."""

    @classmethod
    def of(cls, record: RoundRecord, source: str) -> EvidenceRow:
        """Return the row of one round: geometric means over the
        timed workloads against the previous best version."""
        evaluation = record.evaluation
        if evaluation.port:
            config = f"{evaluation.definition}, {record.solution}, {evaluation.port.arch}, compiled only"
            figures = ", ".join(figure.text for figure in evaluation.port.figures)
            change = f"{evaluation.decision.verdict}: {figures or evaluation.status}"
            return cls(config=config, before="-", after="-", change=change, source=source)
        device = evaluation.provenance.machine.device
        config = f"{evaluation.definition}, {record.solution}, {len(evaluation.timed)} workloads, {device}"
        aggregate = evaluation.gain or evaluation.aggregate("reference")
        if aggregate is None:
            verdict = f"{evaluation.decision.verdict}: {evaluation.status}"
            return cls(config=config, before="-", after="-", change=verdict, source=source)
        before, after = _joules(evaluation) or _times(evaluation, aggregate.against)
        before = f"{before} ({aggregate.against})"
        return cls(config=config, before=before, after=after, change=_change(aggregate), source=source)

    @classmethod
    def of_change(cls, record: RepoRecord, source: str) -> EvidenceRow:
        """Return the row of one round in a repository.

        It holds geometric means over the benchmark's rows against
        the previous best commit, in the benchmark's unit if
        all rows have the same metric.
        """
        judgement = record.judgement
        device = judgement.machine.device if judgement.machine else "no known device"
        config = f"{record.campaign}, round {record.round}, {len(judgement.rows)} rows, {device}"
        metrics = {row.metric for row in judgement.rows}
        before = after = "-"
        if len(metrics) == 1:
            before = f"{_mean([row.before for row in judgement.rows]):.4g} {metrics.pop()} ({BEST})"
            after = f"{_mean([row.after for row in judgement.rows]):.4g}"
        change = (
            _change(judgement.aggregate)
            if judgement.aggregate
            else f"{record.verdict}: {judgement.decision.reason}"
        )
        return cls(config=config, before=before, after=after, change=change, source=source)

    @classmethod
    def of_benchmark(cls, record: BenchmarkRecord, source: str) -> tuple[EvidenceRow, ...]:
        """Return the rows of a benchmark: all comparisons of two variants of one case."""
        return tuple(
            cls(
                config=config,
                before=f"{before.us:.4g} us ({before.variant})",
                after=f"{after.us:.4g} us ({after.variant})",
                change=f"{before.us / after.us:.3g}x",
                source=source,
            )
            for config, before, after in record.comparisons()
        )

    @classmethod
    def read(cls, content: bytes, source: str) -> tuple[EvidenceRow, ...]:
        """Return the rows that a record's content allows.

        Raises:
            ValidationError: it is neither the record of a round nor of a benchmark.
        """
        try:
            return (cls.of(RoundRecord.model_validate_json(content), source),)
        except ValidationError:
            with contextlib.suppress(ValidationError):
                return (cls.of_change(RepoRecord.model_validate_json(content), source),)
            with contextlib.suppress(ValidationError):
                return cls.of_benchmark(BenchmarkRecord.model_validate_json(content), source)
            raise

    def render(self) -> str:
        """Render the row as a line of Markdown, with every cell escaped."""
        cells = (getattr(self, column.lower()) for column in COLUMNS)
        return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def source_types(section: str) -> set[str] | None:
    """Return the source types that the section's first line states; None if it states none."""
    first = _SOURCE_LINE.fullmatch(section.strip().split("\n", 1)[0])
    return set(first[1].split(" and ")) if first else None


def set_source_types(section: str, evidence: Iterable[Evidence]) -> str:
    """Return the section with a first line that matches the evidence."""
    line = f"Source type: {' and '.join(sorted({item.source for item in evidence}))}"
    first, _, rest = section.strip("\n").partition("\n")
    text = rest if first.startswith("Source type:") else section
    return f"{line}\n\n{text.strip()}".rstrip()


def add_row(section: str, row: EvidenceRow) -> str:
    """Return the section with the row at the end of its table, which is created if missing."""
    lines = section.splitlines()
    for (_, end), (header, *_) in parse_tables(section):
        if tuple(header) == COLUMNS:
            return "\n".join([*lines[:end], row.render(), *lines[end:]])
    head = [f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    return "\n".join([*lines, "", *head, row.render()])


def parse_tables(section: str) -> Iterator[tuple[tuple[int, int], list[list[str]]]]:
    """Yield every table of the section: first line and line after, then its rows of cells, header first."""
    rows: list[list[str]] = []
    span = (0, 0)
    tokens = page.parse_blocks(section)
    for index, token in enumerate(tokens):
        if token.type == "table_open" and token.map:
            rows, span = [], (token.map[0], token.map[1])
        elif token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(tokens[index + 1].content)
        elif token.type == "table_close":
            yield span, rows


def find_unsourced_row(section: str) -> str | None:
    """Return the first table row that has a figure but no source."""
    for _, (header, *body) in parse_tables(section):
        column = header.index("Source") if "Source" in header else None
        for cells in body:
            if any(re.search(r"\d", cell) for cell in cells) and (column is None or not cells[column].strip()):
                return " | ".join(cells)
    return None


def _change(aggregate: Aggregate) -> str:
    interval = aggregate.interval
    return f"{aggregate.speedup:.3g}x [{interval.low:.3g}, {interval.high:.3g}]"


def _times(evaluation: Evaluation, against: str) -> tuple[str, str]:
    pairs = [(c.other_seconds, t.seconds) for t in evaluation.timed.values() if (c := t.against(against))]
    before, after = map(_mean, zip(*pairs, strict=True))
    return f"{before * 1e6:.4g} us", f"{after * 1e6:.4g} us"


def _joules(evaluation: Evaluation) -> tuple[str, str] | None:
    """Return mean energy before and after if energy decided the verdict; None if time did."""
    readings = evaluation.energy.workloads.values() if evaluation.energy else ()
    pairs = [(reading.best_joules, reading.joules) for reading in readings if reading.best_joules]
    if not pairs:
        return None
    before, after = map(_mean, zip(*pairs, strict=True))
    return f"{before:.4g} J", f"{after:.4g} J"


def _mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def _cell(text: str) -> str:
    flat = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"([\\|<>`*\[\]])", r"\\\1", flat)

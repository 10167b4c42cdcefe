"""Tips: short reusable lessons for one operator, target and language, from all campaigns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warpsmith.core.campaign import RoundRecord
from warpsmith.reporting.format import Md, link
from warpsmith.reporting.templating import fill_template


@dataclass(frozen=True)
class TipSubject:
    """Subject of a page of tips."""

    target: str
    """Kind of device."""
    op: str
    """Name of the operator."""
    language: str
    """Language of the judged version."""

    @property
    def path(self) -> str:
        """Path of the page in the knowledge folder."""
        return f"experience/{self.target}/{self.op}/{self.language}.md"


@dataclass(frozen=True)
class TipRow:
    """A round that has a tip."""

    record: RoundRecord
    """Record of the round."""
    link: Md
    """Link to the record."""

    @property
    def subject(self) -> TipSubject:
        """Subject of the tip."""
        evaluation = self.record.evaluation
        return TipSubject(evaluation.target, evaluation.definition, evaluation.language)


def list_tips(records: Iterable[tuple[RoundRecord, str]], knowledge: str) -> list[TipRow]:
    """Return the rounds that have a tip, from records with their paths, in the order in which they closed.

    Paths and the folder `knowledge` are relative to the project.
    """
    pairs = [(record, path) for record, path in records if record.lesson.tip is not None]
    pairs.sort(key=lambda pair: (pair[0].closed, pair[0].campaign, pair[0].round))
    return [_tip_row(record, path, knowledge) for record, path in pairs]


def tips_page(subject: TipSubject, rows: Iterable[TipRow]) -> str:
    """Render the page of one subject."""
    subject_rows = [row for row in rows if row.subject == subject]
    return fill_template(
        "tips", op=subject.op, language=subject.language, target=subject.target, rows=subject_rows
    )


def _tip_row(record: RoundRecord, path: str, knowledge: str) -> TipRow:
    bare = TipRow(record, Md(""))
    folder = f"{knowledge}/{bare.subject.path}".rpartition("/")[0]
    return TipRow(record, link(f"{record.campaign}, round {record.round}", path, folder))

"""Tips: the short reusable lessons of one operator, target and language, over all campaigns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warpsmith.core.campaign import RoundRecord
from warpsmith.reporting.format import Md, link
from warpsmith.reporting.templating import fill


@dataclass(frozen=True)
class Subject:
    """What tips are about."""

    target: str
    """The device kind."""
    op: str
    """The operator."""
    language: str
    """The language of the version that was judged."""

    @property
    def path(self) -> str:
        """The page's path under the knowledge folder."""
        return f"experience/{self.target}/{self.op}/{self.language}.md"


@dataclass(frozen=True)
class Told:
    """A round with a tip."""

    record: RoundRecord
    """The round."""
    link: Md
    """To its record."""

    @property
    def subject(self) -> Subject:
        """What its tip is about."""
        evaluation = self.record.evaluation
        return Subject(evaluation.target, evaluation.definition, evaluation.language)


def told(records: Iterable[tuple[RoundRecord, str]], knowledge: str) -> list[Told]:
    """The rounds that have a tip, from records with their paths, in the order in which they closed.

    Paths and the folder `knowledge` are relative to the project.
    """
    found = [(record, path) for record, path in records if record.lesson.tip is not None]
    found.sort(key=lambda pair: (pair[0].closed, pair[0].campaign, pair[0].round))
    return [_told(record, path, knowledge) for record, path in found]


def page(subject: Subject, rows: Iterable[Told]) -> str:
    """The page of one subject."""
    mine = [row for row in rows if row.subject == subject]
    return fill("tips", op=subject.op, language=subject.language, target=subject.target, rows=mine)


def _told(record: RoundRecord, path: str, knowledge: str) -> Told:
    bare = Told(record, Md(""))
    folder = f"{knowledge}/{bare.subject.path}".rpartition("/")[0]
    return Told(record, link(f"{record.campaign}, round {record.round}", path, folder))

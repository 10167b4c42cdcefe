"""Page of the site: its place, its content, and the words by which a search finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from posixpath import relpath

from warpsmith.site import places
from warpsmith.site.markup import Html
from warpsmith.site.templating import fill_template

SECTIONS = (
    ("Results", places.FRONT),
    ("Knowledge", places.KNOWLEDGE),
    ("Symptoms", places.SYMPTOMS),
    ("Hardware", places.HARDWARE),
    ("Campaigns", places.CAMPAIGNS),
    ("Trust", places.TRUST),
)
"""Heading and place of the pages that every page leads to."""


@dataclass(frozen=True)
class SearchText:
    """What a search finds: a page, or a part of one."""

    title: str
    """Title."""
    place: str
    """Path in the site, with an anchor for a part."""
    kind: str
    """Kind of thing: `operator`, `entry`, `symptom`, `campaign`, `device`, `program`."""
    summary: str = ""
    """Sentence below the title."""
    tags: str = ""
    """Other names and properties."""
    applies: str = ""
    """Text about when it applies."""
    body: str = ""
    """All other text."""


@dataclass(frozen=True)
class SitePage:
    """One page of the site."""

    place: str
    """Path in the site."""
    title: str
    """Title, for the heading of the window and for links."""
    html: str
    """The whole page."""
    found_by: Sequence[SearchText] = field(default_factory=tuple)
    """What a search finds on it."""


def build_page(
    template: str, place: str, title: str, section: str = "", found_by: Sequence[SearchText] = (), **values: object
) -> SitePage:
    """Render a page.

    Args:
        template: name of the template.
        place: path in the site.
        title: title of the page.
        section: place of the section that it belongs to, which is marked in the navigation.
        found_by: what a search finds on it.
        values: values of the template.
    """
    start = str(PurePosixPath(place).parent)
    root = relpath(".", start) + "/"
    html = fill_template(
        template,
        title=title,
        place=place,
        section=section or place,
        navigation=SECTIONS,
        root="" if root == "./" else root,
        to=lambda target: Html(places.way(place, target)),
        **values,
    )
    return SitePage(place, title, html, tuple(found_by))

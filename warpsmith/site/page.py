"""Page of the site: its address, its content, and the words by which a search finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from posixpath import relpath

from warpsmith.site import addresses
from warpsmith.site.markup import Html
from warpsmith.site.templating import fill_page

SECTIONS = (
    ("Results", addresses.FRONT),
    ("Knowledge", addresses.KNOWLEDGE),
    ("Symptoms", addresses.SYMPTOMS),
    ("Hardware", addresses.HARDWARE),
    ("Campaigns", addresses.CAMPAIGNS),
    ("Trust", addresses.TRUST),
)
"""Heading and address of the pages that every page leads to."""


@dataclass(frozen=True)
class SearchText:
    """Text that a search finds: a page, or a part of one."""

    title: str
    """Title."""
    address: str
    """Path in the site, with an anchor for a part."""
    kind: str
    """Kind of thing: `operator`, `optimization`, `symptom`, `campaign`, `device`, `program`."""
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

    address: str
    """Path in the site."""
    title: str
    """Title, for the heading of the window and for links."""
    html: str
    """The whole page."""
    found_by: Sequence[SearchText] = field(default_factory=tuple)
    """Texts by which a search finds it."""


def build_page(
    template: str,
    address: str,
    title: str,
    section: str = "",
    found_by: Sequence[SearchText] = (),
    **values: object,
) -> SitePage:
    """Render a page.

    Args:
        template: name of the template.
        address: path in the site.
        title: title of the page.
        section: address of the section that it belongs to, which is marked in the navigation.
        found_by: what a search finds on it.
        values: values of the template.
    """
    start = str(PurePosixPath(address).parent)
    root = relpath(".", start) + "/"
    html = fill_page(
        template,
        title=title,
        address=address,
        section=section or address,
        navigation=SECTIONS,
        root="" if root == "./" else root,
        to=lambda target: Html(addresses.way(address, target)),
        **values,
    )
    return SitePage(address, title, html, tuple(found_by))

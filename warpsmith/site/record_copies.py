"""Records in a site: the table of those behind the figures of a page, and the packed copies."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Iterable
from urllib.parse import unquote

from warpsmith.reporting import format
from warpsmith.site import addresses
from warpsmith.site.citation import RECORD_PAGE, Archive, Citation
from warpsmith.site.markup import Html, element

PACKED = ".js"
"""Suffix of a packed copy."""

_NAMES = re.compile(r' data-sha256="([0-9a-f ]+)"')
_LINK = re.compile(rf'href="(?:\.\./)*{re.escape(RECORD_PAGE)}#([^"]+)"')


def add_record_table(html: str, archive: Archive, page: str | None) -> str:
    """Add to a page the path of each record that its figures name by digits of its hash.

    Args:
        html: the whole page.
        archive: the records of the site.
        page: path of the page in the site; None for a page that is one file, whose table has no links.

    Raises:
        KeyError: a figure names a record that is not in the archive.
    """
    records = archive.find_by_digits(digits for names in _NAMES.findall(html) for digits in names.split())
    if not records:
        return html
    summary = element("summary", f"{format.count_noun(len(records), 'record')} behind the figures of this page")
    rows = element("ul", [_row(citation, page) for citation in records])
    head, end, tail = html.rpartition("</main>")
    return f"{head}{element('details', summary, rows, class_='records')}\n{end}{tail}"


def linked_copies(pages: Iterable[str]) -> set[str]:
    """Return the paths of the copies that the links of pages lead to."""
    return {unquote(copy) for html in pages for copy in _LINK.findall(html)}


def pack_record(data: bytes) -> bytes:
    """Return a script that hands the record to its page, compressed: a page from disk may read no other file."""
    text = base64.b64encode(gzip.compress(data, mtime=0)).decode()
    return f'warpsmithRecord("{text}");\n'.encode()


def _row(citation: Citation, page: str | None) -> Html:
    path: str = citation.path
    if page is not None:
        path = element("a", path, href=addresses.way(page, citation.address))
    return element("li", element("code", citation.digits), " ", path)

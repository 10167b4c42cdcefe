"""Markdown of a project to HTML: no raw HTML, links only to what the site has, figures with their record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from markdown_it.token import Token

from warpsmith.site.citation import Citation
from warpsmith.site.markup import Html, escape, slug

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FIGURE = re.compile(
    r"[-+~]?\$?\d[\d.,]*(?:e[-+]?\d+)?\s?(?:x|%|[munp]?s|[TGMk]?B/s|[TGM]?(?:FL)?OP/s|[TGMk]i?B|[mu]?J)?"
    r"(?:\s(?:\[.*\]|\(.*\)|\+.*|to .*|, .*))?"
)
"""Text of a table's cell that is a figure: a number, with a unit, an interval or a remark in brackets."""

_NUMBER = re.compile(r"(?:Round )?0*(\d{1,9})(?=:|$)")
_RECORD_NAME = re.compile(r"[\w./-]+\.json")


@dataclass(frozen=True)
class Surroundings:
    """Surroundings of a page of Markdown: where its links lead, and which record its figures come from."""

    resolve: Callable[[str], str | None]
    """Address in the site of a relative link, seen from the page; None if the site does not have it."""
    find: Callable[[str], Citation | None]
    """Record that a path on the page names."""
    source: Citation | None = None
    """Record of the figures in tables whose rows name no other."""
    raise_headings: int = 0
    """Levels by which headings are lowered, so that they fit below those of the page."""
    numbered: Mapping[int, Citation] = field(default_factory=dict)
    """Record of each round or trial by its number, with which rows and headings about it begin."""
    prefix: str = ""
    """Text before the anchors of headings, where a page has several texts with the same headings."""


def render_markdown(text: str, around: Surroundings) -> Html:
    """Return a text as HTML. Raw HTML in it is shown as text, and images as their descriptions."""
    tokens = _without_empty_heads(_parser().parse(text))
    anchors: set[str] = set()
    section = around
    for index, token in enumerate(tokens):
        if token.type == "table_open":
            _prepare_table(tokens, index, section)
        elif token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + around.raise_headings)}"
            if token.type == "heading_open":
                token.attrSet("id", _unique(around.prefix + slug(_plain(tokens[index + 1])), anchors))
                section = replace(around, source=_numbered_record(tokens[index + 1], around) or around.source)
    for token in tokens:
        if token.type == "inline":
            token.children = list(_link_records(_inline(token.children or (), around), around))
    return Html(_parser().renderer.render(tokens, _parser().options, {}))


def render_text(text: str, around: Surroundings) -> Html:
    """Return a line of Markdown as HTML without a paragraph around it."""
    tokens = _parser().parseInline(text)
    for token in tokens:
        token.children = list(_inline(token.children or (), around))
    return Html(_parser().renderer.render(tokens, _parser().options, {}))


def plain_text(text: str) -> str:
    """Return the words of a Markdown text, without its marks, for searches."""
    words = []
    for token in _parser().parse(text):
        if token.type in ("fence", "code_block"):
            words.append(token.content)
        words.append("".join(child.content or " " * (child.type == "softbreak") for child in token.children or ()))
    return " ".join(filter(None, words))


def _inline(children: Iterable[Token], around: Surroundings) -> Iterable[Token]:
    lost = 0
    for child in children:
        if child.type == "image":
            child.type, child.tag, child.attrs, child.children = "text", "", {}, []
        elif child.type == "link_open":
            target = _target(str(child.attrs.get("href", "")), around)
            if target is None:
                lost += 1
                child.tag, child.attrs = "span", {"class": "unlinked"}
            else:
                child.attrs = {"href": target}
                if urlsplit(target).scheme:
                    child.attrs["rel"] = "noreferrer"
        elif child.type == "link_close" and lost:
            lost -= 1
            child.tag = "span"
        yield child


def _link_records(children: Iterable[Token], around: Surroundings) -> Iterable[Token]:
    """Make links of paths of records, which pages write as code or alone in a cell."""
    children = list(children)
    for child in children:
        alone = child.type == "text" and len(children) == 1
        name = child.content.strip()
        if (
            (alone or child.type == "code_inline")
            and _RECORD_NAME.fullmatch(name)
            and (url := around.resolve(name))
        ):
            child.content = "record" if alone else child.content
            yield Token("link_open", "a", 1, {"href": url, "title": name})
            yield child
            yield Token("link_close", "a", -1)
        else:
            yield child


def _target(href: str, around: Surroundings) -> str | None:
    parts = urlsplit(href)
    if parts.scheme in ("http", "https", "mailto"):
        return href
    if parts.scheme or parts.netloc:
        return None
    if not parts.path:
        return href or None
    return around.resolve(unquote(parts.path))


def _without_empty_heads(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens without the heads of tables that say nothing."""
    remaining: list[Token] = []
    for token in tokens:
        remaining.append(token)
        if token.type == "thead_close":
            start = max(index for index, other in enumerate(remaining) if other.type == "thead_open")
            if not any(other.content.strip() for other in remaining[start:] if other.type == "inline"):
                del remaining[start:]
    return remaining


def _prepare_table(tokens: Sequence[Token], start: int, around: Surroundings) -> None:
    """Align the columns of figures, and name on each row with figures the record that they come from."""
    rows: list[tuple[Token, list[tuple[Token, Token]]]] = []
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append((token, []))
        elif token.type in ("td_open", "th_open"):
            token.attrs = {}
            rows[-1][1].append((token, tokens[index + 1]))
    body = [cells for _, cells in rows if cells and cells[0][0].type == "td_open"]
    for column in range(max(map(len, body), default=0)):
        texts = [_plain(cells[column][1]).strip() for cells in body if column < len(cells)]
        stated = [text for text in texts if text not in ("", "-")]
        if stated and all(map(_FIGURE.fullmatch, stated)):
            for _, cells in rows:
                cells[column][0].attrs = {"class": "num"}
    for row, cells in rows:
        if any(_FIGURE.fullmatch(_plain(inline).strip()) for _, inline in cells):
            citation = _row_citation([inline for _, inline in cells], around) or around.source
            if citation:
                row.attrs = {"data-sha256": citation.digits}


def _row_citation(cells: Sequence[Token], around: Surroundings) -> Citation | None:
    """Return the record that a row of a table names: by a link, or by a path as text."""
    for cell in cells:
        links = [unquote(str(child.attrs.get("href", ""))) for child in cell.children or () if child.tag == "a"]
        for name in (*links, *_RECORD_NAME.findall(_plain(cell))):
            if citation := around.find(name):
                return citation
    return _numbered_record(cells[0], around)


def _numbered_record(token: Token, around: Surroundings) -> Citation | None:
    """Return the record of the round or trial whose number a heading or a cell begins with."""
    number = _NUMBER.match(_plain(token))
    return around.numbered.get(int(number[1])) if number else None


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _unique(anchor: str, anchors: set[str]) -> str:
    number, name = 0, anchor
    while name in anchors:
        number += 1
        name = f"{anchor}-{number}"
    anchors.add(name)
    return name


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", lambda *_: f"{SCROLL_OPEN}<table>\n")
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("text", lambda _self, tokens, index, *_: escape(tokens[index].content))
    return parser


SCROLL_OPEN = '<div class="scroll" tabindex="0" role="group" aria-label="Table">'
"""Box in which a table that is wider than the page scrolls."""

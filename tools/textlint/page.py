"""Parsed Markdown pages: front matter, links, inline code, code blocks and anchors, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from markdown_it import MarkdownIt

from tools.textlint.finding import line_of
from warpsmith.errors import BadEntry
from warpsmith.knowledge import page as pages

if TYPE_CHECKING:
    from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table")
_MATTER = re.compile(r"\A---[ \t]*\n.*?^---[ \t]*$", re.DOTALL | re.MULTILINE)
_ANCHOR = re.compile(r"""<\w+[^>]*\s(?:id|name)=["']([^"']+)""")


class Piece(NamedTuple):
    """The target of a link or the text of inline code."""

    line: int
    text: str


class Block(NamedTuple):
    """A code block."""

    line: int
    """Line of its first line of code."""
    language: str
    """First word after the fence in lower case; empty if there is none."""
    text: str


@dataclass
class MarkdownPage:
    """A Markdown file."""

    path: str
    """Path relative to the root."""
    text: str

    @cached_property
    def _matter(self) -> tuple[dict[str, Any], BadEntry | None]:
        try:
            return pages.parse_page(self.text, self.path).matter, None
        except BadEntry as error:
            return {}, error

    @property
    def matter(self) -> dict[str, Any]:
        """Front matter; empty if there is none, or if it does not parse."""
        return self._matter[0]

    @property
    def matter_error(self) -> BadEntry | None:
        """Error of the front matter; None if it parses."""
        return self._matter[1]

    def line_of_key(self, key: str) -> int:
        """Return the line of a key of the front matter; 1 if it is missing."""
        return line_of(self.text, f"\n{key}:") + (f"\n{key}:" in self.text)

    @cached_property
    def body(self) -> str:
        """Text with its front matter blanked, so that lines keep their numbers."""
        return _MATTER.sub(lambda match: "\n" * match[0].count("\n"), self.text)

    @cached_property
    def _tokens(self) -> list[Token]:
        return _PARSER.parse(self.body)

    def _inlines(self) -> Iterator[tuple[int, Token]]:
        for token in self._tokens:
            line = token.map[0] + 1 if token.map else 1
            for child in token.children or ():
                line += child.type in ("softbreak", "hardbreak")
                yield line, child

    @cached_property
    def links(self) -> list[Piece]:
        """Targets of links and images, as written."""
        targets = ((line, child.attrs.get("href") or child.attrs.get("src")) for line, child in self._inlines())
        return [Piece(line, str(target)) for line, target in targets if target]

    @cached_property
    def codes(self) -> list[Piece]:
        """Texts of inline code."""
        return [Piece(line, child.content) for line, child in self._inlines() if child.type == "code_inline"]

    @cached_property
    def blocks(self) -> list[Block]:
        """Code blocks, fenced and indented."""
        tokens = [token for token in self._tokens if token.type in ("fence", "code_block") and token.map]
        return [
            Block(
                token.map[0] + 1 + (token.type == "fence"), (token.info.split() or [""])[0].lower(), token.content
            )
            for token in tokens
            if token.map
        ]

    @cached_property
    def anchors(self) -> set[str]:
        """Anchors that a `#fragment` can name: headings by GitHub's rule, and ids in HTML."""
        titles = [
            "".join(part.content for part in following.children or () if part.type in ("text", "code_inline"))
            for token, following in zip(self._tokens, self._tokens[1:], strict=False)
            if token.type == "heading_open"
        ]
        return {*_slugs(titles), *_ANCHOR.findall(self.body)}


def _slugs(titles: list[str]) -> Iterator[str]:
    """Yield an anchor for each title: lower case, no punctuation,
    hyphens for spaces, a number for repeated titles."""
    counts: dict[str, int] = {}
    for title in titles:
        slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        count = counts.get(slug, 0)
        counts[slug] = count + 1
        yield f"{slug}-{count}" if count else slug

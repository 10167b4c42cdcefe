"""A Markdown page with front matter, taken apart. What a page must say is the business of its own module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import frontmatter.default_handlers as handlers
import yaml
from pydantic import BaseModel, ValidationError

from warpsmith.core.problem import problem
from warpsmith.errors import BadEntry

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARACTERS = 100_000
"""No page is longer; a longer file is not a page."""

_UNTRUSTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control, bidirectional, zero-width and tag characters: what a reader does not see but a model does."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Page:
    """A page: its front matter and its level-two sections."""

    matter: dict[str, Any]
    """The front matter, dates as text."""
    preamble: str
    """What stands before the first section."""
    sections: tuple[tuple[str, str], ...]
    """Heading and text of every section, in order; both without surrounding blank lines."""


def text_of(path: Path, shown: str) -> str:
    """The text of a page; raises BadEntry where it is no UTF-8 text or too long."""
    if path.stat().st_size > 4 * MAX_CHARACTERS:
        raise BadEntry(f"{shown} is longer than {MAX_CHARACTERS} characters; split it.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadEntry(f"{shown} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error


def parse(text: str, shown: str) -> Page:
    """Take a page apart; raises BadEntry, one sentence that begins with `shown`."""
    matter, body = split(text, shown)
    lines = body.splitlines()
    marks = [*_headings(body), (len(lines), len(lines), "")]
    sections = [
        (title, "\n".join(lines[end:following]).strip("\n"))
        for (_, end, title), (following, _, _) in pairwise(marks)
    ]
    return Page(matter, "\n".join(lines[: marks[0][0]]).strip(), tuple(sections))


def split(text: str, shown: str) -> tuple[dict[str, Any], str]:
    """Front matter and body of a page; raises BadEntry as `parse` does."""
    refuse_untrusted(text, shown)
    handler = handlers.YAMLHandler()
    try:
        if not handler.detect(text):
            raise ValueError
        head, body = handler.split(text)
    except ValueError:
        raise BadEntry(f"{shown} has no front matter; begin it with a block between two `---` lines.") from None
    return mapping(head, shown), body


def refuse_untrusted(text: str, shown: str) -> None:
    """Raise BadEntry for characters that a reader does not see, or for a text beyond the limit."""
    if len(text) > MAX_CHARACTERS:
        raise BadEntry(f"{shown} is longer than {MAX_CHARACTERS} characters; split it.")
    if found := _UNTRUSTED.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise BadEntry(f"{shown}:{line} holds the unseen character U+{ord(found[0]):04X}; remove it.")


def mapping(text: str, shown: str, what: str = "the front matter") -> dict[str, Any]:
    """A YAML mapping, dates as text; raises BadEntry, one sentence that names `what`."""
    try:
        read = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadEntry(f"{shown}:{line}: {what} does not parse: {error.problem}; mend it.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BadEntry(f"{shown}: {what} does not parse; mend it.") from error
    if not isinstance(read, dict):
        raise BadEntry(f"{shown}: {what} is no mapping; write `key: value` lines.")
    return read


def validate(model: type[M], data: object, shown: str) -> M:
    """`data` as a model; raises BadEntry with the first thing that is wrong."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise BadEntry(f"{shown}: {problem(error)}; mend it.") from error


def is_top_heading(token: Token) -> bool:
    """Whether a token opens a heading of level one or two of the page itself, not of a quote in it."""
    return token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2")


def blocks(text: str) -> list[Token]:
    """The blocks of a Markdown text, tables too, without a look inside paragraphs."""
    return _parser("inline", "text_join").parse(text)


def inlines(text: str) -> Iterator[Token]:
    """Every token of a Markdown text, those inside paragraphs too."""
    for token in _parser().parse(text):
        yield token
        yield from token.children or ()


def raw_html(text: str) -> str | None:
    """The first line of raw HTML outside code, which a rendered page would hide."""
    found = (token.content for token in inlines(text) if token.type in ("html_block", "html_inline"))
    return next((html.strip().split("\n", 1)[0] for html in found), None)


def _headings(body: str) -> list[tuple[int, int, str]]:
    """First line, line after, and title of every level-two heading."""
    # A search reads the headings of every entry: what cannot hold one is not looked into.
    tokens = _parser("inline", "text_join", "table", "reference").parse(body)
    return [
        (token.map[0], token.map[1], tokens[index + 1].content.strip())
        for index, token in enumerate(tokens)
        if is_top_heading(token) and token.tag == "h2" and token.map
    ]


@cache
def _parser(*without: str) -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable(without)


class _Loader(handlers.SafeLoader):  # type: ignore[misc, valid-type, unused-ignore]
    """The safe loader in C where there is one; dates stay text, and no key stands twice."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in handlers.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        for name, (key, _) in zip(names, node.value, strict=True):
            if names.count(name) > 1:
                raise yaml.MarkedYAMLError(problem=f"the key `{name}` stands twice", problem_mark=key.start_mark)
        return dict(super().construct_mapping(node, deep))

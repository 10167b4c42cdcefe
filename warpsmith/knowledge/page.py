"""Markdown pages with front matter: reading and parsing. The rules of each kind of page are in its own module."""

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

from warpsmith.core.text import describe_error
from warpsmith.errors import BadEntry

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARACTERS = 100_000
"""Largest number of characters of a page."""

_UNTRUSTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control, bidirectional, zero-width and tag characters: invisible to a reader, but not to a model."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Page:
    """A parsed page: its front matter and its level-two sections."""

    matter: dict[str, Any]
    """Front matter, with dates as text."""
    preamble: str
    """Text before the first section."""
    sections: tuple[tuple[str, str], ...]
    """Heading and text of every section, in order, without surrounding blank lines."""


def read_text(path: Path, label: str) -> str:
    """Read the text of a page; raise BadEntry if it is not UTF-8 text or too long."""
    if path.stat().st_size > 4 * MAX_CHARACTERS:
        raise BadEntry(f"{label} is longer than {MAX_CHARACTERS} characters; split it.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadEntry(f"{label} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error


def parse_page(text: str, label: str) -> Page:
    """Parse a page; raise BadEntry with one sentence that begins with `label`."""
    matter, body = split_front_matter(text, label)
    lines = body.splitlines()
    headings = [*_headings(body), (len(lines), len(lines), "")]
    sections = [
        (title, "\n".join(lines[end:following]).strip("\n"))
        for (_, end, title), (following, _, _) in pairwise(headings)
    ]
    return Page(matter, "\n".join(lines[: headings[0][0]]).strip(), tuple(sections))


def split_front_matter(text: str, label: str) -> tuple[dict[str, Any], str]:
    """Split a page into front matter and body; raise BadEntry as `parse_page` does."""
    refuse_untrusted(text, label)
    handler = handlers.YAMLHandler()
    try:
        if not handler.detect(text):
            raise ValueError
        head, body = handler.split(text)
    except ValueError:
        raise BadEntry(f"{label} has no front matter; begin it with a block between two `---` lines.") from None
    return parse_mapping(head, label), body


def refuse_untrusted(text: str, label: str) -> None:
    """Raise BadEntry for invisible characters, or for a text that is too long."""
    if len(text) > MAX_CHARACTERS:
        raise BadEntry(f"{label} is longer than {MAX_CHARACTERS} characters; split it.")
    if character := _UNTRUSTED.search(text):
        line = text.count("\n", 0, character.start()) + 1
        raise BadEntry(f"{label}:{line} contains the invisible character U+{ord(character[0]):04X}; remove it.")


def parse_mapping(text: str, label: str, part: str = "the front matter") -> dict[str, Any]:
    """Parse a YAML mapping, with dates as text; raise BadEntry with one sentence that names `part`."""
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadEntry(f"{label}:{line}: {part} does not parse: {error.problem}; fix it.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BadEntry(f"{label}: {part} does not parse; fix it.") from error
    if not isinstance(data, dict):
        raise BadEntry(f"{label}: {part} is not a mapping; write `key: value` lines.")
    return data


def validate(model: type[M], data: object, label: str) -> M:
    """Return `data` as a model; raise BadEntry with the first error."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise BadEntry(f"{label}: {describe_error(error)}; fix it.") from error


def is_top_heading(token: Token) -> bool:
    """Return whether a token opens a heading of level one or two that is not inside a quote."""
    return token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2")


def parse_blocks(text: str) -> list[Token]:
    """Return the block tokens of a Markdown text, tables included, without parsing the text inside paragraphs."""
    return _parser("inline", "text_join").parse(text)


def iter_inline_tokens(text: str) -> Iterator[Token]:
    """Yield every token of a Markdown text, including those inside paragraphs."""
    for token in _parser().parse(text):
        yield token
        yield from token.children or ()


def find_raw_html(text: str) -> str | None:
    """Return the first line of raw HTML outside code, which a rendered page would hide; None if there is none."""
    lines = (token.content for token in iter_inline_tokens(text) if token.type in ("html_block", "html_inline"))
    return next((html.strip().split("\n", 1)[0] for html in lines), None)


def _headings(body: str) -> list[tuple[int, int, str]]:
    """Return first line, line after, and title of every level-two heading."""
    # A search reads the headings of every entry, so rules that cannot produce a heading are switched off.
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
    """YAML's safe loader, in C if available; dates stay text, and no key may appear twice."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in handlers.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        for name, (key, _) in zip(names, node.value, strict=True):
            if names.count(name) > 1:
                raise yaml.MarkedYAMLError(problem=f"the key `{name}` appears twice", problem_mark=key.start_mark)
        return dict(super().construct_mapping(node, deep))

"""A contract's text taken apart by its headings, lists and tables; what is wrong is gathered, never raised.

Imports nothing heavy at the top: a hook reads a contract after every agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from warpsmith.core.line import line
from warpsmith.driver.contracts.text import NONE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


@dataclass(frozen=True)
class Form:
    """One kind of contract: how its text is headed, what its sections hold, how it is read and written."""

    kind: str
    """`profile`, `task`, `version` or `review`."""
    label: str
    """What its heading begins with."""
    between: str
    """Who hands it to whom."""
    sections: dict[str, str]
    """Section to what must be written there, in order."""
    example: str
    """A valid text."""
    read: Callable[[Document], dict[str, Any]]
    """The fields of the model; what is wrong is added to the document's problems."""
    write: Callable[[Any], str]
    """The text of a model."""


@dataclass
class Block:
    """One block of a section: a paragraph, a table, a list's item, or something else."""

    type: str
    """`paragraph`, `table`, `item`, or the Markdown token that does not belong there."""
    lines: list[list[str]]
    """Rows of cells; a paragraph and an item have one row of one cell."""


@dataclass
class Document:
    """A contract's text by its sections."""

    form: Form
    """Which contract it is."""
    heading: str = ""
    """What follows the label in the heading."""
    rests: dict[str, str] = field(default_factory=dict)
    """Section to what follows its name in the heading: `memory` of `### Bottleneck: memory`."""
    blocks: dict[str, list[Block]] = field(default_factory=dict)
    """Section to its content."""
    problems: list[str] = field(default_factory=list)
    """What is missing or wrong, one line each."""

    def problem(self, section: str, what: str, fix: str = "") -> None:
        """Note what is wrong in a section; without `fix`, the form says what to write."""
        fix = fix or f"write {self.form.sections[section]}"
        self.problems.append(line(f"{section}: {what}. Fix: {fix}."))

    def paragraph(self, section: str) -> str:
        """The one text of a section; empty, with a problem, where it is not there."""
        found = self.blocks.get(section)
        if found is None:
            return ""
        self._refuse(section, "paragraph")
        text = line(" ".join(b.lines[0][0] for b in found if b.type == "paragraph"))
        if not text:
            self.problem(section, "it says nothing")
        return text

    def items(self, section: str, none: bool = False) -> list[str]:
        """The items of a section's list; `none` allows `None.` in their stead."""
        found = self.blocks.get(section)
        if found is None or (none and self._says_none(section)):
            return []
        self._refuse(section, "item")
        texts = [b.lines[0][0] for b in found if b.type == "item"]
        if not texts:
            self.problem(section, "it lists nothing")
        return texts

    def table(self, section: str, columns: tuple[str, ...], none: bool = False) -> list[list[str]]:
        """The rows of a section's table below its header; `none` allows `None.` in its stead."""
        found = self.blocks.get(section)
        if found is None or (none and self._says_none(section)):
            return []
        self._refuse(section, "table")
        tables = [b.lines for b in found if b.type == "table"]
        wanted = f"write the header `| {' | '.join(columns)} |`, then `{'| --- ' * len(columns)}|`"
        if not tables:
            self.problem(section, "there is no table", wanted)
            return []
        for header, *rows in tables:
            if [cell.casefold() for cell in header] != [column.casefold() for column in columns]:
                self.problem(section, f"the columns are {', '.join(header)}", wanted)
                return []
            if not rows:
                self.problem(section, "the table has no row")
        return [row for _, *rows in tables for row in rows]

    def _says_none(self, section: str) -> bool:
        found = self.blocks[section]
        return len(found) == 1 and found[0].lines[0][0].rstrip(".").casefold() == NONE.rstrip(".").casefold()

    def _refuse(self, section: str, wanted: str) -> None:
        strange = dict.fromkeys(b.type for b in self.blocks[section] if b.type != wanted)
        if strange:
            self.problem(section, f"it holds {' and '.join(map(_named, strange))}, where {_named(wanted)} belongs")


def read(form: Form, text: str) -> Document:
    """Take a text apart; prose before the contract's heading is left out."""
    document = Document(form)
    tokens = _parser().parse(text)
    starts = [i for i, t in enumerate(tokens) if _level(t) == 2 and _is_headed(tokens[i + 1].content, form.label)]
    if len(starts) != 1:
        _no_heading(document, tokens, len(starts))
        return document
    document.heading = line(tokens[starts[0] + 1].content.partition(":")[2])
    _split(document, _until_next(tokens[starts[0] + 3 :]))
    for name in form.sections:
        if name not in document.blocks:
            document.problem(name, "the section is missing", f"add `### {name}`: {form.sections[name]}")
    order = [name for name in form.sections if name in document.blocks]
    if order != list(document.blocks):
        names = ", ".join(form.sections)
        document.problems.append(f"sections: they stand in another order. Fix: put them in this one: {names}.")
    return document


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Off: what would hide text, and underlined headings, which a stray `---` makes of any line.
    off = ["inline", "text_join", "html_block", "reference", "lheading"]
    return MarkdownIt("commonmark").enable("table").disable(off)


def _level(token: Token) -> int:
    """The level of a heading of the text itself; 0: the token opens none."""
    return int(token.tag[1]) if token.type == "heading_open" and token.level == 0 else 0


def _is_headed(content: str, label: str) -> bool:
    return content.partition(":")[0].strip().casefold() == label.casefold()


def _no_heading(document: Document, tokens: list[Token], count: int) -> None:
    label, first = document.form.label, document.form.example.partition("\n")[0]
    if count > 1:
        what, fix = f"`## {label}:` stands {count} times", "keep one"
    elif any(t.type in ("fence", "code_block") and f"## {label}:" in t.content for t in tokens):
        what, fix = f"`## {label}:` stands inside a code block", "write the contract without the fence"
    else:
        what, fix = f"there is no `## {label}:`", f"begin the contract with a line such as `{first}`"
    document.problems.append(f"heading: {what}. Fix: {fix}.")


def _until_next(tokens: list[Token]) -> list[Token]:
    """The tokens up to the next heading of the first or second level."""
    ends = (i for i, token in enumerate(tokens) if _level(token) in (1, 2))
    return tokens[: next(ends, len(tokens))]


def _split(document: Document, tokens: list[Token]) -> None:
    known = {name.casefold(): name for name in document.form.sections}
    marks = [i for i, token in enumerate(tokens) if _level(token) >= 3]
    if list(_blocks(tokens[: marks[0] if marks else len(tokens)])):
        fix = "put it before the `## ` heading, or into a section"
        document.problems.append(f"heading: text stands between it and the first section. Fix: {fix}.")
    for start, end in pairwise([*marks, len(tokens)]):
        title, _, rest = tokens[start + 1].content.partition(":")
        name = known.get(title.strip().casefold())
        if name is None or name in document.blocks:
            what = "it stands twice" if name else "it is no section of this contract"
            fix = "keep one" if name else f"the sections are {', '.join(document.form.sections)}"
            document.problems.append(line(f"{title.strip()}: {what}. Fix: {fix}."))
            continue
        document.rests[name] = line(rest)
        document.blocks[name] = list(_blocks(tokens[start + 3 : end]))


def _blocks(tokens: list[Token]) -> Iterator[Block]:
    """The blocks of a section; a rule between them says nothing and is left out."""
    position = 0
    while position < len(tokens):
        end = _close(tokens, position)
        inside = tokens[position : end + 1]
        kind = inside[0].type
        if kind == "paragraph_open":
            yield Block("paragraph", [[line(inside[1].content)]])
        elif kind == "table_open":
            yield Block("table", list(_rows(inside)))
        elif kind in ("bullet_list_open", "ordered_list_open"):
            yield from _items(inside[1:-1])
        elif kind != "hr":
            yield Block(kind, [[line(inside[0].content)]])
        position = end + 1


def _items(tokens: list[Token]) -> Iterator[Block]:
    position = 0
    while position < len(tokens):
        end = _close(tokens, position)
        inside = list(_blocks(tokens[position + 1 : end]))
        alone = len(inside) == 1 and inside[0].type == "paragraph"
        yield Block("item" if alone else "nested", inside[0].lines if alone else [[""]])
        position = end + 1


def _close(tokens: list[Token], start: int) -> int:
    """Where the block that begins at `start` ends."""
    depth = 0
    for position in range(start, len(tokens)):
        depth += tokens[position].nesting
        if depth == 0:
            return position
    return len(tokens) - 1


def _rows(tokens: list[Token]) -> Iterator[list[str]]:
    row: list[str] = []
    for token in tokens:
        if token.type == "tr_open":
            row = []
        elif token.type == "inline":
            row.append(line(token.content))
        elif token.type == "tr_close":
            yield row


def _named(kind: str) -> str:
    names = {
        "paragraph": "a paragraph",
        "item": "a list of `- ` lines",
        "table": "a table",
        "nested": "an item that is empty or more than one line of text",
        "fence": "a code block",
        "code_block": "a code block",
        "blockquote_open": "a quote",
        "heading_open": "a heading",
    }
    return names.get(kind, f"`{kind}`")

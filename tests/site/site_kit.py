"""What tests of the site need: pages parsed, their links and figures, the search, and the values of records."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from warpsmith.site.citation import RECORD_PAGE
from warpsmith.site.record_copies import PACKED

VOID = {"meta", "link", "input", "br", "img", "hr", "line", "rect", "circle", "path", "polyline"}
_OPTIONAL = {"p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option"}
_BLOCKS = {
    "p",
    "div",
    "section",
    "table",
    "ul",
    "ol",
    "dl",
    "pre",
    "h1",
    "h2",
    "h3",
    "h4",
    "figure",
    "details",
    "aside",
}


@dataclass
class Figure:
    """A figure on a page: what it shows, and the record that its markup or that around it names by its hash."""

    text: str
    record: str
    """Paths in the page's table of records, a line each; none for digits that the table does not have."""
    sha256: str
    """Digits of their hashes, with spaces between."""
    pointer: str
    value: str


@dataclass
class ParsedPage(HTMLParser):
    """One page: ids, links, figures, scripts, and what is wrong with its markup."""

    path: Path
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    handlers: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    records: dict[str, str] = field(default_factory=dict)
    """Path of each record in the page's table by the digits of its hash."""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        text = self.path.read_text(encoding="utf-8")
        _, _, table = text.rpartition('<details class="records">')
        self.records |= dict(re.findall(r"<li><code>(\w+)</code> (?:<a [^>]*>)?([^<]*)", table))
        self.feed(text)
        self.faults += [f"<{tag}> is not closed" for tag, *_ in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        attributes = {name: value or "" for name, value in attrs}
        if len(set(names)) != len(names):
            self.faults.append(f"<{tag}> repeats an attribute")
        if (id := attributes.get("id")) is not None:
            if id in self.ids:
                self.faults.append(f"the id {id} is repeated")
            self.ids.add(id)
        if tag in _BLOCKS and any(open_tag == "p" for open_tag, *_ in self._open):
            self.faults.append(f"<{tag}> inside a paragraph")
        if tag == "a" and any(open_tag == "a" for open_tag, *_ in self._open):
            self.faults.append("a link inside a link")
        self.handlers += [name for name in names if name.startswith("on")]
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        self.loads += [attributes[name] for name in ("src",) if name in attributes]
        if tag == "link":
            self.loads.append(attributes["href"])
        if tag == "a" and "data-value" in attributes:
            self._note(attributes["data-value"], attributes, "data-value")
        if tag not in VOID:
            self._open.append((tag, attributes, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        for _, _, texts in self._open[-2:]:
            texts.append(data)
        if self._open and self._open[-1][0] == "script" and data.strip():
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self._open or self._open[-1][0] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1][0] if self._open else 'nothing'}")
            return
        _, attributes, texts = self._open[-1]
        text = "".join(texts).strip()
        if tag == "data":
            self._note(text, attributes, "value")
        elif tag == "td" and attributes.get("class") == "num" and any(map(str.isdigit, text)):
            inner = [figure for figure in self.figures[-1:] if figure.text and figure.text in text]
            if not inner and not text.isdigit():
                self._note(text, attributes, "value")
        self._open.pop()

    def _note(self, text: str, attributes: dict[str, str], value: str) -> None:
        around = [own for _, own, _ in reversed(self._open) if "data-sha256" in own]
        own = attributes if "data-sha256" in attributes else around[0] if around else {}
        sha256 = own.get("data-sha256", "")
        record = "\n".join(self.records.get(digits, "") for digits in sha256.split())
        self.figures.append(Figure(text, record, sha256, attributes.get("data-at", ""), attributes.get(value, "")))


def parse_site(folder: Path) -> dict[Path, ParsedPage]:
    """Every page of a site by its file, except copies of records."""
    files = (path for path in folder.rglob("*.html") if "records" not in path.relative_to(folder).parts)
    return {path.resolve(): ParsedPage(path) for path in files}


def broken_links(pages: dict[Path, ParsedPage]) -> list[str]:
    """Links of pages that lead nowhere; those to other hosts are only counted on to be https."""
    broken = []
    for path, page in pages.items():
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme:
                if parts.scheme not in ("https", "http") or link in page.loads:
                    broken.append(f"{path.name}: {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if target.name == RECORD_PAGE and anchor.startswith("records/"):
                target, anchor = target.parent / f"{anchor}{PACKED}", ""
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                broken.append(f"{path.name}: {link}")
    return broken


def record_copy(site: Path, record: str) -> bytes | None:
    """The content of a record in a site; None if the site does not have it."""
    for folder in (site / "records", site / "records" / "shipped"):
        if (copy := folder / f"{record}{PACKED}").is_file():
            return unpack_record(copy)
    return None


def unpack_record(copy: Path) -> bytes:
    """The content of a packed record."""
    return gzip.decompress(base64.b64decode(copy.read_text().split('"')[1]))


def value_at(site: Path, record: str, pointer: str) -> Any:
    """The value at a JSON pointer in a record, or in the front matter of a page."""
    text = (record_copy(site, record) or b"").decode()
    data = json.loads(text) if record.endswith(".json") else yaml.safe_load(text.split("---\n")[1])
    for key in pointer.strip("/").split("/"):
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def wrong_hashes(site: Path, pages: dict[Path, ParsedPage]) -> list[str]:
    """Figures whose record is not in the site, or has another hash than they say."""
    named = {
        pair
        for page in pages.values()
        for figure in page.figures
        for pair in zip(figure.record.split("\n"), figure.sha256.split() or [""], strict=True)
    }
    return [
        f"{record} {sha256}"
        for record, sha256 in sorted(named)
        if not record
        or (data := record_copy(site, record)) is None
        or len(sha256) < 12
        or not hashlib.sha256(data).hexdigest().startswith(sha256)
    ]

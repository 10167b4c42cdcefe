"""Formatting of numbers for people, and escaping of foreign text so that it cannot break a Markdown page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from math import floor, log10
from posixpath import relpath
from urllib.parse import quote

from warpsmith.core import spend
from warpsmith.core.campaign import ScreenedSpeedup
from warpsmith.core.evaluation import Aggregate, Comparison, Interval

ABSENT = "-"
"""Placeholder for a value that a record does not have."""

MAX_TEXT = 600
"""Largest number of characters of one foreign text on a page; the record has the full text."""

_SPECIAL = re.compile(
    r"[\\`*\[\]|~]"
    r"|<(?=[A-Za-z/!?])"  # a tag or an autolink
    r"|&(?=[A-Za-z#])"  # a character reference
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; inside a name an underscore is none
    r"|^(?:#(?=#{0,5}(?:\s|$))|[-+](?=\s|$)|-(?=-)|=(?==*$)|>)"  # a heading, list, rule or quote
    r"|^\d{1,9}[.)](?=\s|$)"  # a numbered list
)
"""Characters that have a meaning in Markdown, in a text of one line; all others stay readable in the source."""


class Md(str):
    """Text that is already Markdown; every other string is escaped before it reaches a page."""

    __slots__ = ()


def digits(value: float, significant: int = 3) -> str:
    """Format `value` with a number of significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    decimals = significant - 1 - floor(log10(abs(value)))
    rounded = round(value, decimals)  # rounding may carry: 9.999 is 10.0
    decimals = significant - 1 - floor(log10(abs(rounded)))
    return f"{rounded:.{max(decimals, 0)}f}"


def seconds(value: float | None) -> str:
    """Format a time in seconds: `812 ns`, `12.3 us`, `4.56 ms`, `1.50 s`."""
    return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)))


def bandwidth(value: float | None) -> str:
    """Format bytes per second: `3.21 TB/s`."""
    return _scaled(value, (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("B/s", 1.0)))


def rate(value: float | None) -> str:
    """Format operations per second: `12.3 TFLOP/s`."""
    return _scaled(value, (("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6), ("FLOP/s", 1.0)))


def joules(value: float | None) -> str:
    """Format an energy in joules: `1.23 J`, `45.6 mJ`, `789 uJ`."""
    return _scaled(value, (("J", 1.0), ("mJ", 1e-3), ("uJ", 1e-6)))


def minutes(value: int | None) -> str:
    """Format a duration in minutes: `47 min`, `3 h 05 min`."""
    if value is None:
        return ABSENT
    return f"{value} min" if value < 60 else f"{value // 60} h {value % 60:02d} min"


def dollars(value: float | None) -> str:
    """Format US dollars: `$12.35`, `$0.0031`."""
    return ABSENT if value is None else spend.format_usd(value)


def percent(value: float | None) -> str:
    """Format a share as percent: `91.2 %`."""
    return ABSENT if value is None else f"{value * 100:.1f} %"


def gain(value: float | None) -> str:
    """Format a gain as signed percent: `+12.3 %`."""
    return ABSENT if value is None else f"{value * 100:+.1f} %"


def metric(value: float | None) -> str:
    """Format a metric's value in its own unit: `65536`, `82.25`."""
    return ABSENT if value is None else f"{value:.6g}"


def change(value: float | None) -> str:
    """Format a signed change in a metric's own unit: `+15`, `-0.125`."""
    return ABSENT if value is None else f"{value:+.6g}"


def share_of_bound(value: float | None) -> str:
    """Format an error as a share of its bound; up to 1 passes."""
    return ABSENT if value is None else f"{value:.3g}"


def factor(value: float | None) -> str:
    """Format a ratio: `1.83x`."""
    return ABSENT if value is None else f"{_ratio(value)}x"


def interval(value: Interval) -> Md:
    """Format the interval of a ratio: `[1.79, 1.87]`."""
    return Md(f"[{_ratio(value.low)}, {_ratio(value.high)}]")


def speedup(value: Aggregate | Comparison | ScreenedSpeedup | None) -> Md:
    """Format a speedup with its interval: `1.83x [1.79, 1.87]`."""
    return Md(ABSENT if value is None else f"{factor(value.speedup)} {interval(value.interval)}")


def plain(text: str, longest: int = MAX_TEXT) -> str:
    """Return text as one line without control, bidirectional or unencodable characters, shortened to `longest`."""
    visible = "".join(" " if character.isspace() else character for character in text if _is_visible(character))
    line = " ".join(visible.split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def inline(text: str) -> Md:
    """Escape foreign text so that Markdown shows it unchanged, in a paragraph or a table cell."""
    return Md(_SPECIAL.sub(_escape_match, plain(text)))


def code(text: str) -> Md:
    """Return a code span, or escaped text if a code span cannot contain it."""
    line = plain(text)
    return inline(line) if not line or "`" in line or "|" in line else Md(f"`{line}`")


def link(label: str, path: str, start: str) -> Md:
    """Return a link from the folder `start` to `path`, both relative to the project, with slashes."""
    return Md(f"[{inline(label)}]({quote(relpath(path, start))})")


def comma_list(texts: Iterable[str]) -> Md:
    """Join texts with commas, each escaped unless it is already Markdown."""
    return Md(", ".join(text if isinstance(text, Md) else inline(text) for text in texts) or ABSENT)


def count_noun(number: int, noun: str) -> str:
    """Format a count with its noun: `1 round`, `3 rounds`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def key_values(values: Mapping[str, object]) -> Md:
    """Join names with their values, sorted by name: `python 3.11, torch 2.13`."""
    return comma_list(f"{name} {values[name]}" for name in sorted(values))


def _escape_match(match: re.Match[str]) -> str:
    # No backslash before a tag: a lenient parser would still read the tag.
    return "&lt;" if match[0] == "<" else f"{match[0][:-1]}\\{match[0][-1]}"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.1 else digits(value)


def _scaled(value: float | None, units: tuple[tuple[str, float], ...]) -> str:
    if value is None:
        return ABSENT
    if value == 0:
        return f"0 {units[0][0]}"
    # Round up at half a unit of the third digit: 999.6 us is 1.00 ms.
    unit, size = next((u for u in units if abs(value) >= u[1] * 0.9995), units[-1])
    return f"{digits(value / size)} {unit}"


def _is_visible(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")

"""Numbers as people read them, and foreign text as Markdown that cannot break the page it stands in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from math import floor, log10
from posixpath import relpath
from urllib.parse import quote

from warpsmith.core import spend
from warpsmith.core.evaluation import Aggregate, Comparison, Interval

ABSENT = "-"
"""Stands where a record holds no value."""

LONGEST = 600
"""Characters of one foreign text that a page shows; the record has the rest."""

_SPECIAL = re.compile(
    r"[\\`*\[\]|~]"
    r"|<(?=[A-Za-z/!?])"  # a tag or an autolink
    r"|&(?=[A-Za-z#])"  # a character reference
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; inside a name an underscore is none
    r"|^(?:#(?=#{0,5}(?:\s|$))|[-+](?=\s|$)|-(?=-)|=(?==*$)|>)"  # a heading, list, rule or quote
    r"|^\d{1,9}[.)](?=\s|$)"  # a numbered list
)
"""What Markdown would read as more than text, in a text of one line; all else stays for who reads the source."""


class Md(str):
    """Text that is Markdown already; every other string is escaped before it reaches a page."""

    __slots__ = ()


def digits(value: float, significant: int = 3) -> str:
    """`value` with that many significant digits, never in scientific form."""
    if value == 0:
        return "0"
    decimals = significant - 1 - floor(log10(abs(value)))
    rounded = round(value, decimals)  # rounding may carry: 9.999 is 10.0
    decimals = significant - 1 - floor(log10(abs(rounded)))
    return f"{rounded:.{max(decimals, 0)}f}"


def seconds(value: float | None) -> str:
    """A time given in seconds: `812 ns`, `12.3 us`, `4.56 ms`, `1.50 s`."""
    return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)))


def bandwidth(value: float | None) -> str:
    """Bytes a second: `3.21 TB/s`."""
    return _scaled(value, (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("B/s", 1.0)))


def rate(value: float | None) -> str:
    """Operations a second: `12.3 TFLOP/s`."""
    return _scaled(value, (("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6), ("FLOP/s", 1.0)))


def joules(value: float | None) -> str:
    """Energy given in joules: `1.23 J`, `45.6 mJ`, `789 uJ`."""
    return _scaled(value, (("J", 1.0), ("mJ", 1e-3), ("uJ", 1e-6)))


def minutes(value: int | None) -> str:
    """A duration given in minutes: `47 min`, `3 h 05 min`."""
    if value is None:
        return ABSENT
    return f"{value} min" if value < 60 else f"{value // 60} h {value % 60:02d} min"


def dollars(value: float | None) -> str:
    """US dollars: `$12.35`, `$0.0031`."""
    return ABSENT if value is None else spend.dollars(value)


def percent(value: float | None) -> str:
    """A share: `91.2 %`."""
    return ABSENT if value is None else f"{value * 100:.1f} %"


def gain(value: float | None) -> str:
    """A gain over something: `+12.3 %`."""
    return ABSENT if value is None else f"{value * 100:+.1f} %"


def metric(value: float | None) -> str:
    """A metric's value in its own unit: `65536`, `82.25`."""
    return ABSENT if value is None else f"{value:.6g}"


def change(value: float | None) -> str:
    """A signed change in a metric's own unit: `+15`, `-0.125`."""
    return ABSENT if value is None else f"{value:+.6g}"


def share_of_bound(value: float | None) -> str:
    """An error as a share of its bound: up to 1 passes."""
    return ABSENT if value is None else f"{value:.3g}"


def factor(value: float | None) -> str:
    """A ratio: `1.83x`."""
    return ABSENT if value is None else f"{_ratio(value)}x"


def interval(value: Interval) -> Md:
    """The ends of an interval of a ratio: `[1.79, 1.87]`."""
    return Md(f"[{_ratio(value.low)}, {_ratio(value.high)}]")


def speedup(value: Aggregate | Comparison | None) -> Md:
    """A speedup with its interval: `1.83x [1.79, 1.87]`."""
    return Md(ABSENT if value is None else f"{factor(value.speedup)} {interval(value.interval)}")


def plain(text: str, longest: int = LONGEST) -> str:
    """One line without control, bidirectional or unencodable characters, shortened to `longest`."""
    kept = "".join(" " if character.isspace() else character for character in text if _shown(character))
    line = " ".join(kept.split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def inline(text: str) -> Md:
    """Foreign text as Markdown that shows it as it is, in a paragraph or a table's cell."""
    return Md(_SPECIAL.sub(_escaped, plain(text)))


def code(text: str) -> Md:
    """A code span; plain escaped text where a code span could not hold it."""
    line = plain(text)
    return inline(line) if not line or "`" in line or "|" in line else Md(f"`{line}`")


def link(label: str, path: str, start: str) -> Md:
    """A link from the folder `start` to `path`, both relative to the project, with slashes."""
    return Md(f"[{inline(label)}]({quote(relpath(path, start))})")


def listed(texts: Iterable[str]) -> Md:
    """Several texts in one line, each escaped unless it is Markdown already."""
    return Md(", ".join(text if isinstance(text, Md) else inline(text) for text in texts) or ABSENT)


def counted(number: int, noun: str) -> str:
    """A number of things: `1 round`, `3 rounds`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def named(values: Mapping[str, object]) -> Md:
    """Names with their values in order: `python 3.11, torch 2.13`."""
    return listed(f"{name} {values[name]}" for name in sorted(values))


def _escaped(found: re.Match[str]) -> str:
    # No backslash before a tag: a lax reader would take the tag for one.
    return "&lt;" if found[0] == "<" else f"{found[0][:-1]}\\{found[0][-1]}"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.1 else digits(value)


def _scaled(value: float | None, units: tuple[tuple[str, float], ...]) -> str:
    if value is None:
        return ABSENT
    if value == 0:
        return f"0 {units[0][0]}"
    # Half a unit of the third digit below: 999.6 us is 1.00 ms.
    unit, size = next((u for u in units if abs(value) >= u[1] * 0.9995), units[-1])
    return f"{digits(value / size)} {unit}"


def _shown(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")

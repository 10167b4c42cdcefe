"""Figures in texts: measured results such as `9.7x`, `12 %` or `3.5 us`; and words that name a verdict.

Sizes and counts (`16 KiB`, `4 warps`, `16 x 16`, `unrolled 4x`) describe the code and are no results.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from warpsmith.core.claims.factors import find_factors

_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+,\d{1,2}(?!\d)|\d+)?(?:\.\d+|(?<=\d))(?:[eE][+-]?\d+)?"
_UNITS = {
    "ratio": r"[xX\u00d7](?!\w)|-?fold\b"
    r"|times(?=\s+(?:faster|slower|quicker|higher|lower|more|less|better|as|the)\b)",
    "percent": r"%|percent\b|per\s+cent\b|percentage\s+points?\b|pct\b",
    "s": r"(?:[num\u03bc]?s(?:ecs?)?|(?:nano|micro|milli)?sec(?:ond)?s?|min(?:ute)?s?|hours?)(?!\w)",
    "B/s": r"(?i:[kmgtp]?i?b|(?:[kmgtp]|kilo|mega|giga|tera)?bytes)(?:/s(?:ec)?\b|ps\b|\s(?:per|a)\ssecond)",
    "FLOP/s": r"(?:[kKMGTP]?FLOPS?|[kKmMgGtTpP][fF]lops?)(?:/s)?\b|[GTP]OPS\b",
    "J": r"[num\u03bck]?J\b|joules?\b",
    "W": r"[mk]?W\b|[wW]atts?\b",
    "1/s": r"(?:tok(?:en)?s?|images?|samples?|rows?|steps?|it(?:erations?)?)(?:/s| per second| a second)",
}
"""Dimension to the pattern of its units."""
_TO = r"-|\u2013|\u2014|->|\u2192|\+-|\u00b1|to|or|vs\.?|versus|(?(both)and|(?!))"
_FIGURE = re.compile(
    rf"(?<![\w.,])(?:(?P<both>between\s+)?(?P<low>{_NUMBER})\s*(?:{_TO})\s*[+-]?)?"
    rf"(?P<value>{_NUMBER})\+?\s{{0,2}}-?(?:"
    + "|".join(f"(?P<u{i}>{pattern})" for i, pattern in enumerate(_UNITS.values()))
    + rf")(?:\s*\[[+-]?(?P<from>{_NUMBER})[^\],]*,\s*[+-]?(?P<to>{_NUMBER})[^\],]*\])?"
)
_MARKUP = re.compile(r"\*\*|`|(?<!\w)_(?=[\d.])")
_UNROLLED = re.compile(r"\bunroll\w*\s+(?:by\s+)?$|^[\s-]unroll", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:[-*+]\s|#|\||\d+[.)]\s|$)")
_STATEMENT = re.compile(r"(?<=[.;!?])\s+")
_VERDICTS = {
    accepted: re.compile(
        rf"\b(?:was|got|were)\s+{words}\b(?!\s+(?:by|as|for|in)\b)"
        rf"|(?:^|[,:(])\s*{words}\s*(?=[.,;)]|$)"
        rf"|\bverdict\s+(?:is|was)\s+{verdict}"
    )
    for accepted, words, verdict in ((True, r"rolled\s+back", "ROLLBACK"), (False, "accepted", "ACCEPT"))
}
"""Words for the opposite verdict, by whether a round was accepted."""
_OTHER_ROUND = re.compile(r"\bv\d+(?:_\w+)?\b|\bround \d+\b|\bbest version\b|\bearlier\b|\bbefore\b|\bbaseline\b")


_SLOWER = re.compile(r"\s*(?:as\s+)?(?:slow|longer|worse|behind|more\s+time)")
"""Words after a factor that make it one of time, not of speed."""


class TextFigure(NamedTuple):
    """A figure in a text."""

    text: str
    """Number and unit as written."""
    dimension: str
    """`ratio` of speeds, `slowdown`, `percent`, or a unit of the SI."""
    value: float
    """Value in percent, or in the dimension's unit."""
    half: float
    """Half a unit of the last digit that was written."""


def parse_figures(text: str) -> list[TextFigure]:
    """Return the figures in a text, in order; both ends of a range or an interval have its unit."""
    text = _MARKUP.sub("", unicodedata.normalize("NFKC", text))
    figures = [
        (start, TextFigure(words, kind, float(number), _half_digit(number)))
        for start, words, number in find_factors(text)
        for kind in [_factor_kind(words, text[start + len(words) :])]
    ]
    for match in _FIGURE.finditer(text):
        if _describes_code(match):
            continue
        index, dimension = next((i, name) for i, name in enumerate(_UNITS) if match[f"u{i}"])
        unit, scale = match[f"u{index}"], _scale(dimension, match[f"u{index}"])
        if dimension == "ratio":
            dimension = _factor_kind("", text[match.end() :])
        gap = text[match.end("value") : match.start(f"u{index}")]
        for number in filter(None, map(match.group, ("low", "value", "from", "to"))):
            plain = _plain(number)
            figure = TextFigure(
                f"{number}{gap}{unit}", dimension, float(plain) * scale, _half_digit(plain) * scale
            )
            figures.append((match.start("value"), figure))
    return [figure for _, figure in sorted(figures, key=lambda entry: entry[0])]


def _factor_kind(words: str, following: str) -> str:
    """Return `slowdown` for a factor that the words themselves or those after it call slower, else `ratio`."""
    return "slowdown" if "slow" in words.lower() or _SLOWER.match(following) else "ratio"


def _describes_code(match: re.Match[str]) -> bool:
    """Return True for sizes such as `16 x 16`, and for unrolling."""
    if not match["u0"] or not match["value"].isdigit():
        return False
    before, after = match.string[: match.start()], match.string[match.end() :]
    is_size = match[0].endswith((" x", " \u00d7")) and re.match(r"\s\d+(?![\d.,]*\s?%)", after)
    return bool(is_size or _UNROLLED.search(before) or _UNROLLED.match(after))


def _plain(number: str) -> str:
    """Return a number without commas that group its thousands, and with a point for a decimal comma."""
    return number.replace(",", "." if re.search(r",\d{1,2}(?!\d)", number) else "")


def contradicting_words(text: str, accepted: bool) -> str | None:
    """Return the words of a text that say the opposite of the verdict; None if there are none.

    A sentence that names another version or round may speak of that one.
    """
    for statement in split_statements(text):
        match = _VERDICTS[accepted].search(statement)
        if match and not _OTHER_ROUND.search(statement):
            return match[0].strip(" ,:(")
    return None


def split_statements(text: str) -> Iterator[str]:
    """Yield the statements of a text: its sentences and clauses, and each line of a table as a whole.

    A line that begins no paragraph, item, heading or row continues the one before it.
    """
    paragraphs: list[str] = []
    for line in text.splitlines():
        continues = bool(paragraphs) and paragraphs[-1].strip() and not _BULLET.match(line)
        if continues and not paragraphs[-1].lstrip().startswith(("|", "#")):
            paragraphs[-1] += " " + line.strip()
        else:
            paragraphs.append(line)
    for paragraph in paragraphs:
        yield from (paragraph,) if paragraph.lstrip().startswith("|") else _STATEMENT.split(paragraph)


def _half_digit(number: str) -> float:
    """Return half a unit of a number's last digit."""
    digits, _, exponent = number.lower().partition("e")
    return float(0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2])))


def _scale(dimension: str, unit: str) -> float:
    """Return the factor from a unit to its dimension's unit."""
    small = {"n": 1e-9, "u": 1e-6, "\u03bc": 1e-6, "m": 1e-3}
    if dimension in ("ratio", "percent", "1/s"):
        return 1.0
    if dimension == "s":
        words = {"min": 60.0, "hour": 3600.0, "nano": 1e-9, "micro": 1e-6, "milli": 1e-3}
        return next((v for word, v in words.items() if unit.startswith(word)), small.get(unit[:1], 1.0))
    if dimension in ("J", "W"):
        return {**small, "k": 1e3}.get(unit[:-1], 1.0)
    prefix = unit[0].upper()
    if unit[:2].lower() == prefix.lower() + "i" and prefix in _PREFIXES:
        return float(1024 ** ("KMGTP".index(prefix) + 1))
    return _PREFIXES.get(prefix, 1.0)

"""Factors that a text states without a unit: `a speedup of 9.7`, `x9.7`, `twice as fast`."""

from __future__ import annotations

import re
from collections.abc import Iterator

_COUNTS = {
    "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0, "nine": 9.0,
    "ten": 10.0,
}  # fmt: skip
_WORDS = {
    r"twice(?=\s+(?:as|the)\s)": 2.0,
    r"thrice(?=\s+(?:as|the)\s)": 3.0,
    r"doubl(?:es|ed|ing)(?=\s+the\s+(?:speed|throughput|bandwidth|run\s?time|latency)\b)": 2.0,
    r"(?:half|halves|halved|halving)(?=\s+the\s+(?:speed|throughput|bandwidth|latency|(?:run\s?)?time)\b)": 0.5,
    r"an?\s+order\s+of\s+magnitude(?=\s+(?:faster|slower|better|worse|more|less)\b)": 10.0,
    **{
        rf"{word}(?:-?fold\b(?!\s+loop)|\s+times(?=\s+(?:faster|slower|as|higher|lower|the)\b))": value
        for word, value in _COUNTS.items()
    },
}
"""Pattern of words to their factor."""
_WORDED = [(re.compile(rf"\b{pattern}", re.IGNORECASE), value) for pattern, value in _WORDS.items()]
_NUMBER = r"(\d+(?:\.\d+)?)(?![\d.,]*\d)(?!\s{0,2}-?[\w%\u00d7])"
_BARE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bspeed-?up(?:\s+(?:of|by|is|was|about))*[\s:=]*(?:a\s+factor\s+of\s+)?{_NUMBER}",
        rf"\b(?:faster|slower|quicker|sped\s+up|speeds\s+up|slowed\s+down)\s+by\s+(?:a\s+factor\s+of\s+)?{_NUMBER}",
        r"(?<![\w.,])[x\u00d7](\d+\.\d+)(?![\w.])",
    )
]


def find_factors(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the place, the words and the number of each factor that has no unit.

    A number in words is as precise as half of it: `twice` may stand for 1.6 or for 2.9.
    """
    for pattern in _BARE:
        for match in pattern.finditer(text):
            yield match.start(), match[0], match[1]
    for pattern, value in _WORDED:
        for match in pattern.finditer(text):
            yield match.start(), match[0], f"{value:g}"

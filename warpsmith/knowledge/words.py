"""Text as a search compares it: lower case, one spelling, words set apart by single spaces."""

from __future__ import annotations

import re

_IDLE = frozenset(
    """
    a an and are as at be been but by can do does for from gpu has have how i in into is it its kernel kernels
    me my no not of on or our so than that the their then there this to too use very was we what when which
    while why with yet you
    """.split()  # noqa: SIM905 - one word a line would fill the screen
)
"""Words that tell no symptom from another."""


class _Gaps(dict[int, int | str]):
    """Any character but letters and digits to a space; filled as characters are met, ten times as fast as `re`."""

    def __missing__(self, code: int) -> int | str:
        self[code] = code if chr(code).isalnum() else " "
        return self[code]


_GAPS = _Gaps()
_BRITISH = re.compile(r"is(?=(?:e|ed|es|er|ing|ation)\b)")


def plain(text: str) -> str:
    """Lower case, words set apart by one space, one space around the whole; `-ise` is spelt `-ize`."""
    words = " ".join(text.casefold().translate(_GAPS).split())
    return f" {_BRITISH.sub('iz', words)} "


def telling(text: str) -> tuple[str, ...]:
    """The words of a text that say something, each once; any number is `#`."""
    words = ("#" if word.isdigit() else word for word in plain(text).split())
    return tuple(dict.fromkeys(word for word in words if word not in _IDLE))


def same(one: str, other: str) -> bool:
    """Whether two words are one, or the longer begins with the shorter: `spill`, `spills`."""
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) > 2 and longer.startswith(shorter))

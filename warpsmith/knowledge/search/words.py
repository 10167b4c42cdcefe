"""Text normalization for searches: lower case, one spelling, words separated by single spaces."""

from __future__ import annotations

import re

_STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can do does for from gpu has have how i in into is it its kernel kernels
    me my no not of on or our so than that the their then there this to too use very was we what when which
    while why with yet you
    """.split()  # noqa: SIM905 - one word a line would fill the screen
)
"""Words that do not distinguish one symptom from another."""


_QUESTION_WORDS = frozenset(
    """
    about after all also always any because before best better between could does each every fast faster
    find get gets give gives good help if instead just keep keeps know least less lot lots make makes many
    more most much need needs one only or please result results run runs same should show slow slower some
    still take takes than try two under until up use used using want wants way well work works would write
    wrong
    """.split()  # noqa: SIM905 - as above
)
"""Words that do not distinguish one entry from another either, but may one symptom."""

IDLE_WORDS = _STOP_WORDS | _QUESTION_WORDS
"""Words that say nothing about what is searched for among entries."""


class _SeparatorTable(dict[int, int | str]):
    """Translation table that maps every character except letters and digits to a space.

    It is filled as characters occur, which is ten times as fast as `re`.
    """

    def __missing__(self, code: int) -> int | str:
        self[code] = code if chr(code).isalnum() else " "
        return self[code]


_SEPARATORS = _SeparatorTable()
_BRITISH = re.compile(r"is(?=(?:e|ed|es|er|ing|ation)\b)")


def normalize_text(text: str) -> str:
    """Return the text in lower case, its words and both ends
    separated by one space, with `-ise` spelled `-ize`."""
    words = " ".join(text.casefold().translate(_SEPARATORS).split())
    return f" {_BRITISH.sub('iz', words)} "


def significant_words(text: str) -> tuple[str, ...]:
    """Return the significant words of a text, each once; every number becomes `#`."""
    words = ("#" if word.isdigit() else word for word in normalize_text(text).split())
    return tuple(dict.fromkeys(word for word in words if word not in _STOP_WORDS))


def is_significant(phrase: str) -> bool:
    """Return whether a normalized phrase has a word that tells what is searched for; bare numbers do not."""
    return any(not word.isdigit() and word not in IDLE_WORDS for word in phrase.split())


def words_match(word: str, other: str) -> bool:
    """Return whether two words are equal or the longer one
    begins with the shorter one, as `spills` and `spill`."""
    shorter, longer = sorted((word, other), key=len)
    return word == other or (len(shorter) > 2 and longer.startswith(shorter))

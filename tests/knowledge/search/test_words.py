"""Texts compare as a reader would."""

from __future__ import annotations

import pytest

from warpsmith.knowledge.search import words


def test_plain():
    assert (
        words.normalize_text("L2_hit\u2014Rate: 40 %,\nVectorised; noise") == " l2 hit rate 40 vectorized noize "
    )


def test_telling_words_once_and_numbers_alike():
    assert words.significant_words("The DRAM is at 40%, the DRAM!") == ("dram", "#")
    assert words.significant_words("the kernel on a GPU") == ()


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("spill", "spills", True),
        ("spills", "spill", True),
        ("l2", "l2", True),
        ("l2", "l20", False),
        ("a", "b", False),
    ],
)
def test_same(one, other, alike):
    assert words.words_match(one, other) is alike

"""Texts compare as a reader would."""

from __future__ import annotations

import pytest

from warpsmith.knowledge import words


def test_plain():
    assert words.plain("L2_hit\u2014Rate: 40 %,\nVectorised; noise") == " l2 hit rate 40 vectorized noize "


def test_telling_words_once_and_numbers_alike():
    assert words.telling("The DRAM is at 40%, the DRAM!") == ("dram", "#")
    assert words.telling("the kernel on a GPU") == ()


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
    assert words.same(one, other) is alike

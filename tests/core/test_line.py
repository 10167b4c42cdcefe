"""Foreign text as one line."""

from __future__ import annotations

import pytest

from warpsmith.core.line import to_one_line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  as it \t is ", "as it is"),
        ("a\n\nCampaign: another\r\nRound: 9", "a Campaign: another Round: 9"),
        ("a\x1b[31mred\x00\u202eb\u2028c\ud800", "a [31mred b c"),
        (" \n ", ""),
    ],
)
def test_a_text_is_one_line_of_what_prints(text: str, said: str) -> None:
    assert to_one_line(text) == said
    assert to_one_line(said) == said

"""Foreign text as one line, and the wording of what a model refuses."""

from __future__ import annotations

from typing import Any, Self

import pytest
from pydantic import ValidationError, model_validator

from warpsmith.core.base import Model, Positive
from warpsmith.core.text import PartCounter, describe_error, to_one_line


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


class Part(Model):
    size: Positive


class Whole(Model):
    parts: tuple[Part, ...]

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.parts:
            raise ValueError("no parts\nat all")
        return self


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"parts": [{"size": 1}, {"size": 0}]}, "`parts.1.size`: Input should be greater than 0"),
        ({"parts": [{}]}, "the key `parts.0.size` is missing"),
        ({"parts": [{"size": 1}], "colour": "red"}, "unknown key `colour`"),
        ({"parts": []}, "no parts at all"),
    ],
)
def test_the_first_thing_that_a_model_refused(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(data)
    assert describe_error(caught.value) == says


def test_any_other_error_in_one_line() -> None:
    assert describe_error(OSError("no such\n  file")) == "no such file"


def test_each_part_tells_the_share_before_it():
    told = []
    parts = PartCounter(told.append, 4)
    parts.begin("a", 2)
    parts.begin("b", 2)
    parts.begin("one more than expected")
    parts.end("done")
    assert told == ["a", "b", "one more than expected", "done"]
    assert [line.share for line in told] == [0.0, 0.5, 0.99, 1.0]

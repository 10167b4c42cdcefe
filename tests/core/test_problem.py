"""One line for whatever was refused, with its place."""

from __future__ import annotations

from typing import Any, Self

import pytest
from pydantic import ValidationError, model_validator

from warpsmith.core.base import Model, Positive
from warpsmith.core.problem import describe_error


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

"""What a verdict rests on: named, whether it ran or not."""

import pytest
from pydantic import ValidationError

from warpsmith.core import trust
from warpsmith.core.trust import Check

RAN = Check(name="files", ran=True, how="Landlock 7")
LACKS = Check(name="memcheck", ran=False, how="no GPU")


def test_the_level_follows_from_what_was_in_force():
    assert trust.level([RAN]) == "full"
    assert trust.level([RAN, LACKS]) == "reduced"
    assert trust.level([]) == "not stated"
    assert trust.missing([LACKS, RAN]) == (LACKS,)


def test_a_check_says_how():
    with pytest.raises(ValidationError, match="how it ran"):
        Check(name="files", ran=False, how="")

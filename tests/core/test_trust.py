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


def test_texts_name_what_was_not_in_force_and_why():
    assert trust.short_text([RAN, LACKS]) == "reduced, without memcheck"
    assert trust.full_text([RAN, LACKS]) == "reduced: memcheck (no GPU)"
    assert trust.short_text([RAN]) == trust.full_text([RAN]) == "full"
    assert trust.short_text([]) == trust.full_text([]) == "not stated"


def test_the_load_of_the_machine_is_that_of_the_idle_check():
    busy = Check(name=trust.MACHINE_IDLE, ran=False, how="other processes keep 2.0 cores busy")
    assert trust.machine_load([RAN, busy]) == "other processes keep 2.0 cores busy"
    assert trust.machine_load([RAN]) is None


def test_a_check_says_how():
    with pytest.raises(ValidationError, match="how it ran"):
        Check(name="files", ran=False, how="")

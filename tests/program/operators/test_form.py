"""Calls that one definition can cover."""

from __future__ import annotations

from warpsmith.program.operators import call_form
from warpsmith.program.operators.models import CallArgument, CallSignature, RecordedTensor

SEEN = RecordedTensor(shape=(3, 4), strides=(4, 1), dtype="float32")


def call(*lengths: int, seconds: float) -> CallSignature:
    """A call with lists of such lengths, all tensors alike."""
    arguments = [
        CallArgument(name=name, element=element, tensor=SEEN)
        for name, length in zip("abc", lengths, strict=False)
        for element in range(length)
    ]
    return CallSignature(arguments=tuple(arguments), outputs=(SEEN,), calls=1, seconds=seconds)


def test_lists_of_other_lengths_are_another_form_also_where_they_add_up_to_as_many():
    found = call_form.choose_form("aten::two_lists", [call(2, 1, seconds=2), call(1, 2, seconds=1)])
    assert [part.slot.input for part in found.arguments] == ["a0", "a1", "b0"]
    assert len(found.signatures) == len(found.uncovered) == 1


def test_calls_with_too_many_tensors_are_left_out_however_long_they_take():
    found = call_form.choose_form(
        "aten::cat", [call(call_form.MAX_TENSORS, seconds=9), call(call_form.MAX_TENSORS - 1, seconds=1)]
    )
    assert len(found.arguments) == call_form.MAX_TENSORS - 1
    assert len(found.uncovered) == 1


def test_a_name_is_taken_whole_before_it_is_taken_as_a_part():
    calls = [call(2, seconds=2), call(1, seconds=1)]
    assert [call_form.call_name(one) for one in calls] == ["3x4+3x4-float32", "3x4-float32"]
    assert call_form.choose_form("aten::cat", calls, "3x4-float32").signatures == (calls[1],)
    assert call_form.choose_form("aten::cat", calls, "3x4").signatures == (calls[0],)

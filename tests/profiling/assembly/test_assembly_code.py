"""Loops are found by what dominates what: a jump back alone is none."""

from __future__ import annotations

from warpsmith.profiling.assembly.code import Instruction, find_loops


def code(*jumps: tuple[int | None, bool]) -> list[Instruction]:
    """One instruction an address: where it may jump to, and whether the next one may follow."""
    return [
        Instruction(address=place, opcode="x", operands="", line=place + 1, target=target, falls=falls)
        for place, (target, falls) in enumerate(jumps)
    ]


STEP, END = (None, True), (None, False)


def found(*jumps: tuple[int | None, bool], waits: int = 0) -> list[tuple[list[int], int | None, bool]]:
    bodies = find_loops(code(*jumps), lambda body: len(body) <= waits)
    return [([i.address for i in body.code], body.line, body.innermost) for body in bodies]


def test_a_loop_and_the_line_of_its_jump_back():
    assert found(STEP, STEP, STEP, (1, True), END) == [([1, 2, 3], 4, True)]


def test_a_loop_in_a_loop():
    assert found(STEP, STEP, (2, True), (1, True), END) == [([1, 2, 3], 4, False), ([2], 3, True)]


def test_a_loop_that_is_left_out_hides_no_other():
    assert found(STEP, STEP, (2, True), (1, True), END, waits=1) == [([1, 2, 3], 4, True)]


def test_code_out_of_line_that_jumps_back_is_no_loop():
    # 0 branches to 3, which comes back to 1: no path runs anything twice.
    assert found((3, True), STEP, END, (1, False)) == []


def test_a_body_in_two_pieces():
    # The slow way at 4 belongs to the loop of 1 and 2; 3 does not.
    assert found(STEP, (4, True), (1, True), END, (2, False)) == [([1, 2, 4], 3, True)]


def test_two_jumps_back_to_one_place_are_one_loop():
    assert found(STEP, (1, True), (1, True), END) == [([1, 2], 3, True)]


def test_what_no_jump_leads_to_is_an_entry_of_its_own():
    assert found(END, STEP, (1, True), END) == [([1, 2], 3, True)]
    # A circle that nothing enters.
    assert found(END, (2, False), (1, False)) == [([1, 2], 3, True)]

"""What differs between steps, and at which operator that begins."""

from __future__ import annotations

from pathlib import Path

from warpsmith.program.capture.events import OperatorEvent, OperatorInput, UserLine, compare_steps, is_user_file

HERE, THERE = UserLine("a.py", 1, "step"), UserLine("a.py", 2, "step")


def event(name="aten.mul", place=HERE, *, inside=((4,),), outside=(), carried=False, out=(4,), numbers=(), by=""):
    inputs = [OperatorInput(shape, None, False) for shape in inside]
    inputs += [OperatorInput(shape, address, carried) for shape, address in outside]
    return OperatorEvent(name, place, tuple(inputs), (out,), tuple(numbers), "", by)


def told(*steps) -> list[tuple[str, int]]:
    return [(one.kind, one.line) for one in compare_steps(steps)]


def test_equal_steps_differ_in_nothing():
    step = [event(), event("aten.sum", THERE, out=())]
    assert told(step, step, step) == []


def test_a_number_that_changes():
    (found,) = compare_steps([[event(numbers=(2.0, n))] for n in (1.0, 2.0, 3.0, 4.0)])
    assert (found.kind, found.description) == ("changing-number", "a number that changes: 1, 2, 3, …")


def test_numbers_of_an_optimizer_are_its_step_count_or_its_rate():
    assert told(*[[event(numbers=(n,), by="AdamW")] for n in (1, 2)]) == [("optimizer", 1)]
    assert told(*[[event(numbers=(n,), by="SGD")] for n in (1, 2)]) == [("learning-rate", 1)]


def test_a_shape_is_told_where_it_first_differs():
    steps = [[event("aten.slice", out=(n,)), event(place=THERE, inside=((n,),), out=(n,))] for n in (1, 2)]
    assert told(*steps) == [("changing-shape", 1)]


def test_an_input_from_outside_of_another_shape():
    assert told(*[[event(outside=[((n,), 64)])] for n in (1, 2)]) == [("changing-shape", 1)]


def test_what_is_put_to_itself_grows():
    steps = [[event("aten.cat", outside=[((n,), 64 * n)], carried=True, out=(n + 4,))] for n in (4, 8)]
    assert told(*steps) == [("growing", 1)]


def test_an_input_that_lies_elsewhere():
    assert told(*[[event(outside=[((4,), at)])] for at in (64, 128)]) == [("new-address", 1)]


def test_an_input_that_the_step_before_made_is_read_at_an_old_address():
    assert told(*[[event(outside=[((4,), 64)], carried=True)] for _ in range(2)]) == [("new-address", 1)]


def test_what_was_told_is_not_told_again_of_what_reads_it_too():
    carried = {"outside": [((4,), 64)], "carried": True}
    assert told(*[[event(**carried), event("aten.mm", THERE, **carried)] for _ in range(2)]) == [
        ("new-address", 1)
    ]


def test_a_view_of_another_size_is_told_once():
    def step(size: int) -> list[OperatorEvent]:
        cut = event("aten.slice", outside=[((8,), 64)], out=(size,))
        return [cut, event("aten.mm", THERE, outside=[((size,), 64)], out=(size,))]

    assert told(step(1), step(2)) == [("changing-shape", 1)]


def test_state_of_an_optimizer_may_be_its_own():
    assert told(*[[event(outside=[((4,), 64)], carried=True, by="SGD")] for _ in range(2)]) == []


def test_an_operator_that_runs_in_some_steps_only():
    with_it, without = [event(), event("aten.relu", THERE), event()], [event(), event()]
    assert told(with_it, without, with_it) == [("changing-path", 2)]


def test_steps_of_two_kinds_are_each_compared_with_their_own():
    even = [event(numbers=(1,)), event("aten.relu", THERE)]
    odd = [event(numbers=(5,))]
    assert told(even, odd, even, odd) == [("changing-path", 2)]


def test_the_users_files_are_below_the_folder_and_not_installed(tmp_path):
    import typer

    import warpsmith.errors as ours

    assert is_user_file(str(tmp_path / "a.py"), [str(tmp_path)])
    assert not is_user_file(str(tmp_path) + "-b/a.py", [str(tmp_path)])
    for module in (ours, typer):
        assert not is_user_file(module.__file__, [str(Path(module.__file__).parents[1])])

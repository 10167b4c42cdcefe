"""Capture attempts: which modules are tried and chosen, and when a replay is what eager gives."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from graph_programs import CONTROLS, PLANTED, Planted

from warpsmith.errors import SolutionFailed
from warpsmith.program.capture import attempt as capture_attempt
from warpsmith.program.capture import replay as graph_replay
from warpsmith.program.capture.attempt import CaptureAttempts
from warpsmith.program.capture.models import CaptureAttempt, GraphModule
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.process.runner import Runner


def module(name: str, share: float, alike: str = "", reason: str = "") -> GraphModule:
    return GraphModule(name=name, kind="Block", calls=1, share=share, alike=alike or name, reason=reason)


MODEL = [
    module("model", 0.9),
    module("model.tokens", 0.01),
    module("model.blocks.0", 0.4, "block"),
    module("model.blocks.0.attention", 0.2, "attention"),
    module("model.blocks.0.feed", 0.2, "feed"),
    module("model.blocks.1", 0.4, "block"),
    module("model.blocks.1.attention", 0.2, "attention"),
    module("model.blocks.1.feed", 0.2, "feed"),
    module("head", 0.05),
]


def names(found) -> list[str]:
    return [one.name for one in found]


def test_the_largest_modules_that_fit_cover_the_step():
    assert names(capture_attempt.cover_step(MODEL, lambda one: True)) == ["model", "head"]
    assert names(capture_attempt.cover_step(MODEL, lambda one: one.name != "model")) == [
        "model.tokens", "model.blocks.0", "model.blocks.1", "head",
    ]  # fmt: skip
    assert capture_attempt.cover_step(MODEL, lambda one: False) == []


def test_a_module_that_cannot_be_called_alone_gives_way_to_what_is_in_it():
    modules = [module("model", 0.9, reason="called with keyword arguments (x)"), module("model.inner", 0.8)]
    assert names(capture_attempt.cover_step(modules, lambda one: True)) == ["model.inner"]


class Tried:
    """Attempts that record what they are called with."""

    def __init__(self, bad: set[str], together: bool = True) -> None:
        self.asked: list[list[str]] = []
        self.bad, self.together = bad, together

    def try_modules(self, names: list[str]) -> CaptureAttempt:
        self.asked.append(names)
        good = not set(names) & self.bad and (len(names) == 1 or self.together)
        return CaptureAttempt(what=", ".join(names), captured=good, error="" if good else "no")


def test_each_kind_of_module_is_tried_once_and_all_together_last():
    attempts = Tried({"model", "model.blocks.0"})
    covered, told, notes = capture_attempt.try_parts(attempts, MODEL)  # type: ignore[arg-type]
    blocks = [f"model.blocks.{block}.{part}" for block in (0, 1) for part in ("attention", "feed")]
    chosen = [*blocks, "head"]
    assert attempts.asked[:2] == [["model"], ["model.blocks.0"]]
    assert sorted(attempts.asked[2:-1]) == [["head"], ["model.blocks.0.attention"], ["model.blocks.0.feed"]]
    assert attempts.asked[-1] == names(covered) == chosen
    assert len(told) == len(attempts.asked)
    assert notes == ["not tried, too small or too many: model.tokens"]


def test_a_module_whose_replay_would_be_wrong_is_not_tried():
    attempts = Tried(set())
    covered, *_ = capture_attempt.try_parts(attempts, MODEL, {"model.blocks.1.feed"})  # type: ignore[arg-type]
    assert names(covered) == ["model.blocks.0", "model.blocks.1.attention", "head"]
    assert ["model"] not in attempts.asked


def test_modules_that_do_not_go_together_are_said_so():
    *_, notes = capture_attempt.try_parts(Tried({"model"}, together=False), MODEL)  # type: ignore[arg-type]
    assert "not all of them together" in notes[-1]


def step(*numbers: float) -> list[dict[str, list[float]]]:
    return [{"value": list(numbers)}]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (step(1.0, 2.0), step(1.0, 2.0), 0.0),
        (step(1.0, -4.0), step(1.0, -3.0), 0.25),
        (step(0.0), step(0.5), 0.5),
        (step(math.nan, 1.0), step(math.nan, 1.0), 0.0),
        (step(math.nan), step(1.0), math.inf),
        (step(math.inf), step(math.inf), 0.0),
        (step(math.inf), step(1.0), math.inf),
        (step(1.0), step(1.0, 2.0), math.inf),
        ([{}], [{}], None),
    ],
)
def test_the_difference_is_over_the_size_of_what_differs(one, other, apart):
    assert graph_replay.largest_difference(one, other) == apart


class Runs(CaptureAttempts):
    """Attempts whose processes answer from a list."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(None, [], 1.0)  # type: ignore[arg-type]
        self.answers = list(answers)

    def _run(self, task: str, **more: Any) -> dict[str, Any]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ran(*numbers: float, seconds: float = 1.0) -> dict[str, Any]:
    return {"captured": True, "values": step(*numbers), "seconds": seconds}


def test_a_replay_that_gives_what_eager_gives_is_good():
    attempt, failed = Runs(ran(2.0, seconds=3e-3), ran(2.0, seconds=1e-3)).try_step()
    assert (attempt.succeeded, attempt.equal, attempt.difference, failed) == (True, True, 0.0, None)
    assert attempt.speedup == pytest.approx(3)


def test_a_replay_that_differs_is_held_against_the_noise_of_eager():
    noisy, _ = Runs(ran(1.0), ran(1.02), ran(1.01)).try_step()
    wrong, _ = Runs(ran(1.0), ran(1.02), ran(1.0)).try_step()
    assert (noisy.equal, wrong.equal, wrong.succeeded) == (True, False, False)


def test_a_failed_capture_names_its_line():
    answer = {"captured": False, "error": "RuntimeError: no", "file": "/a.py", "line": 7, "function": "step"}
    attempt, failed = Runs(ran(1.0), answer).try_step()
    assert (attempt.succeeded, attempt.error) == (False, "RuntimeError: no")
    assert failed is not None
    assert (failed.kind, failed.file, failed.line, failed.certainty) == ("capture", "/a.py", 7, "certain")


def test_a_capture_that_takes_its_process_with_it_is_an_answer():
    attempt, failed = Runs(ran(1.0), SolutionFailed("it was killed by SIGSEGV")).try_step()
    assert (attempt.captured, attempt.error, failed) == (False, "it was killed by SIGSEGV", None)


def test_a_replay_that_fails_is_no_good_capture():
    attempt, failed = Runs(ran(1.0), {"captured": True, "error": "replay 2 of 5 fails: no"}).try_step()
    assert (attempt.captured, attempt.succeeded, attempt.error, failed) == (
        True,
        False,
        "replay 2 of 5 fails: no",
        None,
    )


def test_steps_that_fail_with_new_content_in_their_inputs_keep_what_these_hold():
    attempts = Runs(SolutionFailed("out of bounds (a.py:3)."), ran(1.0), ran(1.0))
    attempt, _ = attempts.try_step()
    (note,) = attempts.notes
    assert attempt.succeeded
    assert note.startswith("inputs kept their content")
    assert note.endswith("out of bounds (a.py:3).")


def test_an_eager_step_that_fails_either_way_is_an_error():
    with pytest.raises(SolutionFailed, match="still fails"):
        Runs(SolutionFailed("it fails"), SolutionFailed("it still fails")).try_step()


def test_noise_that_cannot_be_had_is_said():
    attempts = Runs(ran(1.0), ran(2.0), SolutionFailed("it fails"))
    attempt, _ = attempts.try_step()
    assert (attempt.equal, attempt.noise) == (False, None)
    assert "is not known: it fails" in attempts.notes[0]


def test_a_process_after_one_that_failed_keeps_that_ones_output(monkeypatch, tmp_path: Path):
    given: list[tuple[str, str, bool]] = []

    class Process:
        def __init__(self, program, timeout, log):
            self.log = log.name

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def start(self):
            pass

        def call(self, task, **options):
            given.append((self.log, task, options["moving"]))
            if len(given) in (1, 3):
                raise SolutionFailed("no")
            return ran(1.0)

    monkeypatch.setattr(capture_attempt, "Runner", Process)
    attempts = CaptureAttempts(None, [], 1.0, tmp_path / "graph.txt")  # type: ignore[arg-type]
    attempts.try_step()
    attempts.try_modules(["model"])
    assert given == [
        ("graph.txt", "graph_capture", True),
        ("graph-2.txt", "graph_capture", False),
        ("graph-2.txt", "graph_capture", False),
        ("graph-3.txt", "graph_modules", False),
    ]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("planted", [one for one in PLANTED if one.captures is False], ids=lambda one: one.name)
def test_a_gpu_refuses_the_capture_at_that_line(planted: Planted, tmp_path: Path):
    path = planted.write(tmp_path)
    with Runner(resolve_step_program(str(path), "step", setup=planted.setup), timeout=120) as runner:
        runner.start()
        answer = runner.call("graph_capture", folders=[str(tmp_path)], warm=2, steps=2, replay=True)
    assert not answer["captured"]
    assert (Path(answer["file"]).name, answer["line"]) == (path.name, planted.line)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_a_gpu_replays_the_controls_as_eager(control: Planted, tmp_path: Path):
    path = control.write(tmp_path)
    attempts = CaptureAttempts(resolve_step_program(str(path), "step", setup=control.setup), [str(tmp_path)], 120)
    attempt, _ = attempts.try_step()
    assert (attempt.captured, attempt.equal) == (True, True), attempt


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", ["step-number", "carried", "growing"])
def test_a_gpu_shows_that_a_frozen_replay_is_not_what_eager_gives(name: str, tmp_path: Path):
    (planted,) = (one for one in PLANTED if one.name == name)
    path = planted.write(tmp_path)
    attempt, _ = CaptureAttempts(resolve_step_program(str(path), "step"), [str(tmp_path)], 120).try_step()
    assert (attempt.captured, attempt.equal) == (True, False), attempt


@pytest.mark.gpu
@pytest.mark.slow
def test_a_gpu_captures_the_modules_where_the_step_reads_its_loss(tmp_path: Path):
    (planted,) = (one for one in PLANTED if one.name == "item")
    path = planted.write(tmp_path)
    attempt = CaptureAttempts(resolve_step_program(str(path), "step"), [str(tmp_path)], 120).try_modules(["model"])
    assert (attempt.captured, attempt.equal) == (True, True), attempt

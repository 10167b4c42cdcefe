"""The check put together: evidence of one line, expectations without a GPU, and whole runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_programs import CONTROLS, PLANTED
from trial_kit import FACTS

from warpsmith.errors import MissingInput, Misuse, SolutionFailed
from warpsmith.program.capture import check as graph_check
from warpsmith.program.capture.attempt import CaptureAttempts, expect_modules
from warpsmith.program.capture.models import Blocker, CaptureAttempt, EvidenceLevel, GraphModule
from warpsmith.program.capture.rules import RULES, Observation
from warpsmith.program.capture.watched_steps import WatchedSteps
from warpsmith.program.process.program import resolve_step_program

FOLDER = Path("/programs")


def observe(kind: str, line: int = 3, certainty: str = "likely", text: str = "", module: str = "") -> Observation:
    return Observation(kind, text or kind, "/programs/a.py", line, certainty, "step", module)  # type: ignore[arg-type]


def merge(*observations: Observation, level: EvidenceLevel = "run on gpu", failure: Observation | None = None):
    evidence = [(level, item) for item in observations]
    return graph_check.merge_evidence([*evidence, *([("capture", failure)] if failure else [])], FOLDER)  # type: ignore[list-item]


def test_an_observation_becomes_a_blocker_with_its_rule():
    (blocker,) = merge(observe("host-read", text="`.item()`"))
    assert (blocker.file, blocker.line, blocker.what) == ("a.py", 3, "`.item()`")
    assert (blocker.certainty, blocker.seen) == ("likely", ("run on gpu",))
    assert (blocker.effect, blocker.why, blocker.mend) == RULES["host-read"]


def test_a_failed_capture_is_evidence_for_what_is_known_at_its_line():
    failure = observe("capture", 3, "certain", "no")
    blockers = merge(observe("host-read"), observe("new-address"), failure=failure)
    assert [(one.kind, one.what, one.certainty, one.seen) for one in blockers] == [
        ("host-read", "host-read", "certain", ("run on gpu", "capture")),
        ("new-address", "new-address", "likely", ("run on gpu",)),
    ]
    (alone,) = merge(failure=failure)
    assert (alone.kind, alone.what, alone.seen) == ("capture", "no", ("capture",))


def test_the_most_certain_blockers_come_first():
    blockers = merge(observe("seed", 4, "look"), observe("truth", 5), observe("host-read", 6, "certain"))
    assert [one.kind for one in blockers] == ["host-read", "truth", "seed"]


def test_a_size_and_its_number_are_one_blocker_and_data_explain_both():
    (blocker,) = merge(observe("changing-shape"), observe("changing-number", 3, "certain"))
    assert (blocker.kind, blocker.certainty) == ("changing-number", "certain")
    (alone,) = merge(observe("changing-shape"))
    assert (alone.kind, alone.why) == ("changing-shape", RULES["changing-shape"].why)
    (sized,) = merge(observe("changing-shape"), observe("data-shape"))
    assert sized.kind == "data-shape"


def modules() -> list[GraphModule]:
    return [
        GraphModule(name=name, kind=kind, calls=1, share=share, alike=name)
        for name, kind, share in (("model", "Net", 0.9), ("model.one", "Part", 0.4), ("model.two", "Other", 0.5))
    ]


def expected(*observations: Observation) -> list[str]:
    blocked = graph_check.blocked_modules(merge(*observations, level="run on cpu"))
    return [one.name for one in expect_modules(modules(), blocked)]


def test_modules_that_nothing_is_known_against_are_expected_to_be_captured():
    assert expected(observe("host-read")) == ["model"]
    assert expected(observe("host-read", module="model.one")) == ["model.two"]
    assert expected(observe("host-read", certainty="look", module="model.one")) == ["model"]
    assert expected(observe("host-read", module="model")) == ["model.one", "model.two"]


@pytest.mark.parametrize(
    ("attempt", "counted"),
    [
        (None, ["host-read", "changing-number", "loader"]),
        (CaptureAttempt(what="step", captured=False, error="no"), ["host-read", "changing-number", "loader"]),
        (CaptureAttempt(what="step", captured=True, equal=False), ["changing-number", "loader"]),
        (CaptureAttempt(what="step", captured=True, equal=True), ["changing-number"]),
    ],
)
def test_what_did_not_stop_a_capture_or_show_in_replays_counts_no_more(
    attempt: CaptureAttempt | None, counted: list[str]
):
    blockers = merge(
        observe("host-read", 3, "certain"), observe("changing-number", 4, "certain"), observe("loader", 5)
    )
    settled = graph_check.settle_blockers(blockers, attempt)
    assert [one.kind for one in settled if one.counts] == counted
    assert len(settled) == 3


def test_equal_replays_of_inputs_that_kept_their_content_spare_nothing_that_freezes():
    blockers = merge(observe("host-read", 3, "certain"), observe("loader", 5))
    attempt = CaptureAttempt(what="step", captured=True, equal=True)
    settled = graph_check.settle_blockers(blockers, attempt, moving=False)
    assert [one.kind for one in settled if one.counts] == ["loader"]


@pytest.mark.parametrize("mended", [False, True])
def test_an_attempt_whose_eager_steps_fail_leaves_what_was_watched(monkeypatch, tmp_path: Path, mended: bool):
    path = next(one for one in CONTROLS if one.name == "forward").write(tmp_path)
    answers = [SolutionFailed("its step fails: device-side assert triggered."), SolutionFailed("it fails still.")]
    ran = {"captured": True, "values": [{"value": [1.0]}], "seconds": 1.0}

    def run(attempts, task, **options):
        if len(answers) > mended:
            raise answers.pop(0)
        return ran

    monkeypatch.setattr(CaptureAttempts, "_run", run)
    watched = WatchedSteps((observe("loader"),), tuple(modules()), (path,))
    facts = FACTS.model_copy(update={"gpu": True})
    monkeypatch.setattr(graph_check, "_watch", lambda *_: (facts, watched))
    check = graph_check.check_graph(resolve_step_program(str(path), "step"))
    if mended:
        assert (check.level, check.verdict) == ("capture", "partly")  # the loader counts: inputs did not move
        assert check.notes[0].startswith("inputs kept their content")
        assert check.notes[0].endswith("device-side assert triggered.")
    else:
        assert (check.level, check.verdict, check.whole, check.parts) == ("run on gpu", "partly", None, ())
        assert check.notes[0] == "no capture was attempted"
        assert check.notes[1].endswith("a process of their own: it fails still.")


def test_every_rule_can_be_told():
    for kind, rule in RULES.items():
        assert rule.why
        assert rule.mend
        (blocker,) = merge(observe(kind))
        assert isinstance(blocker, Blocker)


def test_a_program_is_checked_in_a_process_of_its_own(tmp_path: Path):
    (planted,) = (one for one in PLANTED if one.name == "masked-select")
    path = planted.write(tmp_path)
    before = path.read_bytes()
    check = graph_check.check_graph(resolve_step_program(str(path), "step"), attempt=False, timeout=120)
    (blocker,) = check.blockers
    assert (blocker.file, blocker.line, blocker.function) == (path.name, planted.line, "Picks.forward")
    assert (blocker.module, blocker.code.split("  #")[0]) == (
        "picks", "return value.masked_select(value > 0).sum()",
    )  # fmt: skip
    assert (check.verdict, [one.name for one in check.covered]) == ("partly", ["model"])
    assert 0 < check.share <= 1
    assert (check.level,) == blocker.seen
    assert check.files == (path.name,)
    assert path.read_bytes() == before


def test_code_that_the_steps_do_not_reach_is_not_checked(tmp_path: Path):
    path = next(one for one in CONTROLS if one.name == "heads").write(tmp_path)
    path.write_text(path.read_text() + "\n\ndef other():\n    return x.sum().item()\n")
    check = graph_check.check_graph(resolve_step_program(str(path), "step"), attempt=False, timeout=120)
    assert (check.verdict, check.blockers, check.files) == ("captures whole", (), ("heads.py",))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("def step(:\n", Misuse, "is not valid Python"),
        ("def other(): ...\n", Misuse, "has no step `step`: it has other"),
        ("def step(): raise ValueError('bad')\n", SolutionFailed, "ValueError: bad"),
    ],
)
def test_a_program_that_is_none_is_one_sentence(text: str, error: type[Exception], words: str, tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(text)
    with pytest.raises(error, match=words):
        graph_check.check_graph(resolve_step_program(str(path), "step"), timeout=60)


def test_a_program_that_is_not_there(tmp_path: Path):
    with pytest.raises(MissingInput):
        resolve_step_program(str(tmp_path / "none.py"), "step")


@pytest.mark.gpu
@pytest.mark.slow
def test_a_gpu_says_what_is_captured(tmp_path: Path):
    whole = next(one for one in CONTROLS if one.name == "capturable").write(tmp_path)
    check = graph_check.check_graph(resolve_step_program(str(whole), "step"), timeout=120)
    assert (check.verdict, check.level) == ("captures whole", "capture"), check
    assert check.whole is not None
    assert check.whole.speedup is not None
    partly = next(one for one in PLANTED if one.name == "item").write(tmp_path)
    check = graph_check.check_graph(resolve_step_program(str(partly), "step"), timeout=120)
    assert (check.verdict, [one.name for one in check.covered]) == ("partly", ["model"]), check
    assert [one.seen for one in check.blockers if one.counts] == [("run on gpu", "capture")]
    frozen = next(one for one in PLANTED if one.name == "schedule").write(tmp_path)
    check = graph_check.check_graph(resolve_step_program(str(frozen), "step"), timeout=120)
    assert (check.verdict, [one.name for one in check.covered]) == ("partly", ["model"]), check

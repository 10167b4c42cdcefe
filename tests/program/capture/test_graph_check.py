"""The check put together: evidence of several kinds at one line, what is expected without a GPU, a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_programs import CONTROLS, PLANTED

from warpsmith.errors import MissingInput, Misuse, SolutionFailed
from warpsmith.program.capture import check as graph_check
from warpsmith.program.capture import trial as graph_trial
from warpsmith.program.capture.models import Blocker, GraphModule, Trial
from warpsmith.program.capture.rules import RULES, Finding
from warpsmith.program.capture.static import Reading
from warpsmith.program.process.step import resolve

FOLDER = Path("/programs")


def finding(kind: str, line: int = 3, certainty: str = "likely", what: str = "", module: str = "") -> Finding:
    return Finding(kind, what or kind, "/programs/a.py", line, certainty, "step", module)  # type: ignore[arg-type]


def test_one_line_and_kind_is_one_blocker_with_the_surest_of_its_evidence():
    found = {
        "source": [finding("host-read", what="`.item()`")],
        "run on gpu": [finding("host-read", 3, "certain")],
    }
    (blocker,) = graph_check.merged(found, FOLDER)  # type: ignore[arg-type]
    assert (blocker.file, blocker.line, blocker.what) == ("a.py", 3, "`.item()`")
    assert (blocker.certainty, blocker.seen) == ("certain", ("source", "run on gpu"))
    assert (blocker.effect, blocker.why, blocker.mend) == RULES["host-read"]


def test_a_failed_capture_is_evidence_for_what_is_known_at_its_line():
    found = {
        "source": [finding("host-read"), finding("state")],
        "capture": [finding("capture", 3, "certain", "no")],
    }
    blockers = graph_check.merged(found, FOLDER)  # type: ignore[arg-type]
    assert [(one.kind, one.certainty, one.seen) for one in blockers] == [
        ("host-read", "certain", ("source", "capture")),
        ("state", "likely", ("source",)),
    ]
    found["source"] = []
    (alone,) = graph_check.merged(found, FOLDER)  # type: ignore[arg-type]
    assert (alone.kind, alone.what, alone.seen) == ("capture", "no", ("capture",))


def test_what_a_run_should_have_shown_and_did_not_is_only_looked_at():
    source = [finding("host-read"), finding("seed", 4), finding("truth", 5, "certain")]
    blockers = graph_check.merged({"source": source, "run on cpu": []}, FOLDER)
    assert {one.kind: one.certainty for one in blockers} == {
        "truth": "certain",
        "seed": "likely",
        "host-read": "look",
    }
    assert blockers[-1].what.endswith("not in the watched steps")
    assert [one.certainty for one in graph_check.merged({"source": source}, FOLDER)] == [
        "certain", "likely", "likely",
    ]  # fmt: skip


def test_what_is_kept_for_the_next_step_is_read_at_another_line():
    source = [finding("new-address", 3)]
    assert [one.certainty for one in graph_check.merged({"source": source, "run on cpu": []}, FOLDER)] == ["look"]
    ran = [finding("new-address", 9, "certain")]
    both = graph_check.merged({"source": source, "run on cpu": ran}, FOLDER)
    assert [(one.line, one.certainty) for one in both] == [(9, "certain"), (3, "likely")]


def test_a_size_that_a_number_gives_is_one_blocker():
    found = {"source": [finding("changing-shape")], "run on cpu": [finding("changing-number", 3, "certain")]}
    (blocker,) = graph_check.merged(found, FOLDER)  # type: ignore[arg-type]
    assert (blocker.kind, blocker.certainty, len(blocker.seen)) == ("changing-number", "certain", 2)


def modules() -> list[GraphModule]:
    return [
        GraphModule(name=name, kind=kind, calls=1, share=share, alike=name)
        for name, kind, share in (("model", "Net", 0.9), ("model.one", "Part", 0.4), ("model.two", "Other", 0.5))
    ]


def expected(*findings: Finding, owners: dict[tuple[str, int], str] | None = None) -> list[str]:
    blockers = graph_check.merged({"run on cpu": findings}, FOLDER)
    bad = graph_check.against(blockers, modules(), Reading((), (), owners or {}), FOLDER)
    return [one.name for one in graph_trial.expected(modules(), bad)]


def test_modules_that_nothing_is_known_against_are_expected_to_be_captured():
    assert expected(finding("host-read")) == ["model"]
    assert expected(finding("host-read", module="model.one")) == ["model.two"]
    assert expected(finding("host-read", certainty="look", module="model.one")) == ["model"]
    assert expected(finding("host-read"), owners={("/programs/a.py", 3): "Other"}) == ["model.one"]
    assert expected(finding("host-read", module="model")) == ["model.one", "model.two"]


@pytest.mark.parametrize(
    ("trial", "counted"),
    [
        (None, ["host-read", "changing-number", "state"]),
        (Trial(what="step", captured=False, error="no"), ["host-read", "changing-number", "state"]),
        (Trial(what="step", captured=True, equal=False), ["changing-number", "state"]),
        (Trial(what="step", captured=True, equal=True), ["changing-number"]),
    ],
)
def test_what_did_not_stop_a_capture_or_show_in_replays_counts_no_more(trial: Trial | None, counted: list[str]):
    found = [finding("host-read", 3, "certain"), finding("changing-number", 4, "certain"), finding("state", 5)]
    blockers = graph_check.settled(graph_check.merged({"run on gpu": found}, FOLDER), trial)
    assert [one.kind for one in blockers if one.counts] == counted
    assert len(blockers) == 3


def test_equal_replays_of_inputs_that_kept_their_content_spare_nothing_that_freezes():
    found = [finding("host-read", 3, "certain"), finding("state", 5)]
    trial = Trial(what="step", captured=True, equal=True)
    blockers = graph_check.settled(graph_check.merged({"run on gpu": found}, FOLDER), trial, moving=False)
    assert [one.kind for one in blockers if one.counts] == ["state"]


@pytest.mark.parametrize("mended", [False, True])
def test_a_trial_whose_eager_steps_fail_leaves_what_was_watched(monkeypatch, tmp_path: Path, mended: bool):
    path = next(one for one in CONTROLS if one.name == "forward").write(tmp_path)
    answers = [SolutionFailed("its step fails: device-side assert triggered."), SolutionFailed("it fails still.")]
    ran = {"captured": True, "values": [{"value": [1.0]}], "seconds": 1.0}

    def run(trials, task, **more):
        if len(answers) > mended:
            raise answers.pop(0)
        return ran

    monkeypatch.setattr(graph_trial.Trials, "_run", run)
    monkeypatch.setattr(graph_check, "_watched", lambda *_: ({"gpu": True}, [finding("clock")], modules()))
    check = graph_check.check(resolve(str(path), "step"))
    if mended:
        assert (check.level, check.verdict) == ("capture", "partly")  # the clock counts: inputs did not move
        assert check.notes[0].startswith("inputs kept their content")
        assert check.notes[0].endswith("device-side assert triggered.")
    else:
        assert (check.level, check.verdict, check.whole, check.parts) == ("run on gpu", "partly", None, ())
        assert check.notes[0] == "no capture was tried"
        assert check.notes[1].endswith("a process of their own: it fails still.")


def test_every_rule_can_be_told():
    for kind, rule in RULES.items():
        assert rule.why
        assert rule.mend
        (blocker,) = graph_check.merged({"source": [finding(kind)]}, FOLDER)
        assert isinstance(blocker, Blocker)


def test_a_program_is_checked_in_a_process_of_its_own(tmp_path: Path):
    (planted,) = (one for one in PLANTED if one.name == "masked-select")
    path = planted.write(tmp_path)
    before = path.read_bytes()
    check = graph_check.check(resolve(str(path), "step"), trial=False, timeout=120)
    (blocker,) = check.blockers
    assert (blocker.file, blocker.line, blocker.function) == (path.name, planted.line, "Picks.forward")
    assert (blocker.module, blocker.code.split("  #")[0]) == (
        "picks", "return value.masked_select(value > 0).sum()",
    )  # fmt: skip
    assert blocker.seen[0] == "source"
    assert (check.verdict, [one.name for one in check.covered]) == ("partly", ["model"])
    assert 0 < check.share <= 1
    assert check.level == blocker.seen[-1] != "source"
    assert path.read_bytes() == before


def test_without_a_run_the_source_alone_is_read(tmp_path: Path):
    path = next(one for one in PLANTED if one.name == "masked-select").write(tmp_path)
    path.write_text(path.read_text() + "\n\nraise RuntimeError('it is not run')\n")
    check = graph_check.check(resolve(str(path), "step"), run=False)
    assert (check.level, check.device, check.steps, check.verdict) == ("source", "", 0, "not at all")
    control = next(one for one in CONTROLS if one.name == "heads").write(tmp_path)
    fine = graph_check.check(resolve(str(control), "step"), run=False)
    assert (fine.verdict, fine.blockers, fine.files) == ("captures whole", (), ("heads.py",))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("def step(:\n", Misuse, "is no Python"),
        ("def other(): ...\n", Misuse, "no module-level callable `step`"),
        ("def step(): raise ValueError('bad')\n", SolutionFailed, "ValueError: bad"),
    ],
)
def test_a_program_that_is_none_is_one_sentence(text: str, error: type[Exception], words: str, tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(text)
    with pytest.raises(error, match=words):
        graph_check.check(resolve(str(path), "step"), timeout=60)


def test_a_program_that_is_not_there(tmp_path: Path):
    with pytest.raises(MissingInput):
        resolve(str(tmp_path / "none.py"), "step")


@pytest.mark.gpu
@pytest.mark.slow
def test_a_gpu_says_what_is_captured(tmp_path: Path):
    whole = next(one for one in CONTROLS if one.name == "capturable").write(tmp_path)
    check = graph_check.check(resolve(str(whole), "step"), timeout=120)
    assert (check.verdict, check.level) == ("captures whole", "capture"), check
    assert check.whole is not None
    assert check.whole.speedup is not None
    partly = next(one for one in PLANTED if one.name == "item").write(tmp_path)
    check = graph_check.check(resolve(str(partly), "step"), timeout=120)
    assert (check.verdict, [one.name for one in check.covered]) == ("partly", ["model"]), check
    assert [one.seen for one in check.blockers if one.counts] == [("source", "run on gpu", "capture")]
    frozen = next(one for one in PLANTED if one.name == "schedule").write(tmp_path)
    check = graph_check.check(resolve(str(frozen), "step"), timeout=120)
    assert (check.verdict, [one.name for one in check.covered]) == ("partly", ["model"]), check

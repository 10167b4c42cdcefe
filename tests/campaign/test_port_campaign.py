"""Port campaigns: no device of the target is here, rounds are UNTIMED, and nothing that counts wins sees them."""

from __future__ import annotations

import json
import warnings

import pytest
import typer
from campaign_kit import NOTHING, evaluation, git, make_repository
from typer.testing import CliRunner

from warpsmith.campaign import define, lab_requests, rerun
from warpsmith.campaign import status as campaign_status
from warpsmith.campaign.evidence import campaign_check
from warpsmith.campaign.history import drafts, records, store
from warpsmith.campaign.rounds import due_phase, lessons, open_round, state
from warpsmith.campaign.rounds import strike as strikes
from warpsmith.cli.campaign import rounds as group
from warpsmith.cli.lab import judge
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.evaluation import Verdict
from warpsmith.core.evidence import Claim
from warpsmith.core.port.check import PortCheck
from warpsmith.driver import brief
from warpsmith.errors import MachineLacks, Misuse, WarpsmithError
from warpsmith.knowledge import hit_rates
from warpsmith.knowledge.evidence import EvidenceRow
from warpsmith.lab.machine import identity
from warpsmith.languages import support
from warpsmith.project import SHIPPED, Project
from warpsmith.reporting import facts, overview, pages, plots
from warpsmith.use import choice

OP = "double"
DEFINITION = """
import torch
from warpsmith import Definition, TensorSpec, Workload

definition = Definition(
    name="double",
    description="Twice x.",
    axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="n",
    workloads=(Workload(name="small", axes={"n": 64}),),
)


def reference(x):
    return 2 * x
"""
UNTIMED = {
    "workload": "small", "status": "PASSED", "correctness": {"calls": 1, "worst": 0.1, "relative_error": 0.1},
}  # fmt: skip
WRONG = {"workload": "small", "status": "TIMEOUT", "message": "It never ended."}


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    (root / "warpsmith.toml").write_text("")
    made = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
    made.definition_path(OP).parent.mkdir(parents=True)
    made.definition_path(OP).write_text(DEFINITION)
    (made.knowledge / "hardware").mkdir(parents=True)
    for name in ("mi300x", "h200", "cpu"):
        page = SHIPPED / "docs" / "knowledge" / "hardware" / f"{name}.md"
        (made.knowledge / "hardware" / f"{name}.md").write_bytes(page.read_bytes())
    monkeypatch.setattr(define, "require_proven", lambda *_: None)
    monkeypatch.setattr(identity, "visible_gpu", lambda: None)
    monkeypatch.chdir(root)
    return made


def check(spill_bytes: int, before: float | None = None) -> PortCheck:
    figure = {"name": "spill bytes", "before": before, "after": spill_bytes}
    return PortCheck.model_validate({"arch": "gfx942", "figures": [figure]})


def start(project: Project, target: str = "mi300x", language: str = "triton", **settings) -> store.Campaign:
    return define.define(project, OP, target, language, git=settings.pop("git", "none"), **settings)


@pytest.fixture
def judged(monkeypatch):
    """What the judge finds, by version, and the evidence on the version before that it was given."""
    found: dict[str, str] = {}
    before: list[PortCheck | None] = []

    def judge_port(judgement):
        before.append(judgement.before)
        path, verdict = judgement.candidate.path, found.get(judgement.candidate.version, "UNTIMED")
        earlier = judgement.before.figures[0].after if judgement.before else None
        passed = verdict == "UNTIMED"
        changes = {
            "definition": OP, "target": judgement.page.target.id, "results": [UNTIMED if passed else WRONG],
            "aggregates": [], "port": check(12 - 6 * len(before) // 2, earlier) if passed else None,
        }  # fmt: skip
        judged = evaluation(path, verdict, None, **changes)
        digest = judgement.file.sha256
        provenance = judged.provenance.model_copy(update={"definition_sha256": digest, "seed": len(before)})
        return judged.model_copy(update={"provenance": provenance})

    monkeypatch.setattr(lab_requests, "judge_port", judge_port)
    found["before"] = before  # type: ignore[assignment]
    return found


def play(campaign: store.Campaign) -> records.RoundRecord:
    """Play one round, and return its record."""
    steps = []
    while not steps or steps[-1] != "lesson":
        current = state.read_state(campaign)
        step = due_phase.find_due_phase(current).step
        steps.append(step)
        if step == "selection":
            open_round.record_selection(campaign, Selection(language="triton", because="It is the only one."))
        elif step == "plan":
            plan = {
                "hypothesis": "Fewer registers do not spill.", "category": "memory", "predicted_gain": 0.1,
                "metric": "spill_bytes", "expected_change": -4, "entries": [],
            }  # fmt: skip
            open_round.record_plan(campaign, Plan.model_validate(plan))
        elif step == "design":
            path = current.solution.path
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"def run(x):\n    return {current.solution.number}\n")
        elif step == "verdict":
            lab_requests.judge_due_version(campaign)
        elif step == "outcome":
            open_round.record_outcome(campaign)
        elif step == "lesson":
            assert "claim no gain" in due_phase.find_due_phase(current).notes[-1]
            stored = open_round.close_round(campaign, NOTHING)
        else:
            pytest.fail(f"{step} needs a device")
    return stored.record


def test_amd_targets_open_one_by_themselves_and_others_when_they_are_asked(project):
    assert start(project).manifest.port
    with pytest.raises(MachineLacks, match=r"`h200` needs one.*--port opens a port campaign"):
        start(project, "h200")
    assert start(project, "h200", port=True).manifest.port
    assert "start OP --target mi300x" in support.amd_advice("mi300x")


@pytest.mark.parametrize(
    ("target", "language", "settings", "error", "words"),
    [
        ("mi300x", "hip", {}, MachineLacks, "has none: take Triton"),
        ("cpu", "triton", {}, Misuse, "omit --port"),
        ("mi300x", "triton", {"objective": "energy"}, Misuse, "no energy"),
        ("h200", "triton", {"context": "box"}, Misuse, "omit --port"),
    ],
)
def test_what_no_port_campaign_can_judge_is_refused_and_nothing_is_written(
    project, target, language, settings, error, words
):
    with pytest.raises(error, match=words):
        start(project, target, language, port=True, **settings)
    assert not project.devlog.exists()


def test_a_device_that_is_here_is_used(project, monkeypatch):
    gpu = identity.Gpu(name="NVIDIA H200", uuid="u", driver="580", clocks={})
    monkeypatch.setattr(identity, "visible_gpu", lambda: gpu)
    with pytest.raises(Misuse, match=r"has a `h200`.*omit --port"):
        start(project, "h200", port=True)


def test_types_that_the_interpreter_computes_wrongly_leave_nothing_to_check(project):
    path = project.definition_path(OP)
    path.write_text(DEFINITION.replace('axes={"n": 64})', 'axes={"n": 64}, dtype="bfloat16")'))
    with pytest.raises(MachineLacks, match=r"bfloat16.*check nothing"):
        start(project)


def test_rounds_are_untimed_skip_what_needs_a_device_and_go_on_from_what_passed(project, judged):
    campaign = start(project)
    first = play(campaign)
    judged["v2"] = "ROLLBACK"
    wrong, third = play(campaign), play(campaign)
    assert [each.verdict for each in (first, wrong, third)] == [Verdict.UNTIMED, Verdict.ROLLBACK, Verdict.UNTIMED]
    assert [each.outcome.best for each in (first, wrong, third)] == ["triton/v1", "triton/v1", "triton/v3"]
    assert [each.outcome.gain for each in (first, third)] == [None, None]
    assert judged["before"] == [None, first.evaluation.port, first.evaluation.port]
    movement = third.outcome.movement
    assert (movement.before, movement.after) == (9, 3)
    assert movement.as_predicted
    current = state.read_state(campaign)
    assert current.stagnation.not_improving == 0
    step = due_phase.find_due_phase(current)
    assert (step.step, step.needs) == ("selection", "the compiler's figures in the last verdict")
    assert any("assembly" in note for note in step.notes)
    assert campaign_status.campaign_status(current).port


def test_no_figure_of_wins_counts_an_untimed_round(project, judged):
    campaign = start(project)
    play(campaign), play(campaign)
    assert choice.best_versions_by_target(project, OP) == {}
    assert choice.accepted_versions(project, OP, "mi300x") == []
    rate = hit_rates.hit_rates_by_entry(project)
    assert not rate
    rounds = campaign.records()
    assert facts.compounded_gain(rounds) is None
    assert facts.baseline_round(rounds) is None
    assert facts.rolled_back_rounds(rounds) == []
    row = overview.CampaignRow(campaign.manifest, rounds)
    assert overview.leading_rows([row]) == []
    assert row.best_text == "triton/v2, UNTIMED"
    assert (row.device, row.share) == (None, None)
    light = overview.light_record(rounds[0], rounds[-1])
    assert type(light).model_validate_json(light.model_dump_json()).verdict is Verdict.UNTIMED
    assert plots.trend_plot(rounds) if not plots.plots_unavailable() else True


def test_entries_that_an_untimed_round_applied_have_no_rate_from_it(project, judged, monkeypatch):
    campaign = start(project)
    play(campaign), play(campaign)
    record = campaign.ledger.folder_of(2) / "record.json"
    data = json.loads(record.read_bytes())
    data["plan"]["entries"] = ["wider-loads"]
    record.write_text(json.dumps(data))
    assert hit_rates.hit_rates_by_entry(project) == {}
    del data["evaluation"]["port"]
    data["evaluation"]["decision"]["verdict"] = "ROLLBACK"
    record.write_text(json.dumps(data))
    assert hit_rates.hit_rates_by_entry(project)["wider-loads"].tried == 1


def test_a_campaign_on_a_device_takes_no_such_version_and_is_told_of_it(project, judged, monkeypatch):
    ported = start(project)
    play(ported)
    judged["v2"] = "ROLLBACK"
    play(ported)
    assert drafts.unrun_versions(project, OP) == ["triton/v1", "triton/v2"]
    assert [each.name for each in drafts.untimed_versions(project, OP, "mi300x")] == ["triton/v1"]
    assert drafts.untimed_versions(project, OP, "h200") == []
    timed = define.start.start_campaign(project, OP, "mi300x", "triton")  # as if such a device were here
    current = state.read_state(timed)
    assert current.solution.name == "triton/v3"
    notes = due_phase.find_due_phase(current).notes
    assert any("kernels/double/triton/v1.py; copy one to kernels/double/triton/v3.py" in note for note in notes)


def test_a_port_campaign_begins_with_what_stands_elsewhere(project, judged):
    first = start(project, "h200", port=True)
    play(first), play(first)
    assert state.read_state(start(project)).solution.name == "triton/v2"


def test_profiles_and_races_say_that_there_is_no_device(project, judged):
    campaign = start(project)
    play(campaign)
    with pytest.raises(Misuse, match=r"none is profiled.*assembly"):
        lab_requests.profile_due_version(campaign)
    with pytest.raises(Misuse, match="no race"):
        lab_requests.run_final_race(campaign)
    with pytest.raises(Misuse, match="has none"):
        open_round.record_selection(campaign, Selection(language="hip", because="It has more control."))


def test_a_verdict_in_the_wrong_kind_of_campaign_is_refused_and_found(project, judged, monkeypatch):
    campaign = start(project)
    record = play(campaign)
    first = project.kernels / OP / "triton" / "v1.py"

    def accept(path):
        return evaluation(path, target="mi300x", definition=OP)

    assert "times nothing" in records.misplaced_verdict(campaign.manifest, accept(first))
    timed = campaign.manifest.model_copy(update={"port": False})
    assert "no device ran" in records.misplaced_verdict(timed, record.evaluation)
    assert records.misplaced_verdict(campaign.manifest, record.evaluation) is None
    monkeypatch.setattr(lab_requests, "judge_port", lambda judgement: accept(judgement.candidate.path))
    with pytest.raises(Misuse, match="times nothing"):
        play(campaign)
    monkeypatch.setattr(campaign_check, "misplaced_verdict", lambda *_: "is wrong")
    assert [each.message for each in campaign_check.check_campaign(campaign).stale] == [
        f"{campaign.name} is wrong."
    ]


def test_the_brief_says_what_no_device_means_for_a_version(project, judged):
    task = brief.write_brief(state.read_state(start(project)))
    assert brief.PORT_RULES in task.constraints


def test_what_was_not_timed_refutes_nothing_and_says_so_as_evidence(project, judged):
    campaign = start(project)
    record = play(campaign)
    with pytest.raises(Misuse, match="cannot refute `wider-loads`"):
        lessons.prepare_lesson(
            campaign, "refute", record="r", entry="wider-loads", text="It did not help.", reason="", tip=None
        )
    row = EvidenceRow.of(record, "devlog/x")
    assert "gfx942, compiled only" in row.config
    assert row.change == "UNTIMED: spill bytes 9"


def test_its_evidence_is_sound_may_be_judged_again_and_struck(project, judged):
    campaign = start(project)
    first = play(campaign)
    assert campaign_check.check_campaign(campaign).stale == ()
    pages.render_campaign(campaign)
    report = (campaign.folder / "report.md").read_text()
    assert "not judged | speed" in report
    summary = (campaign.ledger.folder_of(1) / "summary.md").read_text()
    assert "| spill bytes | - | 9 |" in summary
    again = first.evaluation
    assert rerun.compare_evaluations(again, again)[0] is Claim.HOLDS
    refused = again.decision.model_copy(update={"verdict": Verdict.ROLLBACK})
    assert rerun.compare_evaluations(again, again.model_copy(update={"decision": refused}))[0] is Claim.REFUTED
    strikes.strike_round(campaign, 1, "Its kernels were never what the target would run.")
    assert state.read_state(campaign).best is None


def test_untimed_rounds_are_committed_to_the_branch_of_their_campaign(project, judged):
    make_repository(project.root)
    campaign = start(project, git="branch")
    play(campaign)
    log = git(project.root, "log", "-1", "--format=%s%n%b", f"optimize/{campaign.name}")
    assert "UNTIMED (round 1, mi300x)" in log


def call(*arguments: str):
    app = typer.Typer()
    for commands in (group, judge):
        commands.register(app)
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, WarpsmithError):
        raise result.exception
    return result


def test_the_commands_say_what_is_not_judged(project, judged):
    begun = call("start", OP, "--target", "mi300x", "--language", "triton")
    assert begun.exit_code == 0
    assert "speed is not judged" in begun.output
    [campaign] = store.list_campaigns(project)
    (project.kernels / OP / "triton").mkdir(exist_ok=True)
    (project.kernels / OP / "triton" / "v1.py").write_text("def run(x):\n    return x\n")
    verdict = call("judge", "kernels/double/triton/v1.py")
    assert verdict.exit_code == 0
    assert "UNTIMED: as the numbers say" in verdict.output
    assert "UNTIMED: speed is not judged" in call("evaluate").output
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call("learn", "--nothing", "It was known already.").exit_code == 0
    status = call("status").output
    assert "a port campaign: passed last: triton/v1" in status
    assert json.loads(call("status", "--json").output)["port"] is True
    assert campaign.manifest.minimum_gain is None


def test_the_outcome_of_a_wrong_version_says_why(project, judged):
    judged["v1"] = "ROLLBACK"
    call("start", OP, "--target", "mi300x", "--language", "triton")
    (project.kernels / OP / "triton").mkdir(exist_ok=True)
    (project.kernels / OP / "triton" / "v1.py").write_text("def run(x):\n    return x\n")
    verdict = call("judge", "kernels/double/triton/v1.py").output
    line = call("evaluate").output.splitlines()[0]
    assert line.startswith("ROLLBACK: ")
    assert line in verdict
    assert "speed" not in line

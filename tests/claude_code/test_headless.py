"""`warpsmith optimize --designer claude`: the real SDK and CLI, agents of the plugin, scripted models."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import scripted_lab as kit
from harness import clean_env
from headless import PLAN, designer, due, orchestrator, reviewer, written
from messages_api import Actor, Block, Call, MessagesAPI, bash, cut, http_error, text, tool
from screenplay import REVIEWER, review_answer

from warpsmith import project as projects
from warpsmith.campaign import lab_requests as lab_work
from warpsmith.campaign import start
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import due_phase, state
from warpsmith.campaign.status import campaign_status
from warpsmith.driver.claude import designer as claude
from warpsmith.driver.claude.designer import ClaudeDesigner
from warpsmith.driver.optimize import LoopProgress, run_loop
from warpsmith.errors import AgentStopped
from warpsmith.reporting import report


class EnoughError(Exception):
    """The test has seen what it came for."""


@pytest.fixture(autouse=True)
def nothing_inherited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The SDK hands the whole environment on: nothing of whoever runs the tests may be in it."""
    clean = clean_env(tmp_path / "home", "http://127.0.0.1:9", CLAUDE_CODE_MAX_RETRIES="1")
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in clean.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A lab that measures nothing: the real one is at work in the last test."""
    made = kit.Lab()
    monkeypatch.setattr(lab_work, "judge_due_version", made.verify)
    monkeypatch.setattr(lab_work, "profile_due_version", made.profile)
    return made


@pytest.fixture
def one(work: Path) -> Campaign:
    """A campaign of one round."""
    return start.start_campaign(projects.find_project(work), "scale", "cpu", "cpp", peers=(), max_iterations=1)


@pytest.fixture
def two(work: Path) -> Campaign:
    """A campaign of two rounds."""
    return start.start_campaign(projects.find_project(work), "scale", "cpu", "cpp", peers=(), max_iterations=2)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., MessagesAPI]]:
    """Start a scripted API; roles that are not given do what they are asked."""
    running: list[MessagesAPI] = []

    def begin(*actors: Actor) -> MessagesAPI:
        api = MessagesAPI([*actors, designer(), reviewer(), orchestrator()]).__enter__()
        running.append(api)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        return api

    yield begin
    for api in running:
        api.__exit__()
        assert api.errors == []


def spends(campaign: Campaign) -> list[Any]:
    """What the campaign's queries cost, closed rounds first."""
    return list(state.read_state(campaign).spent)


def command(*arguments: str, python: str = sys.executable) -> list[str]:
    return [python, "-P", "-m", "warpsmith", "optimize", "scale", "--designer", "claude", *arguments]


def run_until(phase: str, campaign: Campaign, asking: ClaudeDesigner) -> None:
    """Run, and die where a step of the phase is done."""

    def end(step: due_phase.DuePhase, _: str) -> None:
        if step.phase == phase:
            raise EnoughError

    with pytest.raises(EnoughError):
        run_loop(campaign, asking, LoopProgress(end=end))


def test_two_rounds(two: Campaign, lab: Any, serve: Any):
    lab.verdicts = {"v2": "ROLLBACK"}
    api = serve()
    told: list[str] = []
    end = run_loop(two, ClaudeDesigner(two, tell=told.append))
    first, second = end.records
    assert [record.outcome.verdict for record in end.records] == ["ACCEPT", "ROLLBACK"]
    assert (second.plan.hypothesis, second.selection.language) == (PLAN["hypothesis"], "cpp")

    asked = [(spend.phase, spend.agent) for spend in (*first.spent, *second.spent)]
    assert asked == [
        ("DESIGN", "cpp-specialist"), ("LEARN", "reviewer"), ("LEARN", "orchestrator"),
        ("STRATEGIZE", "orchestrator"), ("DESIGN", "cpp-specialist"), ("LEARN", "orchestrator"),
    ]  # fmt: skip
    assert len(first.spent) == 3
    for spend in (*first.spent, *second.spent):
        assert (spend.ended, len(spend.models)) == ("done", 1)
        assert min(spend.usd, spend.input_tokens, spend.output_tokens, spend.turns, spend.seconds) > 0
    assert "DESIGN  cpp-specialist: Write kernels/scale/cpp/v1.cpp" in told
    assert "LEARN  reviewer" in told
    total = campaign_status(end).spent
    assert total
    assert total.usd == pytest.approx(sum(spend.usd for record in end.records for spend in record.spent))
    assert f"- Agents: {total.text}" in report.report_page(two.manifest, end.records, report.ReportLinks(two.name))
    assert api.calls("reviewer")[0].said_by("user").count("Version: kernels/scale/cpp/v1.cpp") == 1


CHEAT = {
    "file": "kernels/scale/cpp/v2.cpp",
    "line": 3,
    "reason": "It keeps its results by address, and callers change them.",
}
SUSPECT = review_answer(2, CHEAT, reason="It would be wrong in use.")


def test_a_suspect_version_is_struck_and_not_built_on(work: Path, serve: Any):
    campaign = start.start_campaign(projects.find_project(work), "scale", "cpu", "cpp", peers=(), max_iterations=3)
    clean = [text(review_answer(1))]
    api = serve(Actor("reviewer", REVIEWER, [clean, [text(SUSPECT)], clean], loop=True))
    end = run_loop(campaign, ClaudeDesigner(campaign))
    assert [record.parent for record in end.records] == [None, "cpp/v1", "cpp/v1"]
    assert [bool(record.struck) for record in end.records] == [False, True, False]
    told = end.records[1].struck
    assert told
    assert told.reason == "Reviewer: It would be wrong in use. (kernels/scale/cpp/v2.cpp:3)"
    assert '"verdict": "SUSPECT"' in "".join(call.said_by("user") for call in api.calls("orchestrator"))


def test_a_review_that_cannot_be_read_is_none(one: Campaign, serve: Any):
    api = serve(Actor("reviewer", REVIEWER, [[text("Looks good to me.")]], loop=True))
    with pytest.raises(AgentStopped, match="LEARN: the lab refused 2 answers of the reviewer"):
        run_loop(one, ClaudeDesigner(one))
    assert "The answer of kind `review` is not valid" in api.calls("reviewer")[1].said_by("user")
    assert state.read_state(one).open.last() == "outcome"


def test_agents_get_their_page_their_skills_and_the_least_power(
    one: Campaign, serve: Any, monkeypatch: pytest.MonkeyPatch
):
    work = one.project.root
    tries = [
        [tool("Write", file_path=str(work / "notes.txt"), content="x")],
        [tool("Write", file_path=str(work / "kernels/scale/cpp/v7.cpp"), content="x")],
        [tool("Read", file_path="/etc/passwd")],
        [bash("touch escaped")],
        [tool("Write", file_path=str(work / ".warpsmith/scratch.txt"), content="x")],
        [tool("Skill", skill="warpsmith:baseline")],
        [bash("warpsmith --version && warpsmith status")],
    ]
    stranger = work / "bin" / "warpsmith"
    stranger.parent.mkdir()
    stranger.write_text("#!/bin/sh\necho another\n")
    stranger.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stranger.parent}:{os.environ['PATH']}")
    start.start_campaign(one.project, "scale", "cpu", "cpp")
    api = serve(designer(*tries))
    run_until("LEARN", one, ClaudeDesigner(one, model="haiku"))
    writes, asks, reviews = (api.calls(name) for name in ("designer", "orchestrator", "reviewer"))
    assert "# Design the next version" in writes[0].system
    assert "# C++" in writes[0].system
    assert writes[0].said_by("user").count("## Task: scale none -> cpp/v1") == 1
    assert {"Write", "Edit", "Bash", "Skill"} < set(writes[0].tools)
    assert {"Write", "Edit", "Agent", "AskUserQuestion"} & set(asks[0].tools) == set()
    assert {"Bash", "Write"} & set(reviews[0].tools) == set()
    assert "# Learn from a round" in asks[0].system
    assert '"verdict": "CLEAN"' in asks[0].said_by("user")
    assert {call.model for call in (*writes, *asks, *reviews)} == {"claude-haiku-5-5"}

    refused = [wrong for wrong, _ in writes[-1].results]
    assert refused == [True] * 4 + [False] * 4
    assert not (work / "escaped").exists()
    assert writes[-1].results[6][1].startswith(f"0.1.0\n{one.name}: scale on cpu")


def test_the_budget_ends_a_run_and_another_run_goes_on(one: Campaign, lab: Any, serve: Any):
    serve(designer(*[[bash("warpsmith --version")]] * 9))
    with pytest.raises(AgentStopped, match=r"^The budget of \$0.10 is spent\.$"):
        run_loop(one, ClaudeDesigner(one, budget=0.1))
    (cut_off,) = spends(one)
    assert (cut_off.phase, cut_off.ended) == ("DESIGN", "budget")
    assert 0.1 <= cut_off.usd < 0.2
    serve()
    assert len(run_loop(one, ClaudeDesigner(one)).records) == 1
    assert spends(one)[0] == cut_off


def test_a_budget_is_that_of_all_questions_of_a_run(one: Campaign, lab: Any, serve: Any):
    """The reviewer's question alone would be within it."""
    api = serve()
    with pytest.raises(AgentStopped, match="budget"):
        run_loop(one, ClaudeDesigner(one, budget=0.06))
    assert [spend.ended for spend in spends(one)] == ["done", "budget"]
    assert api.calls("orchestrator") == []
    assert state.read_state(one).open.last() == "outcome"


def test_an_overloaded_api_is_asked_again(one: Campaign, serve: Any):
    api = serve(designer([http_error(529)]))
    run_until("DESIGN", one, ClaudeDesigner(one))
    assert len(api.calls("designer")) == 3
    assert [spend.ended for spend in spends(one)] == ["done"]


@pytest.mark.parametrize(
    ("failure", "ended", "said"),
    [
        (http_error(529), "api", "529"),
        (http_error(400, "invalid_request_error"), "api", "400 fake invalid_request_error"),
        (http_error(401, "authentication_error"), "api", "Log in with `claude`, or set ANTHROPIC_API_KEY."),
        (cut(), "done", "left no new version"),
    ],
    ids=["529", "400", "401", "cut"],
)
def test_an_api_that_keeps_failing_ends_the_run(
    one: Campaign, lab: Any, serve: Any, failure: Block, ended: str, said: str
):
    serve(designer(*[[failure]] * 99))
    with pytest.raises(AgentStopped, match=r"^DESIGN: ") as caught:
        run_loop(one, ClaudeDesigner(one))
    assert said in str(caught.value)
    assert {spend.ended for spend in spends(one)} == {ended}
    assert (one.records(), lab.judged) == ([], [])
    serve()
    run_until("DESIGN", one, ClaudeDesigner(one))
    assert state.read_state(one).open.last() is None
    assert state.read_state(one).open.spent[:1] == state.read_state(one).spent[:1]


def test_a_plan_that_stagnation_refuses_is_sent_back(work: Path, serve: Any):
    campaign = start.start_campaign(projects.find_project(work), "scale", "cpu", "cpp", peers=())
    played = Played({"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ROLLBACK"})
    while len(campaign.records()) < 3:
        played.round(campaign)
    directions = [
        {"name": name, "category": category, "expected": "some"}
        for name, category in (("loops", "compute"), ("bytes", "memory"), ("threads", "latency"))
    ]
    api = serve(orchestrator([PLAN, {**PLAN, "review": directions}]))
    run_until("STRATEGIZE", campaign, ClaudeDesigner(campaign))
    plan = state.read_state(campaign).open.plan
    assert plan
    assert len(plan.review) == 3
    first, second = (call.said_by("user") for call in api.calls("orchestrator"))
    assert "Note: 2 rollbacks in a row: the plan needs a review" in first
    assert "a review of at least 3 different directions" in second
    assert PLAN["hypothesis"] in second.partition("Your last answer was:")[2]
    assert len(spends(campaign)) == 2


class Played(kit.toys.Script):  # type: ignore[misc, name-defined]
    """A scripted campaign in C++."""

    def selection(self, campaign: Campaign, now: state.CampaignState) -> None:
        from warpsmith.campaign.rounds import open_round
        from warpsmith.core.campaign import Selection

        open_round.record_selection(campaign, Selection(language="cpp", because="It is simple."))


def test_a_plan_that_is_refused_again_ends_the_run(two: Campaign, serve: Any):
    api = serve(orchestrator([{**PLAN, "entries": ["no-such-entry"]}]))
    with pytest.raises(AgentStopped, match="STRATEGIZE: the lab refused 2 proposals") as caught:
        run_loop(two, ClaudeDesigner(two))
    assert "no-such-entry" in str(caught.value)
    assert len(api.calls("orchestrator")) == 3  # a lesson, two plans
    assert state.read_state(two).open.last() == "selection"


def test_the_language_is_asked_for_where_more_than_one_fits(
    two: Campaign, serve: Any, monkeypatch: pytest.MonkeyPatch
):
    Played({"v1": "ACCEPT"}).round(two)
    monkeypatch.setattr(claude, "target_languages", lambda *_: ["cpp", "triton"])
    api = serve()
    run_until("SELECT", two, ClaudeDesigner(two))
    assert "The lab can time on this target: cpp, triton." in api.calls("orchestrator")[0].said_by("user")
    assert [(spend.phase, spend.agent) for spend in spends(two)] == [("SELECT", "orchestrator")]
    selection = state.read_state(two).open.selection
    assert selection
    assert selection.because == "Loops are all that it needs."


def test_nobody_is_logged_in(one: Campaign, serve: Any, monkeypatch: pytest.MonkeyPatch):
    api = serve()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with pytest.raises(AgentStopped, match=r"Not logged in .*ANTHROPIC_API_KEY"):
        run_loop(one, ClaudeDesigner(one))
    assert api.calls() == []


def test_an_answer_without_its_form_is_asked_for_again(two: Campaign, serve: Any):
    said: list[Sequence[Block]] = [[text("I would vectorise it.")]] * 9
    serve(Actor("prose", is_plan, [*said], loop=True))
    with pytest.raises(AgentStopped, match="without an answer that fits the given schema"):
        run_loop(two, ClaudeDesigner(two))


def is_plan(call: Call) -> bool:
    return "STRATEGIZE of round" in call.said_by("user")


def test_a_designer_that_writes_nothing_is_asked_once_more(one: Campaign, serve: Any):
    nothing = [text("I could not.")]
    api = serve(designer(nothing))
    run_until("DESIGN", one, ClaudeDesigner(one))
    assert "left no new version at kernels/scale/cpp/v1.cpp" in api.calls("designer")[1].said_by("user")
    assert len(spends(one)) == 2


def test_ctrl_c_tells_the_cost_and_sets_the_draft_aside(one: Campaign, serve: Any):
    def pressed(_: Call) -> Sequence[Block]:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
        return [text("too late")]

    serve(designer(lambda call: [written(call)], pressed))
    with pytest.raises(KeyboardInterrupt):
        run_loop(one, ClaudeDesigner(one))
    (stopped,) = spends(one)
    assert (stopped.ended, stopped.usd > 0) == ("interrupted", True)
    assert not (one.project.kernels / "scale/cpp/v1.cpp").exists()
    draft = one.open / "draft-cpp-v1.cpp"
    assert "volatile float" in draft.read_text()
    api = serve()
    run_until("DESIGN", one, ClaudeDesigner(one))
    assert f"left a draft, {one.project.relative(draft)}" in api.calls("designer")[0].said_by("user")


def hangs(call: Call) -> Sequence[Block]:
    time.sleep(2)
    return [written(call)]


def test_the_terminals_ctrl_c_ends_the_command(one: Campaign, serve: Any):
    api = serve(designer([bash("warpsmith --version")], hangs))
    process = subprocess.Popen(
        command("--resume"), cwd=one.project.root, start_new_session=True, text=True, stderr=subprocess.PIPE
    )
    wait(lambda: len(api.calls("designer")) == 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of the group hears it
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "warpsmith: Interrupted. DESIGN of round 1 is due" in said
    assert "The campaign has cost $0.0" in said
    assert "Continue with `warpsmith optimize scale --designer claude --resume`." in said


def test_a_killed_run_leaves_no_agent_behind_and_is_gone_on_with(one: Campaign, lab: Any, serve: Any):
    api = serve(designer([bash("warpsmith --version")], hangs))
    process = subprocess.Popen(command("--resume"), cwd=one.project.root, stderr=subprocess.DEVNULL)
    wait(lambda: len(api.calls("designer")) == 2)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(children, timeout=5)
    assert (len(gone), alive) == (len(children), [])
    time.sleep(2.2)
    assert len(api.calls("designer")) == 2
    assert not (one.project.kernels / "scale/cpp/v1.cpp").exists()
    serve()
    assert len(run_loop(one, ClaudeDesigner(one)).records) == 1


def wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_stop_is_one_sentence_and_exit_code_7(one: Campaign, serve: Any):
    serve(designer(*[[http_error(400, "invalid_request_error")]] * 99))
    done = subprocess.run(
        command("--campaign", one.name), cwd=one.project.root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 7
    last = done.stderr.splitlines()[-1]
    assert last.startswith("warpsmith: DESIGN: cpp-specialist ended")
    assert "API Error: 400 fake" in last
    assert "DESIGN of round 1 is due" in last
    assert f"Continue with `warpsmith optimize scale --designer claude --campaign {one.name}`." in last
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)  # a whole judgement
def test_with_the_real_lab(
    judging: Path, scripted_clock: dict[str, str], one: Campaign, serve: Any, monkeypatch: pytest.MonkeyPatch
):
    for name, value in scripted_clock.items():
        monkeypatch.setenv(name, value)
    python = scripted_clock["WARPSMITH_PYTHON"]
    checked = [lambda call: [written(call)], lambda call: [bash(f"warpsmith judge {due(call)} --check")]]
    api = serve(designer(*checked))
    done = subprocess.run(
        command("--resume", "--max-budget-usd", "5", python=python),
        cwd=judging, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "PASS: cpp/v1 is correct" in api.calls("designer")[-1].last
    (record,) = one.records()
    assert record.outcome.verdict.accepted
    assert [spend.agent for spend in record.spent] == ["cpp-specialist", "reviewer", "orchestrator"]
    total = campaign_status(state.read_state(one)).spent
    assert total
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Claude's agents design;")
    assert any(line.startswith("round 1  LEARN") and line.endswith(f" {total.cost}") for line in lines)
    assert f"cost: {total.text}\n" in done.stdout
    assert (one.folder / "final.json").is_file()
    again = subprocess.run(
        command("--resume", python=python), cwd=judging, capture_output=True, text=True, timeout=60
    )
    assert (again.returncode, "No campaign of scale is unfinished" in again.stderr) == (2, True)

"""Transfer in a campaign: the program is timed and traced, and what is missing is said."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
import repo_kit
from repo_kit import faster

from warpsmith import project as projects
from warpsmith.core.campaign import Plan
from warpsmith.core.evaluation import Interval, Verdict
from warpsmith.core.repo import ProgramReach, RepoEvaluation, RepoSettings, TimeBucket
from warpsmith.repo import rounds, settings
from warpsmith.repo.store import RepoCampaign
from warpsmith.repo.transfer import measurement
from warpsmith.repo.transfer.description import transfer_lines

PROGRAM = "from pkg.kernel import cost, total\nfor _ in range(3):\n    total(9)\nassert cost(1) < 4.5\n"
PLAN = Plan(
    hypothesis="Fewer steps cost less time.", category="algorithm", predicted_gain=0.3, metric="time_us",
    expected_change=0,
)  # fmt: skip


def judged(campaign: RepoCampaign, source: str) -> RepoEvaluation:
    rounds.plan_round(campaign, PLAN)
    (campaign.state / "edit" / repo_kit.KERNEL).write_text(source)
    return rounds.judge_round(campaign, None, lambda _: None)


@pytest.fixture
def with_program(tmp_path: Path) -> RepoCampaign:
    text = f'{repo_kit.CONTRACT}program = "PYTHONPATH=. {sys.executable} program.py"\n'
    root = repo_kit.make(tmp_path.resolve() / "repo", text, {"program.py": PROGRAM})
    return rounds.start_repo_campaign(projects.find_project(root), "one", lambda _: None)


def test_a_program_is_timed_and_traced(with_program: RepoCampaign):
    evaluation = judged(with_program, faster(2))
    reach = evaluation.transfer
    assert reach is not None
    assert (reach.traced, reach.calls, reach.candidate_calls) == ("program", 4, 4)
    assert reach.functions == {"total": 3, "cost": 1}
    assert sum(bucket.share for bucket in reach.buckets) == pytest.approx(1)
    share = reach.kernel_share
    assert share is not None
    assert reach.predicted == pytest.approx(1 / (1 - share / 2))
    assert reach.seconds is not None
    assert reach.measured == pytest.approx(reach.seconds[0] / reach.seconds[1])
    assert reach.missing == ()
    assert [line.partition(":")[0] for line in transfer_lines(evaluation)] == [
        "Time of the program",
        "Calls of the kernel",
        "The whole program",
    ]


def test_a_change_that_breaks_the_program_is_rolled_back(with_program: RepoCampaign):
    source = faster(2).replace("return STEPS * n", "return STEPS * n if n > 1 else 99 * n")
    evaluation = judged(with_program, source)
    assert evaluation.decision.verdict is Verdict.ROLLBACK
    assert "`program`" in evaluation.decision.reason
    assert "AssertionError" in evaluation.decision.reason
    assert transfer_lines(evaluation) == ["Not measured: nothing was accepted."]


def test_without_a_program_the_benchmark_is_traced(campaign: RepoCampaign):
    evaluation = judged(campaign, faster(2))
    reach = evaluation.transfer
    assert reach is not None
    assert (reach.traced, reach.calls, reach.measured) == ("benchmark", 18, None)
    assert "`program` is not in the settings" in transfer_lines(evaluation)[-1]


def command(text: str) -> str | None:
    base = {"kernel": ["a b.py"], "test": "t", "benchmark": "b", "keys": ["n"], "metrics": {"ms": "lower"}}
    contract = RepoSettings.model_validate(base)
    return measurement.traced_command(contract, text, Path("/r.json"), Path("/repository"), "calls")


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("PYTHONPATH=src python3 -u -X dev a.py --x", "PYTHONPATH=src python3 -u -X dev", ["a.py", "--x"]),
        ("cd x && /opt/bin/python -m pytest -q", "cd x && /opt/bin/python", ["-m", "pytest", "-q"]),
    ],
)
def test_the_trace_takes_the_place_of_the_script(text: str, before: str, after: list[str]):
    traced = command(text)
    assert traced is not None
    assert traced.startswith(f"{before} /")
    words = shlex.split(traced)
    assert words[-len(after) :] == after
    assert words[-len(after) - 4 : -len(after)] == ["/r.json", "/repository", '["a b.py"]', "calls"]


@pytest.mark.parametrize("text", ["torchrun a.py", "python -c 'x'", "./python-tool a.py"])
def test_other_commands_are_not_traced(text: str):
    assert command(text) is None


@pytest.mark.parametrize(
    ("predicted", "interval", "words"),
    [
        (1.3, (1.2, 1.4), ": as predicted"),
        (1.3, (1.05, 1.1), "less than predicted"),
        (1.1, (1.2, 1.4), "more than predicted"),
        (1.01, (0.97, 1.04), "too small a gain"),
    ],
)
def test_the_program_is_held_against_the_prediction(
    campaign: RepoCampaign, predicted: float, interval: tuple[float, float], words: str
):
    low, high = interval
    reach = ProgramReach(
        traced="program", buckets=(TimeBucket(name="the kernel", share=0.5),), calls=0, predicted=predicted,
        measured=low, interval=Interval(low=low, high=high), seconds=(low, 1.0),
    )  # fmt: skip
    first = rounds.read_repo_state(campaign).rounds[0].record.judgement
    lines = transfer_lines(first.model_copy(update={"transfer": reach}))
    assert words in lines[-1]
    assert "none was seen" in lines[1]


def test_the_hash_of_settings_without_a_program_did_not_change(campaign: RepoCampaign):
    contract = campaign.manifest.contract
    assert '"program"' not in contract.model_dump_json(exclude={"program"})
    assert settings.settings_sha256(contract) != settings.settings_sha256(
        contract.model_copy(update={"program": "python a.py"})
    )

"""`warpsmith repo`: a whole round by its commands, their words, exit codes and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import repo_kit
from repo_kit import faster
from typer.testing import CliRunner, Result

from warpsmith.cli.main import load_app
from warpsmith.errors import MissingInput, Misuse, WarpsmithError
from warpsmith.repo.store import RepoCampaign
from warpsmith.reporting import repo as pages

PLAN = ("plan", "--hypothesis", "Fewer steps cost less time.", "--predict", "0.3")


@pytest.fixture
def inside(campaign: RepoCampaign, monkeypatch: pytest.MonkeyPatch) -> RepoCampaign:
    monkeypatch.chdir(campaign.project.root)
    return campaign


def run(*arguments: str, code: int = 0) -> str:
    done: Result = CliRunner().invoke(load_app(), ["repo", *arguments])
    if isinstance(done.exception, WarpsmithError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.stdout


def kernel(campaign: RepoCampaign) -> Path:
    return campaign.state / "edit" / repo_kit.KERNEL


def test_a_round_by_its_commands(inside: RepoCampaign):
    due = run("next")
    assert "STRATEGIZE" in due
    assert "CATEGORY is one of algorithm, memory" in due
    assert json.loads(run("next", "--json"))["step"] == "plan"
    run(*PLAN, "--category", "memory")
    kernel(inside).write_text(faster(2))
    judged = run("judge")
    assert judged.startswith("ACCEPT (quick): +100.0%")
    assert "n=10 kind=a forward + backward: 120 -> 60, 2.00x [2.00, 2.00]" in judged
    assert re.match(
        r"Round 2: ACCEPT, commit [0-9a-f]{12} on refs/heads/optimize/one\.",
        run("close", "--learn", "Two steps are enough."),
    )
    run(*PLAN)
    kernel(inside).write_text(faster(9))
    assert json.loads(run("judge", "--full", "--json", code=1))["decision"]["verdict"] == "ROLLBACK"
    assert "Round 3: ROLLBACK, rolled back." in run("close", "--nothing", "Nine is more than two.")
    with pytest.raises(MissingInput, match="run `warpsmith repo validate --campaign one`"):
        run("report")
    assert run("validate").startswith("ACCEPT (full)")
    page = run("report")
    assert "2.00x [2.00, 2.00]" in page
    assert "rounds/003/change.diff" in page
    assert "## Transfer" in page
    assert "- Calls of the kernel: " in page
    status = run("status")
    assert "round 2: ACCEPT +100.0% (quick)" in status
    assert json.loads(run("status", "--json"))["records"][1]["plan"]["category"] == "memory"
    assert page == pages.repo_page(pages.repo_contents(inside))


def test_the_workspace_by_its_commands(inside: RepoCampaign):
    assert run("workspace", "one", "--kernel", repo_kit.KERNEL) == "devlog/repo/one/src/pkg/kernel.py\n"
    assert run("sync", "one") == ".warpsmith/repo/one/edit/pkg/kernel.py\n"


def test_the_worktree_belongs_to_its_campaign(inside: RepoCampaign, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(kernel(inside).parent)
    assert "due: STRATEGIZE" in run("status")


def test_what_deserves_a_look_is_named(inside: RepoCampaign):
    run(*PLAN)
    kernel(inside).write_text(faster(2) + "\n\nSEEN = {}\n\n\ndef known(x):\n    return SEEN.get(id(x))\n")
    assert re.search(r"look: pkg/kernel\.py, line \d+: .*id\(", run("judge"))


def test_check_keeps_nothing(inside: RepoCampaign):
    before = sorted(inside.project.root.rglob("*"))
    text = run("check")
    assert "The contract holds: 6 figures" in text
    assert [path for path in sorted(inside.project.root.rglob("*")) if path not in before] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("judge", "--quick", "--full"), "not both"),
        (("close",), "Give one of --learn"),
        (("close", "--learn", "a", "--nothing", "b"), "Give one of --learn"),
        (("close", "--learn", "short"), "The lesson does not validate"),
        (("plan", "--hypothesis", "Something is faster.", "--predict", "1", "--entry", "none-such"), "none-such"),
        (("plan", "--hypothesis", "short", "--predict", "1"), "The plan does not validate: `hypothesis`"),
        (
            ("plan", "--hypothesis", "Something is faster.", "--predict", "1", "--category", "logic"),
            "`logic` is no category of change; choose one of algorithm,",
        ),
        (("status", "--campaign", "two"), "No repo campaign `two`; there are: one"),
    ],
)
def test_misuse_is_one_sentence(inside: RepoCampaign, arguments: tuple[str, ...], words: str):
    with pytest.raises(Misuse) as raised:
        run(*arguments)
    assert words in str(raised.value)

"""Forks: a project of its own for a contender, which leaves the campaign as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from campaign_kit import Script, plan

from warpsmith.campaign.rounds import open_round, state
from warpsmith.campaign.rounds.due_phase import find_due_phase
from warpsmith.core.campaign import Selection
from warpsmith.driver.contenders import fork


@pytest.fixture
def planned(campaign: Any) -> Any:
    """A campaign at STRATEGIZE of its second round."""
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "plan")
    return campaign


def contents(folder: Path) -> dict[str, bytes]:
    inside = [path for path in folder.rglob("*") if path.is_file() and ".warpsmith" not in path.parts]
    return {str(path): path.read_bytes() for path in inside}


def test_what_happens_in_a_fork_stays_there(planned: Any):
    before = contents(planned.project.root)
    own = fork.fork_campaign(state.read_state(planned), 1)
    assert own.name == planned.name
    assert own.project.root == fork.forks_folder(planned) / "002-1"
    open_round.record_plan(own, plan())
    due = find_due_phase(state.read_state(own))
    assert (due.step, due.produces) == ("design", "kernels/scale/toy/v2.toy")
    (own.project.root / due.produces).write_text("multiply by 2\n")
    assert find_due_phase(state.read_state(own)).step == "verdict"
    assert contents(planned.project.root) == before
    assert (fork.forks_folder(planned).parent / ".gitignore").read_text() == "*\n"
    assert find_due_phase(state.read_state(planned)).step == "plan"


def test_it_has_the_rest_of_the_project_by_links(planned: Any, make: Any):
    other = planned.project.kernels / "other"
    other.mkdir()
    (planned.folder.parent / "older").mkdir()
    planned.project.knowledge.mkdir(parents=True, exist_ok=True)
    own = fork.fork_campaign(state.read_state(planned), 1)
    assert (own.project.kernels / "other").resolve() == other
    assert (own.folder.parent / "older").is_symlink()
    assert own.project.knowledge.resolve() == planned.project.knowledge
    assert not own.folder.is_symlink()
    assert not (own.project.kernels / "scale").is_symlink()


def test_an_interrupted_one_goes_on_while_it_fits(planned: Any):
    own = fork.fork_campaign(state.read_state(planned), 1)
    open_round.record_plan(own, plan())
    assert fork.fork_campaign(state.read_state(planned), 1).read_part("plan", type(plan())) == plan()
    open_round.record_selection(planned, Selection(language="other", because="It has more control."))
    assert not (fork.fork_campaign(state.read_state(planned), 1).open / "plan.json").exists()


def test_an_unfinished_copy_is_made_again(planned: Any):
    own = fork.fork_campaign(state.read_state(planned), 1)
    (own.project.root / "basis").unlink()
    (own.open / "selection.json").unlink()
    assert (fork.fork_campaign(state.read_state(planned), 1).open / "selection.json").exists()

"""Process of one contender: `python -m warpsmith.driver.contenders.design FORK PARENT` designs and checks it."""

from __future__ import annotations

from pathlib import Path

from warpsmith import files, project
from warpsmith.campaign import lab_requests
from warpsmith.campaign.history import store
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.jobs.send import Conditions
from warpsmith.campaign.rounds.due_phase import find_due_phase
from warpsmith.campaign.rounds.state import CampaignState, read_state
from warpsmith.core.evaluation import Evaluation, Verdict
from warpsmith.core.text import Tell
from warpsmith.driver.contenders.recipe import Recipe
from warpsmith.driver.designer import Designer
from warpsmith.errors import AgentStopped, MachineFailed
from warpsmith.lab.machine.processes import run_in_folder
from warpsmith.ledger.store import write_model

RECIPE, CHECKED = "recipe.json", "checked.json"
"""Files of a fork: the recipe of its designer, and the gate's check of the version that it left."""

_TRIES = 2
"""Checks of one version before a failing machine ends the contender."""


def main() -> None:
    """Design and check the contender of the fork that the command line names."""
    run_in_folder(_design_in_fork)


def _design_in_fork(folder: Path, tell: Tell) -> None:
    campaign = store.find_campaign(project.find_project(folder), folder.parent.name)
    recipe = Recipe.model_validate_json((folder / RECIPE).read_bytes())
    design_contender(campaign, recipe.create(campaign, tell), tell)


def read_check(fork: Campaign) -> Evaluation | None:
    """Return the gate's check of the version that a fork's designer left; None if there is none of this file."""
    path, solution = fork.project.root / CHECKED, read_state(fork).solution
    if not path.is_file() or solution is None or not solution.path.is_file():
        return None
    check = Evaluation.model_validate_json(path.read_bytes())
    return check if check.provenance.solution_sha256 == files.file_sha256(solution.path) else None


def design_contender(fork: Campaign, designer: Designer, tell: Tell) -> Evaluation:
    """Have the contender of a fork designed, check it, and write the check.

    A designer that can change its version gets the failure of the check as a refusal, while it has attempts left.

    Raises:
        AgentStopped: the designer left no new version.
        MachineFailed: the machine cannot check it.
    """
    refused, check = "", None
    for attempt in range(1, designer.tries + 1):
        state = read_state(fork)
        if refused or find_due_phase(state).step == "design":
            refused = _design(state, designer, refused)
            if refused:
                continue
        check = _check(fork, tell)
        if check.correct or not designer.fixes or attempt == designer.tries:
            break
        refused = check.decision.reason
    if check is None:
        raise AgentStopped(refused)
    write_model(fork.project.root / CHECKED, check)
    return check


def _design(state: CampaignState, designer: Designer, refused: str) -> str:
    """Ask for the version; return why the lab refuses it, or nothing."""
    if state.solution is None:
        raise AssertionError("a contender is designed after its plan")
    designer.design(state, find_due_phase(state), state.solution.path, refused)
    due = find_due_phase(read_state(state.campaign))
    if due.step != "design":
        return ""
    return " ".join([f"The {designer.name} designer left no new version at {due.produces}.", *due.notes])


def _check(fork: Campaign, tell: Tell) -> Evaluation:
    solution = read_state(fork).solution
    if solution is None:
        raise AssertionError("a version is checked after it was designed")
    for _ in range(_TRIES):
        check = lab_requests.judge_solution(fork.project, fork.manifest, solution, tell, Conditions(timed=False))
        if check.correct or check.decision.verdict is not Verdict.INVALID:
            return check
    raise MachineFailed(f"The machine failed {_TRIES} checks, most recently: {check.decision.reason}")


if __name__ == "__main__":
    main()

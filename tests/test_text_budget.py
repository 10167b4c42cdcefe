"""What an agent must carry for a round stays small; `pytest -s` prints the counts."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from warpsmith import project as projects
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import state
from warpsmith.core.campaign import RoundRecord
from warpsmith.driver import brief
from warpsmith.driver.answers.profile import describe_profile
from warpsmith.driver.task import render_task
from warpsmith.reporting import terminal

ROOT = Path(__file__).parents[1]
CHARACTERS_A_TOKEN = 3.5
"""Cautious: English with code in it has about four."""
CAMPAIGNS = {"rmsnorm": "rmsnorm-cpp-cpu-20261121", "softmax": "softmax-triton-h200-20261121"}


def tokens(text: str) -> int:
    return round(len(text) / CHARACTERS_A_TOKEN)


@pytest.fixture(params=CAMPAIGNS)
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[store.Campaign, RoundRecord]:
    """A campaign that was run, with its last round open again at DESIGN; and that round."""
    op, name = request.param, CAMPAIGNS[request.param]
    for part in (f"kernels/{op}", f"devlog/{op}/{name}"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "warpsmith.toml").write_text("")
    campaign = store.find_campaign(projects.find_project(tmp_path), name)
    last = campaign.records()[-1]
    shutil.rmtree(campaign.rounds / f"{last.round:03d}")
    (campaign.folder / "final.json").unlink()
    assert last.profile is not None
    for step, model in (("profile", last.profile), ("selection", last.selection), ("plan", last.plan)):
        campaign.write_part(step, model)
    language, _, version = last.solution.partition("/")
    next((campaign.project.kernels / op / language).glob(f"{version}.*")).unlink()
    return campaign, last


def printed(renderable: object) -> str:
    out = io.StringIO()
    Console(file=out, width=200, highlight=False, soft_wrap=True).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_a_round(reopened, capsys):
    campaign, last = reopened
    skill = (ROOT / "skills" / "orchestrate" / "SKILL.md").read_text()
    now, manifest = state.read_state(campaign), campaign.manifest
    assert last.profile is not None
    summary = describe_profile(last.profile, manifest.target_op, manifest.target, now)
    parts = {
        "orchestrator's skill": skill,
        "profile summary": summary,
        "designer's brief": render_task(brief.write_brief(now)),
        "verdict": printed(terminal.verdict_table(last.evaluation, "devlog/rounds/open/verdict.json")),
    }
    counts = {name: tokens(text) for name, text in parts.items()}
    with capsys.disabled():
        print(f"\n{campaign.name}: {counts}, in all {sum(counts.values())} tokens")  # noqa: T201
    assert sum(counts.values()) < 6000
    assert counts["profile summary"] < 600

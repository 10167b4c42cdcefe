"""`warpsmith evidence`: what it prints, as text and as JSON, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from campaign_kit import NOTHING, OP, evaluation, make_project, profile, use_toys
from typer.testing import CliRunner, Result

from warpsmith.campaign import drift, rerun, start
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import open_round
from warpsmith.cli.lab import evidence
from warpsmith.core.evaluation import GATE_VERSION, Energy, Evaluation
from warpsmith.core.evidence import Claim, Rerun, Standing
from warpsmith.errors import MissingInput
from warpsmith.lab.operator import definition_file
from warpsmith.reporting import pages


def call(*arguments: str) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)
    evidence.register(app)
    return CliRunner().invoke(app, ["evidence", *arguments])


def judged(campaign: store.Campaign, path: Path) -> Evaluation:
    found = evaluation(path, speedup=None)
    digest = definition_file.definition_sha256(campaign.project.definition_path(OP))
    solution = campaign.project.relative(path)
    changed = found.provenance.model_copy(update={"definition_sha256": digest, "solution": solution})
    return found.model_copy(update={"provenance": changed})


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> store.Campaign:
    """One round, and its pages."""
    use_toys(monkeypatch)
    project = make_project(tmp_path / "project")
    (project.root / "warpsmith.toml").write_text("")
    monkeypatch.chdir(project.root)
    made = start.start_campaign(project, OP, "cpu", "toy", max_iterations=1)
    path = project.kernels / OP / "toy" / "v1.toy"
    path.parent.mkdir(exist_ok=True)
    path.write_text("one")
    open_round.record_verdict(made, judged(made, path))
    open_round.record_profile(made, profile(path))
    open_round.record_outcome(made)
    open_round.close_round(made, NOTHING)
    pages.render_campaign(made)
    return made


def test_all_is_well(campaign: store.Campaign) -> None:
    record = f"devlog/{OP}/{campaign.name}/rounds/001"
    done = call("check")
    assert done.exit_code == 0, done.output
    first, older = done.stdout.splitlines()
    assert first.startswith("evidence: 1 round, ")
    assert first.endswith(" citations, 0 stale")
    assert older == (
        f"kernels/{OP}/toy/v1.toy was judged by gate 1; this is gate {GATE_VERSION}:"
        f" `warpsmith evidence rerun {record}` renews it"
    )
    standing = Standing.model_validate_json(call("check", "--json").stdout)
    assert (standing.rounds, len(standing.older), standing.stale) == (1, 1, ())


def test_stale_is_an_error(campaign: store.Campaign) -> None:
    report = campaign.folder / "report.md"
    report.write_text(report.read_text().replace("1 round", "9 rounds"))
    done = call("check")
    assert done.exit_code == 1
    assert (
        f"report.md is not what its records give; run `warpsmith report --campaign {campaign.name}`."
        in done.stdout
    )
    pages.render_campaign(campaign)
    assert call("check").exit_code == 0, "what the message says mends it"
    (campaign.project.kernels / OP / "toy" / "v1.toy").write_text("two")
    done = call("check", "--json")
    assert done.exit_code == 1
    assert "v1.toy has changed" in json.loads(done.stdout)["stale"][0]["message"]


def test_a_corrupt_record_is_one_line(campaign: store.Campaign) -> None:
    path = campaign.rounds / "001" / "record.json"
    path.write_bytes(path.read_bytes()[:-100])
    done = call("check")
    assert done.exit_code == 1
    assert "rounds/001/record.json is torn or was edited" in done.stdout


@pytest.mark.parametrize(("claim", "code"), [("HOLDS", 0), ("WEAKER", 1), ("REFUTED", 1), ("UNKNOWN", 4)])
def test_rerun(campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch, claim: str, code: int) -> None:
    before = campaign.records()[0].evaluation
    provenance = before.provenance.model_copy(
        update={"gate_version": GATE_VERSION, "measured": "2026-11-22 11:00"}
    )
    version = campaign.project.kernels / OP / "toy" / "v1.toy"
    after = evaluation(version, speedup=1.2).model_copy(update={"provenance": provenance})
    path = campaign.rounds / "001" / "record.json"
    made = Rerun(
        record="r", record_sha256="0" * 64, claim=Claim(claim), reason="As the numbers say.", evaluation=after
    )

    def scripted(
        project: Any, record: Path, target: str | None, tell: Any, context: str | None
    ) -> tuple[StoredEvaluation, Rerun, Path]:
        assert (record, target, context) == (Path("rounds/001"), "cpu", None)
        return StoredEvaluation(path, "0" * 64, before), made, campaign.folder / "reruns" / "001-1.json"

    monkeypatch.setattr(rerun, "rerun_record", scripted)
    done = call("rerun", "rounds/001", "--target", "cpu")
    assert done.exit_code == code
    lines = done.stdout.splitlines()
    assert " ".join(lines[0].split()) == f"gate 1, 2026-11-21 10:00 gate {GATE_VERSION}, 2026-11-22 11:00"
    assert lines[1].split() == ["verdict", "ACCEPT", "ACCEPT"]
    assert " ".join(lines[2].split()) == "vs best - 1.20x [1.00, 1.30]"
    assert lines[-2:] == [f"{claim}: As the numbers say.", f"devlog/{OP}/{campaign.name}/reruns/001-1.json"]
    as_json = call("rerun", "rounds/001", "--target", "cpu", "--json")
    assert (as_json.exit_code, Rerun.model_validate_json(as_json.stdout)) == (code, made)


def test_joules_stand_beside_each_other(campaign: store.Campaign) -> None:
    before = campaign.records()[0].evaluation
    after = evaluation(campaign.project.kernels / OP / "toy" / "v1.toy", speedup=1.2)
    assert not any("joules" in line for line in evidence._comparison_table(before, after))
    energy = Energy(workloads={}, aggregate=after.aggregates[0], floor=0.01)
    lines = list(evidence._comparison_table(before, after.model_copy(update={"energy": energy})))
    assert " ".join(lines[-1].split()) == "joules vs best - 1.20x [1.00, 1.30]"


def test_an_unknown_record(campaign: store.Campaign) -> None:
    assert isinstance(call("rerun", "nowhere").exception, MissingInput)


def test_why_best_versions_are_unknown_stands_once(
    campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several campaigns may have one best version, and a machine lacks one thing for all."""
    results = [
        drift.Drift(solution=name, record=record, differences="torch 1 (here 2)", claim=claim, reason=reason)
        for name, record, claim, reason in (
            ("a", "1", Claim.UNKNOWN, "No GPU."),
            ("a", "2", Claim.UNKNOWN, "No GPU."),
            ("b", "3", Claim.HOLDS, "as before"),
        )
    ]
    monkeypatch.setattr(drift, "measure_drift", lambda *_: iter(results))
    done = call("drift", "--target", "cpu")
    assert done.exit_code == 4
    *lines, advice = done.stdout.splitlines()
    assert lines == [
        "a: UNKNOWN under torch 1 (here 2)",
        "b: HOLDS under torch 1 (here 2): as before",
        "UNKNOWN: No GPU.",
    ]
    assert "--compiled FOLDER" in advice

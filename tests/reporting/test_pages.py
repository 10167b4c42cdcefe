"""Rendering to disk: byte for byte, only what changed, and never half because another campaign is broken."""

import hashlib
import json
import shutil
from collections import Counter

import pytest
import typer
from typer.testing import CliRunner

from warpsmith import files
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.cli.campaign import report as command
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.project import Project
from warpsmith.reporting import pages, plots


@pytest.fixture
def campaign(make, project):
    entry = project.knowledge / "optimizations" / "wide-loads.md"
    entry.parent.mkdir(parents=True)
    entry.write_text("an entry")
    return make.on_disk(project, make.manifest(), make.campaign_of_three())


@pytest.fixture
def undrawn(monkeypatch):
    """Without plots: they are slow, and have tests of their own."""
    monkeypatch.setattr(plots, "plots_unavailable", lambda: "matplotlib is not installed")


def content(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_page_is_there_and_rendered_again_byte_for_byte(campaign, project):
    pytest.importorskip("matplotlib")
    changed = pages.render_campaign(campaign)
    own = "devlog/norm/norm-triton-h200-20261121"
    assert [path.relative_to(project.root).as_posix() for path in changed] == [
        "devlog/README.md", "devlog/calibration.md", "devlog/calibration.svg", f"{own}/performance_trend.md",
        f"{own}/plots/roofline.svg", f"{own}/plots/trend.svg",
        f"{own}/report.md", f"{own}/rounds/001/summary.md", f"{own}/rounds/002/summary.md",
        f"{own}/rounds/003/summary.md", "devlog/norm/norm.md", "docs/knowledge/experience/h200/norm/triton.md",
        "docs/knowledge/index.md", "docs/knowledge/README.md",
    ]  # fmt: skip
    before = content(project.root)
    assert pages.render_campaign(campaign) == []
    for path in changed:
        path.unlink()
    assert pages.render_campaign(campaign) == changed
    assert content(project.root) == before


def test_only_what_changed_is_written(campaign, undrawn):
    pages.render_campaign(campaign)
    report = campaign.folder / pages.REPORT
    report.write_text("edited")
    assert pages.render_campaign(campaign) == [report]
    assert "edited" not in report.read_text()


def test_every_relative_link_resolves(campaign, undrawn, project):
    (project.root / "kernels/norm/triton").mkdir(parents=True)
    for version in ("v1", "v2", "v3"):
        (project.root / f"kernels/norm/triton/{version}.py").write_text("code")
    from markdown_it import MarkdownIt

    for path in pages.render_campaign(campaign):
        for token in MarkdownIt("commonmark").enable("table").parse(path.read_text()):
            for child in token.children or ():
                if child.type == "link_open":
                    target = child.attrs["href"].partition("#")[0]
                    assert not target or (path.parent / target).is_file(), (path, child.attrs)


def test_without_matplotlib_pages_are_the_same_and_plots_are_left_out(campaign, undrawn):
    pages.render_campaign(campaign)
    assert "draws the trend and the roofline in `plots/`" in (campaign.folder / pages.REPORT).read_text()
    assert not (campaign.folder / "plots").exists()


def test_records_are_never_touched(campaign, undrawn):
    records = content(campaign.rounds)
    pages.render_campaign(campaign)
    assert {name: data for name, data in content(campaign.rounds).items() if "summary" not in name} == records
    campaign.records()


def test_a_campaign_without_rounds(make, project, undrawn):
    campaign = make.on_disk(project, make.manifest(), [])
    pages.render_campaign(campaign)
    assert "No round is closed yet." in (campaign.folder / pages.REPORT).read_text()


def test_another_campaign_that_is_corrupt_is_only_said(make, project, campaign, undrawn):
    other = make.on_disk(
        project, make.manifest(campaign="norm-triton-h200-20261122"), make.campaign_of_three()[:1]
    )
    (other.rounds / "001" / "record.json").write_text("{")
    pages.render_campaign(campaign)
    assert "warpsmith resume --campaign norm-triton-h200-20261122" in (project.devlog / "norm/norm.md").read_text()


def test_a_corrupt_record_of_its_own_writes_nothing(campaign, project, undrawn):
    (campaign.rounds / "002" / "record.json").write_text("{")
    before = content(project.root)
    with pytest.raises(CorruptRecord):
        pages.render_campaign(campaign)
    assert content(project.root) == before


def test_folders_may_lie_elsewhere(make, tmp_path, undrawn):
    project = Project(tmp_path, tmp_path / "k", tmp_path / "notes" / "log", tmp_path / "wiki")
    campaign = make.on_disk(project, make.manifest(), make.campaign_of_three())
    pages.render_campaign(campaign)
    assert "(../../../../kernels/norm/triton/v3.py)" in (campaign.folder / pages.REPORT).read_text()
    assert (tmp_path / "wiki/experience/h200/norm/triton.md").is_file()


def test_a_rerun_is_told_and_nothing_else_is_to_be_rendered(make, campaign, project, undrawn):
    pages.render_campaign(campaign)
    record = campaign.rounds / "003" / "record.json"
    sha256 = hashlib.sha256(record.read_bytes()).hexdigest()
    for number, claim in ((1, "HOLDS"), (2, "UNKNOWN")):
        made = make.rerun(campaign.records()[2].evaluation, claim, record_sha256=sha256)
        files.write_file(
            campaign.folder / stored_evaluations.RERUNS / f"003-{number}.json", made.model_dump_json()
        )
    assert pages.render_campaign(campaign) == [
        campaign.folder / pages.REPORT,
        campaign.rounds / "003" / "summary.md",
    ]
    for path in (campaign.folder / pages.REPORT, campaign.rounds / "003" / "summary.md"):
        assert "on 2026-11-21: holds. It is as fast." in path.read_text()


def test_every_page_as_it_is_rendered_now(make, campaign, project, undrawn, monkeypatch):
    other = make.on_disk(project, make.manifest(campaign="norm-triton-h200-20261122"), make.campaign_of_three())
    (other.rounds / "001" / "record.json").write_text("{")
    for written in (pages.render_campaign(campaign), pages.render_campaign(campaign)):
        found = pages.expected_pages(project)
        assert {path: path.read_text() for path in found} == found
        of_knowledge = ("experience/h200/norm/triton.md", "index.md", "README.md")
        assert set(written) - set(found) <= {project.knowledge / name for name in of_knowledge}
    assert not [path for path in found if path.is_relative_to(other.folder)]
    report = campaign.folder / pages.REPORT
    monkeypatch.setattr(plots, "plots_unavailable", lambda: "")
    assert "The plots were not drawn" not in pages.expected_pages(project)[report], "it can be drawn here"
    report.write_text(pages.expected_pages(project)[report])
    monkeypatch.setattr(plots, "plots_unavailable", lambda: "matplotlib is not installed")
    assert pages.expected_pages(project)[report] == report.read_text(), "it was drawn elsewhere"


@pytest.fixture
def run(campaign, project, monkeypatch, undrawn):
    monkeypatch.chdir(project.root)
    monkeypatch.delenv("WARPSMITH_CAMPAIGN", raising=False)
    (project.root / "warpsmith.toml").write_text("")
    app = typer.Typer()
    command.register(app)
    app.callback()(lambda: None)
    return lambda *arguments: CliRunner().invoke(app, ["report", *arguments], catch_exceptions=False)


def test_command_prints_the_report_and_says_where_it_is(run):
    result = run()
    assert result.exit_code == 0
    assert "best: triton/v3 (round 3)" in result.stdout
    assert "devlog/norm/norm-triton-h200-20261121/report.md (11 pages changed)" in result.stderr


def test_command_gives_the_models_as_json(run):
    told = json.loads(run("--json", "--campaign", "norm-triton-h200-20261121").stdout)
    assert told["manifest"]["target_op"] == "norm"
    assert [record["round"] for record in told["records"]] == [1, 2, 3]
    shutil.rmtree("devlog")


def raced_by(make, project, number, sha256, status="PASSED", **speedups):
    found = make.race(sha256, status, **speedups)
    path = project.devlog / "norm" / "races" / f"{number:03d}-h200" / "record.json"
    files.write_file(path, found.model_dump_json())
    return path


def test_the_last_race_of_the_best_version_says_how_peers_fare(make, campaign, project, undrawn):
    def raced(number, sha256, status="PASSED", **speedups):
        return raced_by(make, project, number, sha256, status, **speedups)

    mine = campaign.records()[2].snapshot_sha256
    raced(1, mine, quack=1.6, liger=1.7)
    raced(2, mine, quack=1.4, liger=1.3)
    raced(3, "f" * 64, quack=1.01, liger=1.01)  # another version's
    raced(4, mine, quack=1.0).write_text("{")
    pages.render_campaign(campaign)
    page = (project.devlog / "README.md").read_text()
    assert "| 1.10x [1.06, 1.14] | 1.10x [1.06, 1.14] torch.compile |" in page, "the evaluation's peers stay"
    raced(5, mine, quack=1.05, liger=1.3)
    pages.render_campaign(campaign)
    assert "| 1.05x [1.01, 1.09] quack |" in (project.devlog / "README.md").read_text()
    raced(6, mine, "NEAR", quack=1.05, liger=1.3)
    pages.render_campaign(campaign)
    assert "| 1.05x [1.01, 1.09] quack (near) |" in (project.devlog / "README.md").read_text()
    folder = project.devlog / "norm" / "races" / "006-h200"
    before = (folder / "race.md").read_bytes()
    (folder / "race.md").unlink()
    assert folder / "race.md" in pages.render_campaign(campaign)
    assert (folder / "race.md").read_bytes() == before


def test_a_peer_that_raced_another_version_is_not_forgotten(make, campaign, project, undrawn):
    path = raced_by(make, project, 1, "f" * 64, quack=0.96, liger=1.7)
    pages.render_campaign(campaign)
    page = (project.devlog / "README.md").read_text()
    assert "| 1.10x [1.06, 1.14] | 0.96x [0.92, 1.00] quack (triton/v3) |" in page
    path.unlink()
    raced_by(make, project, 1, "f" * 64, **{"torch.compile": 0.5})
    pages.render_campaign(campaign)
    page = (project.devlog / "README.md").read_text()
    assert "| 1.10x [1.06, 1.14] | 1.10x [1.06, 1.14] torch.compile |" in page, "its own race counts"


def test_all_renders_every_campaign(make, project, campaign, run):
    other = make.on_disk(project, make.manifest(campaign="norm-triton-h200-20261122"), make.campaign_of_three())
    result = run("--all")
    assert result.stdout == ""
    assert (campaign.folder / pages.REPORT).is_file()
    assert (other.folder / pages.REPORT).is_file()
    assert (project.devlog / "calibration.md").is_file()
    before = content(project.root)
    assert "0 pages changed" in run("--all").stderr
    assert content(project.root) == before
    (other.rounds / "001" / "record.json").write_text("{")
    for path in (campaign.folder / pages.REPORT, other.folder / pages.REPORT):
        path.unlink()
    with pytest.raises(CorruptRecord):
        run("--all")
    assert not (campaign.folder / pages.REPORT).exists(), "nothing is written"
    with pytest.raises(Misuse, match="omit"):
        run("--all", "--json")


def test_all_reads_every_record_no_oftener_than_a_report_of_one(make, project, campaign, run, monkeypatch):
    for day in (22, 23):
        make.on_disk(project, make.manifest(campaign=f"norm-triton-h200-202611{day}"), make.campaign_of_three())
    read, real = [], pages.store.Campaign.closed_rounds
    monkeypatch.setattr(pages.store.Campaign, "closed_rounds", lambda self: read.append(self.name) or real(self))
    pages.render_campaign(campaign)
    one = sorted(read)
    read.clear()
    pages.render_all(project)
    assert max(Counter(read).values()) <= Counter(one)[campaign.name]


def test_a_race_at_the_end_is_rendered_and_only_for_the_version_it_raced(make, campaign, project, undrawn):
    raced = make.evaluation(
        "v3", results=[make.passed(share=0.95)], aggregates=[make.aggregate("torch.compile", 1.5)]
    )
    provenance = raced.provenance.model_copy(update={"solution_sha256": campaign.records()[2].snapshot_sha256})
    mine = raced.model_copy(update={"provenance": provenance})
    (campaign.folder / "final.json").write_text(mine.model_dump_json())
    pages.render_campaign(campaign)
    assert "| 95.0 % | 1.50x [1.46, 1.54] |" in (project.devlog / "README.md").read_text()
    (campaign.folder / "final.json").write_text(raced.model_dump_json())
    pages.render_campaign(campaign)
    assert "| 74.8 %, up to 80.0 % | 1.10x [1.06, 1.14] |" in (project.devlog / "README.md").read_text()

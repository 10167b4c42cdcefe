"""Expected pages: known by their hashes where nothing changed, rendered where anything did."""

import pytest

from warpsmith.campaign.evidence import evidence_check
from warpsmith.reporting import overview, pages, plots, templating


@pytest.fixture
def campaign(make, project, monkeypatch):
    """A campaign of three rounds whose pages are on disk."""
    monkeypatch.setattr(plots, "plots_unavailable", lambda: "matplotlib is not installed")
    made = make.on_disk(project, make.manifest(), make.campaign_of_three())
    pages.render_campaign(made)
    return made


@pytest.fixture
def fills(monkeypatch):
    """Names of the templates that were filled."""
    names, real = [], templating.fill_template

    def counted(template, **values):
        names.append(template)
        return real(template, **values)

    for module in (pages.report, overview, pages.calibration):
        monkeypatch.setattr(module, "fill_template", counted)
    return names


def test_the_second_time_nothing_is_rendered(campaign, project, fills):
    first = dict(pages.expected_pages(project))
    assert "summary" in fills
    fills.clear()
    assert dict(pages.expected_pages(project)) == first
    assert fills == []
    assert {path.name for path in first} == {
        "summary.md", "performance_trend.md", "report.md", "norm.md", "README.md", "calibration.md"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["report.md", "README.md"])
def test_a_page_that_was_edited_is_not_its_own_expectation(campaign, project, name):
    pages.expected_pages(project)
    path = (campaign.folder if name == "report.md" else project.devlog) / name
    text = path.read_text()
    path.write_text(text.replace("1.", "2.", 1))
    expected = pages.expected_pages(project)
    assert expected[path] == text
    findings = [finding.message for finding in evidence_check.check_evidence(project, expected).stale]
    assert any(f"{name} is not what its records give" in message for message in findings)
    path.unlink()
    assert expected[path] == text


def test_a_round_more_changes_the_campaign_and_the_overviews(make, campaign, project, fills):
    before = dict(pages.expected_pages(project))
    fills.clear()
    other = make.on_disk(project, make.manifest(campaign="norm-triton-h200-20261122"), make.campaign_of_three())
    expected = dict(pages.expected_pages(project))
    assert fills.count("summary") >= 3
    assert other.folder / pages.REPORT in expected
    assert expected[campaign.folder / pages.REPORT] == before[campaign.folder / pages.REPORT]
    overview_page = project.devlog / "norm" / "norm.md"
    assert expected[overview_page] != before[overview_page]


def test_a_light_record_shows_the_same_in_overviews(make, project):
    records = make.campaign_of_three()
    row = overview.CampaignRow(make.manifest(), records)
    light = row.lightened()
    assert overview.operator_page("norm", [light]) == overview.operator_page("norm", [row])
    assert overview.devlog_page([light]) == overview.devlog_page([row])
    for record in light.rounds:
        assert type(record).model_validate_json(record.model_dump_json()) == record
    sizes = [len(record.model_dump_json()) for record in (records[0], light.rounds[0])]
    assert sizes[1] < sizes[0]

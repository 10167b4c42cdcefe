"""Sites of small projects: empty, hostile, damaged, with knowledge of their own; and the folder of a site."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import record_kit as kit
from site_kit import ParsedPage, broken_links, parse_site, wrong_hashes

from warpsmith import files
from warpsmith import project as projects
from warpsmith.campaign.rounds import rank_rounds
from warpsmith.core.evaluation import Decision, Verdict
from warpsmith.core.knowledge import SECTIONS
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.lab.ranks.models import RankEvaluation, RankTiming
from warpsmith.ownership import owner_mark
from warpsmith.site import build

SCRIPT = "<script>alert(1)</script>"
HOSTILE = (
    f'{SCRIPT} <img src=x onerror=alert(2)> [go](javascript:alert(3)) "><b>\u202e\x00 {{{{ 7 * 7 }}}} </title>'
)
OWN_ENTRY = Path("docs/knowledge/optimizations/wide-loads.md")


def hostile_campaign(project):
    """Every text of an agent is hostile, and so is the source of each version."""
    tip = dict.fromkeys(("context", "signal", "takeaway", "applicability"), HOSTILE)
    rounds = kit.campaign_of_three()
    plan = rounds[1].plan.model_copy(update={"hypothesis": HOSTILE, "entries": (HOSTILE,), "risks": HOSTILE})
    lesson = {"action": "nothing", "reason": HOSTILE, "tip": tip}
    rounds[1] = kit.record(
        2, kit.evaluation("v2", "ROLLBACK", results=[kit.failed(HOSTILE)]), plan=plan, lesson=lesson
    )
    rounds[2] = rounds[2].model_copy(update={"plan": plan})
    campaign = kit.on_disk(project, kit.manifest(peers=["torch.compile", HOSTILE]), rounds)
    definition = project.definition_path("norm")
    definition.parent.mkdir(parents=True, exist_ok=True)
    definition.write_text(f'"""{HOSTILE}"""\nraise RuntimeError("not today")\n'.replace("\x00", ""))
    return campaign


def entry_text(name="wide-loads", title="Load wide", body="Nothing known."):
    matter = (
        f"---\nid: {name}\ntitle: {title}\nkind: optimization\nscope: shared\nlanguage: null\ncategory: memory\n"
        "applies_to:\n  targets: [gpu]\n  ops: [norm]\nmetrics: [dram_pct]\nevidence:\n"
        "- {source: external, citation: A book}\nstatus: active\n---\n\n"
    )
    texts = {"Evidence": "Source type: external\n\nNothing known."}
    return matter + "\n\n".join(f"## {section}\n\n{texts.get(section, body)}" for section in SECTIONS) + "\n"


@pytest.fixture(autouse=True)
def little_shipped(tmp_path, monkeypatch):
    """Nothing ships with Warpsmith but one entry, so that a build takes no time."""
    entry = tmp_path / "shipped" / "docs" / "knowledge" / "optimizations" / "split-reduction.md"
    write(entry, entry_text("split-reduction", "Split"))
    monkeypatch.setattr(projects, "SHIPPED", tmp_path / "shipped")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def built(project, tmp_path, name="site"):
    site = build.build_site(project)
    build.write_site(site, tmp_path / name)
    return site, tmp_path / name


def check(folder):
    pages = parse_site(folder)
    assert broken_links(pages) == []
    assert {path.name: page.faults for path, page in pages.items() if page.faults} == {}
    assert {path.name for path, page in pages.items() if page.scripts or page.handlers} == set()
    assert wrong_hashes(folder, pages) == []
    return pages


def rank_round(project, text, seconds):
    """Close a round of an operator over two ranks."""
    campaign, path = rank_rounds.RankCampaign(project, "reduce", "cpu", 2), project.root / "version.py"
    path.write_text(text)
    evaluation = kit.evaluation("v1")
    digests = {"solution_sha256": files.file_sha256(path), "definition_sha256": "d" * 64}
    judged = RankEvaluation(
        definition="reduce",
        ranks=2,
        provenance=evaluation.provenance.model_copy(update=digests),
        trust=(),
        results=evaluation.results[:1],
        times={evaluation.results[0].workload: RankTiming(seconds=seconds, samples=9, spread=0.1)},
        decision=Decision(verdict=Verdict.ACCEPT, reason="as measured"),
    )
    best = campaign.best("d" * 64)
    return rank_rounds.close_rank_round(campaign, f"It is {text} than the one before.", path, best, judged)


def test_an_operator_over_ranks_has_a_page(project, tmp_path):
    rank_round(project, "plainer", 3e-3)
    rank_round(project, "leaner", 2e-3)
    build.write_site(build.build_site(project), tmp_path / "site")
    page = (tmp_path / "site" / "ranks" / "reduce-cpu-2.html").read_text()
    assert "The version of round 2 stands: It is leaner" in page
    assert "2.00 ms" in page
    assert "ranks/reduce-cpu-2.html" in (tmp_path / "site" / "campaigns.html").read_text()
    pages = parse_site(tmp_path / "site")
    assert broken_links(pages) == []
    assert wrong_hashes(tmp_path / "site", pages) == []
    rank_rounds.RankCampaign(project, "reduce", "cpu", 2).ledger.folder_of(2).joinpath("record.json").write_text(
        "{"
    )
    site = build.build_site(project)
    assert len(site.problems) == 1


def test_an_empty_project_has_a_site_with_the_shipped_knowledge(project, tmp_path):
    site, folder = built(project, tmp_path)
    assert site.problems == ()
    check(folder)
    assert (
        "shipped" not in (folder / "knowledge" / "split-reduction.html").read_text()
    )  # no path of an installation
    assert not [path for path in folder.rglob("*.html") if str(tmp_path) in path.read_text()]
    assert "No results yet" in (folder / "index.html").read_text()
    assert (folder / "knowledge" / "split-reduction.html").is_file()
    assert not (folder / "operators").exists()


def test_hostile_texts_of_records_are_shown_as_text(project, tmp_path):
    hostile_campaign(project)
    _, folder = built(project, tmp_path)
    pages = check(folder)
    operator = (folder / "operators" / "norm.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in operator
    assert "{{ 7 * 7 }}" in operator
    assert "\u202e" not in operator
    assert "RuntimeError" in operator
    links = {link for page in pages.values() for link in page.links}
    assert not [link for link in links if link.casefold().startswith(("javascript", "data", "file"))]
    index = (folder / "search-index.js").read_text()
    assert "<script" not in index
    assert index.isascii()


def test_a_report_of_hostile_records_is_one_file_without_their_scripts(project, tmp_path):
    campaign = hostile_campaign(project)
    page = ParsedPage(write(tmp_path / "report.html", build.campaign_report(campaign)))
    assert page.faults == []
    assert (page.handlers, page.loads) == ([], [])
    assert len(page.scripts) == 1  # the site's own
    assert [link for link in page.links if not link.startswith("#")] == []
    assert {link[1:] for link in page.links} <= page.ids
    assert page.figures
    assert all(figure.record and figure.sha256 for figure in page.figures)


def test_raw_html_and_links_in_own_knowledge_stay_text(project, tmp_path):
    body = (
        f"{SCRIPT}\n\n<div onclick=x>a</div> ![p](http://e.org/p.png) [s](../../../secret.json) [j](javascript:x)"
    )
    write(project.root / OWN_ENTRY, entry_text(body=body))
    write(project.root / "secret.json", '{"key": "value"}')
    _, folder = built(project, tmp_path)
    check(folder)
    page = (folder / "knowledge" / "wide-loads.html").read_text()
    assert "&lt;div onclick=x&gt;" in page
    assert not [path for path in folder.rglob("*") if "secret" in path.name]
    assert "e.org" not in page


def test_no_page_tells_where_warpsmith_is_installed(project, tmp_path, monkeypatch):
    """Not even if that is in the project's folder, as an environment often is."""
    shipped = project.root / ".venv" / "lib" / "shipped"
    write(shipped / "docs" / "knowledge" / "optimizations" / "wide-loads.md", entry_text())
    monkeypatch.setattr(projects, "SHIPPED", shipped)
    site, folder = built(project, tmp_path)
    check(folder)
    assert "docs/knowledge/optimizations/wide-loads.md" in (folder / "knowledge" / "wide-loads.html").read_text()
    assert [name for name, data in site.contents.items() if ".venv" in name or b".venv" in data] == []


def test_own_knowledge_hides_the_shipped_entry_and_lists_its_tries(project, tmp_path):
    kit.on_disk(project, kit.manifest(), kit.campaign_of_three())
    write(project.root / OWN_ENTRY, entry_text())
    write(
        project.knowledge / "optimizations" / "split-reduction.md",
        entry_text("split-reduction", "Our own way to split"),
    )
    _, folder = built(project, tmp_path)
    check(folder)
    assert "Our own way to split" in (folder / "knowledge" / "split-reduction.html").read_text()
    page = (folder / "knowledge" / "wide-loads.html").read_text()
    assert "Tried 2, accepted 1" in page
    assert "50 % [9 %, 91 %]" in page
    assert page.count("records/devlog/norm/") >= 2


def test_a_corrupt_record_is_named_and_the_rest_is_there(project, tmp_path):
    campaign = kit.on_disk(project, kit.manifest(), kit.campaign_of_three())
    kit.on_disk(project, kit.manifest(campaign="norm-triton-h200-20261122"), kit.campaign_of_three())
    (campaign.ledger.folder_of(2) / "record.json").write_text("{")
    site, folder = built(project, tmp_path)
    check(folder)
    (problem, *_) = site.problems
    assert "devlog/norm/norm-triton-h200-20261121/rounds/002" in problem
    for page in ("index.html", "operators/norm.html", "campaigns/norm-triton-h200-20261121.html"):
        assert "rounds/002" in (folder / page).read_text()
    operator = ParsedPage(folder / "operators" / "norm.html")
    assert {"norm-triton-h200-20261121-001", "norm-triton-h200-20261122-002"} <= operator.ids
    with pytest.raises(CorruptRecord):
        build.campaign_report(campaign)


BAD_FILES = {
    "devlog/norm/norm-x/manifest.yaml": "campaign: [",
    "devlog/norm/races/001-h200/record.json": "{}",
    "docs/knowledge/optimizations/bad.md": "no front matter",
    "docs/knowledge/symptoms/bad.md": "no front matter",
    "docs/knowledge/hardware/bad.md": "---\nid: [\n---\n",
    "docs/knowledge/hardware/measured/h200-x.json": "[]",
    "docs/knowledge/symptoms.yaml": "symptoms: 3",
    "docs/knowledge/synonyms.yaml": "synonyms: 3",
    "devlog/programs/p/trials/001/record.json": "{",
    "devlog/programs/q/trials/total.json": "{",
    "devlog/repo/r/campaign.json": "{",
    ".warpsmith/redteam/r.json": '{"attacks": 1}',
}


def test_a_bad_file_of_each_kind_is_named_and_the_rest_is_there(project, tmp_path):
    for path, text in BAD_FILES.items():
        write(project.root / path, text)
    kit.on_disk(project, kit.manifest(), kit.campaign_of_three())
    site, folder = built(project, tmp_path)
    front = (folder / "index.html").read_text()
    assert [path for path in BAD_FILES if not any(path in problem for problem in site.problems)] == []
    assert [path for path in BAD_FILES if path not in front] == []
    assert str(project.root) not in front
    assert "triton/v3" in front
    check(folder)


def test_the_same_records_give_the_same_site_and_it_replaces_the_earlier_one(project, tmp_path):
    kit.on_disk(project, kit.manifest(), kit.campaign_of_three())
    first, folder = built(project, tmp_path)
    second, _ = built(project, tmp_path)
    assert first.contents == second.contents
    listing = json.loads((folder / "site.json").read_text())["files"]
    assert {*listing, "site.json"} == {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("with_site", [False, True])
def test_a_folder_with_other_files_is_refused_and_stays(project, tmp_path, with_site):
    folder = tmp_path / "site"
    if with_site:
        built(project, tmp_path)
    write(folder / "thesis" / "chapter.tex", "years of work")
    with pytest.raises(Misuse, match=r"chapter\.tex"):
        build.write_site(build.Site({"index.html": b""}, (), ()), folder)
    assert (folder / "thesis" / "chapter.tex").read_text() == "years of work"


def test_a_link_or_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "file", "")
    for name in ("link", "file"):
        with pytest.raises(Misuse, match=name):
            build.refuse_foreign_files(tmp_path / name)


def test_a_build_that_dies_leaves_the_earlier_site_whole(project, tmp_path, monkeypatch):
    _, folder = built(project, tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "sync", die)
    with pytest.raises(KeyboardInterrupt):
        build.write_site(build.Site({"index.html": b"half"}, (), ()), folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert not list(tmp_path.glob(f"{files.TEMPORARY_PREFIX}*"))


def test_what_a_killed_build_left_goes_and_what_is_not_its_own_stays(project, tmp_path):
    prefix = files.TEMPORARY_PREFIX
    host, pid, start = owner_mark().split("-")
    dead, alive = f"{prefix}site-{host}-999999999-{start}-ab12", f"{prefix}site-{host}-{pid}-{start}-ab12"
    for name in (dead, alive, f"{prefix}mine"):
        write(tmp_path / name / "index.html", "half")
    built(project, tmp_path)
    left = {path.name for path in tmp_path.glob(f"{prefix}*")}
    assert left == {alive, f"{prefix}mine"}


def test_version_names_with_strange_characters_do_not_leave_the_site(project, tmp_path):
    write(project.devlog / "programs" / "a & b" / "README.md", "# x\n")
    write(project.devlog / "programs" / "x%2e" / "README.md", "# x\n")
    site, folder = built(project, tmp_path)
    check(folder)
    assert all(not name.startswith(("/", "..")) and "/../" not in name for name in site.contents)
    assert len(list((folder / "programs").glob("*.html"))) == 2


def test_a_ledger_beside_a_program_is_shown_on_its_page(project, tmp_path):
    write(
        project.devlog / "programs" / "p" / "fusions.md",
        "# Fusions\n\n| chain | saves |\n|---|---|\n| a, b | 3 us |\n",
    )
    _, folder = built(project, tmp_path)
    assert re.search(r"<td[^>]*>3 us</td>", (folder / "programs" / "p.html").read_text())

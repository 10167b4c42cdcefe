"""The drafts designer: prepared versions in the order of their names, each with its plan, and none twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import contender_kit
import pytest
import yaml

from warpsmith.campaign import lab_requests
from warpsmith.campaign.rounds import open_round, state
from warpsmith.driver.drafts_designer import DraftsDesigner
from warpsmith.driver.optimize import run_loop
from warpsmith.errors import AgentStopped, MissingInput, Misuse

PLAN = {"category": "memory", "predicted_gain": 0.1, "metric": "time_us", "expected_change": -5}


@pytest.fixture
def drafts(tmp_path: Path) -> Any:
    """`drafts(name, hypothesis, **more)`: writes a draft with the page beside it; `drafts.folder`."""
    folder = tmp_path / "variants" / "toy"
    folder.mkdir(parents=True)

    def write(name: str, hypothesis: str = "", **more: object) -> Path:
        path = folder / f"{name}.toy"
        path.write_text(f"multiply by {name}\n")
        if hypothesis:
            entries = more.pop("entries", [])
            page = {"plan": {**PLAN, "hypothesis": hypothesis, "entries": entries}, **more}
            path.with_suffix(".yaml").write_text(yaml.safe_dump(page))
        return path

    write.folder = folder  # type: ignore[attr-defined]
    return write


def test_each_draft_is_a_round_with_its_plan(campaign: Any, lab: Any, drafts: Any):
    drafts("01_first")
    drafts("02_wider", "Wider loads keep more bytes under way.")
    drafts("03_fewer", "Fewer threads leave more registers to each.")
    lab.verdicts = {"v3": "ROLLBACK"}
    end = run_loop(campaign, DraftsDesigner(drafts.folder))
    assert lab.judged == ["v1", "v2", "v3"]
    assert [record.plan.hypothesis for record in end.records][1:] == [
        "Wider loads keep more bytes under way.",
        "Fewer threads leave more registers to each.",
    ]
    texts = [(kept.folder / kept.record.snapshot).read_text() for kept in end.rounds]
    assert texts == ["multiply by 01_first\n", "multiply by 02_wider\n", "multiply by 03_fewer\n"]
    assert end.records[0].lesson.reason == "The baseline was accepted; it tries nothing."
    assert end.records[2].lesson.reason == "03_fewer.toy was not accepted; it teaches no more."


def test_a_draft_that_was_judged_is_not_played_again(campaign: Any, lab: Any, drafts: Any):
    drafts("01_first")
    drafts("02_wider", "Wider loads keep more bytes under way.")
    run_loop(campaign, DraftsDesigner(drafts.folder))
    drafts("00_before", "It comes first by name and last by date.")
    again = DraftsDesigner(drafts.folder)
    assert run_loop(campaign, again).records[-1].plan.hypothesis == "It comes first by name and last by date."
    assert lab.judged == ["v1", "v2", "v3"]


@pytest.fixture
def entry(project: Any, make: Any) -> Path:
    path = project.knowledge / "optimizations" / "wider-loads.md"
    path.parent.mkdir(parents=True)
    evidence = (
        "evidence:\n- {source: external, citation: A page, url: 'https://example.org/loads'}\nstatus: active"
    )
    path.write_text(make.ENTRY.replace("\n---\n\n", f"\n{evidence}\n---\n\n", 1))
    return path


@pytest.mark.parametrize(
    ("verdict", "speedup", "taught"),
    [
        ("ACCEPT", 1.2, "It pays here."),
        ("ROLLBACK", 0.9, "It does not pay."),
        ("ROLLBACK", 1.025, "It does not pay."),  # its interval begins within what the machine shows by chance
        ("ROLLBACK", 11.0, "Faster on the whole, and rolled back all the same; the verdict says why."),
    ],
)
def test_what_it_teaches_refines_the_first_entry(campaign, lab, drafts, entry, verdict, speedup, taught):
    drafts("01_first")
    teaches = {"accepted": "It pays here.", "rolled_back": "It does not pay."}
    drafts("02_wider", "Wider loads keep more.", entries=["wider-loads"], teaches=teaches)
    lab.verdicts, lab.speedups = {"v2": verdict}, {"v2": speedup}
    lesson = run_loop(campaign, DraftsDesigner(drafts.folder)).records[-1].lesson
    assert (lesson.action, lesson.entry, lesson.reason) == ("refine", "wider-loads", taught)
    assert taught in entry.read_text()


def test_a_lesson_that_is_refused_is_left_out(campaign, lab, drafts, entry):
    drafts("01_first")
    teaches = {"accepted": "It is 90 % faster."}  # a figure of no record
    drafts("02_wider", "Wider loads keep more.", entries=["wider-loads"], teaches=teaches)
    lesson = run_loop(campaign, DraftsDesigner(drafts.folder)).records[-1].lesson
    assert lesson.action == "nothing"
    assert lesson.reason == "02_wider.toy was accepted; its prepared lesson was refused."


def test_after_two_rollbacks_a_draft_needs_the_directions_that_were_weighed(campaign: Any, lab: Any, drafts: Any):
    for name in ("01_first", "02_wider", "03_fewer"):
        drafts(name, "It changes one thing.")
    lab.verdicts = {"v2": "ROLLBACK", "v3": "ROLLBACK"}
    last = drafts("04_other", "It changes another thing.")
    with pytest.raises(AgentStopped, match=r"or `review:` to a draft's page"):
        run_loop(campaign, DraftsDesigner(drafts.folder))
    page = yaml.safe_load(last.with_suffix(".yaml").read_text())
    kinds = {"other": "memory", "split": "compute", "tiles": "occupancy"}
    page["plan"]["review"] = [
        {"name": name, "category": kind, "expected": "a little"} for name, kind in kinds.items()
    ]
    last.with_suffix(".yaml").write_text(yaml.safe_dump(page))
    run_loop(campaign, DraftsDesigner(drafts.folder))
    assert lab.judged == ["v1", "v2", "v3", "v4"]


@pytest.mark.parametrize(
    ("page", "error", "said"),
    [
        (None, MissingInput, r"02_wider.toy has no plan; write it to .*02_wider.yaml\."),
        ("plan: [", Misuse, "02_wider.yaml cannot be read: "),
        ("plan: {hypothesis: short}", Misuse, "02_wider.yaml does not validate: "),
        ("nothing", Misuse, "02_wider.yaml does not validate: "),
    ],
)
def test_a_bad_page_is_one_sentence(campaign: Any, lab: Any, drafts: Any, page, error, said):
    drafts("01_first")
    path = drafts("02_wider")
    if page is not None:
        path.with_suffix(".yaml").write_text(page)
    with pytest.raises((error, AgentStopped), match=said):
        run_loop(campaign, DraftsDesigner(drafts.folder))
    assert lab.judged == ["v1"]


def test_a_folder_is_named_for_its_language_and_holds_drafts(tmp_path: Path):
    with pytest.raises(Misuse, match=r"variants is not named after .* Unknown language"):
        DraftsDesigner(tmp_path / "variants")
    (tmp_path / "toy").mkdir()
    with pytest.raises(MissingInput, match=r"toy holds no draft: no \*.toy file"):
        DraftsDesigner(tmp_path / "toy")


def test_a_placeholder_is_no_lesson(campaign: Any, lab: Any, drafts: Any):
    drafts("01_first")
    drafts("02_wider", "Wider loads keep more.", teaches={"accepted": "..."})
    with pytest.raises((Misuse, AgentStopped), match=r"02_wider.yaml does not validate: .*accepted"):
        run_loop(campaign, DraftsDesigner(drafts.folder))
    assert lab.judged == ["v1"]


def test_drafts_play_several_at_once(campaign, lab, drafts, monkeypatch):
    bench = contender_kit.install(monkeypatch)
    bench.speedups = {f"multiply by {name}": speed for name, speed in
                      (("02_a", 1.1), ("03_b", 1.4), ("05_d", 1.2), ("04_c", 1.3))}  # fmt: skip
    drafts("01_first")
    for name, change in (("02_a", -1), ("03_b", -2), ("04_c", -2), ("05_d", -3)):
        path = drafts(name, f"Draft {name} changes one thing.")
        page = yaml.safe_load(path.with_suffix(".yaml").read_text())
        page["plan"]["expected_change"] = change
        path.with_suffix(".yaml").write_text(yaml.safe_dump(page))
    end = run_loop(campaign, DraftsDesigner(drafts.folder), contenders=3)
    texts = [(kept.folder / kept.record.snapshot).read_text() for kept in end.rounds]
    assert texts == ["multiply by 01_first\n", "multiply by 03_b\n", "multiply by 04_c\n"]
    assert [each.plan.hypothesis.split()[1] for each in end.records[1].contenders] == ["02_a", "03_b", "05_d"]
    assert lab.judged == ["v1", "v2", "v3"]


def test_after_a_version_that_fails_the_other_contenders_play_again(campaign, lab, drafts, monkeypatch, make):
    bench = contender_kit.install(monkeypatch)
    bench.speedups = {"multiply by 02_a": 1.1, "multiply by 03_b": 1.4}
    drafts("01_first")
    drafts("02_a", "The first change of two changes.")
    path = drafts("03_b", "The second change of two changes.")
    page = path.with_suffix(".yaml")
    page.write_text(page.read_text().replace("expected_change: -5", "expected_change: -6"))
    failed = [{"workload": "small", "status": "SANITIZER", "message": "it races"}]
    verify = lab.verify

    def judge(own: Any, tell: Any = None) -> Any:
        if lab.judged != ["v1"]:
            return verify(own, tell)
        path = open_round.version_to_judge(own).path
        lab.judged.append(path.stem)
        open_round.record_verdict(own, make.evaluation(path, "ROLLBACK", None, results=failed))
        return state.read_state(own).open.verdict

    monkeypatch.setattr(lab_requests, "judge_due_version", judge)
    end = run_loop(campaign, DraftsDesigner(drafts.folder), contenders=2)
    texts = [(kept.folder / kept.record.snapshot).read_text() for kept in end.rounds]
    assert texts == ["multiply by 01_first\n", "multiply by 03_b\n", "multiply by 02_a\n"]

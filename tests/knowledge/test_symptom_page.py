"""Pages of symptoms: form, the check's sentences, and their place on the front page."""

from __future__ import annotations

import pytest

from warpsmith.errors import BadEntry
from warpsmith.knowledge import index, symptom_page
from warpsmith.knowledge.check import check_knowledge
from warpsmith.profiling.diagnosis.classifier import SYMPTOMS

PAGE = """\
---
id: waits
title: Warps wait
metric: dram_busy_pct
threshold: "above 80"
bottleneck: memory
entries: [split]
---
# Warps wait
## What it looks like
Words.
## Mechanism
Words.
## Why this threshold
At 80 it is busy.
## What to do
[split](../optimizations/split.md)
## What is mistaken for it
Words.
"""


@pytest.fixture
def page(project, put):
    """Write a page beside the entry that it names, with one text replaced."""

    def write(old: str = "", new: str = "", stem: str = "waits"):
        put("split")
        path = project.knowledge / "symptoms" / f"{stem}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.replace(old, new, 1) if old else PAGE)
        return path

    return write


def test_a_page_reads(project, page):
    read = symptom_page.read_symptom_page(project, page())
    assert (read.matter.id, read.matter.entries) == ("waits", ("split",))
    assert tuple(read.sections) == symptom_page.SECTIONS
    assert symptom_page.symptom_paths(project.knowledge) == [project.knowledge / "symptoms" / "waits.md"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("id: waits", "id: other", "has the id `other`"),
        ("metric: dram_busy_pct", "metric: speed", "unknown metric `speed`"),
        ("bottleneck: memory", "bottleneck: magic", "bottleneck"),
        ("entries: [split]", "entries: []", "entries"),
        ("# Warps wait\n", "# Other\n", "has text before `## What it looks like`"),
        ("## Mechanism\n", "## Reason\n", "must have these sections in this order"),
        ("## Mechanism\nWords.", "## Mechanism", "has nothing under `## Mechanism`"),
        ("threshold:", "colour: red\nthreshold:", "unknown key `colour`"),
    ],
)
def test_each_kind_of_bad_page_is_one_clear_sentence(project, page, old, new, says):
    path = page(old, new)
    with pytest.raises(BadEntry, match=r"^docs/knowledge/symptoms/waits.md[^\n]*\.$") as caught:
        symptom_page.read_symptom_page(project, path)
    assert says in str(caught.value)
    assert [problem.message for problem in check_knowledge(project) if problem.path.endswith("waits.md")] == [
        str(caught.value)
    ]


def test_a_good_page_has_no_problems_and_is_on_the_front_page(project, page):
    page()
    index.write_pages(project)
    assert check_knowledge(project) == []
    text = (project.knowledge / "README.md").read_text()
    assert "[by counter](#by-counter)" in text
    row = "[Warps wait](symptoms/waits.md) | `dram_busy_pct`: above 80 | memory | [split](optimizations/split.md)"
    assert f"| {row} |" in text.splitlines()


def test_entries_that_there_are_not_and_that_the_text_leaves_out(project, page):
    page("entries: [split]", "entries: [split, gone]")
    assert "`gone` is not an entry" in " ".join(problem.message for problem in check_knowledge(project))
    page("[split](../optimizations/split.md)", "Nothing.")
    assert "`## What to do` does not link to `split`" in " ".join(
        problem.message for problem in check_knowledge(project)
    )


def test_a_changed_page_makes_the_front_page_stale(project, page):
    page()
    index.write_pages(project)
    page("above 80", "above 90")
    assert index.stale_pages(project) == [project.knowledge / "README.md"]


RULE = "barrier-stalls"


def rule_page(page):
    """Write a page of a symptom that the classifier detects, with a wrong head."""
    path = page("id: waits", f"id: {RULE}", stem=RULE)
    path.write_text(path.read_text().replace("At 80 it is busy.", "30, 80 and 60 %."))
    return path


def test_the_head_of_a_rules_page_is_rendered_from_the_rule(project, page):
    path = rule_page(page)
    assert path in index.stale_pages(project)
    index.write_pages(project)
    assert index.stale_pages(project) == []
    read = symptom_page.read_symptom_page(project, path)
    rule = next(symptom for symptom in SYMPTOMS if symptom.id == RULE)
    assert (read.matter.title, read.matter.metric, read.matter.bottleneck) == (
        rule.title,
        rule.metric,
        rule.bottleneck,
    )
    assert (read.matter.threshold, read.matter.entries) == (rule.threshold, rule.entries)
    assert read.sections["Mechanism"] == "Words."


def test_every_number_of_a_threshold_needs_a_reason(project, page):
    path = rule_page(page)
    index.write_pages(project)
    assert not [problem for problem in check_knowledge(project) if "does not mention" in problem.message]
    path.write_text(path.read_text().replace("30, 80 and", "Some and"))
    missing = [problem.message for problem in check_knowledge(project) if "does not mention" in problem.message]
    assert [("does not mention 30" in text, "does not mention 80" in text) for text in missing] == [
        (True, False),
        (False, True),
    ]

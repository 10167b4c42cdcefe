"""Two layers read as one, and a ranking that can be followed by hand."""

from __future__ import annotations

import pytest

from warpsmith.errors import BadEntry, Misuse
from warpsmith.knowledge.catalog import Catalog


@pytest.fixture
def catalog(project, put):
    put("split", title="Split the rows")
    put("other", title="Something else", sections={"Pitfalls": "Do not split."})
    put("dead", title="Split split", status="refuted")
    put("mine", folder="languages/cpp/anti-patterns", kind="anti-pattern", scope="language", language="cpp",
        applies_to="{targets: [cpu], ops: [norm]}", metrics="[thread_scaling]", title="Threads",
        sections={"Affected metrics": "thread_scaling", "When to apply": "Bank conflicts\nshow"})  # fmt: skip
    return Catalog.load(project)


def ids(hits):
    return [hit.id for hit in hits]


def test_an_own_entry_hides_the_shipped_one(project, shipped, put):
    put("a", into=shipped)
    put("b", into=shipped, title="Shipped")
    put("b", title="Own")
    found = Catalog.load(project).entries
    assert [(e.id, e.layer, e.matter.title) for e in found.values()] == [
        ("a", "shipped", "Split the rows"),
        ("b", "own", "Own"),
    ]


def test_pages_that_are_no_entries_are_left_out_and_named(project, shipped, put):
    put("a")
    put("a", folder="anti-patterns", kind="anti-pattern", title="Rows twice")
    put("wiki", raw="# Our wiki\n")
    put("b", into=shipped)
    put("b", raw="---\nid: b\n---\n")
    catalog = Catalog.load(project)
    assert ids(catalog.search(["rows"])) == ["b", "a"]
    assert catalog.entries["b"].layer == "shipped"
    twin, missing, foreign = sorted(catalog.skipped)
    assert twin.startswith("docs/knowledge/optimizations/a.md has the id of ")
    assert "anti-patterns/a.md" in twin
    assert missing.startswith("docs/knowledge/optimizations/b.md: ")
    assert foreign.startswith("docs/knowledge/optimizations/wiki.md has no front matter")


def test_title_beats_text_and_refuted_comes_last(catalog):
    hits = catalog.search(["split"])
    assert ids(hits) == ["split", "other", "dead"]
    assert hits[0].score > hits[1].score
    assert hits[2].status == "refuted"


def test_more_of_the_words_beats_a_higher_score(catalog):
    hits = catalog.search(["split", "something"])
    assert ids(hits)[0] == "other"
    assert hits[0].matched == ("split", "something")


@pytest.mark.parametrize("word", ["bank-conflicts", "BANK", "thread_scaling", "scaling", "cpp", "norm"])
def test_words_are_beginnings_phrases_and_metrics(catalog, word):
    assert ids(catalog.search([word])) == ["mine"]
    assert catalog.search(["onflicts"]) == []


def test_a_symptom_in_the_words_puts_its_entries_first(catalog, put_symptoms):
    put_symptoms("[other, split]", "[dead, mine]")
    hits = catalog.search(["slow", "columns"])
    assert ids(hits) == ["other", "split", "mine", "dead"]
    assert {hit.symptom for hit in hits} == {"Rows are slow"}
    assert ids(catalog.search(["the slow columns"], kind="anti-pattern")) == ["mine"]
    assert [hit.symptom for hit in catalog.search(["split"])] == [None, None, None]


def test_idle_words_count_only_alone(catalog):
    assert ids(catalog.search(["is", "something"])) == ["other"]
    assert catalog.search(["something"])[0].matched == ("something",)
    assert ids(catalog.search(["not"])) == ["other"]


def test_an_entry_whose_text_does_not_read_is_found_but_not_given(project, put):
    put(sections={"Mechanism": "```\nnever closed"})
    catalog = Catalog.load(project)
    assert ids(catalog.search(["split"])) == ["split"]
    with pytest.raises(BadEntry, match="lacks the section"):
        catalog.get("split")


def test_filters(catalog):
    assert ids(catalog.search(kind="anti-pattern")) == ["mine"]
    assert ids(catalog.search(language="triton")) == ["other", "split", "dead"]
    assert "mine" in ids(catalog.search(language="cpp"))
    assert ids(catalog.search(metric="thread_scaling")) == ["mine"]
    assert ids(catalog.search(target="cpu")) == ["mine"]


def test_a_target_takes_the_entries_of_its_kind(catalog, put_hardware):
    put_hardware()
    assert ids(catalog.search(target="h1")) == ["other", "split", "dead"]


def test_unknown_names_are_misuse(catalog):
    with pytest.raises(Misuse, match="unknown metric `speed`"):
        catalog.search(metric="speed")
    with pytest.raises(Misuse, match="unknown language `CUDA`; known: cpp, cuda, "):
        catalog.search(language="CUDA")
    with pytest.raises(Misuse, match="unknown target `h9`"):
        catalog.search(target="h9")
    with pytest.raises(Misuse, match="similar: split"):
        catalog.get("splt")
    assert catalog.get("split").id == "split"

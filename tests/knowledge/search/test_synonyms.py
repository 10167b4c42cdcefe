"""Tables of synonyms, of the project and shipped."""

from __future__ import annotations

import pytest

from warpsmith import project as projects
from warpsmith.errors import BadEntry
from warpsmith.knowledge import check
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.search import synonyms


def test_groups_of_all_layers_count(project, shipped, put):
    put("gathers", title="Gather")
    for layer, text in ((project.knowledge, "[[gather, fetch]]"), (shipped.knowledge, "[[gather, collect]]")):
        layer.mkdir(parents=True, exist_ok=True)
        (layer / synonyms.FILE).write_text(f"synonyms: {text}\n")
    catalog = Catalog.load(project)
    assert [hit.id for hit in catalog.search(["collect"])] == ["gathers"]
    assert [hit.id for hit in catalog.search(["fetch"])] == ["gathers"]


@pytest.mark.parametrize("text", ["synonyms: [[alone]]", "groups: []", "- a"])
def test_a_bad_table_is_named(project, text):
    project.knowledge.mkdir(parents=True)
    (project.knowledge / synonyms.FILE).write_text(text)
    with pytest.raises(BadEntry, match=r"synonyms\.yaml"):
        synonyms.merge_synonyms(project)
    assert any("synonyms.yaml" in problem.message for problem in check.check_knowledge(project))


def test_shipped_phrases_have_at_most_four_words_and_are_in_one_group_each():
    groups = synonyms.merge_synonyms(projects.find_project(projects.SHIPPED))
    phrases = [phrase for group in groups for phrase in group]
    assert [phrase for phrase in phrases if len(phrase.split()) > 4] == []
    assert sorted({phrase for phrase in phrases if phrases.count(phrase) > 1}) == []

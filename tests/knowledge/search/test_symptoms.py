"""Which symptom is meant, and the table that ships."""

from __future__ import annotations

import pytest

from warpsmith import project as projects
from warpsmith.core.knowledge import SymptomRow
from warpsmith.core.metrics import METRICS
from warpsmith.errors import BadEntry
from warpsmith.knowledge.search import symptoms


def symptom(title: str, *also: str) -> SymptomRow:
    return SymptomRow(title=title, also=also, means="Words.", shows={"dram_pct": "low"}, optimizations=("split",))


IDLE = symptom("The GPU idles", "gaps", "dram at 40%")
CORES = symptom("Tensor cores idle")
BOTH = (IDLE, CORES)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("gpu idle", [IDLE]),
        ("why idling?", []),
        ("my tensor cores are idle", [CORES]),
        ("tensor cores", []),
        ("gaps, and the tensor cores idle", [CORES, IDLE]),
        ("DRAM is at 63 %", [IDLE]),
        ("dram", []),
        ("", []),
    ],
)
def test_recognised(text, meant):
    assert [symptom for symptom, _ in symptoms.match_symptoms(BOTH, text)] == meant


def test_the_own_table_hides_a_shipped_symptom_of_its_title(project, shipped, put_symptoms):
    assert symptoms.merge_symptom_tables(project) == ()
    put_symptoms("[theirs]", "[]", into=shipped)
    assert [s.entries for s in symptoms.merge_symptom_tables(project)] == [("theirs",)]
    put_symptoms("[ours]", "[]")
    assert [s.entries for s in symptoms.merge_symptom_tables(project)] == [("ours",)]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("dram_pct", "speed", "unknown metrics"),
        ("means:", "colour: red\n  means:", "unknown key `symptoms.0.colour`"),
        ("[split]", "[]", "names no entry"),
        ("- title", "- title: [\n- title", "does not parse"),
        ("symptoms:\n", "", "is not a mapping"),
        ("means", "means: a\n  means", "`means` appears twice"),
        ("Words.", "Wo\u202erds.", "U+202E"),
    ],
)
def test_each_kind_of_bad_table_is_one_clear_sentence(project, put_symptoms, old, new, says):
    path = put_symptoms("[split]", "[]", old=old, new=new)
    with pytest.raises(BadEntry, match=r"^docs/knowledge/symptoms.yaml[^\n]*\.$") as caught:
        symptoms.read_symptom_table(project, path.parent)
    assert says in str(caught.value)


def test_a_title_that_stands_twice(project, put_symptoms):
    path = put_symptoms("[split]", "[]")
    text = path.read_text()
    path.write_text(text + text.removeprefix("symptoms:\n"))
    with pytest.raises(BadEntry, match="`Rows are slow` appears twice"):
        symptoms.read_symptom_table(project, path.parent)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("occupancy is low", "Occupancy is low"),
        ("dram at 40%", "DRAM at 40% and nothing saturated"),
        ("loads are not vectorized", "Loads are not vectorised"),
        ("registers spill", "Registers spill"),
        ("the gpu idles between kernels", "The GPU idles between short kernels"),
        ("tensor cores idle", "Tensor cores idle in a matmul"),
        ("slower than torch.compile", "Slower than torch.compile on small shapes"),
        ("long rows fall behind", "Long rows fall behind"),
        ("results differ between runs", "Results differ between runs"),
        ("more threads do not help", "More threads do not help (CPU)"),
    ],
)
def test_the_shipped_table_knows_common_complaints(words, title):
    table = symptoms.merge_symptom_tables(projects.find_project(projects.SHIPPED))
    assert [symptom.title for symptom, _ in symptoms.match_symptoms(table, words)] == [title]


def test_the_shipped_table_shows_every_metric():
    shown = {
        metric
        for symptom in symptoms.merge_symptom_tables(projects.find_project(projects.SHIPPED))
        for metric in symptom.shows
    }
    assert shown == set(METRICS)

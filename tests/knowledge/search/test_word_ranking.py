"""Concepts of a question, and the score of entries for them."""

from __future__ import annotations

import sqlite3

import pytest

from warpsmith.errors import MachineLacks
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.search import ranking
from warpsmith.knowledge.search.ranking import WordIndex, parse_question

SYNONYMS = (("tensor core", "wgmma", "mma"), ("matmul", "gemm"), ("cumsum", "prefix sum", "scan"))


@pytest.fixture
def rank(project, put):
    put("cores", title="Use wgmma", sections={"Mechanism": "Vectorised loops and warps."})
    put("sums", title="Prefix sums in one pass", sections={"Mechanism": "Warps scan."})
    put("rows", title="Rows", sections={"Mechanism": "Warps hold rows."})
    entries = Catalog.load(project).entries.values()

    def call(question):
        relevant = WordIndex.build(entries, {"rows": "one row hurts"}).rank(parse_question([question], SYNONYMS))
        return sorted(relevant, key=lambda id: -relevant[id].score), relevant

    return call


def test_terms_of_several_words_are_one_concept():
    concepts = parse_question(["How do I use tensor cores", "for matmul?"], SYNONYMS)
    assert [(c.words, c.phrase, c.synonyms) for c in concepts] == [
        (("tensor", "cores"), "tensor cores", ("mma", "tensor core", "wgmma")),
        (("matmul?",), "matmul", ("gemm",)),
    ]


def test_idle_words_and_numbers_count_only_alone():
    assert [c.phrase for c in parse_question(["the 40 % of rows"], ())] == ["rows"]
    assert [c.phrase for c in parse_question(["how fast"], ())] == ["how", "fast"]
    assert parse_question(["?", " "], ()) == []


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("tensor cores", "cores"),
        ("cumsum", "sums"),
        ("vectorize the loop", "cores"),
        ("vecto", "cores"),
        ("hurts", "rows"),
        ("warps holding rows", "rows"),
    ],
)
def test_synonyms_stems_beginnings_and_other_names(rank, question, first):
    assert rank(question)[0][0] == first


def test_coverage_is_the_share_of_what_was_asked(rank):
    _, relevant = rank("prefix sums")
    assert relevant["sums"].coverage == 1
    assert relevant["sums"].matched == ("prefix", "sums")
    _, relevant = rank("zebra crossing rows")
    assert 0 < relevant["rows"].coverage < 0.5
    assert rank("zebra") == ([], {})


def test_quotes_and_operators_in_a_question_are_words(rank):
    assert rank('rows" OR NEAR(wgmma) AND *')[0][:1] == ["rows"] or rank('wgmma" OR')[0] == ["cores"]


def test_a_python_without_full_text_search_is_told(monkeypatch):
    class Bare:
        def execute(self, statement):
            raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(ranking.sqlite3, "connect", lambda name: Bare())
    with pytest.raises(MachineLacks, match="has no full-text search"):
        WordIndex.build([], {})

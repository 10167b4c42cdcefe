"""Questions in plain words find their entry: a fixed set, and the share of it that must not sink."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from warpsmith import project as projects
from warpsmith.knowledge.catalog import Catalog, fitting_hits

TABLE = yaml.safe_load(Path(__file__).with_name("questions.yaml").read_text())
QUESTIONS = TABLE["questions"]


@pytest.fixture(scope="module")
def catalog():
    return Catalog.load(projects.find_project(projects.SHIPPED))


def positions(catalog, question):
    """Position of the first entry that answers, from 0; None if none is listed."""
    hits = catalog.search([question["ask"]], language=question.get("language"), target=question.get("target"))
    listed = [hit.id for hit in fitting_hits(hits, searched=True)]
    return next((place for place, id in enumerate(listed) if id in question["answers"]), None)


def test_the_expected_entries_exist(catalog):
    assert {id for question in QUESTIONS for id in question["answers"]} <= set(catalog.entries)
    assert len(QUESTIONS) >= 40


def test_every_question_finds_its_entry_among_the_first_three_and_most_find_it_first(catalog):
    found = {question["ask"]: positions(catalog, question) for question in QUESTIONS}
    late = {ask: place for ask, place in found.items() if place is None or place > 2}
    assert late == {}
    assert sum(place == 0 for place in found.values()) >= 0.95 * len(found)


@pytest.mark.parametrize("question", TABLE["nothing"])
def test_nothing_fits_a_question_of_another_field(catalog, question):
    assert fitting_hits(catalog.search([question]), searched=True) == []

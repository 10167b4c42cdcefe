"""Words that the glossary refuses."""

from __future__ import annotations

import pytest

GLOSSARY = """# Glossary

| word | meaning | not |
|---|---|---|
| **best version** | the fastest | **champion**, first |
"""


@pytest.fixture(autouse=True)
def glossary(house):
    house.write("docs/glossary.md", GLOSSARY)
    house.add("README.md", "See [the glossary](docs/glossary.md).\n")


@pytest.mark.parametrize("use", ["the champion", "Champions lose"])
def test_a_refused_word_is_a_finding(house, use):
    house.add("skills/optimize/references/levers.md", f"{use}\n")
    found = house.one()
    assert found.startswith("skills/optimize/references/levers.md:")
    assert found.endswith("write `best version`.")


def test_other_words_of_the_column_and_the_glossary_itself_are_free(house):
    house.add("README.md", "The first championship.\n")
    assert house.found() == []


def test_a_glossary_that_refuses_nothing_is_a_finding(house):
    house.write("docs/glossary.md", GLOSSARY.replace("**champion**", "champion"))
    assert house.one().startswith("docs/glossary.md:1:")

"""Links, anchors and paths in inline code."""

from __future__ import annotations

import pytest

from tools.textlint.page import MarkdownPage


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](gone.md)", "the link to `gone.md` leads nowhere"),
        ("![a](gone.svg)", "the link to `gone.svg` leads nowhere"),
        ("[a][there]\n\n[there]: gone.md", "the link to `gone.md` leads nowhere"),
        ("[a](#nothing)", "README.md has no heading for `#nothing`"),
        ("[a](docs/knowledge/page.md#nothing)", "docs/knowledge/page.md has no heading for `#nothing`"),
        ("[a](../outside.md)", "the link to `../outside.md` leaves the repository"),
        ("[a](/docs/knowledge/page.md)", "the link to `/docs/knowledge/page.md` leaves the repository"),
        ("`warpsmith/lab/gone.py`", "`warpsmith/lab/gone.py` does not exist"),
    ],
)
def test_a_broken_link(house, text, wrong):
    house.add("README.md", f"\n{text}\n")
    assert house.one().startswith(f"README.md:7: {wrong}. Fix: ")


@pytest.mark.parametrize(
    "text",
    [
        "[a](docs/knowledge/page.md#a-page)",
        "[a](docs/knowledge)",
        "[a](docs/)",
        "[a](https://example.org/gone.md)",
        "[a](mailto:a@example.org)",
        "`[a](gone.md)`",
        "`warpsmith/driver/answers/kinds.py` and `warpsmith/<package>/x.py`",
    ],
)
def test_a_link_that_holds(house, text):
    house.add("README.md", f"\n{text}\n")
    assert house.found() == []


def test_links_from_the_plugin_s_root(house):
    skill = "skills/optimize/SKILL.md"
    house.add(skill, "[a](${CLAUDE_PLUGIN_ROOT}/README.md) [b](${CLAUDE_SKILL_DIR}/references/levers.md)\n")
    assert house.found() == []
    house.add(skill, "[a](${CLAUDE_PLUGIN_ROOT}/gone.md)\n")
    assert "gone.md` leads nowhere" in house.one()


def test_the_line_of_a_link_in_a_paragraph_and_in_a_table(house):
    house.add("README.md", "\none\ntwo [a](gone.md)\n\n| a |\n| - |\n| [b](gone.md) |\n")
    assert [found.split(": ")[0] for found in house.found()] == ["README.md:8", "README.md:12"]


def test_anchors_follow_github():
    text = "# Exit codes: 0, 1 & `2`!\n\n## A\n\n## A\n\n## snake_case and *emphasis*\n\n<a id='mine'></a>\n"
    assert MarkdownPage("x.md", text).anchors == {
        "exit-codes-0-1--2",
        "a",
        "a-1",
        "snake_case-and-emphasis",
        "mine",
    }


def test_front_matter_keeps_line_numbers():
    page = MarkdownPage("x.md", "---\nname: a\n---\n# Title\n\n[a](b.md)\n")
    assert page.links == [(6, "b.md")]
    assert page.anchors == {"title"}

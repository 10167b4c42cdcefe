"""An entry reads when it is good; else one sentence says what is wrong."""

from __future__ import annotations

import pytest

from warpsmith.core.knowledge import SECTIONS
from warpsmith.errors import BadEntry
from warpsmith.knowledge import entry as entries


def refusal(project, path) -> str:
    with pytest.raises(BadEntry) as caught:
        entries.read_entry(project, path)
    message = str(caught.value)
    assert message.startswith(project.relative(path))
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_good_entry_reads_and_fences_hold_no_headings(project, put):
    entry = entries.read_entry(project, put())
    assert tuple(entry.sections) == SECTIONS
    assert "## When to apply" in entry.sections["Implementation"]
    assert (entry.path, entry.layer) == ("docs/knowledge/optimizations/split.md", "own")


def test_rendering_keeps_everything_and_is_stable(project, put, text):
    entry = entries.parse_entry(text().replace("## When", "# Split the rows\n## When", 1), "x")
    again = entries.parse_entry(entry.render(), "x")
    assert again == entry
    assert again.render() == entry.render()
    assert entry.preamble == "# Split the rows"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("---\nid", "id", "no front matter"),
        ("status: active\n---\n", "status: active\n", "no front matter"),
        ("title: Split the rows", "title: [", "does not parse"),
        ("title: Split the rows", "title: a\ntitle: b", "`title` appears twice"),
        ("title: Split the rows", "colour: red\ntitle: a", "unknown key `colour`"),
        ("title: Split the rows\n", "", "`title` is missing"),
        ("[waves, time_us]", "[speed]", "unknown metrics"),
        ("category: occupancy", "category: magic", "`category`"),
        ("scope: shared", "scope: language", "`language` is given exactly"),
        ("id: split", "id: other", "id `other`"),
        ("## When to apply\n", "Hello.\n\n## When to apply\n", "text before"),
        ("## When to apply\n", "# Another title\n\n## When to apply\n", "text before"),
        ("## Mechanism\nWords.\n", "", "lacks the section `## Mechanism`"),
        ("## Mechanism\nWords.\n", "## Mechanism\n\n", "nothing under `## Mechanism`"),
        ("## Mechanism\n", "## Mechanics\n", "unknown section `## Mechanics`"),
        ("## Mechanism\n", "## Pitfalls\n", "`## Pitfalls` twice"),
        ("Words.", "Wo\u202erds.", "U+202E"),
        ("Words.", "Wo\x1b[31mrds.", "U+001B"),
        ("Words.", "Wo\u200brds.", "U+200B"),
        ("Words.", "W" * 100_001, "longer than"),
    ],
)
def test_each_kind_of_bad_entry_is_one_clear_sentence(project, put, text, old, new, says):
    page = text()
    assert old in page
    assert says in refusal(project, put(raw=page.replace(old, new, 1)))


def test_sections_out_of_order(project, put, text):
    page = (
        text()
        .replace("## Pitfalls", "## X")
        .replace("## Interactions", "## Pitfalls")
        .replace("## X", "## Interactions")
    )
    assert "`## Interactions` where `## Pitfalls` belongs" in refusal(project, put(raw=page))


def test_an_unclosed_fence_is_refused(project, put, text):
    assert "lacks" in refusal(project, put(sections={"Mechanism": "```\nopen"}))


@pytest.mark.parametrize(
    ("folder", "matter", "right"),
    [
        ("anti-patterns", {}, "docs/knowledge/optimizations/split.md"),
        ("languages/cpp/optimizations", {}, "docs/knowledge/optimizations/split.md"),
        (
            "languages/cpp/optimizations",
            {"scope": "language", "language": "triton"},
            "docs/knowledge/languages/triton/optimizations/split.md",
        ),
    ],
)
def test_wrong_folder_names_the_right_one(project, put, folder, matter, right):
    assert refusal(project, put(folder=folder, **matter)).endswith(f"move it to {right}.")


def test_not_utf8(project, put):
    path = put()
    path.write_bytes(path.read_bytes() + b"\xff")
    assert "UTF-8" in refusal(project, path)


def test_a_front_matter_that_is_no_mapping(project, put):
    assert "not a mapping" in refusal(project, put(raw="---\n- a\n---\n"))

"""Records in a site: the table at the end of a page, packed copies, and the links that lead to them."""

from __future__ import annotations

import json

import pytest
from site_kit import ParsedPage, unpack_record

from warpsmith.site.citation import Archive
from warpsmith.site.record_copies import add_record_table, linked_copies, pack_record

PAGE = "<main><p>{}</p>\n</main>\n"


@pytest.fixture
def archive(project):
    folder = project.devlog / "a & b"
    folder.mkdir(parents=True)
    for name in ("r.json", "same.json", "other.json"):
        (folder / name).write_text(json.dumps(name if name == "other.json" else 1))
    return Archive(project)


def cite(archive, name):
    return archive.cite(archive.project.devlog / "a & b" / name)


def test_a_page_lists_the_records_of_its_figures_with_links(archive, tmp_path):
    citation, other = cite(archive, "r.json"), cite(archive, "other.json")
    shown = citation.derive(2, "rule").show(str)
    html = add_record_table(PAGE.format(shown), archive, "operators/x.html")
    assert html.startswith(PAGE.format(shown).removesuffix("</main>\n"))
    assert "1 record behind the figures of this page" in html
    assert 'href="../record.html#records/devlog/a%20%26%20b/r.json">devlog/a &amp; b/r.json</a>' in html
    assert linked_copies([html]) == {citation.copy}
    assert other.path not in html
    page = tmp_path / "x.html"
    page.write_text(html)
    assert ParsedPage(page).figures[0].sha256 == citation.sha256[:12]


def test_a_page_that_is_one_file_lists_them_without_links(archive):
    citation = cite(archive, "r.json")
    html = add_record_table(PAGE.format(citation.derive(2).show(str)), archive, None)
    assert f"<li><code>{citation.digits}</code> devlog/a &amp; b/r.json</li>" in html
    assert linked_copies([html]) == set()


def test_records_of_the_same_content_are_all_listed(archive):
    citation, same = cite(archive, "r.json"), cite(archive, "same.json")
    html = add_record_table(PAGE.format(citation.derive(2).show(str)), archive, "x.html")
    assert linked_copies([html]) == {citation.copy, same.copy}


def test_a_page_without_figures_stays_as_it_is(archive):
    cite(archive, "r.json")
    assert add_record_table(PAGE.format("words"), archive, "x.html") == PAGE.format("words")


def test_a_figure_of_an_unknown_record_is_an_error(archive):
    with pytest.raises(KeyError, match="abcabcabcabc"):
        add_record_table(PAGE.format('<data data-sha256="abcabcabcabc">1</data>'), archive, "x.html")


def test_a_packed_record_is_small_and_always_the_same(tmp_path):
    data = json.dumps([1.5] * 5000).encode()
    packed = pack_record(data)
    assert len(packed) < len(data) / 10
    assert packed == pack_record(data)
    copy = tmp_path / "r.json.js"
    copy.write_bytes(packed)
    assert unpack_record(copy) == data

"""Markdown to HTML: raw HTML, links, tables with their records; and the formatting of values with theirs."""

from __future__ import annotations

import re

import pytest
from jinja2 import UndefinedError

from warpsmith.core.evaluation import Aggregate, Interval
from warpsmith.site.citation import Citation, Quote, derive_from
from warpsmith.site.markdown import Surroundings, plain_text, render_markdown
from warpsmith.site.markup import Html, element, escape, escape_code
from warpsmith.site.templating import environment

CITED = Citation("devlog/a/record.json", "a" * 64, "records/devlog/a/record.json")
AROUND = Surroundings(
    resolve={"known.md": "../known.html", "devlog/a/record.json": "../records/devlog/a/record.json"}.get,
    find=lambda name: CITED if name == "devlog/a/record.json" else None,
    raise_headings=1,
    prefix="x-",
)


def render(text, around=AROUND):
    return render_markdown(text, around)


def test_raw_html_is_text():
    assert render("a <b>b</b>\n\n<script>x</script>\n") == (
        "<p>a &lt;b&gt;b&lt;/b&gt;</p>\n<p>&lt;script&gt;x&lt;/script&gt;</p>\n"
    )


@pytest.mark.parametrize(
    ("link", "html"),
    [
        ("[k](known.md)", '<a href="../known.html">k</a>'),
        ("[s](https://e.org/x)", '<a href="https://e.org/x" rel="noreferrer">s</a>'),
        ("[u](unknown.md)", '<span class="unlinked">u</span>'),
        ("[u](//e.org/x)", '<span class="unlinked">u</span>'),
        ("[f](file:///etc/passwd)", "[f](file:///etc/passwd)"),
        ("[j](javascript:alert(1))", "[j](javascript:alert(1))"),
        ("![p](https://e.org/p.png)", "p"),
        (
            "`devlog/a/record.json`",
            '<a href="../records/devlog/a/record.json" title="devlog/a/record.json"><code>',
        ),
    ],
)
def test_links_lead_only_to_what_the_site_has_or_to_other_hosts(link, html):
    assert html in render(link)


def test_headings_are_lowered_and_have_anchors_of_their_own():
    assert render("## Why\n\n## Why\n") == '<h3 id="x-why">Why</h3>\n<h3 id="x-why-1">Why</h3>\n'


TABLE = "| a | b | c |\n|---|---|---|\n| x | 3.2 us | devlog/a/record.json |\n| y | - | word |\n"


def test_columns_of_figures_are_aligned_and_their_rows_name_the_record():
    html = render(TABLE)
    assert '<tr data-sha256="aaaaaaaaaaaa">' in html
    assert html.count("<tr>") == 2  # the head, and the row without a figure
    assert html.count('class="num"') == 3
    assert ">record</a>" in html


def test_rows_without_a_record_of_their_own_have_that_of_the_page():
    other = Citation("other.json", "b" * 64, "records/other.json")
    around = Surroundings(lambda _: None, lambda _: None, source=other)
    assert render(TABLE, around).count('data-sha256="bbbbbbbbbbbb"') == 1


def test_rows_and_sections_that_begin_with_a_number_have_the_record_of_that_round():
    rounds = {number: Citation(f"{number}.json", f"{number}" * 64, "") for number in (1, 2)}
    around = Surroundings(lambda _: None, lambda _: None, source=CITED, numbered=rounds)
    table = "| round | gain |\n|---|---|\n| 2 | 5 % |\n| 02x | 5 % |\n"
    html = render(
        f"{table}\n## Round 1\n\n| gain |\n|---|\n| 7 % |\n\n## 002: a\n\n{table[:41]}| a | 8 % |\n", around
    )
    assert re.findall(r'data-sha256="([^"])', html) == ["2", "a", "1", "2"]


def test_a_table_without_words_in_its_head_has_none():
    assert "<thead>" not in render("| | |\n|---|---|\n| a | b |\n")


def test_plain_text_has_the_words_alone():
    assert plain_text("a `b`.\nc") == "a b. c"
    assert plain_text("# A *b*\n\n`c` [d](e)\n\n```\nf\n```\n").split() == ["A", "b", "c", "d", "f"]


def test_texts_are_escaped_and_what_cannot_be_seen_is_shown():
    assert escape(' a<b> "c"\u202e\n ') == " a&lt;b&gt; &quot;c&quot; "
    assert escape_code("a\u202eb\tc\n<d>\x00") == "a\\u202eb\tc\n&lt;d&gt;\\u0000"
    assert (
        element("p", "<", Html("<b>"), class_="x", data_a=None, x1=1.5, x2=2.0)
        == '<p class="x" x1="1.5" x2="2">&lt;<b></p>'
    )


MEAN = Aggregate(against="best", speedup=1.5, interval=Interval(low=1.4, high=1.6), worst_workload="w", worst=1.2)


def template(text, **values):
    return environment().from_string(text).render(**values)


def test_a_value_is_shown_with_its_record_and_its_place_there():
    quote = CITED.quote({"means": [MEAN]}, "means", 0)
    shown = template("{{ mean | speedup }}", mean=quote)
    assert shown == (
        '<data data-sha256="aaaaaaaaaaaa" data-at="/means/0/speedup" value="1.5">1.50x [1.40, 1.60]</data>'
    )
    assert template("{{ gain | gain }}", gain=CITED.quote({"gain": None}, "gain")) == "-"
    assert template("{{ gain | gain }}", gain=None) == "-"


def test_a_computed_value_names_its_rule_and_all_its_records():
    second = Citation("b.json", "b" * 64, "records/b.json")
    shown = template("{{ x | percent }}", x=derive_from(0.5, [CITED, second], "mean"))
    assert 'data-rule="mean"' in shown
    assert f'data-sha256="{"a" * 12} {"b" * 12}"' in shown
    assert "data-at" not in shown
    assert derive_from(0.5, [], "mean") is None


@pytest.mark.parametrize("text", ["{{ share }}", "{{ share | percent }}", "{{ mean }}", "{{ mean | speedup }}"])
def test_a_measured_value_without_its_record_is_an_error(text):
    with pytest.raises(TypeError, match="without its record"):
        template(text, mean=MEAN, share=0.5)


def test_an_undefined_name_is_an_error_and_text_is_escaped():
    with pytest.raises(UndefinedError):
        template("{{ nothing }}")
    assert template("{{ a }}{{ b }}{{ ', ' if c }}", a="<b>", b=None, c=False) == "&lt;b&gt;-"
    assert Quote(0.25, CITED, "").show(str).startswith("<data ")

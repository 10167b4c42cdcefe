"""Numbers as the pages give them, and foreign text that Markdown must show as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from warpsmith.core.evaluation import Comparison
from warpsmith.reporting import format


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.5, "1.50 s"),
        (4.5612e-3, "4.56 ms"),
        (12.345e-6, "12.3 us"),
        (812e-9, "812 ns"),
        (999.6e-6, "1.00 ms"),
        (999.4e-6, "999 us"),
        (9.999e-6, "10.0 us"),
        (123.4, "123 s"),
        (0.0, "0 s"),
        (None, "-"),
    ],
)
def test_times_have_three_significant_digits(value, shown):
    assert format.seconds(value) == shown


def test_rates_and_shares():
    assert (format.joules(1.5), format.joules(0.0453), format.joules(7.9e-5)) == ("1.50 J", "45.3 mJ", "79.0 uJ")
    assert format.bandwidth(3.2149e12) == "3.21 TB/s"
    assert format.rate(989e9) == "989 GFLOP/s"
    assert format.percent(0.91249) == "91.2 %"
    assert format.gain(-0.0312) == "-3.1 %"
    assert format.gain(0.2) == "+20.0 %"
    assert format.change(15.0) == "+15"
    assert format.metric(65536.0) == "65536"
    assert format.share_of_bound(3e12) == "3e+12"
    assert [format.minutes(m) for m in (0, 47, 65, None)] == ["0 min", "47 min", "1 h 05 min", "-"]
    assert [format.count_noun(n, "round") for n in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]


def test_speedup_with_interval(make):
    assert format.speedup(Comparison.model_validate(make.comparison("best", 1.83))) == "1.83x [1.79, 1.87]"
    assert format.speedup(None) == "-"
    assert format.factor(0.00312) == "0.00312x"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("4.2 TB/s <- page.md:12", "4.2 TB/s <- page.md:12"),
        ("block_size_x & n < 3", "block_size_x & n < 3"),
        ("_private and dunder__", r"\_private and dunder\_\_"),
        ("a | b", r"a \| b"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("-0.5 is less", "-0.5 is less"),
        ("12. twelfth", r"12\. twelfth"),
        ("x\n\n  y\t z", "x y z"),
        ("red \x1b[31m\u202eabc\ud800", r"red \[31mabc"),
    ],
)
def test_foreign_text_is_escaped_only_where_markdown_would_read_it(text, source):
    assert format.inline(text) == source


@given(st.text(alphabet=st.sampled_from("ab1 .)_*`|[]()<>&#;!~-+=\\\"'/:\n\t\x00"), max_size=40))
def test_foreign_text_is_shown_as_it_is(text):
    reader = MarkdownIt("commonmark").enable("table")
    tokens = reader.parse(f"| h |\n|---|\n| {format.inline(text)} |\n")
    assert [t.type for t in tokens].count("td_open") == 1
    cell = next(tokens[at + 1] for at, token in enumerate(tokens) if token.type == "td_open")
    assert {child.type for child in cell.children} <= {"text", "text_special"}
    assert "".join(child.content for child in cell.children) == format.plain(text)


@given(st.text(alphabet=st.sampled_from("ab1 .)_*`|[]()<>&#;!~-+=\\"), max_size=40))
def test_foreign_text_opens_no_block_at_the_start_of_a_list_item(text):
    found = MarkdownIt("commonmark").parse(f"- {format.inline(f'{text} x')}\n")
    assert [token.type for token in found] == [
        "bullet_list_open", "list_item_open", "paragraph_open", "inline",
        "paragraph_close", "list_item_close", "bullet_list_close",
    ]  # fmt: skip


def test_long_text_is_cut():
    assert len(format.plain("x" * 100_000)) == format.MAX_TEXT
    assert format.plain("x" * 100_000).endswith("…")


def test_code_falls_back_where_a_span_could_not_hold_it():
    assert format.code("a_b") == "`a_b`"
    assert format.code("a`b|c") == r"a\`b\|c"


def test_links_are_relative_and_quoted():
    assert format.link("v1", "kernels/my op/v1.py", "devlog/x") == "[v1](../../kernels/my%20op/v1.py)"
    assert format.link("a]b", "a", ".") == r"[a\]b](a)"


def test_lists_keep_what_is_markdown_already():
    assert format.comma_list([format.Md("`x`"), "a*b"]) == r"`x`, a\*b"
    assert format.comma_list([]) == "-"
    assert format.key_values({"torch": "2.13", "python": "3.11"}) == "python 3.11, torch 2.13"

"""Figures in texts, and words that name a verdict."""

from __future__ import annotations

import pytest

from warpsmith.core.claims.figures import contradicting_words, parse_figures, split_statements


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("made it 9.7x faster", [("9.7x", "ratio", 9.7)]),
        ("12 % of it", [("12 %", "percent", 12)]),
        ("3.5 us and 1.2 TB/s", [("3.5 us", "s", 3.5e-6), ("1.2 TB/s", "B/s", 1.2e12)]),
        ("1,024 GB/s", [("1,024 GB/s", "B/s", 1.024e12)]),
        ("1e-3 s", [("1e-3 s", "s", 1e-3)]),
        ("740 TFLOP/s", [("740 TFLOP/s", "FLOP/s", 7.4e14)]),
        ("4 GiB/s", [("4 GiB/s", "B/s", 4 * 2**30)]),
        ("5 to 10 %", [("5 %", "percent", 5), ("10 %", "percent", 10)]),
        ("2-3x", [("2x", "ratio", 2), ("3x", "ratio", 3)]),
        ("-17.5%", [("17.5%", "percent", 17.5)]),
        ("1.43x [1.14, 2.01]", [("1.43x", "ratio", 1.43), ("1.14x", "ratio", 1.14), ("2.01x", "ratio", 2.01)]),
        ("3 times faster", [("3 times", "ratio", 3)]),
        ("0.5 J a call", [("0.5 J", "J", 0.5)]),
        ("two milliseconds, 2 milliseconds", [("2 milliseconds", "s", 2e-3)]),
        ("9,7x, 12,5 %", [("9,7x", "ratio", 9.7), ("12,5 %", "percent", 12.5)]),
        ("9.7X or x9.7", [("9.7X", "ratio", 9.7), ("x9.7", "ratio", 9.7)]),
        ("**9.7**x, `9.7`x", [("9.7x", "ratio", 9.7), ("9.7x", "ratio", 9.7)]),
        ("\uff19.\uff17x, 97 \uff05", [("9.7x", "ratio", 9.7), ("97 %", "percent", 97)]),
        ("3 us/call, 3 usec, 3 min", [("3 us", "s", 3e-6), ("3 usec", "s", 3e-6), ("3 min", "s", 180)]),
        ("12 -> 3 us", [("12 us", "s", 1.2e-5), ("3 us", "s", 3e-6)]),
        ("between 12 and 15 %", [("12 %", "percent", 12), ("15 %", "percent", 15)]),
        ("3 TBps, 3 GB per second", [("3 TBps", "B/s", 3e12), ("3 GB per second", "B/s", 3e9)]),
        ("2 tflops", [("2 tflops", "FLOP/s", 2e12)]),
        ("97 pct, 5 percentage points", [("97 pct", "percent", 97), ("5 percentage points", "percent", 5)]),
        ("a speedup of 9.7.", [("speedup of 9.7", "ratio", 9.7)]),
        ("faster by a factor of 3", [("faster by a factor of 3", "ratio", 3)]),
        ("twice as fast, tenfold", [("twice", "ratio", 2), ("tenfold", "ratio", 10)]),
        ("three times faster, half the time", [("three times", "ratio", 3), ("half", "ratio", 0.5)]),
        ("an order of magnitude faster", [("an order of magnitude", "ratio", 10)]),
        ("tiles of 16 x 16, a 3 x 3 kernel, unrolled 4x, an 8x unroll, x4 vectors, sm_90a, a factor of 4", []),
        ("read twice, half the threads, two-fold loops, round 2 and 3, 2026-01-02, half precision", []),
        ("4x8 tiles, v3, 128-byte loads, 16 KiB, read 3 times, 132 SMs, fp16, 32x32x8", []),
    ],
)
def test_numbers_are_read_whole(text, figures):
    found = parse_figures(text)
    assert [(figure.text, figure.dimension) for figure in found] == [entry[:2] for entry in figures]
    assert [figure.value for figure in found] == pytest.approx([entry[2] for entry in figures])


def test_a_line_of_a_table_is_one_statement():
    assert list(split_statements("A. B; c\n| x. y | z |")) == ["A.", "B;", "c", "| x. y | z |"]


def test_a_wrapped_line_continues_its_statement():
    text = "It was 9.7\nx, as a\nsays. B\n\nC\n- d\n  e\n# F\nG"
    assert list(split_statements(text)) == ["It was 9.7 x, as a says.", "B", "", "C", "- d e", "# F", "G"]


@pytest.mark.parametrize(
    ("text", "accepted", "words"),
    [
        ("The stores made it faster on an H200, accepted.", False, "accepted"),
        ("It was accepted.", False, "was accepted"),
        ("The verdict is ACCEPT.", False, "verdict is ACCEPT"),
        ("It was rolled back", True, "was rolled back"),
        ("It was not accepted; nothing is new.", False, None),
        ("v2 was accepted before.", False, None),
        ("The verdict is ROLLBACK, but ACCEPT in the recording.", False, None),
        ("The flag was accepted by the compiler.", False, None),
        ("It was accepted.", True, None),
    ],
)
def test_words_against_the_verdict(text, accepted, words):
    assert contradicting_words(text, accepted) == words

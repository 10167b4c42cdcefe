"""Values of records, and the figures of a text that none supports."""

from __future__ import annotations

import pytest

from warpsmith.core.claims.quantities import Quantities, unsupported_figures

RECORD = {
    "evaluation": {
        "results": [{"timing": {"seconds": 4.123e-5, "bandwidth": 1.2e12, "ceiling_share": 0.583},
                     "correctness": {"worst": 0.1031}}],
        "aggregates": [{"speedup": 1.2543, "interval": {"low": 1.14, "high": 2.014}}],
        "decision": {"verdict": "ROLLBACK", "reason": "not clear of the noise floor of 4.8%"},
        "steps": [{"seconds": 7.5}],
    },
    "profile": {"metrics": [{"name": "dram_pct", "value": 38.257}, {"name": "time_us", "value": 12.5}]},
    "outcome": {"gain": -0.0174, "movement": {"metric": "dram_pct", "before": 40.0, "after": 50.0}},
    "machine": {"seed": 9.7, "registers": 97},
}  # fmt: skip


def nothing_cited(path):
    return None


@pytest.mark.parametrize(
    "text",
    ["41 us", "41.2 us", "0.0412 ms", "1.25x", "25 %", "20 % less", "1.25x [1.14, 2.01]", "38 %", "12.5 us",
     "1.7 % slower", "58.3 % of the ceiling", "1.2 TB/s", "within 4.8 %", "a quarter more: 25 %"],
)  # fmt: skip
def test_a_recorded_value_supports_its_rounded_forms(text):
    assert list(unsupported_figures(text, Quantities.of(RECORD), nothing_cited)) == []


@pytest.mark.parametrize("text", ["9.7x", "41.3 us", "1.26x", "97 %", "7.5 s", "10.3 %", "1.3 TB/s", "41 ms"])
def test_what_the_record_does_not_hold_is_named(text):
    assert list(unsupported_figures(f"It was {text}.", Quantities.of(RECORD), nothing_cited)) == [text]


def test_a_source_in_the_same_sentence_supports():
    def read_cited(path):
        return Quantities.of({"speedup": 9.7}) if path == "devlog/op/c/rounds/002/record.json" else None

    none = Quantities()
    assert list(unsupported_figures("The paper has 3x (https://example.org/a).", none, read_cited)) == []
    assert list(unsupported_figures("See https://example.org/a. It was 3x.", none, read_cited)) == ["3x"]
    cited = "It was {}, as devlog/op/c/rounds/002/record.json has it."
    assert list(unsupported_figures(cited.format("9.7x"), none, read_cited)) == []
    assert list(unsupported_figures(cited.format("9.8x"), none, read_cited)) == ["9.8x"]
    assert list(unsupported_figures("It was 9.7x (devlog/nothing.json).", none, read_cited)) == ["9.7x"]


def test_a_union_has_the_values_of_both():
    both = Quantities.of({"speedup": 2.0}).union(Quantities.of({"seconds": 3.0}))
    assert list(unsupported_figures("2x in 3 s", both, nothing_cited)) == []


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("9x better", ["9x"]),
        ("9x", ["9x"]),
        ("9x slower", []),
        ("slower by a factor of 9", []),
        ("faster by a factor of 9", ["faster by a factor of 9"]),
        ("0.11x of eager", []),
    ],
)
def test_a_slow_version_is_not_called_fast_by_the_inverse(text, refused):
    assert list(unsupported_figures(text, Quantities.of({"speedup": 0.1096}), nothing_cited)) == refused

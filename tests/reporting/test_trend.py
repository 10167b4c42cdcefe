"""The performance trend."""

from warpsmith.reporting import report


def test_one_row_a_round(make):
    (table,) = make.tables(report.trend_page(make.manifest(), make.campaign_of_three()))
    assert table[1] == [
        "1", "triton/v1", "ACCEPT", "Wider loads make it faster.", "1", "1.20x [1.16, 1.24]", "1.00x", "50.0 %",
        "not stated", "It was known already.",
    ]  # fmt: skip
    assert table[2][4:8] == ["0", "-", "-", "-"]
    assert table[3][4:] == ["2", "1.83x [1.79, 1.87]", "1.53x", "74.8 %", "not stated", "Load wide."]


def test_reduced_trust_stands_in_the_row(make):
    judged = make.evaluation(trust=make.BUSY)
    (table,) = make.tables(report.trend_page(make.manifest(), [make.record(1, judged)]))
    assert table[1][8] == "reduced, without machine idle, sanitizers"


def test_no_rounds(make):
    assert "No round is closed yet." in report.trend_page(make.manifest(), [])


def test_hostile_text_stays_in_its_cell(make):
    plan = make.record(2).plan.model_dump() | {"hypothesis": make.HOSTILE}
    lesson = {"action": "nothing", "reason": make.HOSTILE}
    (table,) = make.tables(report.trend_page(make.manifest(), [make.record(2, plan=plan, lesson=lesson)]))
    assert [len(row) for row in table] == [10, 10]

"""The page of predictions."""

from warpsmith.reporting import calibration


def predicted(make, number, category, gain):
    found = make.record(number)
    plan = found.plan.model_copy(update={"category": category})
    return found.model_copy(update={"plan": plan, "outcome": found.outcome.model_copy(update={"gain": gain})})


def test_by_category_and_round(make):
    rounds = [make.record(1), predicted(make, 2, "memory", 0.3), predicted(make, 3, "compute", -0.1)]
    page = calibration.calibration_page(
        calibration.calibrate_campaigns([rounds, [predicted(make, 4, "memory", 0.1)]])
    )
    categories, every = make.tables(page)
    assert categories[1:] == [
        ["compute", "1", "+20.0 %", "-10.0 %", "30.0 %", "0.0 %"],
        ["memory", "2", "+20.0 %", "+20.0 %", "10.0 %", "100.0 %"],
        ["all", "3", "+20.0 %", "+10.0 %", "10.0 %", "66.7 %"],
    ]
    assert [row[1:] for row in every[1:]] == [
        ["memory", "+20.0 %", "+30.0 %"], ["compute", "+20.0 %", "-10.0 %"], ["memory", "+20.0 %", "+10.0 %"]
    ]  # fmt: skip
    assert "(norm/norm-triton-h200-20261121/rounds/002/record.json)" in page
    assert "(calibration.svg)" in page


def test_what_is_not_there_is_said(make):
    assert "No predicted gain was measured yet." in calibration.calibration_page(
        calibration.calibrate_campaigns([[make.record(1)]])
    )
    there = calibration.calibrate_campaigns([[predicted(make, 2, "memory", 0.3)]])
    page = calibration.calibration_page(there, "matplotlib is not installed")
    assert "The plot was not drawn: matplotlib is not installed." in page
    assert "svg" not in page

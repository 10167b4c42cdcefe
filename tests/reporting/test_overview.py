"""Overviews over campaigns."""

from warpsmith.reporting import overview


def other(make, **changes):
    return make.manifest(campaign="norm-triton-h200-20261122", **changes)


def test_operator_page_lists_its_campaigns_by_name(make):
    rows = [
        overview.Row(other(make), []),
        overview.Row(make.manifest(), make.campaign_of_three()),
        overview.Row(other(make, target_op="softmax"), []),
    ]
    page = overview.operator_page("norm", rows)
    assert page.index("norm-triton-h200-20261121/report.md") < page.index("norm-triton-h200-20261122/report.md")
    assert "softmax" not in page
    first, second = make.tables(page)
    assert first[1][2:] == [
        "triton/v3", "1.83x [1.79, 1.87]", "1.10x [1.06, 1.14]", "74.8 %", "3", "1", "2026-11-21", "Some Device",
    ]  # fmt: skip
    assert second[1][2:] == ["none yet", "-", "-", "-", "0", "0", "-", "-"]


def test_devlog_takes_the_campaign_nearest_to_the_roofline(make):
    weaker = overview.Row(other(make), make.campaign_of_three()[:1])
    rows = [weaker, overview.Row(make.manifest(), make.campaign_of_three())]
    for given in (rows, rows[::-1]):
        ((_, row),) = make.tables(overview.devlog_page(given))
        assert row == [
            "norm", "h200", "triton/v3", "74.8 %", "1.10x [1.06, 1.14]", "3", "1", "2026-11-21", "Some Device",
        ]  # fmt: skip


def test_unreadable_records_are_said(make):
    rows = [overview.Row(make.manifest(), [], unreadable=True)]
    assert "warpsmith resume --campaign norm-triton-h200-20261121" in overview.operator_page("norm", rows)
    assert "records do not read" in overview.devlog_page(rows)

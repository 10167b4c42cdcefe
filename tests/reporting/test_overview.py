"""Overviews over campaigns."""

import pytest

from warpsmith.reporting import overview


def other(make, **changes):
    return make.manifest(campaign="norm-triton-h200-20261122", **changes)


def test_operator_page_lists_its_campaigns_by_name(make):
    rows = [
        overview.CampaignRow(other(make), []),
        overview.CampaignRow(make.manifest(), make.campaign_of_three()),
        overview.CampaignRow(other(make, target_op="softmax"), []),
    ]
    page = overview.operator_page("norm", rows)
    assert page.index("norm-triton-h200-20261121/report.md") < page.index("norm-triton-h200-20261122/report.md")
    assert "softmax" not in page
    first, second = make.tables(page)
    assert first[1][2:] == [
        "triton/v3", "1.83x [1.79, 1.87]", "1.10x [1.06, 1.14]", "74.8 %, up to 80.0 %",
        "3", "1", "2026-11-21", "Some Device", "not stated",
    ]  # fmt: skip
    assert second[1][2:] == ["none yet", "-", "-", "-", "0", "0", "-", "-", "-"]


def test_a_campaign_by_energy_is_called_so(make):
    row = overview.CampaignRow(make.manifest(objective="energy"), make.campaign_of_three())
    assert make.tables(overview.operator_page("norm", [row]))[0][1][0] == "h200, by energy"
    assert make.tables(overview.devlog_page([row]))[0][1][1] == "h200, by energy"


def test_devlog_takes_the_campaign_of_the_version_that_stands(make):
    first = make.campaign_of_three()[0].model_copy(update={"snapshot_sha256": "f" * 64})
    rows = [
        overview.CampaignRow(other(make), [first]),
        overview.CampaignRow(make.manifest(), make.campaign_of_three()),
    ]
    standing = {("norm", "h200"): first.snapshot_sha256}
    for given in (rows, rows[::-1]):
        ((_, row),) = make.tables(overview.devlog_page(given, standing))
        assert row[2] == "triton/v1"


def test_where_none_is_known_to_stand_devlog_takes_the_campaign_nearest_to_the_roofline(make):
    weaker = overview.CampaignRow(other(make), make.campaign_of_three()[:1])
    rows = [weaker, overview.CampaignRow(make.manifest(), make.campaign_of_three())]
    for given in (rows, rows[::-1]):
        ((_, row),) = make.tables(overview.devlog_page(given))
        assert row == [
            "norm", "h200", "triton/v3", "74.8 %, up to 80.0 %", "1.10x [1.06, 1.14]",
            "1.10x [1.06, 1.14] torch.compile", "3", "1", "2026-11-21", "Some Device", "not stated",
        ]  # fmt: skip


def test_reduced_trust_of_the_best_version_stands_in_both_overviews(make):
    judged = make.evaluation(trust=make.BUSY)
    row = overview.CampaignRow(make.manifest(), [make.record(1, judged)])
    reduced = "reduced, without machine idle, sanitizers"
    assert make.tables(overview.operator_page("norm", [row]))[0][1][-1] == reduced
    assert make.tables(overview.devlog_page([row]))[0][1][-1] == reduced


def test_the_best_peer_is_the_one_that_comes_nearest(make):
    sides = {"reference": 0.9, "best": 1.01, "torch.compile": 1.3, "vllm": 1.2}
    judged = make.evaluation(
        results=[make.passed(**sides)],
        aggregates=[make.aggregate(side, speedup) for side, speedup in sides.items()],
    )
    ((_, row),) = make.tables(
        overview.devlog_page([overview.CampaignRow(make.manifest(), [make.record(1, judged)])])
    )
    assert row[4:6] == ["1.30x [1.26, 1.34]", "1.20x [1.16, 1.24] vllm"]
    alone = make.evaluation(results=[make.passed(reference=2)], aggregates=[make.aggregate("reference", 2)])
    ((_, row),) = make.tables(
        overview.devlog_page([overview.CampaignRow(make.manifest(), [make.record(1, alone)])])
    )
    assert row[4:6] == ["-", "-"]


def test_the_other_peer_leaves_out_torch_compile(make):
    sides = {"reference": 0.9, "torch.compile": 1.1, "vllm": 1.4, "liger": 1.3}
    judged = make.evaluation(
        results=[make.passed(**sides)],
        aggregates=[make.aggregate(side, speedup) for side, speedup in sides.items()],
    )
    row = overview.CampaignRow(make.manifest(), [make.record(1, judged)])
    assert (row.best_peer.against, row.other_peer.against) == ("torch.compile", "liger")


def test_unreadable_records_are_said(make):
    rows = [overview.CampaignRow(make.manifest(), [], unreadable=True)]
    assert "warpsmith resume --campaign norm-triton-h200-20261121" in overview.operator_page("norm", rows)
    assert "corrupt records" in overview.devlog_page(rows)


def test_torch_compile_against_another_version_is_told(make):
    judged = make.evaluation(results=[make.passed(reference=2)], aggregates=[make.aggregate("reference", 2)])
    race = make.race("f" * 64, **{"torch.compile": 1.3, "vllm": 1.2})
    page = overview.devlog_page([overview.CampaignRow(make.manifest(), [make.record(1, judged)], race=race)])
    ((_, row),) = make.tables(page)
    assert row[4:6] == ["1.30x [1.26, 1.34] (triton/v3)", "1.20x [1.16, 1.24] vllm (triton/v3)"]


@pytest.mark.parametrize(("missed", "speedup"), [([], 3.0), (["128x64"], 2.0)], ids=["whole", "in part"])
def test_a_race_counts_for_a_side_where_it_raced_all_workloads(make, missed, speedup):
    results = [make.passed(reference=2), *({**make.passed(reference=2), "workload": name} for name in missed)]
    judged = make.evaluation(results=results, aggregates=[make.aggregate("reference", 2)])
    record = make.record(1, judged)
    race = make.race(record.snapshot_sha256, reference=3, vllm=1.2)
    row = overview.CampaignRow(make.manifest(), [record], race=race)
    assert row.aggregate("reference").speedup == speedup
    assert row.aggregate("vllm").speedup == 1.2

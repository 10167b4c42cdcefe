"""The report of a campaign."""

from warpsmith.core.campaign import Closure
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.reporting import report

PLACE = report.ReportLinks("devlog/norm/norm-triton-h200-20261121")


def rows(make, page):
    return {row[0]: row for table in reversed(make.tables(page)) for row in table}


def test_headline(make):
    page = report.report_page(make.manifest(), make.campaign_of_three(), PLACE)
    found = rows(make, page)
    assert found["best version"][1] == "triton/v3 (round 3), kernels/norm/triton/v3.py"
    assert found["over PyTorch eager"][1] == "1.83x [1.79, 1.87], lowest 1.73x at 64x64"
    assert found["over torch.compile"][1] == "1.10x [1.06, 1.14], lowest 1.00x at 64x64"
    assert found["of the roofline"][1] == "74.8 % (geometric mean over 2 workloads); the target is 90.0 %"
    assert "3 rounds, no stop condition is met yet" in page
    assert "(../../../kernels/norm/triton/v3.py)" in page


def test_stop_condition(make):
    page = report.report_page(make.manifest(performance_target=0.7), make.campaign_of_three(), PLACE)
    assert "reaches 74.8% of the ceiling; the target is 70.0%" in page


def test_missing_aggregates_are_said_and_not_computed(make):
    rounds = make.campaign_of_three()[:1]
    found = rows(make, report.report_page(make.manifest(), rounds, PLACE))
    assert found["over torch.compile"][1] == "not measured for this version"
    page = report.report_page(make.manifest(), rounds, PLACE)
    assert "- triton/v1 has no result against torch.compile." in page


def test_rollbacks_lessons_and_predictions(make):
    place = report.ReportLinks(PLACE.folder, {"wide-loads": "docs/knowledge/optimizations/wide-loads.md"})
    page = report.report_page(make.manifest(), make.campaign_of_three(), place)
    assert "- Round 2, triton/v2 (memory): Wider loads make it faster." in page
    assert "refine [wide-loads](../../../docs/knowledge/optimizations/wide-loads.md). Load wide." in page
    assert "between predicted and measured gain is 9.0 %" in page
    assert "- Rounds: 3, 1 of them rolled back" in page
    assert "1 h 06 min" in page


def test_an_entry_that_ships_is_no_link(make):
    assert "refine `wide-loads`." in report.report_page(make.manifest(), make.campaign_of_three(), PLACE)


def test_how_it_was_measured(make):
    page = report.report_page(make.manifest(), make.campaign_of_three(), PLACE)
    assert f"- Gate version {GATE_VERSION};" in page
    assert "- Noise floor: 1.2 % over 20 A/A trials." in page
    assert "3 distinct over 3 judgements; every judgement drew fresh inputs." in page
    assert "- Evidence level of the profiles: timings only." in page
    assert "- Figure bandwidth: 4.2 TB/s <- docs/knowledge/hardware/h200.md:12" in page


def test_reduced_trust_and_the_load_of_the_machine_are_told(make):
    page = report.report_page(make.manifest(), [make.record(1, make.evaluation(trust=make.BUSY))], PLACE)
    reasons = (
        "machine idle (other processes keep 2.0 cores busy); sanitizers (compute-sanitizer needs an NVIDIA GPU)"
    )
    assert rows(make, page)["trust"][1] == f"reduced: {reasons}"
    assert rows(make, page)["001"][-1] == "reduced, without machine idle, sanitizers"
    assert "other processes keep 2.0 cores busy" in page


def test_versions_show_torch_compile_only_where_it_was_measured(make):
    page = report.report_page(make.manifest(), make.campaign_of_three(), PLACE)
    assert [rows(make, page)[number][7] for number in ("001", "002", "003")] == ["-", "-", "1.10x [1.06, 1.14]"]
    first = report.report_page(make.manifest(), make.campaign_of_three()[:1], PLACE)
    assert rows(make, first)["round"][6:] == ["over PyTorch eager", "ceiling", "trust"]


def test_a_reused_seed_is_not_hidden(make):
    rounds = make.campaign_of_three()
    same = rounds[0].evaluation.provenance
    judged = rounds[2].evaluation.model_copy(update={"provenance": same})
    page = report.report_page(
        make.manifest(), [*rounds[:2], rounds[2].model_copy(update={"evaluation": judged})], PLACE
    )
    assert "2 distinct over 3 judgements, so inputs were NOT fresh" in page


def test_nothing_accepted_and_nothing_closed(make):
    failed = report.report_page(make.manifest(), make.campaign_of_three()[1:2], PLACE)
    assert "No version was accepted." in failed
    assert "roofline" not in failed
    assert "No round is closed yet." in report.report_page(make.manifest(), [], PLACE)


def test_the_page_links_to_nothing_that_git_leaves_out(make):
    page = report.report_page(make.manifest(), make.campaign_of_three(), PLACE)
    for untracked in (".svg", "summary.md", "performance_trend.md"):
        assert untracked not in page
    assert "draws the trend and the roofline in `plots/`" in page


def test_hostile_text_changes_no_structure(make):
    def page(text):
        broken = make.record(
            2, make.evaluation("v2", "ROLLBACK", results=[make.failed(text)]), outcome=make.lost()
        )
        plan = broken.plan.model_copy(update={"hypothesis": text})
        lesson = make.campaign_of_three()[2].lesson.model_copy(update={"reason": text, "tip": None})
        hostile = broken.model_copy(update={"plan": plan, "lesson": lesson})
        rounds = [make.campaign_of_three()[0], hostile]
        return make.structure(report.report_page(make.manifest(figures={"f": text}), rounds, PLACE))

    assert [kind for kind in page(make.HOSTILE) if kind != "text_special"] == page("harmless words")


def test_the_race_at_the_end_gives_the_headline(make):
    sides = {"reference": 1.9, "torch.compile": 1.2}
    final = make.evaluation(
        "v3",
        results=[make.passed("4096x4096", 0.9, **sides)],
        aggregates=[make.aggregate(side, speedup) for side, speedup in sides.items()],
    )
    page = report.report_page(make.manifest(), make.campaign_of_three(), PLACE, final)
    found = rows(make, page)
    assert found["over torch.compile"][1].startswith("1.20x [1.16, 1.24]")
    assert found["of the roofline"][1].startswith("90.0 % (geometric mean over 1 workload)")
    assert found["these numbers"][1] == "the final race, every workload and peer"
    assert "4096x4096" in found
    assert "- The final race: [devlog/norm/norm-triton-h200-20261121/final.json](final.json)" in page
    without = rows(make, report.report_page(make.manifest(), make.campaign_of_three(), PLACE))
    assert without["these numbers"][1] == "round 3"


def test_what_was_judged_again_is_told(make):
    rounds = make.campaign_of_three()
    assert "Judged again" not in report.report_page(make.manifest(), rounds, PLACE)
    told = f"renewed by gate {GATE_VERSION} on 2026-11-21"
    again = {"003": make.rerun(rounds[2].evaluation), "final": make.rerun(rounds[2].evaluation, "WEAKER")}
    page = report.report_page(make.manifest(), rounds, PLACE, reruns=again)
    assert f"- Round [003](rounds/003/record.json), triton/v3, {told}: holds. It is as fast." in page
    assert f"- The final race, {told}: weaker. It is as fast." in page


def test_a_struck_version_is_out_of_the_result_and_told(make):
    rounds = make.campaign_of_three()
    page = report.report_page(make.manifest(), [*rounds[:2], make.strike(rounds[2])], PLACE)
    found = rows(make, page)
    assert found["best version"][1].startswith("triton/v1 (round 1)")
    assert found["003"][2] == "ACCEPT, struck"
    assert "- Round 3, triton/v3, on 2026-11-22 08:00 UTC: It keeps earlier results." in page
    assert "- Rounds: 3, 1 of them rolled back" in page
    assert "Struck, and why" not in report.report_page(make.manifest(), rounds, PLACE)


def test_the_objective_is_told_where_it_is_energy(make):
    assert "objective" not in rows(make, report.report_page(make.manifest(), make.campaign_of_three(), PLACE))
    manifest = make.manifest(objective="energy", primary_metric="joules")
    found = rows(make, report.report_page(manifest, make.campaign_of_three(), PLACE))
    assert found["objective"][1] == "energy: joules"
    assert found["of the roofline"][1] == "74.8 % (geometric mean over 2 workloads)"


def test_an_end_before_the_stop_condition_and_an_amendment(make):
    closure = Closure(reason="The bound was too wide.", amended_by="norm-2", at="2026-11-22 10:00")
    page = report.report_page(make.manifest(), make.campaign_of_three(), PLACE, closure=closure)
    assert "3 rounds, amended by norm-2: The bound was too wide." in page
    page = report.report_page(make.manifest(amends="norm-1"), make.campaign_of_three(), PLACE)
    assert "no stop condition is met yet. It amends `norm-1`.\n\n## Result" in page

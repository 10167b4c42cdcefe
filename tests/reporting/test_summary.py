"""A round's page."""

from warpsmith.reporting import report


def rows(make, page):
    return {row[0]: row for table in make.tables(page) for row in table}


def test_accepted_round(make):
    page = report.round_page(make.campaign_of_three()[2])
    found = rows(make, page)
    assert found["128x64"][1:5] == ["PASSED", "12.3 us", "1.11x [1.07, 1.15]", "1.83x [1.79, 1.87]"]
    assert found["128x64"][-4:] == ["70.0 %", "2.25 TB/s", "1.12 TFLOP/s", "0.25"]
    assert found["geometric mean"][3] == "1.11x [1.07, 1.15]"
    assert found["dram_pct"] == ["dram_pct", "+15", "40 to 52.5", "yes"]
    assert found["gain over the previous best version"][1:3] == ["+20.0 %", "+11.0 %"]
    assert "**ACCEPT**: as the numbers say" in page
    assert "What went wrong" not in page


def test_every_protection_is_listed_with_its_state(make):
    page = report.round_page(make.record(1, make.evaluation(trust=make.BUSY)))
    found = rows(make, page)
    assert found["files"] == ["files", "yes", "Landlock 7"]
    assert found["machine idle"] == ["machine idle", "no", "other processes keep 2.0 cores busy"]
    reasons = (
        "machine idle (other processes keep 2.0 cores busy); sanitizers (compute-sanitizer needs an NVIDIA GPU)"
    )
    assert f"Trust: reduced: {reasons}" in page


def test_timed_workloads_come_before_those_only_graded(make):
    graded = make.passed("3x1000") | {"timing": None}
    judged = make.evaluation(results=[graded, make.passed("64x64")])
    table = next(t for t in make.tables(report.round_page(make.record(1, judged))) if t[0][0] == "workload")
    assert [row[0] for row in table[1:3]] == ["64x64", "3x1000"]


def test_what_came_later_is_told(make):
    record = make.campaign_of_three()[2]
    assert "judged again" not in report.round_page(record)
    page = report.round_page(make.strike(record), make.rerun(record.evaluation, "REFUTED"))
    assert "# Round 3: ACCEPT, struck, triton/v3" in page
    assert "Struck on 2026-11-22 08:00 UTC" in page
    assert ": It keeps" in page
    assert "The version was judged again, renewed by gate" in page
    assert "on 2026-11-21: refuted. It is as fast." in page


def test_rolled_back_round_says_what_went_wrong_and_has_no_times(make):
    page = report.round_page(make.campaign_of_three()[1])
    found = rows(make, page)
    assert found["64x64"] == ["64x64", "INCORRECT_NUMERICAL", "-", "-", "-", "-", "3e+12"]
    assert "geometric mean" not in found
    assert found["dram_pct"][2:] == ["not measured", "unknown"]
    assert "- Expected: +20.0 % over the best version, dram_pct +15" in page
    assert "- Actual: INCORRECT_NUMERICAL at 64x64: expected 1, found 2" in page
    assert "- Lesson: It was known already." in page


def test_a_peer_that_was_not_timed_is_named(make):
    judged = make.evaluation(absent={"torch.compile": "64x64: TypeError: list indices"})
    assert "- torch.compile was not timed: 64x64: TypeError: list indices" in report.round_page(
        make.record(1, judged)
    )
    assert "not timed" not in report.round_page(make.record(1))


def test_a_round_that_did_not_build_reached_no_workload(make):
    judged = make.evaluation("v2", "ROLLBACK", results=[], noise=None)
    page = report.round_page(make.record(2, judged))
    assert "No workload was run." in page
    assert rows(make, page)["noise floor"][1] == "not measured"


def test_gate_and_provenance(make):
    found = rows(make, report.round_page(make.campaign_of_three()[0]))
    assert found["build"] == ["build", "skipped", "0 s", "no compiler"]
    assert found["lint"] == ["lint", "noted", "10.0 ms", "a stream"]
    assert found["libraries"][1] == "python 3.11, torch 2.13"
    assert found["clocks, MHz"][1] == "sm 1980"
    assert found["sha256 of the previous record"][1] == "none (first record)"


def test_ambiguous_timing_and_stop_are_said(make):
    decision = {"verdict": "ROLLBACK", "reason": "too close", "repeats": 3, "ambiguous": True}
    record = make.record(
        2, make.evaluation("v2", "ROLLBACK", decision=decision), outcome=make.lost() | {"stop": "2 rounds"}
    )
    page = report.round_page(record)
    assert "Timing was repeated 3 times, and stayed ambiguous." in page
    assert "The campaign may stop here: 2 rounds." in page


def test_resources(make):
    used = {"kernel": "k_1", "registers": 40, "spill_bytes": 0, "notes": ["wide"]}
    page = report.round_page(make.record(1, make.evaluation(resources=[used])))
    assert rows(make, page)["k_1"] == ["k_1", "40", "-", "0", "-", "-", "wide"]


def hostile(make, text):
    steps = [{"name": "build", "state": "failed", "notes": [text, text], "seconds": 1.0}]
    broken = make.failed(text) | {"workload": text}
    broken["correctness"]["detail"] = text
    tip = {"context": text, "signal": text, "takeaway": text, "applicability": text}
    decision = {"verdict": "ROLLBACK", "reason": text}
    used = {"kernel": text, "notes": [text]}
    judged = make.evaluation("v2", results=[broken], steps=steps, resources=[used], decision=decision)
    plan = make.record(2).plan.model_dump() | {"hypothesis": text, "entries": [text]}
    lesson = {"action": "refute", "entry": text, "reason": text, "tip": tip}
    selection = {"language": "triton", "because": text}
    return make.record(
        2, judged, plan=plan, lesson=lesson, selection=selection, outcome=make.lost() | {"stop": text},
        profile=make.profile(root_cause=text),
    )  # fmt: skip


def test_hostile_text_changes_no_structure(make):
    tame, wild = "harmless words", make.HOSTILE
    page = report.round_page(hostile(make, wild))
    # The entry's id is shown as code where that is safe; nothing else may differ.
    kinds = [kind for kind in make.structure(page) if kind not in ("code_inline", "text_special")]
    assert kinds == [
        kind for kind in make.structure(report.round_page(hostile(make, tame))) if kind != "code_inline"
    ]
    assert "<script>" not in page
    assert not any(character in page for character in "\x1b\x00\u202e\r")


def test_joules_are_shown_where_energy_decides(make):
    record = make.campaign_of_three()[2]
    assert "joules" not in report.round_page(record)
    judged = record.evaluation.model_validate(record.evaluation.model_dump() | {"energy": make.energy()})
    page = report.round_page(record.model_copy(update={"evaluation": judged}))
    assert make.tables(page)[2] == [
        ["workload", "joules a call", "previous best version", "saving", "readings"],
        ["64x64", "45.3 mJ", "54.4 mJ", "1.20x [1.18, 1.22]", "6"],
        ["128x64", "45.3 mJ", "54.4 mJ", "1.20x [1.18, 1.22]", "6"],
        ["geometric mean", "", "", "1.20x [1.16, 1.24], floor 1.1 %", ""],
    ]
    assert rows(make, page)["gain over the previous best version, in joules a call"][2] == "+11.0 %"


def test_a_first_version_has_its_joules_alone(make):
    page = report.round_page(make.record(1, make.evaluation(energy=make.energy(best=False))))
    assert ["128x64", "45.3 mJ", "6"] in make.tables(page)[2]


def test_the_context_is_named_where_there_is_one(make):
    judged = make.evaluation()
    assert "context" not in rows(make, report.round_page(make.record(1, judged)))
    there = judged.model_copy(update={"provenance": judged.provenance.model_copy(update={"context": "lab"})})
    assert rows(make, report.round_page(make.record(1, there)))["context"] == ["context", "lab"]

"""What is said beyond the records' fields, and that nothing is computed from what was not measured."""

import pytest

from warpsmith.core.campaign import Movement
from warpsmith.core.evaluation import GATE_VERSION, Verdict
from warpsmith.reporting import facts


def test_best_and_baseline(make):
    rounds = make.campaign_of_three()
    assert facts.best_round(rounds) is rounds[2]
    assert facts.baseline_round(rounds) is rounds[0]
    assert facts.rolled_back_rounds(rounds) == [rounds[1]]
    assert facts.baseline_round(rounds[1:2]) is None


def test_sides_in_order(make):
    judged = make.evaluation(results=[make.passed(zeta=1.0, reference=1.2, best=1.1, alpha=1.0)])
    assert facts.timed_sides(judged) == ["best", "reference", "alpha", "zeta"]


def test_ratio_to_the_baseline_is_over_common_workloads(make):
    rounds = make.campaign_of_three()
    # 128x64 is not in the baseline; its different speedup must not count.
    assert facts.ratio_to_baseline(rounds[2].evaluation, rounds[0]) == pytest.approx(1.83 / 1.2)
    assert facts.ratio_to_baseline(rounds[0].evaluation, rounds[0]) == pytest.approx(1.0)


def test_no_ratio_without_a_comparison(make):
    rounds = make.campaign_of_three()
    alone = make.record(4, make.evaluation("v4", results=[make.passed(best=1.2)]))
    assert facts.ratio_to_baseline(rounds[1].evaluation, rounds[0]) is None
    assert facts.ratio_to_baseline(alone.evaluation, rounds[0]) is None
    assert facts.ratio_to_baseline(rounds[2].evaluation, None) is None


def test_key_finding_prefers_the_tip(make):
    rounds = make.campaign_of_three()
    assert facts.key_finding(rounds[2]) == "Load wide."
    assert facts.key_finding(rounds[0]) == "It was known already."
    silent = rounds[1].model_copy(
        update={"lesson": rounds[2].lesson.model_copy(update={"tip": None, "reason": ""})}
    )
    assert facts.key_finding(silent) == "INCORRECT_NUMERICAL at 64x64: expected 1, found 2"


def test_cost(make):
    rounds = make.campaign_of_three()
    assert facts.wall_minutes(rounds) == 21 + 22 + 23
    backwards = make.record(4, closed="2026-11-20 10:00")
    assert facts.wall_minutes([backwards]) == 0
    assert facts.gate_seconds(facts.all_evaluations(rounds, None)) == pytest.approx(3 * 2.01)


def test_what_was_not_measured(make):
    rounds = make.campaign_of_three()
    said = facts.not_measured(make.manifest(peers=("torch.compile", "liger")), rounds)
    assert said == [
        "triton/v3 has no result against liger.",
        "Step skipped, build: no compiler.",
        "Counters would show the stalls.",
    ]


def test_missing_reference_noise_and_profile_are_named(make):
    untimed = make.passed("odd") | {"timing": None}
    bare = make.evaluation("v4", results=[make.passed(best=1.2), untimed], aggregates=[], noise=None)
    rounds = [*make.campaign_of_three(), make.record(4, bare)]
    said = facts.not_measured(make.manifest(), rounds)
    assert any(line.startswith("triton/v4 has no result against PyTorch eager;") for line in said)
    assert "triton/v4 has no result against torch.compile; round 3 did." in said
    assert "Graded for correctness only, not timed: 1 workload." in said
    assert "No A/A noise floor was applied." in said
    assert "triton/v4 was not profiled." in said


def test_mixed_conditions_are_named(make):
    rounds = make.campaign_of_three()
    found = rounds[0].evaluation.provenance
    changes = {
        "machine": found.machine.model_copy(update={"id": "m-1"}),
        "gate_version": 0,
        "definition_sha256": "d" * 64,
    }
    judged = rounds[0].evaluation.model_copy(update={"provenance": found.model_copy(update=changes)})
    said = facts.not_measured(make.manifest(), [rounds[0].model_copy(update={"evaluation": judged}), *rounds[1:]])
    machines, gate, definition = said[-3:]
    assert machines.startswith("Judgements ran on 2 machines;")
    assert gate == f"Judged by a gate version other than {GATE_VERSION}: triton/v1."
    assert definition.startswith("The definition changed during the campaign: 2 versions")


def test_nothing_accepted(make):
    rounds = make.campaign_of_three()[1:2]
    (sentence,) = facts.not_measured(make.manifest(), rounds)
    assert sentence.startswith("No version was accepted")


def test_the_race_at_the_end_speaks_for_the_best_version_where_it_held(make):
    rounds = make.campaign_of_three()
    raced = make.evaluation(
        "v3", results=[make.passed(reference=1.9)], aggregates=[make.aggregate("reference", 1.9)]
    )
    broken = make.evaluation("v3", "ROLLBACK", results=[make.failed()])
    assert facts.reported_evaluation(rounds, raced) is raced
    assert facts.reported_evaluation(rounds, broken) is rounds[2].evaluation
    assert facts.reported_evaluation(rounds, None) is rounds[2].evaluation
    assert facts.reported_evaluation([], None) is None
    warning = facts.not_measured(make.manifest(), rounds, broken)[0]
    assert "found triton/v3 wrong" in warning
    assert "warpsmith strike 3" in warning
    assert warning.endswith("INCORRECT_NUMERICAL at 64x64: expected 1, found 2")
    assert "triton/v3 has no result against torch.compile; round 3 did." in facts.not_measured(
        make.manifest(), rounds, raced
    )


def test_what_judging_a_record_again_said(make):
    after = make.evaluation()
    after = after.model_copy(
        update={
            "provenance": after.provenance.model_copy(update={"gate_version": 2, "measured": "2026-11-22 09:00"})
        }
    )
    assert facts.rerun_text(make.rerun(after)) == "renewed by gate 2 on 2026-11-22: holds"


def test_attempts_stand_next_to_the_verdict(make):
    record = make.campaign_of_three()[1]
    assert facts.verdict_text(record) == "ROLLBACK"
    movement = Movement(metric="dram_pct", before=1, after=1, predicted=9, as_predicted=False)
    outcome = record.outcome.model_copy(update={"movement": movement})
    accepted = record.evaluation.decision.model_copy(update={"verdict": Verdict.ACCEPT})
    evaluation = record.evaluation.model_copy(update={"decision": accepted})
    unexplained = record.model_copy(update={"outcome": outcome, "evaluation": evaluation})
    assert facts.verdict_text(unexplained) == "ACCEPT, reason unknown"
    assert facts.verdict_text(record.model_copy(update={"outcome": outcome})) == "ROLLBACK"
    assert facts.verdict_text(record.model_copy(update={"attempts": 3})) == "ROLLBACK, attempts 3"
    assert facts.verdict_text(record.model_copy(update={"tried": 16})) == "ROLLBACK, 16 variants tried"

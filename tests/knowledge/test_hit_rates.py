"""Hit rates: counted from the records, shown in the catalog, and what they demote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpsmith import derived_rows, files
from warpsmith import project as projects
from warpsmith.core.evaluation import Verdict
from warpsmith.core.knowledge import DEMOTED_AFTER, DEMOTED_ON, HitRate, Try
from warpsmith.knowledge import hit_rates, index
from warpsmith.knowledge.catalog import Catalog


@pytest.fixture
def close(project, record):
    """Leave a closed round on disk, as the knowledge reads it."""

    def write(number, verdict="ROLLBACK", gain=0.1, op="rmsnorm", entries=("split",), category="occupancy"):
        decision = record.evaluation.decision.model_copy(update={"verdict": Verdict(verdict)})
        changes = {
            "round": number,
            "plan": record.plan.model_copy(update={"entries": entries, "category": category}),
            "evaluation": record.evaluation.model_copy(update={"definition": op, "decision": decision}),
            "outcome": record.outcome.model_copy(update={"gain": gain}),
        }
        path = project.devlog / op / "c" / "rounds" / f"{number:03d}" / "record.json"
        files.write_file(path, record.model_copy(update=changes).model_dump_json())
        return path

    return write


def tries(*verdicts, operators=("a", "b")):
    return [
        Try(record=f"{k}", operator=operators[k % len(operators)], target="h1", solution="cpp/v1",
            verdict=Verdict(verdict), gain=0.0)
        for k, verdict in enumerate(verdicts)
    ]  # fmt: skip


def test_it_counts_rounds_that_name_the_entry(project, close):
    close(1, "ACCEPT", None, entries=("split", "other"), category="baseline")
    close(2, "ACCEPT", 0.3, entries=("split", "split"))
    close(3, gain=0.1, entries=("split", "other"))
    close(4, gain=None)
    rates = hit_rates.hit_rates_by_entry(project)
    assert list(rates) == ["other", "split"]
    split = rates["split"]
    assert (split.tried, split.accepted, split.measured, split.median_gain) == (3, 1, 2, pytest.approx(0.2))
    assert split.text == "tried 3, accepted 1, median gain +20.0 % (2 tries)"
    assert [one.record for one in split.tries] == [f"devlog/rmsnorm/c/rounds/00{k}/record.json" for k in (2, 3, 4)]
    assert rates["other"].tries[0].verdict is Verdict.ROLLBACK


def test_records_are_read_again_once_one_changes(project, close, monkeypatch):
    monkeypatch.setattr(derived_rows, "_SETTLED_SECONDS", -5)
    reads = []
    derive = hit_rates._derive_rates
    monkeypatch.setattr(hit_rates, "_derive_rates", lambda *given: reads.append(given) or derive(*given))
    path = close(2, "ACCEPT", 0.3)
    first = hit_rates.hit_rates_by_entry(project)
    assert hit_rates.hit_rates_by_entry(project) == first
    assert len(reads) == 1
    files.write_file(path.with_name("struck.json"), "{}")
    assert hit_rates.hit_rates_by_entry(project)["split"].accepted == 0
    close(3, "ACCEPT", 0.1)
    assert hit_rates.hit_rates_by_entry(project)["split"].tried == 2
    (path.parents[2] / "other" / "rounds").parent.mkdir()
    (path.parents[2] / "other" / "rounds").write_text("no folder")
    assert hit_rates.hit_rates_by_entry(project)["split"].tried == 2


def test_a_struck_round_was_no_success(project, close):
    path = close(2, "ACCEPT", 0.3)
    files.write_file(path.parent / "struck.json", "{}")
    rate = hit_rates.hit_rates_by_entry(project)["split"]
    assert (rate.tried, rate.accepted, rate.measured, rate.gain) == (1, 0, 0, "-")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"plan": {}}', '{"plan": {"entries": 3, "category": "x"}}'])
def test_a_record_that_does_not_read_counts_nothing(project, close, content):
    close(2)
    close(3).write_text(content)
    assert hit_rates.hit_rates_by_entry(project)["split"].tried == 1


@pytest.mark.parametrize(
    ("entry", "record", "expected"),
    [
        (
            "mixed-precision-bf16",
            "devlog/programs/train_gpt_tuned/trials/002/record.json",
            ("train_gpt_tuned", "NVIDIA H200", "examples/programs/train_gpt_tuned.py", "ACCEPT", 0.1628),
        ),
        (
            "occupancy-by-resource-budget",
            "devlog/repo/liger-rms-norm/rounds/002/record.json",
            ("liger-rms-norm", "h200", "9d874659d582", "ACCEPT", 0.2543),
        ),
    ],
)
def test_trials_of_programs_and_rounds_in_repositories_count(entry, record, expected):
    """In the records that ship."""
    shipped = projects.find_project(Path(__file__).parents[2])
    (one,) = (found for found in hit_rates.hit_rates_by_entry(shipped)[entry].tries if found.record == record)
    operator, target, solution, verdict, gain = expected
    assert (one.operator, one.target, one.solution) == (operator, target, solution)
    assert (one.verdict, one.gain) == (Verdict(verdict), pytest.approx(gain, abs=1e-3))


def test_a_trial_that_was_abandoned_has_no_gain(project):
    path = project.devlog / "programs" / "train" / "trials" / "001" / "record.json"
    subject = {"name": "train", "path": "train.py", "module": ""}
    plan = {"entry": "cuda-graph", "subject": subject, "device": "cpu"}
    files.write_file(path, json.dumps({"plan": plan, "decision": {"verdict": "RESTORED"}, "comparisons": []}))
    rate = hit_rates.hit_rates_by_entry(project)["cuda-graph"]
    assert (rate.tried, rate.accepted, rate.measured) == (1, 0, 0)


def test_the_rule_of_demotion():
    failing = ["ROLLBACK"] * DEMOTED_AFTER
    assert HitRate.of(tries(*failing)).demoted == f"{DEMOTED_AFTER} tries on {DEMOTED_ON} operators, none accepted"
    assert HitRate.of(tries(*failing[1:])).demoted is None, "too few tries"
    assert HitRate.of(tries(*failing, operators=("a",))).demoted is None, "one operator only"
    assert HitRate.of(tries(*failing, "ACCEPT_WITH_NOTE")).demoted is None, "a success lifts it"


@pytest.mark.parametrize(("accepted", "tried", "low", "high"), [(1, 4, 0.0456, 0.6994), (10, 10, 0.7225, 1.0)])
def test_the_share_of_accepted_tries_has_wilsons_interval(accepted, tried, low, high):
    rate = HitRate.of(tries(*["ACCEPT"] * accepted, *["ROLLBACK"] * (tried - accepted)))
    interval = rate.share_interval
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-4)
    assert HitRate.of([]).share_interval is None


def test_an_unexplained_acceptance_weighs_less():
    failing = ["ROLLBACK"] * (DEMOTED_AFTER - 1)
    unexplained = tries("ACCEPT")[0].model_copy(update={"unexplained": True, "gain": 0.5})
    rate = HitRate.of([*tries(*failing), unexplained])
    assert (rate.accepted, rate.unexplained, rate.measured, rate.median_gain) == (1, 1, DEMOTED_AFTER - 1, 0)
    assert rate.demoted is not None
    assert HitRate.of([*tries(*failing), unexplained, *tries("ACCEPT")]).demoted is None


@pytest.mark.parametrize(
    ("verdict", "as_predicted", "unexplained"),
    [("ACCEPT", False, 1), ("ACCEPT", True, 0), ("ACCEPT", None, 0), ("ROLLBACK", False, 0)],
)
def test_a_metric_that_did_not_move_leaves_a_gain_unexplained(project, close, verdict, as_predicted, unexplained):
    path = close(2, verdict)
    record = json.loads(path.read_bytes())
    movement = {"metric": "dram_pct", "before": 1, "after": 1, "predicted": 9, "as_predicted": as_predicted}
    path.write_text(json.dumps(record | {"outcome": record["outcome"] | {"movement": movement}}))
    assert hit_rates.hit_rates_by_entry(project)["split"].unexplained == unexplained


def test_a_demoted_entry_sinks_and_is_lifted_again(project, put, close):
    put("split", title="Split rows")
    put("other", title="Something else", sections={"Pitfalls": "Do not split."})
    put("dead", title="Split split", status="refuted")
    for number in range(2, 2 + DEMOTED_AFTER):
        close(number, op="rmsnorm" if number % 2 else "softmax")
    hits = Catalog.load(project).search(["split"])
    assert [(hit.id, hit.status) for hit in hits] == [
        ("other", "active"),
        ("split", "demoted"),
        ("dead", "refuted"),
    ]
    assert "status: active" in (project.knowledge / "optimizations" / "split.md").read_text(), "the page stays"
    assert Catalog.load(project).get("split").hit_rate.tried == DEMOTED_AFTER
    pages = index.render_pages(project)
    assert "| demoted | 4 | 0 | +10.0 % (4 tries) | external |" in pages[index.index_path(project)]
    assert "Split rows](optimizations/split.md) (demoted)" not in pages[index.index_path(project)]
    assert "[split](optimizations/split.md) (demoted)" in pages[project.knowledge / "README.md"]
    close(9, "ACCEPT")
    assert Catalog.load(project).search(["split"])[0].status == "active"


def test_the_index_is_stale_after_a_round(project, put, close):
    put("split")
    index.write_pages(project)
    close(2)
    assert index.stale_pages(project) == [index.index_path(project)]

"""Which version is the best: by lineage, by definition, and by speedup where several campaigns have one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from campaign_kit import evaluation

from warpsmith import files
from warpsmith import project as projects
from warpsmith.campaign.history.store import Progress
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.evidence import Claim
from warpsmith.errors import CorruptRecord, LeftOut, MissingInput
from warpsmith.use import choice

REFERENCE = {"against": "reference", "other_seconds": 1.0, "interval": {"low": 1.0, "high": 9.0}, "pairs": 10}


class Record:
    """Campaigns on `affine`, as what they say of their versions."""

    def __init__(self, shop, monkeypatch):
        self.shop, self.campaigns = shop, {}
        self.digest = choice.definition_file.definition_sha256(shop.project.definition_path("affine"))
        monkeypatch.setattr(choice.store, "read_campaign", lambda project, folder: self.campaigns[folder.name])
        monkeypatch.setattr(choice.store, "read_progress", self.progress)
        monkeypatch.setattr(choice.final_race, "read_final_race", self.final_race)
        monkeypatch.setattr(choice.stored_evaluations, "campaign_renewals", lambda campaign: campaign.again)

    def judged(self, name, *, digest=None, verdict="ACCEPT", measured="2026-11-21 10:00", **speedups):
        """An evaluation with a speedup over the reference at each workload."""
        path = self.shop.project.kernels / "affine" / "toy" / f"{name}.toy"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        one = evaluation(path, verdict, None).model_dump(mode="json")
        one["provenance"] |= {"definition_sha256": digest or self.digest, "measured": measured}
        (model,) = one["results"]
        one["results"] = [
            model | {"workload": at, "timing": model["timing"] | {"comparisons": [REFERENCE | {"speedup": value}]}}
            for at, value in speedups.items()
        ]
        return evaluation(path, verdict, None).model_validate(one)

    def campaign(self, name, *rounds, target="cpu", final=None, again=None):
        """A campaign with these rounds, each an evaluation or, where it was struck, a pair with `None`."""
        folder = self.shop.project.devlog / "affine" / name
        folder.mkdir(parents=True)
        (folder / "manifest.yaml").write_text("")
        kept = [
            SimpleNamespace(
                record=SimpleNamespace(
                    solution=f"toy/{one.version}",
                    snapshot=f"toy-{one.version}.toy",
                    snapshot_sha256=files.file_sha256(
                        self.shop.project.kernels / "affine" / "toy" / f"{one.version}.toy"
                    ),
                    round=number,
                    evaluation=one,
                    verdict=one.decision.verdict,
                ),
                folder=folder / "rounds" / f"{number:03d}",
                path=folder / "rounds" / f"{number:03d}" / "record.json",
            )
            for number, one in enumerate(rounds, 1)
        ]
        self.campaigns[name] = SimpleNamespace(
            folder=folder,
            manifest=SimpleNamespace(target=target),
            ledger=SimpleNamespace(
                read=lambda number: kept[number - 1], folder_of=lambda number: folder / "rounds" / f"{number:03d}"
            ),
            progress=Progress(
                stop=None,
                accepted={one.record.round: one.record.solution for one in kept if one.record.verdict.accepted},
            ),
            final=final,
            again=again or {},
        )

    def final_race(self, campaign, best):
        return campaign.final if campaign.final and campaign.final.version == best.evaluation.version else None

    def progress(self, project, folders):
        return [self.campaigns[folder.name].progress for folder in folders]

    def best(self, target="cpu"):
        return next(iter(self.ranked(target)), None)

    def ranked(self, target="cpu"):
        return _RANKED(self.shop.project, "affine").get(target, [])


_RANKED = choice.rank_versions


@pytest.fixture
def record(shop, monkeypatch):
    shop.define("affine")
    return Record(shop, monkeypatch)


def test_the_last_accepted_version_is_the_best_of_a_campaign(record):
    record.campaign("one", record.judged("v1", small=2.0), record.judged("v2", small=1.5),
                    record.judged("v3", verdict="ROLLBACK", small=9.0))  # fmt: skip
    found = record.best()
    assert (found.solution, found.target, found.file.name) == ("toy/v2", "cpu", "v2.toy")
    assert found.record.parts[-3:] == ("rounds", "002", "record.json")
    assert record.best("h200") is None


def test_the_faster_of_two_campaigns_by_race_before_verdict(record):
    record.campaign("one", record.judged("v1", small=3.0), final=record.judged("v1", small=1.5))
    record.campaign("two", record.judged("v2", small=2.0))
    assert record.best().solution == "toy/v2"
    record.campaign("three", record.judged("v4", small=1.0), final=record.judged("v4", small=2.5))
    found = record.best()
    assert (found.solution, found.record.name) == ("toy/v4", "final.json")


def test_a_campaign_with_a_file_that_does_not_read_is_left_out(record, monkeypatch):
    record.campaign("one", record.judged("v1", small=3.0))
    record.campaign("two", record.judged("v2", small=2.0))

    def torn(number):
        raise CorruptRecord("record.json is torn; run `warpsmith resume --campaign one`.")

    record.campaigns["one"].ledger.read = torn
    with pytest.warns(LeftOut, match="record.json is torn") as caught:
        assert record.best().solution == "toy/v2"
    assert len(caught) == 1


def test_only_common_workloads_compare(record):
    record.campaign("one", record.judged("v1", small=2.0, large=9.0))
    record.campaign("two", record.judged("v2", small=2.1, other=1.0))
    assert record.best().solution == "toy/v2"


def test_the_latest_judgement_where_nothing_compares(record):
    record.campaign("one", record.judged("v1", small=2.0, measured="2026-11-21 12:00"))
    record.campaign("two", record.judged("v2", large=3.0))
    assert record.best().solution == "toy/v1"


def test_the_others_follow_by_the_same_rule(record):
    record.campaign("one", record.judged("v1", small=2.0))
    record.campaign("two", record.judged("v2", small=3.0))
    record.campaign("three", record.judged("v3", small=2.5))
    assert [one.solution for one in record.ranked()] == ["toy/v2", "toy/v3", "toy/v1"]


def test_targets_are_kept_apart(record):
    record.campaign("one", record.judged("v1", small=2.0))
    record.campaign("two", record.judged("v2", small=4.0), target="h200")
    assert (record.best().solution, record.best("h200").solution) == ("toy/v1", "toy/v2")


def test_a_judgement_of_another_definition_says_nothing(record):
    record.campaign("one", record.judged("v1", small=2.0, digest="f" * 64))
    assert record.best() is None
    renewed = SimpleNamespace(evaluation=record.judged("v2", small=1.2), claim=Claim.WEAKER)
    record.campaign("two", record.judged("v2", small=2.0, digest="f" * 64), again={"001": renewed})
    assert (record.best().solution, record.best().record.name) == ("toy/v2", "reruns")


def found_wrong(record, name):
    """A judgement that found a version wrong at an odd size, before anything was timed."""
    wrong = record.judged(name, verdict="ROLLBACK", small=2.0).model_dump(mode="json")
    odd = {"workload": "odd", "status": "INCORRECT_NUMERICAL", "message": "off",
           "correctness": {"calls": 1, "worst": 3.0, "relative_error": 1.0}}  # fmt: skip
    return Evaluation.model_validate(wrong | {"aggregates": [], "results": [odd]})


def test_a_version_that_a_rerun_found_wrong_is_out(record):
    refuted = SimpleNamespace(evaluation=found_wrong(record, "v1"), claim=Claim.REFUTED)
    record.campaign("one", record.judged("v1", small=2.0), again={"001": refuted})
    assert record.best() is None


def test_a_version_that_the_final_race_found_wrong_leaves_its_place_to_its_parent(record):
    rounds = (record.judged("v1", small=2.0), record.judged("v2", small=2.1))
    record.campaign("one", *rounds, final=found_wrong(record, "v2"))
    assert [version.solution for version in record.ranked()] == ["toy/v1"]
    assert [v.solution for v in choice.accepted_versions(record.shop.project, "affine", "cpu")] == ["toy/v1"]


def test_a_version_that_a_rerun_refuted_leaves_its_place_to_its_parent(record):
    slower = SimpleNamespace(evaluation=record.judged("v2", verdict="ROLLBACK", small=1.9), claim=Claim.REFUTED)
    rounds = (record.judged("v1", small=2.0), record.judged("v2", small=2.1))
    record.campaign("one", *rounds, again={"002": slower})
    assert [version.solution for version in record.ranked()] == ["toy/v1"]


def test_an_operator_of_the_project_hides_the_shipped_one(shop, monkeypatch, tmp_path):
    shipped = tmp_path / "shipped"
    for name in ("affine", "other"):
        (shipped / "kernels" / name).mkdir(parents=True)
        (shipped / "kernels" / name / "definition.py").write_text("")
    monkeypatch.setattr(projects, "SHIPPED", shipped)
    shop.define("affine")
    assert choice.find_owning_project("affine").root == shop.project.root
    assert choice.find_owning_project("other").kernels == shipped / "kernels"
    with pytest.raises(MissingInput, match="there are: affine, other"):
        choice.find_owning_project("nope")


@pytest.mark.parametrize(("device", "target"), [(None, "cpu"), ("NVIDIA H200", "h200"), ("NVIDIA T1000", None)])
def test_a_device_belongs_to_the_target_whose_page_names_it(shop, device, target):
    found = choice.target_of_device(shop.project, device)
    assert (found.id if found else None) == target


def test_shipped_records_name_the_best_versions(shop, tmp_path):
    for op, target in (("rmsnorm", "cpu"), ("softmax", "h200")):
        owner = choice.find_owning_project(op)
        found = _RANKED(owner, op)[target][0]
        assert found.file.is_file()
        assert found.speedups
        assert Path(found.record).exists()


def test_every_accepted_version_that_stands_the_best_ones_first(record, monkeypatch):
    monkeypatch.setattr(choice, "rank_versions", _RANKED)
    first, rejected = record.judged("v1", small=9.0), record.judged("v3", verdict="ROLLBACK", small=9.0)
    record.campaign("one", first, record.judged("v2", small=1.5), rejected, record.judged("v4", small=1.6))
    record.campaign("two", record.judged("v5", small=1.0, measured="2026-11-22 10:00"),
                    record.judged("v6", small=3.0, digest="f" * 64), record.judged("v7", small=2.0))  # fmt: skip
    record.campaign("three", record.judged("v8", small=4.0), target="h200")
    listed = [one.solution for one in choice.accepted_versions(record.shop.project, "affine", "cpu")]
    assert listed[:3] == ["toy/v7", "toy/v4", "toy/v5"]
    assert sorted(listed[3:]) == ["toy/v1", "toy/v2"]
    assert [one.solution for one in choice.accepted_versions(record.shop.project, "affine", "h200")] == ["toy/v8"]


def test_a_version_that_two_campaigns_accepted_is_listed_once(record, monkeypatch):
    monkeypatch.setattr(choice, "rank_versions", _RANKED)
    record.campaign("one", record.judged("v1", small=2.0), record.judged("v2", small=3.0))
    record.campaign("two", record.judged("v1", small=2.0), record.judged("v4", small=2.5))
    listed = [one.solution for one in choice.accepted_versions(record.shop.project, "affine", "cpu")]
    assert listed == ["toy/v2", "toy/v4", "toy/v1"]

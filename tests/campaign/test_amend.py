"""Amendment of a definition: proven, put in its place, and a new campaign that cites the old one."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_kit import OP, Script

from warpsmith.campaign import amend, define, start
from warpsmith.campaign.history import closing, store
from warpsmith.errors import BadDefinition, MissingInput, Misuse
from warpsmith.lab.machine import hardware
from warpsmith.project import Project

WHY = "The reduction length was that of another axis."
MENDED = """
from warpsmith.core.definition import Definition, TensorSpec, Workload
definition = Definition(
    name="scale", description="twice x", axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))}, flops="n",
    workloads=(Workload(name="small", axes={"n": 100}),),
)
def reference(x):
    return x * 2
"""
LAX = MENDED.replace('flops="n",', 'flops="n", tolerance=Tolerance(reduction="100000000000000000"),').replace(
    "TensorSpec,", "TensorSpec, Tolerance,"
)


@pytest.fixture(autouse=True)
def a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "read_target_page", lambda project, target: target)
    monkeypatch.setattr(define, "manifest_figures", lambda page: {"cores": "2 <- page.md:1"})


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    path = tmp_path / "mended.py"
    path.write_text(MENDED)
    return path


def test_a_new_campaign_cites_the_old_one(project: Project, mended: Path) -> None:
    old = start.start_campaign(project, OP, "cpu", "toy", git="none", max_iterations=7, peers=(), context="lab")
    Script({"v1": "ACCEPT"}).round(old)
    before = project.definition_path(OP).read_bytes()
    new = amend.amend_campaign(project, OP, mended, WHY)
    assert project.definition_path(OP).read_text() == MENDED
    assert (old.folder / "definition.py").read_bytes() == before
    assert (new.manifest.amends, new.manifest.max_iterations, new.manifest.peers) == (old.name, 7, ())
    assert new.manifest.context == "lab"
    assert store.read_campaign(project, new.folder).manifest == new.manifest
    closure = old.closure()
    assert closure is not None
    assert closure.text == f"amended by {new.name}: {WHY}"
    assert len(old.records()) == 1
    assert store.find_campaign(project).name == new.name
    assert "amends" not in (old.folder / "manifest.yaml").read_text()
    with pytest.raises(Misuse, match="was amended by"):
        amend.amend_campaign(project, old.name, mended, WHY)


def test_an_interrupted_amendment_goes_on(
    project: Project, mended: Path, campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(closing, "close_campaign", dies)
        with pytest.raises(KeyboardInterrupt):
            amend.amend_campaign(project, campaign.name, mended, WHY)
    assert len(store.list_campaigns(project)) == 2
    new = amend.amend_campaign(project, campaign.name, mended, WHY)
    assert len(store.list_campaigns(project)) == 2
    assert (campaign.folder / "definition.py").read_text() == "# the reference\n"
    assert new.manifest.amends == campaign.name


def nothing_changed(project: Project, campaign: store.Campaign) -> bool:
    same = project.definition_path(OP).read_text() == "# the reference\n"
    return same and campaign.closure() is None and len(store.list_campaigns(project)) == 1


def test_a_definition_that_lets_wrong_kernels_pass_is_refused(
    project: Project, mended: Path, campaign: store.Campaign
) -> None:
    mended.write_text(LAX)
    with pytest.raises(BadDefinition, match=rf"^{mended}: a wrong kernel would pass at "):
        amend.amend_campaign(project, campaign.name, mended, WHY)
    assert nothing_changed(project, campaign)


def test_refusals_change_nothing(project: Project, mended: Path, campaign: store.Campaign) -> None:
    same = mended.with_name("same.py")
    same.write_bytes(project.definition_path(OP).read_bytes())
    for name, source, reason, error, message in (
        ("nonesuch", mended, WHY, Misuse, "`nonesuch` is no campaign"),
        (OP, mended.with_name("gone.py"), WHY, MissingInput, "does not exist"),
        (OP, same, WHY, Misuse, "is the same as"),
        (OP, mended, "no", Misuse, "`reason`"),
    ):
        with pytest.raises(error, match=message):
            amend.amend_campaign(project, name, source, reason)
    assert nothing_changed(project, campaign)


def test_another_campaign_on_the_definition_is_ended_first(project: Project, mended: Path) -> None:
    old, other = (start.start_campaign(project, OP, target, "toy") for target in ("cpu", "h200"))
    with pytest.raises(Misuse, match=f"first end it with `warpsmith abandon {other.name}`"):
        amend.amend_campaign(project, old.name, mended, WHY)
    with pytest.raises(Misuse, match=f"Which campaign of {OP}"):
        amend.amend_campaign(project, OP, mended, WHY)
    closing.close_campaign(other, WHY)
    assert amend.amend_campaign(project, OP, mended, WHY).manifest.amends == old.name


def test_finished_campaigns_on_the_definition_are_closed_too(project: Project, mended: Path) -> None:
    finished = []
    for _ in range(2):
        finished.append(start.start_campaign(project, OP, "cpu", "toy", max_iterations=1))
        Script({"v1": "ACCEPT"}).run(finished[-1])
    new = amend.amend_campaign(project, finished[1].name, mended, WHY)
    closures = [campaign.closure() for campaign in finished]
    assert [closure and closure.amended_by for closure in closures] == [new.name, new.name]
    assert {campaign.name for campaign in amend.list_amended(new)} == {campaign.name for campaign in finished}


def test_a_definition_mended_in_its_place(project: Project, campaign: store.Campaign) -> None:
    project.definition_path(OP).write_text(MENDED)
    new = amend.amend_campaign(project, campaign.name, None, WHY)
    assert new.manifest.amends == campaign.name

"""The regions of a compiled step, from its first compilation to a kernel that runs in it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_operators import Here

from warpsmith import languages
from warpsmith import project as projects
from warpsmith.core.trial import NextAction, TrialVerdict
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.operator import definition_file
from warpsmith.languages.base import Build
from warpsmith.program.analysis import region_file
from warpsmith.program.compiled.models import CutRegion, RegionRow, StepRegions
from warpsmith.program.operators import extraction_file, kernel_override
from warpsmith.program.process import profile_steps
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.regions import extract_region, next_region, survey
from warpsmith.program.tasks import region_hits
from warpsmith.program.trials import next_action
from warpsmith.project import Project
from warpsmith.use import choice, operator
from warpsmith.use.choice import BestVersion

torch = pytest.importorskip("torch")

STEP = """
import torch
from torch import nn

torch.manual_seed(0)
norm, head = nn.RMSNorm(16, eps=1e-6), nn.Linear(16, 16, bias=False)

def loss_of(x):
    return head(norm(x)).square().mean()

compiled = torch.compile(loss_of)

def train_step():
    loss = compiled(torch.ones(8, 16).cumsum(0))
    loss.backward()
    with torch.no_grad():
        for parameter in (norm.weight, head.weight):
            parameter.sub_(0.1 * parameter.grad)
            parameter.grad = None
    return loss
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "train.py").write_text(STEP)
    monkeypatch.setattr(survey, "open_runner", Here)
    monkeypatch.chdir(tmp_path)
    return projects.find_project(tmp_path)


def program(here: Project) -> Any:
    return resolve_step_program(str(here.root / "train.py"), "train_step")


def accept(here: Project, monkeypatch: pytest.MonkeyPatch, op: str) -> list[Any]:
    """Accept the reference itself as a version, and return the list that fills with its calls."""
    calls: list[Any] = []
    reference = definition_file.load_definition(here.definition_path(op)).reference

    def run(*values: Any) -> Any:
        calls.append(values)
        return reference(*values)

    file = here.kernels / op / "toy" / "v1.toy"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(str(here.root))
    version = BestVersion(
        op=op, solution="toy/v1", language="toy", target="cpu", device="a device", file=file,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(), record=file.parent / "record.json", speedups=(),
    )  # fmt: skip
    toy = SimpleNamespace(
        missing=lambda kind: None, build=lambda source, *_: Build(source, source, ()), load=lambda *_: run
    )
    monkeypatch.setattr(choice, "rank_versions", lambda project, name: {"cpu": [version]})
    monkeypatch.setattr(languages, "get", lambda name: toy)
    operator._best.cache_clear()
    return calls


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
def test_a_region_goes_from_the_graph_to_a_kernel_in_the_step(here, monkeypatch):
    regions = survey.list_regions(here, program(here), lambda _: None)
    assert regions.graphs == 2
    assert region_file.read_regions(here, "train.train_step") == regions
    row = next(row for row in regions.rows if row.kind == "norm" and not row.backward and not row.refusal)
    assert row.calls == 1
    extracted = extract_region.extract_region(here, program(here), row.digest, name="mine", tell=lambda _: None)
    definition = definition_file.load_definition(extracted.path).definition
    assert [spec.role for spec in definition.tensor_inputs.values()].count("weight") == 1
    assert extraction_file.read_extraction(here, "mine").region.digest == row.digest
    calls = accept(here, monkeypatch, "mine")
    plain = losses(here)
    try:
        scope = {"__file__": str(here.root / "train.py"), "enable": kernel_override.enable}
        exec("enabled = enable('mine')", scope)
        assert scope["enabled"]
        replaced = losses(here, "mine")
    finally:
        kernel_override.disable()
        torch._dynamo.reset()
    assert calls
    torch.testing.assert_close(replaced, plain)


def losses(here: Project, op: str = "") -> list[float]:
    """Return the losses of two steps; with `op` after its hits were counted, else after as many steps."""
    torch._dynamo.reset()
    with Here(program(here)) as runner:
        runner.start()
        if op:
            assert profile_steps.run_steps(region_hits.main(runner.child, op=op, steps=2), runner.child.step) == {
                "hits": 2,
                "places": 1,
            }
        else:
            for _ in range(4):
                runner.child.step()
        return [runner.child.step().item() for _ in range(2)]


def test_a_step_that_compiles_nothing_is_refused(here):
    answer, ran = {"graphs": 0}, SimpleNamespace(seconds=1.0)
    runner = SimpleNamespace(program=program(here), call=lambda *_, **__: answer, run=lambda *_, **__: ran)
    with pytest.raises(Misuse, match=r"torch\.compile"):
        survey.survey_regions(runner, lambda _: None)  # type: ignore[arg-type]


def row(digest: str, share: float = 0.2, **changes: Any) -> RegionRow:
    return RegionRow(
        digest=digest, kind="norm", operators=("mul",), kernels=("k",), backward=False, calls=1, seconds=share,
        share=share, ceiling=1 / (1 - share), **changes,
    )  # fmt: skip


def step(*rows: RegionRow) -> StepRegions:
    return StepRegions(
        program="train.py", device="cpu", torch="2", graphs=1, step_seconds=1, kernel_seconds=0.5, rows=rows,
        measured="2026-11-21 12:00",
    )  # fmt: skip


def test_a_region_is_named_by_the_beginning_of_its_digest():
    cut = CutRegion(region=None, refusal="", operators=(), kernels=(), backward=False, calls=1, seconds=1)
    surveyed = survey.SurveyedStep(step(row("12ab"), row("12cd"), row("")), {"12ab": (cut,), "12cd": (cut,)})
    assert survey.find_region(surveyed, "12a")[0].digest == "12ab"
    with pytest.raises(Misuse, match="12ab, 12cd"):
        survey.find_region(surveyed, "12")
    with pytest.raises(MissingInput, match="12cd"):
        survey.find_region(surveyed, "12ce")


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A compiled program whose recommendations are all tried."""
    action = NextAction(program="train", action="finished", why="nothing is left", command="")
    monkeypatch.setattr(next_action, "choose_action", lambda state: action)
    subject = SimpleNamespace(
        command=None, label="train", path="train.py", module="", step="step", setup=None, args=("--lr", "1"),
        writes=(),
    )  # fmt: skip
    analysis = SimpleNamespace(facts=SimpleNamespace(compiled_graphs=1), subject=subject)
    return SimpleNamespace(name="train", analysis=analysis, records=[])


def test_next_proposes_the_list_and_then_the_largest_region(here, finished, monkeypatch):
    first = next_region.choose_program_action(here, finished)
    assert (first.action, first.command) == ("work", "warpsmith program regions train.py --step step -- --lr 1")
    folder = here.devlog / "programs" / "train"
    folder.mkdir(parents=True)
    listed = step(row("refused", 0.5, refusal="draws random numbers"), row("12ab"))
    (folder / "regions.json").write_text(listed.model_dump_json())
    second = next_region.choose_program_action(here, finished)
    assert second.command == "warpsmith program extract --region 12ab train.py --step step -- --lr 1"
    monkeypatch.setattr(next_region.accepted_regions, "list_definitions", lambda project: {"12ab": "mine"})
    assert "warpsmith start mine" in next_region.choose_program_action(here, finished).command
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {"cpu": [op]})
    third = next_region.choose_program_action(here, finished)
    assert third.command == "warpsmith program integrate mine train.py --step step -- --lr 1"
    refused = SimpleNamespace(verdict=TrialVerdict.RESTORED)
    plan = SimpleNamespace(entry="integrate-mine")
    unclear = SimpleNamespace(verdict=TrialVerdict.INCONCLUSIVE)
    finished.records.append(SimpleNamespace(plan=plan, decision=unclear, closed="2026-11-22 12:00"))
    assert next_region.choose_program_action(here, finished).command == third.command
    finished.records.append(SimpleNamespace(plan=plan, decision=refused, closed="2026-11-22 12:00"))
    assert next_region.choose_program_action(here, finished).action == "finished"


def test_next_leaves_a_program_without_compiled_graphs_alone(here, finished):
    finished.analysis.facts.compiled_graphs = 0
    assert next_region.choose_program_action(here, finished).action == "finished"

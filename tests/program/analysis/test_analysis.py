from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from programs import program
from test_recommend import TRACE

from warpsmith.errors import CorruptRecord, MissingInput, Misuse, SolutionFailed, TimedOut
from warpsmith.profiling.trace.models import Trace
from warpsmith.program.analysis import analysis_store, analysis_text, analyzer
from warpsmith.program.analysis.models import Analysis
from warpsmith.program.analysis.throughput import StepLimit, StepWork
from warpsmith.program.lines.models import LineFinding
from warpsmith.program.process.program import Program, resolve_step_program
from warpsmith.program.trials import next_action
from warpsmith.project import Project, find_project

LOSES = """
import torch
weight = torch.nn.Parameter(torch.ones(64, 64))
def train_step():
    (torch.randn(64, 64) @ weight).sum().backward()
    return weight.grad.mean() / 0 * 0
"""

MARKED = """
import sys
import torch
from torch.profiler import record_function

def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(int(sys.argv[1])):
        with record_function("step") if MARKS else record_function("part"):
            model(torch.randn(8, 64)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

MARKS = True
main()
assert not [name for name in sys.modules if name.startswith("warpsmith.")], "the environment may have none"
"""


SLOW_LOADER = """
import time
import torch
from torch.utils.data import DataLoader

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20
    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.ones(8)

weight = torch.nn.Parameter(torch.ones(8))
loader = DataLoader(Slow(), batch_size=1)
batches = iter(loader)
def train_step():
    loss = (next(batches) * weight).sum()
    loss.backward()
    return loss
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    (tmp_path / "warpsmith.toml").touch()
    return find_project(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Program, Analysis]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "warpsmith.toml").touch()
    project, whole = find_project(folder), program(folder, LOSES)
    return project, whole, analyzer.analyze_program(project, whole, lambda _: None, steps=2, timeout=60)


def test_idle_time_is_what_the_unprofiled_step_leaves_beside_the_devices_work() -> None:
    traced = Trace.model_validate(TRACE)
    assert sum(seconds for _, seconds in traced.parts) / traced.repetitions == pytest.approx(0.010)
    faster = analyzer.split_step(traced, 0.007)
    assert faster.kernels_seconds == pytest.approx(0.005)
    assert (faster.launches_seconds, faster.host_seconds) == (pytest.approx(0.0016), pytest.approx(0.0004))
    assert analyzer.split_step(traced, 0.004).launches_seconds == 0


def test_without_a_device_all_parts_are_scaled() -> None:
    halved = analyzer.split_step(Trace.model_validate(TRACE | {"evidence": "cpu"}), 0.005)
    assert (halved.kernels_seconds, halved.host_seconds) == (pytest.approx(0.0025), pytest.approx(0.0005))


def test_a_program_is_analysed_and_a_loss_that_is_nan_is_a_finding(
    made: tuple[Project, Program, Analysis],
) -> None:
    project, _, found = made
    assert (found.subject.path, found.subject.step, found.steps) == ("train.py", "train_step", 2)
    assert sum(seconds for _, seconds in found.parts) == pytest.approx(found.step_seconds)
    assert found.broken
    assert "Step 0 returned NaN" in found.findings[0]
    assert found.hotspots[0].ceiling is not None
    assert found.trace.source == ".warpsmith/programs/train.train_step/trace.json.gz"
    assert (project.root / found.trace.source).is_file()


def test_the_text_has_the_form_that_the_autopilot_reads(made: tuple[Project, Program, Analysis]) -> None:
    lines = analysis_text.format_analysis(made[2]).splitlines()
    assert any(line.startswith("Primary bottleneck: ") for line in lines)
    assert any(line.startswith("Evidence: ") for line in lines)
    assert "Recommendations:" in lines
    ranked = [line for line in lines if line.startswith("1. [")]
    assert all("specialist" in line for line in ranked)


def test_lines_and_throughput_are_in_the_text(made: tuple[Project, Program, Analysis]) -> None:
    line = LineFinding(
        kind="copy", file="attentive/core.py", line=7, function="attend", code="x.t().contiguous()", calls=2,
        package="attentive", caller="train.py:12", operation="`contiguous` copies 2 MB a step", share=0.25,
        cause="it is strided", remedy="take strides",
    )  # fmt: skip
    work, limit = StepWork(count=64, unit="samples"), StepLimit(flops=2e9, seconds=0.5, source="h200: peak")
    found = made[2].model_copy(update={"lines": (line,) * 20, "work": work, "limit": limit, "step_seconds": 2.0})
    lines = analysis_text.format_analysis(found).splitlines()
    assert (
        "- attentive/core.py:7, called from train.py:12 [copy, 25% of the step]"
        in lines[lines.index("Lines:") + 1]
    )
    assert "- and 8 more in the record" in lines
    assert "Throughput: 0.5 steps per second, 32 samples per second" in lines
    assert any(line.startswith("Share of the limit: 25.0%") for line in lines)
    assert made[2].limit is not None
    assert made[2].limit.flops == 2 * 64**3 * 2, "a product, and its weight's gradient"


def test_analyses_are_numbered_kept_and_read_again(made: tuple[Project, Program, Analysis], here: Project) -> None:
    whole, found = program(here.root, LOSES), made[2]
    paths = [analysis_store.write_analysis(here, whole, found) for _ in range(2)]
    assert [here.relative(path) for path in paths] == [
        f"devlog/programs/train.train_step/analyses/{number:03d}.json" for number in (1, 2)
    ]
    assert paths[0].with_suffix(".md").is_file()
    assert analysis_store.read_analysis(paths[1]) == found
    assert analysis_store.latest_analysis(here) == paths[1]
    analysis_store.write_analysis(here, resolve_step_program(None, None, command="ls"), found)
    with pytest.raises(Misuse, match=r"ls, train\.train_step; name one"):
        analysis_store.latest_analysis(here)
    assert analysis_store.latest_analysis(here, "train") == paths[1]


def test_an_analysis_that_is_not_there_or_torn_is_said(here: Project) -> None:
    with pytest.raises(MissingInput, match="no analysis"):
        analysis_store.latest_analysis(here)
    path = here.root / "001.json"
    with pytest.raises(MissingInput, match="no analysis"):
        analysis_store.read_analysis(path)
    path.write_text("{}")
    with pytest.raises(CorruptRecord, match="is not a valid analysis"):
        analysis_store.read_analysis(path)


def test_what_apply_would_refuse_is_said_and_passed_over(here: Project) -> None:
    whole, entry = program(here.root, SLOW_LOADER), "pinned-memory-prefetch"
    found = analyzer.analyze_program(here, whole, lambda _: None, steps=2, timeout=60)
    lacks = {one.entry: one.lacks for one in found.recommendations}[entry]
    assert lacks.startswith("it requires that the step runs on a GPU: ")
    assert f"   Cannot be applied: {lacks}.\n" in analysis_text.format_analysis(found)
    analysis_store.write_analysis(here, whole, found)
    due = next_action.choose_action(next_action.read_program_state(here))
    assert entry not in due.command
    assert {one.entry: (one.standing, one.why) for one in due.candidates}[entry] == ("excluded", lacks)


def command(here: Project, text: str, monkeypatch: pytest.MonkeyPatch, steps: str = "3") -> Program:
    (here.root / "train.py").write_text(text)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return resolve_step_program(None, None, command=f"echo begins; python {here.root}/train.py {steps}")


def test_a_command_that_marks_its_steps_is_recorded_from_inside(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = analyzer.analyze_program(here, command(here, MARKED, monkeypatch), lambda _: None, timeout=60)
    assert (found.trace.region.steps and found.trace.region.steps.count, found.steps) == (2, 2)
    seen = found.facts.observed
    assert seen is not None
    assert (seen.backwards, seen.optimizer_steps, seen.products) == (1, 1, {"float32": 2})
    assert found.facts.modules == {"Linear": 1}, "what main() held is gone at the end"
    assert [one.kind for one in found.facts.optimizers] == ["SGD"]


def test_steps_that_nothing_marks_are_counted_by_the_user(here: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MARKED.replace("MARKS = True", "MARKS = False")
    found = analyzer.analyze_program(
        here, command(here, text, monkeypatch, "4"), lambda _: None, steps=4, timeout=60
    )
    assert found.steps == 4
    assert found.step_seconds == pytest.approx(found.trace.region.seconds / 4)
    assert "taken as 4 equal steps" in found.trace.region.words


@pytest.mark.parametrize(
    ("text", "timeout", "error", "says"),
    [
        (
            "print('no batch'); raise SystemExit(3)",
            60,
            SolutionFailed,
            "exit code 3: no batch. Its output",
        ),
        ("print('no PyTorch')", 60, MissingInput, "left no trace of PyTorch"),
        ("import time; time.sleep(60)", 1, TimedOut, "took more than 1 s"),
    ],
)
def test_a_command_that_does_not_do_is_said_in_one_sentence(
    here: Project, monkeypatch: pytest.MonkeyPatch, text: str, timeout: float, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as failed:
        analyzer.analyze_program(here, command(here, text, monkeypatch), lambda _: None, timeout=timeout)
    assert "\n" not in str(failed.value)


def test_a_loop_of_few_steps_is_never_recorded_as_one_step(here: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\nw = torch.ones(1, requires_grad=True)\noptimizer = torch.optim.SGD([w])\n"
    text += "for step in range(3):\n    w.sum().backward()\n    optimizer.step()\n"
    command(here, text, monkeypatch)
    program = resolve_step_program(None, None, command=f"python {here.root}/train.py")
    with pytest.raises(Misuse, match=r"ended before enough of its steps were seen: .* as --steps"):
        analyzer.analyze_program(here, program, lambda _: None, timeout=60)
    found = analyzer.analyze_program(here, program, lambda _: None, steps=3, timeout=60)
    assert "taken as 3 equal steps" in found.trace.region.words


def test_a_sitecustomize_of_the_users_own_still_runs(here: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.root / "sitecustomize.py").write_text("import builtins\nbuiltins.MINE = 1\n")
    monkeypatch.setenv("PYTHONPATH", str(here.root))
    text = "import sys\nsys.exit(f'mine {MINE}')"
    with pytest.raises(SolutionFailed, match="mine 1"):
        analyzer.analyze_program(here, command(here, text, monkeypatch), lambda _: None, timeout=60)

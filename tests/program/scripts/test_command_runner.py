"""Scripts that run as they are, in processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from warpsmith.errors import Misuse, SolutionFailed, TimedOut, WarpsmithError
from warpsmith.program.lines.watch import watch_lines
from warpsmith.program.process.program import Program, resolve_step_program
from warpsmith.program.scripts.command_runner import CommandEnded, CommandRunner, open_runner
from warpsmith.program.trials.pair_timing import ProgramForm

pytestmark = pytest.mark.own_process

TRAIN = """
import os, sys
import torch
from torch import nn
steps, rate = 12, 0.1
exec(open("config.py").read())
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for step in range(steps):
    if step == 9:
        os.makedirs("out", exist_ok=True)
    for part in range(2):
        loss = model(torch.ones(2, 4)).square().mean() / 2
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SAMPLE = """
import torch
class Model(torch.nn.Linear):
    def generate(self, x, times):
        return self(x) * times
model = Model(2, 2)
with torch.no_grad():
    for k in range(3):
        y = model.generate(torch.ones(1, 2), times=k)
"""
LOOPS = """
import torch
model, rows = torch.nn.Linear(8, 8), torch.randn(128, 8)
OPTIMIZER
for step in range(100):
    loss = torch.zeros(())
    for row in model(rows):  # LOOP
        loss = loss + (row * row).sum()
    if loss.item() < 0:  # ITEM
        break
    END
"""
BY_OPTIMIZER = ("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", "loss.backward(); optimizer.step()")
BY_CLOSURE = (
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "def close():\n    loss = torch.zeros(())\n    for row in model(rows):  # CLOSURE\n"
    "        loss = loss + (row * row).sum()\n    loss.backward()\n    return loss",
    "optimizer.step(close)",
)
BY_HAND = ("", "loss.backward(); model.zero_grad()")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Program]:
    """`script(text, writes=...)`: the command of a script in an empty project."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "config.py").write_text("rate = 0.05\n")
    monkeypatch.chdir(tmp_path)

    def write(text: str, **options: object) -> Program:
        (tmp_path / "train.py").write_text(text)
        command = f"{sys.executable} train.py"
        return resolve_step_program(None, None, command=command, **options)  # type: ignore[arg-type]

    return write


def runner(program: Program, tmp_path: Path, timeout: float = 60.0, **copies: Path) -> CommandRunner:
    original = {tmp_path / f"{name}.py": copy for name, copy in copies.items()}
    started = open_runner(program, original, seed=3, timeout=timeout, log=tmp_path / ".warpsmith" / "log")
    assert isinstance(started, CommandRunner)
    return started


def test_a_script_stops_after_each_step_and_at_a_write(script: Callable[..., Program], tmp_path: Path) -> None:
    copy = tmp_path / ".copy"
    copy.write_text("rate = 0.0\n")
    with runner(script(TRAIN), tmp_path, config=copy) as still:
        facts = still.start()
        assert (facts.modules, [item.kind for item in facts.optimizers]) == ({"Linear": 1}, ["SGD"])
        first = still.run(2)
        assert first.values[0] == first.values[1], "the copy of config.py, which the script opens, is run"
        observed = still.observe().observed
        assert observed is not None
        assert (observed.backwards, observed.optimizer_steps, observed.shapes_vary) == (2, 1, False)
        assert [name for name, *_ in still.call("sketch")["parameters"]] == ["Linear.weight", "Linear.bias"]
        assert set(still.call("imported_files", root=str(tmp_path))) == {str(tmp_path / "train.py")}
        assert still.run(3).first == 5
        with pytest.raises(Misuse, match=r"before it wrote out \(train\.py:11\).* --writes out"):
            still.run(30)
    assert not (tmp_path / "out").exists()


def test_a_call_of_generate_ends_a_step_and_gives_its_value(
    script: Callable[..., Program], tmp_path: Path
) -> None:
    with runner(script(SAMPLE), tmp_path) as sampling:
        sampling.start()
        first, second = sampling.run(2, values=True).values
        assert first["value"].norm == 0.0 < second["value"].norm  # type: ignore[union-attr, operator]
        with pytest.raises(CommandEnded, match="ended by itself"):
            sampling.run(9)


EVALUATE = """
import torch
model, warm_up = torch.nn.Linear(2, 2), 3
for _ in range(warm_up):
    pass
right = 0
with torch.inference_mode():
    for n in range(4):
        right += int(model(torch.full((1, 2), float(n)))[0].argmax())
"""
TRAINER = """
from transformers.trainer import Trainer
from transformers.training_args import TrainingArguments
Trainer(TrainingArguments("out")).train()
"""
LIBRARY = """
import os, torch
class Trainer:
    def __init__(self, settings):
        self.settings = settings
        os.makedirs(settings.output_dir, exist_ok=True)
    def train(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for n in range(9):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            if self.settings.save_strategy == "steps":
                torch.save(model, f"{self.settings.output_dir}/{n}.pt")
"""
SETTINGS = """
import dataclasses
@dataclasses.dataclass
class TrainingArguments:
    output_dir: str
    save_strategy: str = "steps"
    def __post_init__(self):
        pass
"""


def test_a_call_of_a_model_in_a_loop_ends_a_step(script: Callable[..., Program], tmp_path: Path) -> None:
    with runner(script(EVALUATE), tmp_path) as evaluation:
        evaluation.start()
        values = evaluation.run(3).values
        assert len({step["value"].norm for step in values}) == 3  # type: ignore[union-attr]
        copy = tmp_path / ".copy"
        copy.write_text(EVALUATE.replace("float(n)", "1.0"))
    with runner(script("pass"), tmp_path, train=copy) as edited:
        edited.start()
        first, second = edited.run(2).values
        assert first == second


@pytest.mark.parametrize("writes", [(), ("out",)])
def test_a_trainer_has_its_output_folder_elsewhere(
    script: Callable[..., Program], tmp_path: Path, writes: tuple[str, ...]
) -> None:
    package = tmp_path / "transformers"
    package.mkdir()
    for name, text in (("__init__", ""), ("trainer", LIBRARY), ("training_args", SETTINGS)):
        (package / f"{name}.py").write_text(text)
    with runner(script(TRAINER, writes=writes), tmp_path) as training:
        training.start()
        training.run(3)
    assert bool([*tmp_path.glob("out/*.pt")]) == (tmp_path / "out").exists() == bool(writes)


DROPOUT = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = RUN
for step in range(100):
    run(torch.ones(8, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
def test_compiled_dropout_of_a_script_is_compared_with_the_draws_of_eager_code(
    script: Callable[..., Program], tmp_path: Path
) -> None:
    losses = {}
    for run in ("model", "torch.compile(model)"):
        form = ProgramForm(script(DROPOUT.replace("RUN", run)), log=tmp_path / ".warpsmith" / "log")
        with form.compared_runner() as compared:
            compared.start()
            losses[run] = [step["value"] for step in compared.run(3).values]
    assert losses["model"] == pytest.approx(losses["torch.compile(model)"], rel=1e-4)
    assert len(set(losses["model"])) == 3


@pytest.mark.parametrize("ends", [BY_OPTIMIZER, BY_CLOSURE, BY_HAND])
def test_lines_of_a_script_are_named_and_the_loop_over_its_steps_is_not(
    script: Callable[..., Program], tmp_path: Path, ends: tuple[str, str]
) -> None:
    text = LOOPS.replace("OPTIMIZER", ends[0]).replace("END", ends[1])
    marks = {line.rpartition("# ")[2]: n for n, line in enumerate(text.splitlines(), 1) if "# " in line}
    with runner(script(text), tmp_path) as watched:
        watched.start()
        lines = watch_lines(watched, gpu=False).lines
        assert watched.run(1).count == 1, "the script goes on"
    loops = {site.loop.line: site.loop.share or 0.0 for site in lines.sites if site.loop}
    assert set(loops) == {marks[name] for name in ("LOOP", "CLOSURE") if name in marks}
    assert all(0.0 < share < 1.0 for share in loops.values())
    assert [(wait.line, wait.count) for wait in lines.waits] == [(marks["ITEM"], 1)]


@pytest.mark.parametrize(
    ("text", "timeout", "error", "says"),
    [
        ("optimizer = None\nfor n in range(0):\n    optimizer.step()\n", 60.0, Misuse, "no step of it was seen"),
        ("import time\ntime.sleep(60)\n", 0.5, TimedOut, "did not end within 0.5 s"),
        ("raise SystemExit('no data')\n", 60.0, SolutionFailed, "exit code 1 during its start: no data"),
    ],
)
def test_what_has_no_step_is_said_in_one_sentence(
    script: Callable[..., Program],
    tmp_path: Path,
    text: str,
    timeout: float,
    error: type[WarpsmithError],
    says: str,
) -> None:
    with runner(script(text), tmp_path, timeout) as failing, pytest.raises(error, match=says) as failed:
        failing.start()
    assert "\n" not in str(failed.value)

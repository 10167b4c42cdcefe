"""Runs of examples/programs at CPU sizes: they work, and have the weaknesses that they demonstrate."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.program.models import ProgramFacts, StepsRun
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.process.runner import Runner

PROGRAMS = Path(__file__).parents[2] / "examples" / "programs"
READ = "aten::_local_scalar_dense"
"""Operator that copies a tensor's number to Python."""


def run_program(name: str, step: str, log: Path, *args: str, steps: int = 6) -> tuple[ProgramFacts, StepsRun]:
    program = resolve_step_program(str(PROGRAMS / f"{name}.py"), step, args=["--device", "cpu", *args])
    with Runner(program, timeout=120, log=log) as runner:
        runner.start()
        return runner.observe(), runner.run(steps)


def loss(steps: StepsRun, number: int) -> float:
    value = steps.values[number]["value"]
    assert isinstance(value, float)
    return value


def test_training_has_attention_by_hand_and_an_optimizer_as_it_comes(tmp_path: Path) -> None:
    facts, steps = run_program("train_gpt", "train_step", tmp_path / "log")
    observed = facts.observed
    assert observed is not None
    assert (observed.attention, observed.calls("aten::_softmax"), set(observed.products)) == (0, 2, {"float32"})
    assert (observed.backwards, observed.optimizer_steps, facts.optimizers[0].fused) == (1, 1, None)
    assert steps.first_nonfinite is None


def test_decoding_has_shapes_that_stay_and_begins_again(tmp_path: Path) -> None:
    facts, steps = run_program("decode", "decode_step", tmp_path / "log", "--context", "4", steps=10)
    assert facts.observed is not None
    assert (facts.observed.shapes_vary, facts.observed.calls(READ), facts.observed.attention) == (False, 0, 2)
    assert steps.first_nonfinite is None


def test_the_image_model_learns_while_its_loader_works_in_the_step(tmp_path: Path) -> None:
    facts, steps = run_program("image", "train_step", tmp_path / "log", "--classes", "2", steps=12)
    assert facts.observed is not None
    assert (facts.loaders[0].workers, facts.loaders[0].pin_memory) == (0, False)
    assert facts.observed.loader_seconds > 0
    assert facts.observed.calls(READ) >= 1
    assert facts.observed.convolutions == 12
    assert loss(steps, -1) < loss(steps, 0)


@pytest.mark.slow
def test_the_llama_compiles_its_whole_forward_and_backward_pass(tmp_path: Path) -> None:
    sizes = ("--layers", "1", "--width", "32", "--heads", "4", "--vocabulary", "64")
    facts, steps = run_program("train_llama", "train_step", tmp_path / "log", *sizes)
    assert facts.compiled_graphs >= 1
    assert not [event for event in facts.compile_events if event.kind == "graph break"]
    assert facts.optimizers[0].fused
    assert steps.first_nonfinite is None

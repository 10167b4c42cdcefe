"""What runs on a GPU in the program's process, on a machine without one: CUDA's calls do nothing here."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
from graph_programs import CONTROLS, PLANTED, Loaded

from warpsmith.program.capture import replay as graph_replay
from warpsmith.program.tasks import graph_capture, graph_modules

torch = pytest.importorskip("torch")


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch):
    """What was `captured`, in order; `fails`: what a capture raises at its end; `replay`: what a replay does."""
    told = SimpleNamespace(captured=[], fails=None, replay=lambda: None)

    @contextmanager
    def graph(one):
        told.captured.append("step")
        try:
            yield
        finally:
            if told.fails:
                raise told.fails

    def make_graphed_callables(module, given, allow_unused_input):
        assert all(isinstance(each, torch.Tensor) for each in given)
        told.captured.append((type(module).__name__, tuple(given[0].shape), torch.is_grad_enabled()))
        torch.rand(3)

    stream = SimpleNamespace(wait_stream=lambda other: None)
    for name, value in {
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": lambda one: nullcontext(),
        "synchronize": lambda: None,
        "CUDAGraph": lambda: SimpleNamespace(replay=lambda: told.replay()),
        "graph": graph,
        "make_graphed_callables": make_graphed_callables,
        "get_rng_state": torch.get_rng_state,
        "set_rng_state": torch.set_rng_state,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return told


def loaded(name: str, tmp_path) -> Loaded:
    (planted,) = (one for one in (*PLANTED, *CONTROLS) if one.name == name)
    return Loaded(planted.write(tmp_path), planted.setup)


def test_eager_steps_give_their_values_and_then_what_everything_holds(pretend, tmp_path):
    child = loaded("training", tmp_path)
    answer = graph_capture.main(child, [], warm=2, steps=3, replay=False)  # type: ignore[arg-type]
    assert pretend.captured == []
    assert [sorted(each) for each in answer["values"][:3]] == [["value"]] * 3
    assert sorted(answer["values"][3]) == ["model.0.bias", "model.0.weight", "model.2.bias", "model.2.weight"]
    losses = [each["value"][0] for each in answer["values"][:3]]
    assert losses == sorted(losses, reverse=True)
    assert answer["seconds"] > 0


def test_a_capture_runs_the_step_once_and_replays_give_what_it_returned(pretend, tmp_path):
    child = loaded("forward", tmp_path)
    answer = graph_capture.main(child, [], warm=2, steps=3, replay=True)  # type: ignore[arg-type]
    assert (pretend.captured, child.next_step, answer["captured"]) == (["step"], 3, True)
    assert len(answer["values"]) == 4


LARGE = """
import torch
from torch import nn

rows = (2**24 + 4) // 4
table = nn.Embedding(rows, 4, _weight=torch.zeros(rows, 4))
tokens, calls = torch.zeros(2, dtype=torch.long), []

@torch.no_grad()
def step():
    calls.append(1)
    score = table(tokens + len(calls)).sum(-1)
    tokens.copy_(score.long())
    return score
"""
"""A step whose tokens index a table of more elements than float32 has integers, and that counts on the host."""


@pytest.mark.parametrize("replay", [False, True])
def test_a_table_of_any_size_is_read_within_its_bounds(pretend, tmp_path, replay):
    path = tmp_path / "large.py"
    path.write_text(LARGE)
    answer = graph_capture.main(Loaded(path, None), [], warm=1, steps=2, replay=replay)  # type: ignore[arg-type]
    assert len(answer["values"][-1]["table.weight"]) == 64 + 2


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 2**24 + 4, 32000 * 1024])
def test_first_and_last_element_are_among_those_compared(pretend, tmp_path, size):
    child = loaded("forward", tmp_path)
    value = torch.ones(1, dtype=torch.float64).expand(size)  # takes no memory, whatever its size
    inputs = graph_replay.StepInputs(child)  # type: ignore[arg-type]
    found: list[dict[str, list[float]]] = []
    graph_replay.record_steps(child, inputs, lambda: value, 1, found)  # type: ignore[arg-type]
    assert found[0]["value"] == [1.0] * min(size, 64) + [size, pytest.approx(size**0.5)]
    if size <= 65:
        graph_replay.record_steps(child, inputs, lambda: torch.arange(size), 1, found)  # type: ignore[arg-type]
        assert (found[2]["value"][0], found[2]["value"][-3]) == (0, size - 1)


def test_a_replay_that_fails_is_told_with_its_number(pretend, tmp_path, capsys):
    left = iter(range(2))

    def replay():
        if next(left, None) is None:
            raise RuntimeError("CUDA error: device-side assert triggered\nSearch for it")

    pretend.replay = replay
    answer = graph_capture.main(loaded("forward", tmp_path), [], warm=2, steps=5, replay=True)  # type: ignore[arg-type]
    assert answer.keys() == {"captured", "error"}
    assert answer["captured"]
    assert answer["error"].startswith(
        "replay 3 of 5 fails: RuntimeError: CUDA error: device-side assert triggered;"
    )
    assert "Traceback" in capsys.readouterr().err


def test_a_step_that_fails_with_modules_as_graphs_is_told_with_its_number(pretend, tmp_path):
    child = loaded("heads", tmp_path)
    step, calls = child.module.step, iter(range(3))

    def short():
        next(calls)
        return step()

    child.module.step = short
    answer = graph_modules.main(child, [], ["model"], warm=2, steps=2)  # type: ignore[arg-type]
    assert answer == {"captured": True, "error": "replay 2 of 2 fails: StopIteration"}


def test_inputs_that_are_not_moving_stay(tmp_path):
    inputs = graph_replay.StepInputs(loaded("decode", tmp_path), moving=False)  # type: ignore[arg-type]
    inputs.tensors = [torch.tensor([0.5, 1.5])]
    inputs.rotate()
    assert inputs.tensors[0].tolist() == [0.5, 1.5]


def test_a_failed_capture_tells_the_first_error_and_its_line(pretend, tmp_path):
    child = loaded("item", tmp_path)
    child.module.F.mse_loss = lambda *_: 1 / 0
    pretend.fails = RuntimeError("the capture was invalidated")
    child.next_step = 0
    with pytest.raises(ZeroDivisionError):
        child.step()
    answer = graph_capture.main(child, [str(tmp_path)], warm=0, steps=1, replay=True)  # type: ignore[arg-type]
    assert (answer["captured"], answer["error"]) == (False, "ZeroDivisionError: division by zero")
    assert (answer["file"], answer["line"], answer["function"]) == (str(child.path), 13, "step")


def test_modules_are_captured_as_the_step_calls_them(pretend, tmp_path):
    child = loaded("heads", tmp_path)
    names = ["heads", "model"]
    answer = graph_modules.main(child, [], names, warm=2, steps=2)  # type: ignore[arg-type]
    assert answer["captured"]
    assert pretend.captured == [("Sequential", (4, 8), False), ("Heads", (4, 8), False)]


def test_a_capture_leaves_random_state_and_buffers_as_they_were(pretend, tmp_path):
    child = loaded("heads", tmp_path)
    torch.manual_seed(7)
    with graph_replay.restore_state(child):  # type: ignore[arg-type]
        torch.rand(3)
        child.module.heads.scale.fill_(9.0)
    assert child.module.heads.scale.item() == 0.5
    assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(7))


def test_a_module_that_is_not_there_is_said(pretend, tmp_path):
    answer = graph_modules.main(loaded("heads", tmp_path), [], ["none"], warm=2, steps=2)  # type: ignore[arg-type]
    assert answer == {"captured": False, "error": "there is no module none in this process"}


def test_inputs_get_new_content_of_their_range(monkeypatch, tmp_path):
    inputs = graph_replay.StepInputs(loaded("decode", tmp_path))  # type: ignore[arg-type]
    assert inputs.tensors == []  # nothing is on a GPU here
    batch, offsets = torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 2, 4])
    weights = torch.tensor([0.5, 1.5])
    inputs.tensors = [batch, offsets, weights]
    inputs.rotate()
    assert (batch.tolist(), offsets.tolist(), weights.tolist()) == ([[4, 1], [2, 3]], [0, 2, 4], [1.5, 0.5])


def test_time_is_not_told_where_the_data_ends(pretend):
    left = iter(range(3))
    assert graph_replay.median_seconds(lambda: next(left)) is None
    assert graph_replay.median_seconds(lambda: None) < 1

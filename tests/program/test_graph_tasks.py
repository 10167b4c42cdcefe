"""What runs on a GPU in the program's process, on a machine without one: CUDA's calls do nothing here."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
from graph_programs import CONTROLS, PLANTED, Loaded

from warpsmith.program import graph_replay
from warpsmith.program.tasks import graph_capture, graph_modules

torch = pytest.importorskip("torch")


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch):
    """`pretend.captured`: what was captured, in order; `pretend.fails`: what a capture raises at its end."""
    told = SimpleNamespace(captured=[], fails=None)

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
        "CUDAGraph": lambda: SimpleNamespace(replay=lambda: None),
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
    assert (pretend.captured, child.next, answer["captured"]) == (["step"], 3, True)
    assert len(answer["values"]) == 4


def test_a_failed_capture_tells_the_first_error_and_its_line(pretend, tmp_path):
    child = loaded("item", tmp_path)
    child.module.F.mse_loss = lambda *_: 1 / 0
    pretend.fails = RuntimeError("the capture was invalidated")
    child.next = 0
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
    with graph_replay.undisturbed(child):  # type: ignore[arg-type]
        torch.rand(3)
        child.module.heads.scale.fill_(9.0)
    assert child.module.heads.scale.item() == 0.5
    assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(7))


def test_a_module_that_is_not_there_is_said(pretend, tmp_path):
    answer = graph_modules.main(loaded("heads", tmp_path), [], ["none"], warm=2, steps=2)  # type: ignore[arg-type]
    assert answer == {"captured": False, "error": "there is no module none this time"}


def test_inputs_get_new_content_of_their_range(monkeypatch, tmp_path):
    inputs = graph_replay.Inputs(loaded("decode", tmp_path))  # type: ignore[arg-type]
    assert inputs.tensors == []  # nothing is on a GPU here
    batch, offsets = torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 2, 4])
    weights = torch.tensor([0.5, 1.5])
    inputs.tensors = [batch, offsets, weights]
    inputs.stir()
    assert (batch.tolist(), offsets.tolist(), weights.tolist()) == ([[4, 1], [2, 3]], [0, 2, 4], [1.5, 0.5])


def test_time_is_not_told_where_the_data_ends(pretend):
    left = iter(range(3))
    assert graph_replay.seconds(lambda: next(left)) is None
    assert graph_replay.seconds(lambda: None) < 1

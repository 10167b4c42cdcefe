"""Steps that are watched on a CPU: each planted blocker is seen at its line, and nothing in the controls."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from graph_programs import CONTROLS, PLANTED, Loaded, Planted

from warpsmith.program.capture import events, hooks, module_times, watcher
from warpsmith.program.capture.rules import Observation
from warpsmith.program.capture.tensors import TensorTracker
from warpsmith.program.capture.watcher import StepWatcher
from warpsmith.program.tasks import graph_observe

torch = pytest.importorskip("torch")


def observe(planted: Planted, folder: Path) -> tuple[list[Observation], list[dict]]:
    child = Loaded(planted.write(folder), planted.setup)
    answer = graph_observe.main(child, [str(folder)], steps=4, warm=2)  # type: ignore[arg-type]
    return [Observation(**fields) for fields in answer["observations"]], answer["modules"]


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
@pytest.mark.skipif(torch.cuda.is_available(), reason="what a CPU alone can tell")
@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.name)
def test_a_planted_blocker_is_seen_in_a_run(planted: Planted, tmp_path: Path):
    found, _ = observe(planted, tmp_path)
    told = [(one.kind, one.line, one.certainty) for one in found]
    assert told == ([(planted.kind, planted.line, planted.ran)] if planted.ran else [])


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("planted", [one for one in PLANTED if one.captures is False], ids=lambda one: one.name)
def test_a_gpu_is_sure_of_what_blocks(planted: Planted, tmp_path: Path):
    found, _ = observe(planted, tmp_path)
    assert (planted.kind, planted.line, "certain") in [(one.kind, one.line, one.certainty) for one in found]


class MetaTracker(TensorTracker):
    """Tracker that takes `meta` for the device."""

    def location(self, tensor):
        return "device" if tensor.is_meta else "host"


class MetaWatcher(StepWatcher):
    """Watcher as on a GPU: PyTorch warns at the end of calls of `waiting` that it waited."""

    waiting = ""

    def call_function(self, name, arguments, options, run):
        def run_and_warn():
            result = run()
            if name == self.waiting:
                warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
            return result

        return super().call_function(name, arguments, options, run_and_warn)


@pytest.mark.filterwarnings("ignore:.*synchronizing CUDA operation")
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("x[[0, 2]]", "to-device"),
        ("x[:, range(2)]", "to-device"),
        ("x[numpy.array([0, 2])]", "to-device"),
        ("x.__setitem__([0, 2], 1.0)", "to-device"),
        ("torch.tensor([1.0, 2.0], device='meta')", "to-device"),
        ("torch.as_tensor([1.0, 2.0], device='meta')", "to-device"),
        ("x.new_tensor([1.0, 2.0])", "to-device"),
        ("x[index]", "synchronize"),
        ("x[:2]", "synchronize"),
        ("torch.as_tensor(x)", "synchronize"),
        ("x.relu()", "synchronize"),
    ],
)
def test_a_wait_is_a_copy_where_a_call_brings_numbers(line: str, kind: str, tmp_path: Path, monkeypatch):
    child = loaded(
        tmp_path,
        "import numpy, torch\n"
        "x, index = torch.ones(4, 8, device='meta'), torch.ones(2, dtype=torch.long, device='meta')\n"
        f"def step():\n    {line}\n",
    )
    monkeypatch.setattr(watcher, "uses_gpu", lambda: True)
    monkeypatch.setattr(watcher, "TensorTracker", MetaTracker)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    meta = MetaWatcher([str(tmp_path)], {})
    meta.waiting = line.split("(")[0].split(".")[-1] if "[" not in line.split("(")[0] else "__getitem__"
    with hooks.watch_steps(meta):
        meta.begin_step()
        child.step()
    found = meta.list_observations(events.compare_steps(meta.events))
    assert [(one.kind, one.line, one.certainty) for one in found] == [(kind, 4, "certain")]


@pytest.mark.filterwarnings("ignore:This instance was constructed with capturable=True")
@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_nothing_is_seen_where_there_is_nothing(control: Planted, tmp_path: Path):
    found, _ = observe(control, tmp_path)
    assert [one for one in found if one.certainty != "look"] == []


def test_calls_are_followed_into_the_programs_other_files(tmp_path: Path, monkeypatch):
    (tmp_path / "parts").mkdir()
    for name, text in {
        "__init__": "from .net import Net\n",
        "net": """\
from torch import nn
class Inner(nn.Module):
    def forward(self, x):
        return x[x > 0]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Inner() for _ in range(2)])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
""",
        "loss": "def loss(x):\n    assert x.isfinite().all()\n    return x.sum()\n",
        "helpers": "def finish(x):\n    return float(x)\n",
        "unused": "def read(x):\n    return x.item()\n",
    }.items():
        (tmp_path / "parts" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    child = loaded(
        tmp_path,
        """\
import torch, parts.loss as losses
from parts import Net, unused
from parts.helpers import *
net, x = Net(), torch.ones(4, device=torch.device("cpu"))
def step():
    return finish(losses.loss(net(x)))
def read():
    return x.item()
""",
    )
    answer = graph_observe.main(child, [str(tmp_path)], steps=2, warm=1)  # type: ignore[arg-type]
    lines = [(Path(item["file"]).name, item["kind"], item["line"]) for item in answer["observations"]]
    assert lines == [("net.py", "data-shape", 4), ("loss.py", "truth", 2), ("helpers.py", "host-read", 2)]
    assert [item["module"] for item in answer["observations"]] == ["net.blocks.0", "", ""]
    assert [Path(file).name for file in answer["files"]] == ["net.py", "loss.py", "helpers.py"]


def loaded(folder: Path, text: str) -> Loaded:
    path = folder / "program.py"
    path.write_text(text)
    return Loaded(path, None)


def test_modules_have_shares_and_reasons(tmp_path: Path):
    child = loaded(
        tmp_path,
        """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)
        self.norm, self.unused = nn.LayerNorm(32), nn.Linear(32, 32)

    def forward(self, x, scale=1.0):
        return self.norm(self.norm(self.second(self.first(x)))) * scale

net, x = Net(), torch.randn(64, 32)

def step():
    loss = net(x, scale=2.0).sum()
    loss.backward()
    return loss
""",
    )
    from torch.nn.modules import module

    child.step()
    modules = {
        one["name"]: one
        for one in module_times.ModuleTimer(module_times.list_modules(child.modules())).run(child.step)
    }
    assert not module._has_any_global_hook(), "nothing of it is left"
    assert list(modules) == ["net", "net.first", "net.second", "net.norm"]
    assert {name: one["reason"] for name, one in modules.items()} == {
        "net": "called with keyword arguments (scale)",
        "net.first": "",
        "net.second": "",
        "net.norm": "called more than once before the backward pass",
    }
    assert modules["net.norm"]["calls"] == 2
    assert modules["net.second"]["alike"] != modules["net.first"]["alike"]  # one's input wants gradients
    parts = sum(one["share"] for name, one in modules.items() if name != "net")
    assert 0 < parts <= modules["net"]["share"] <= 1


def test_a_module_whose_inputs_vary_is_no_graph(tmp_path: Path):
    (planted,) = (one for one in PLANTED if one.name == "varied")
    _, modules = observe(planted, tmp_path)
    assert {one["name"]: one["reason"] for one in modules}["model"] == "its inputs differ from step to step"


def test_nothing_stays_hooked(tmp_path: Path):
    from torch.nn.modules import module as hooks
    from torch.optim import optimizer
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    def state():
        return (
            len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks), torch.manual_seed,
            len(optimizer._global_optimizer_pre_hooks), len(optimizer._global_optimizer_post_hooks),
            _BaseDataLoaderIter.__next__, torch.autograd.backward,
        )  # fmt: skip

    before = state()
    (planted,) = (one for one in PLANTED if one.name == "data-loader")
    observe(planted, tmp_path)
    assert state() == before

"""The source alone: each planted blocker at its line, nothing that counts in the controls, files followed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from graph_programs import CONTROLS, PLANTED, Planted

from warpsmith.errors import Misuse
from warpsmith.program.capture import static
from warpsmith.program.process.step import resolve


def read(path: Path, step: str = "step", setup: str | None = None):
    return static.read(resolve(str(path), step, setup=setup)).findings


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.name)
def test_a_planted_blocker_is_found_in_the_source(planted: Planted, tmp_path: Path):
    found = read(planted.write(tmp_path), setup=planted.setup)
    told = [(one.kind, one.line, one.certainty) for one in found if one.certainty != "look"]
    assert told == ([(planted.kind, planted.line, planted.read)] if planted.read else [])


@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_nothing_is_found_where_there_is_nothing(control: Planted, tmp_path: Path):
    found = read(control.write(tmp_path), setup=control.setup)
    assert [one for one in found if one.certainty != "look"] == []


def told(path: Path, **options) -> list[tuple[str, str, int, str]]:
    return [(Path(one.file).name, one.kind, one.line, one.certainty) for one in read(path, **options)]


def written(folder: Path, train: str, **package: str) -> Path:
    (folder / "parts").mkdir()
    for name, text in package.items():
        (folder / "parts" / f"{name}.py").write_text(text)
    path = folder / "train.py"
    path.write_text(train)
    return path


def test_what_stands_behind_an_if_is_one_level_less_sure(tmp_path: Path):
    path = written(
        tmp_path,
        train="""\
import torch
device = torch.device("cuda")
x = torch.zeros(4, device=device)
def step(number):
    if number % 100 == 0:
        print(x.sum())
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    try:
        return x.item()
    except RuntimeError:
        return x.tolist()
""",
    )
    assert told(path) == [
        ("train.py", "print", 6, "likely"),
        ("train.py", "synchronize", 8, "certain"),
        ("train.py", "host-read", 10, "certain"),
        ("train.py", "to-host", 12, "likely"),
    ]


def test_state_counts_where_something_reads_it(tmp_path: Path):
    path = written(
        tmp_path,
        train="""\
import torch
x = torch.zeros(4, device="cuda")
calls = 0
seed = 0
last = None
kept = None
def step():
    global calls, seed, last, kept
    calls += 1
    seed += 1
    last = x * 2
    kept = x + 1
    return torch.full((4,), seed, device="cuda") + (0 if kept is None else kept)
""",
    )
    assert told(path) == [
        ("train.py", "state", 9, "look"),
        ("train.py", "state", 10, "likely"),
        ("train.py", "new-address", 12, "likely"),
        ("train.py", "changing-number", 13, "likely"),
    ]


def test_calls_are_followed_into_the_programs_other_files(tmp_path: Path):
    path = written(
        tmp_path,
        train="""\
import torch, parts.loss as losses
from parts import Net
from parts.helpers import *
net, x = Net(), torch.ones(4, device="cuda")
def step():
    return finish(losses.loss(net(x)))
def unused(x):
    return x.item()
""",
        __init__="from .net import Net\n",
        net="""\
from torch import nn
from ..nowhere import x
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
        loss="def loss(x):\n    assert x.isfinite().all()\n    return x.sum()\n",
        helpers="def finish(x):\n    return float(x)\n",
    )
    assert told(path) == [
        ("helpers.py", "host-read", 2, "certain"),
        ("loss.py", "truth", 2, "certain"),
        ("net.py", "data-shape", 5, "certain"),
    ]
    reading = static.read(resolve(str(path), "step"))
    assert sorted(reading.modules) == ["Inner", "Net"]
    assert set(reading.owners.values()) == {"Inner"}
    assert sorted(one.name for one in reading.files) == ["helpers.py", "loss.py", "net.py", "train.py"]


def test_what_a_setup_makes_is_known_in_the_step(tmp_path: Path):
    path = written(
        tmp_path,
        train="""\
import torch
from torch import nn
def setup():
    model = nn.Linear(4, 4).cuda()
    return model, torch.optim.Adam(model.parameters()), torch.ones(4, device="cuda")
def step(model, optimizer, x):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss.item()
""",
    )
    assert told(path, setup="setup") == [
        ("train.py", "optimizer", 9, "certain"),
        ("train.py", "host-read", 10, "certain"),
    ]


def test_a_step_may_be_made_by_a_call(tmp_path: Path):
    path = written(
        tmp_path,
        train="""\
import torch
def plain():
    return torch.ones(2, device="cuda").item()
step = torch.compile(plain, mode="reduce-overhead")
""",
    )
    assert told(path) == [("train.py", "host-read", 3, "certain"), ("train.py", "compiled", 4, "likely")]


def test_a_long_chain_of_calls_takes_no_time(tmp_path: Path):
    chain = "torch.ones(2, device='cuda')" + ".relu().contiguous()" * 40
    path = written(tmp_path, train=f"import torch\ndef step():\n    return {chain}.item()\n")
    begin = time.perf_counter()
    assert told(path) == [("train.py", "host-read", 3, "certain")]
    assert time.perf_counter() - begin < 2


def test_a_file_that_cannot_be_imported_is_not_followed(tmp_path: Path):
    train = "try:\n    from parts.old import f\nexcept SyntaxError:\n    f = float\ndef step():\n    return f(1)\n"
    assert told(written(tmp_path, train=train, old="print 'two'\n")) == []


@pytest.mark.parametrize("text", ["def step(:", "x = 1\ndef other(): ...", "\x00"])
def test_a_file_that_is_no_program_is_refused(text: str, tmp_path: Path):
    with pytest.raises(Misuse):
        read(written(tmp_path, train=text))

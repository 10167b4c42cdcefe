"""What a program's process is asked for in a trial."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from warpsmith import files
from warpsmith.program.tasks import imported_files, sketch


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.big = nn.Parameter(torch.randn(100, 70))
        self.short = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        self.wave = nn.Parameter(torch.ones(300, dtype=torch.complex64))
        self.register_buffer("flags", torch.ones(500, dtype=torch.bool))
        self.register_buffer("count", torch.tensor(7))
        self.tied = self.big


def child(*modules: nn.Module) -> SimpleNamespace:
    return SimpleNamespace(modules=lambda: {f"m{n}": module for n, module in enumerate(modules)})


def sketches(module: nn.Module, jitter: float = 0.0) -> dict[str, np.ndarray]:
    found = sketch.main(child(module), jitter)  # type: ignore[arg-type]
    rows = (*found["parameters"], *found["buffers"])
    return {name: np.asarray(values) for name, _, _, values, _ in rows if name.startswith("m0")}


def test_a_sketch_has_about_the_norm_and_is_linear():
    module = Odd()
    first = sketches(module)
    assert set(first) == {"m0.big", "m0.short", "m0.wave", "m0.flags", "m0.count"}
    assert len(first["m0.big"]) == sketch.SIZE
    assert np.linalg.norm(first["m0.big"]) == pytest.approx(float(module.big.detach().norm()), rel=0.3)
    with torch.no_grad():
        module.big.add_(0.01 * torch.randn_like(module.big))
    moved = sketches(module)["m0.big"] - first["m0.big"]
    assert np.linalg.norm(moved) == pytest.approx(0.01 * 7000**0.5, rel=0.3)


def test_small_tensors_are_kept_as_they_are():
    assert sketches(Odd())["m0.short"].tolist() == [1, 1, 1]
    assert sketches(Odd())["m0.count"].tolist() == [7]


def test_drawing_is_left_alone():
    module = nn.Linear(40, 40)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    sketches(module, 1e-3)
    assert torch.equal(torch.rand(2), expected)


def test_jitter_moves_each_parameter_by_a_rounding_and_no_buffer():
    module = Odd()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    sketches(module, 2**-11)
    after = module.state_dict()
    share = ((after["big"] - before["big"]) / before["big"]).abs()
    assert 0 < float(share.max()) <= 2**-11 * 1.01
    assert (after["short"] != before["short"]).any()  # no less than its dtype can hold
    assert torch.equal(after["count"], before["count"])


def test_compiled_modules_keep_their_parameters_names():
    module = nn.Sequential()
    module.add_module("_orig_mod", nn.Linear(2, 2))
    assert set(sketches(module)) == {"m0.weight", "m0.bias"}


def test_what_a_program_imports_of_its_own_is_listed(tmp_path, monkeypatch):
    for name, place in (("mine", tmp_path / "mine.py"), ("away", tmp_path / "lib" / "away.py")):
        place.parent.mkdir(exist_ok=True)
        place.write_text("")
        monkeypatch.setitem(__import__("sys").modules, name, SimpleNamespace(__file__=str(place)))
    monkeypatch.setattr(imported_files.sysconfig, "get_paths", lambda: {"purelib": str(tmp_path / "lib")})
    program = SimpleNamespace(path=tmp_path / "train.py")
    own = tmp_path / "mine.py"
    assert imported_files.main(program, str(tmp_path)) == {str(own): files.file_sha256(own)}

"""An operator of a program as a definition that the lab takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_operators import Here

from warpsmith import project as projects
from warpsmith.cli import main as entry
from warpsmith.core.definition import Definition, ScalarSpec
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab import definition_file, machine
from warpsmith.program import extract, extractions
from warpsmith.program.extract import Extracted
from warpsmith.program.step import resolve
from warpsmith.project import Project

torch = pytest.importorskip("torch")

STEP = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
table, norm, head = nn.Embedding(11, 16), nn.LayerNorm(16), nn.Linear(16, 11)

def train_step():
    tokens = torch.randint(0, 11, (4, 6))
    x = norm(table(tokens))
    y = F.rms_norm(x, (16,), norm.weight, 1e-6)
    logits = head(y)
    p = torch.softmax(logits, -1)
    for rows in (3, 4):
        torch.softmax(torch.randn(rows, 5, dtype=torch.bfloat16), -1)
    torch.rand(4, 6)[:, :3].exp()
    q = torch.randn(2, 4, 3, 8)
    F.scaled_dot_product_attention(q, q, q)
    loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten()) + p.square().mean()
    loss.backward()
    for module in (table, norm, head):
        module.zero_grad()
    return loss
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "train.py").write_text(STEP)
    monkeypatch.setattr(extract, "Runner", Here)
    return projects.find(tmp_path)


def extracted(here: Project, operator: str, **more: str) -> tuple[Extracted, Definition]:
    program = resolve(str(here.root / "train.py"), "train_step")
    found = extract.extract(here, program, operator=operator, tell=lambda _: None, **more)  # type: ignore[arg-type]
    return found, definition_file.load(found.path).definition


def test_softmax_in_two_types_is_one_definition(here):
    found, definition = extracted(here, "aten::_softmax")
    # The float32 calls have three axes: another form, which takes less or more time.
    assert definition.name == "softmax"
    assert definition.op_type == "softmax"
    assert definition.tolerance.reduction in definition.axes  # type: ignore[union-attr]
    assert extractions.read(here, "softmax") == found.extraction
    assert len(found.notes) == 1
    assert "not covered" in found.notes[0]
    assert sum(one.calls for one in found.extraction.called) in (1, 2)
    seen = [one.name for one in definition.workloads if one.set != "odd"]
    assert {one.workload for one in found.extraction.called} == set(seen)


def test_layer_norm_has_weights_a_number_and_three_results(here):
    found, definition = extracted(here, "native_layer_norm", name="norm")
    x, weight, bias, eps = definition.inputs.values()
    assert (x.shape, weight.shape, bias.shape) == (("d0", "d1", "d2"), ("d2",), ("d2",))  # type: ignore[union-attr]
    assert (x.role, weight.role) == ("activation", "weight")  # type: ignore[union-attr]
    assert eps == ScalarSpec(value=1e-5)
    assert [one.shape for one in definition.outputs.values()] == [("d0", "d1", "d2"), *[("d0", "d1", 1)] * 2]
    assert definition.sizes(definition.workloads[0]) == {"d0": 4, "d1": 6, "d2": 16}
    assert found.extraction.operator == "aten::native_layer_norm"
    assert "list(x.shape[-1:])" in found.path.read_text()


def test_a_transposed_weight_is_given_as_it_lies(here):
    found, definition = extracted(here, "aten::addmm")
    weight = definition.tensor_inputs["b"]
    assert weight.shape == ("d0", "d2")
    assert weight.role == "weight"
    assert "b = b.permute(1, 0)" in found.path.read_text()
    assert definition.flops == "2 * d0 * d1 * d2"
    file = definition_file.load(found.path)
    bias, a, b = torch.randn(11), torch.randn(24, 16), torch.randn(11, 16)
    assert torch.equal(file.reference(bias, a, b), torch.addmm(bias, a, b.t()))


def test_indices_stay_inside_the_table(here):
    _, definition = extracted(here, "aten::embedding")
    assert definition.tensor_inputs["indices"].distribution == "integers:0:d0"
    assert definition.sizes(definition.workloads[0])["d0"] == 11
    assert definition.bytes_read is not None


def test_slices_are_strided_inputs(here):
    _, definition = extracted(here, "aten::exp")
    assert definition.tensor_inputs["x"].layout == "any"


def test_attention_and_rms_norm_are_taken_whole(here):
    found, definition = extracted(here, "aten::scaled_dot_product_attention")
    assert definition.tensor_inputs["query"].shape == ("d0", "d1", "d2", "d3")
    assert found.extraction.composite
    found, _ = extracted(here, "aten::rms_norm")
    assert any("gradient" in note for note in found.notes)


def test_backward_operators_are_extracted(here):
    _, definition = extracted(here, "aten::_softmax_backward_data")
    assert list(definition.inputs) == ["grad_output", "output"]


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("aten::view", "returns a view"),
        ("aten::randint", "random"),
        ("aten::nothing", "no operator"),
        ("aten::Softmax", "no operator"),
    ],
)
def test_what_cannot_be_a_definition_is_said(here, operator, said):
    with pytest.raises(Misuse, match=said):
        extracted(here, operator, name="mine")
    assert not here.kernels.exists()


def test_what_is_not_called_and_names_that_are_taken(here):
    with pytest.raises(MissingInput, match="does not call"):
        extracted(here, "aten::tanh")
    extracted(here, "aten::embedding")
    with pytest.raises(Misuse, match="exists; give another name"):
        extracted(here, "aten::embedding")
    with pytest.raises(Misuse, match="no operator's name"):
        extracted(here, "aten::embedding", name="My Op")


SOFTMAX = """
#include <warpsmith.hpp>
#include <algorithm>
#include <cmath>
extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t cols = x_.size(-1), rows = cols ? x_.numel() / cols : 0;
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    float top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; ++c) top = std::max(top, x[c]);
    for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
  }
}
"""


@pytest.mark.slow
@pytest.mark.skipif(machine.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize(("text", "code"), [(SOFTMAX, 0), (SOFTMAX.replace("/= sum", "/= sum + 1e-3f"), 1)])
def test_a_kernel_is_checked_on_an_extracted_definition(here, monkeypatch, text, code):
    (here.root / "train.py").write_text(STEP.replace("dtype=torch.bfloat16", "dtype=torch.float32"))
    found, _ = extracted(here, "aten::_softmax")
    version = found.path.parent / "cpp" / "v1.cpp"
    version.parent.mkdir()
    version.write_text(text)
    monkeypatch.chdir(here.root)
    monkeypatch.setattr(sys, "argv", ["warpsmith", "judge", str(version), "--check", "--target", "cpu"])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert int(ended.value.code or 0) == code

"""An operator of a program as a definition that the lab takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_operators import Here

from warpsmith import project as projects
from warpsmith.cli import main as entry
from warpsmith.core.definition import Definition, ScalarSpec, calls_by_workload
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.machine import system
from warpsmith.lab.operator import definition_file
from warpsmith.program.operators import definition_writer, extract, extraction_file
from warpsmith.program.operators.extract import ExtractedOperator
from warpsmith.program.process.program import resolve_step_program
from warpsmith.project import Project

pytestmark = pytest.mark.usefixtures("forked_workers")

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
    monkeypatch.setattr(extract, "open_runner", Here)
    return projects.find_project(tmp_path)


def extracted(here: Project, operator: str, **more: str) -> tuple[ExtractedOperator, Definition]:
    program = resolve_step_program(str(here.root / "train.py"), "train_step")
    found = extract.extract_operator(here, program, operator=operator, tell=lambda _: None, **more)  # type: ignore[arg-type]
    return found, definition_file.load_definition(found.path).definition


def test_softmax_in_two_types_is_one_definition(here):
    found, definition = extracted(here, "aten::_softmax")
    # The float32 calls have three axes: another form, which takes less or more time.
    assert definition.name == "softmax"
    assert definition.op_type == "softmax"
    assert definition.tolerance.reduction in definition.axes  # type: ignore[union-attr]
    assert extraction_file.read_extraction(here, "softmax") == found.extraction
    assert "not covered" in found.notes[0]
    assert "--like NAME" in found.notes[1]
    assert sum(one.calls for one in found.extraction.called) in (1, 2)
    seen = [one.name for one in definition.workloads if one.set != "odd"]
    assert {one.workload for one in found.extraction.called} == set(seen)
    timed = definition.select("representative", "full")
    assert calls_by_workload(timed) == {one.workload: round(one.calls) for one in found.extraction.called}
    assert all(workload.weight is None for workload in definition.select("odd"))


@pytest.mark.parametrize(
    ("per_step", "weights"), [([8.0], [8]), ([1 / 3, 2 / 3, 1.0], [1, 2, 3]), ([0.5, 1 / 3], [3, 2])]
)
def test_calls_of_some_steps_weigh_as_whole_numbers(per_step, weights):
    assert definition_writer._count_calls(per_step) == weights


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
    file = definition_file.load_definition(found.path)
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
    with pytest.raises(Misuse, match=r"exists; .*--name"):
        extracted(here, "aten::embedding")
    with pytest.raises(Misuse, match="not a valid operator name"):
        extracted(here, "aten::embedding", name="My Op")


LISTS = """
import torch

torch.manual_seed(0)
cache, names = torch.randn(2, 9, 3, 4), [torch.randn(5, 7), torch.rand(6, 7), torch.rand(3)]
grown = [torch.randn(1, 3, 8)]
many, table = [torch.rand(3) for _ in range(40)], torch.randn(11, 8)

def train_step():
    new = torch.randn(2, 1, 3, 4)
    keys = torch.cat([cache, new], dim=1)
    torch.cat([torch.randn(2, 12, 3, 4)[:, :9], new], dim=1)
    torch.concat(names[:2])
    torch.stack([names[0], names[0], names[0], names[0]])
    torch._foreach_sqrt(names[1:])
    torch._foreach_norm(names)
    torch._foreach_add_(many, 1e-3)
    torch._foreach_sqrt(many)
    torch._foreach_exp(many)
    torch.unsafe_split(names[1], 2)
    table[:, torch.tensor([0, 2, 3])]
    table[table > 0]
    grown[0] = torch.hstack([grown[0], torch.randn(1, 1, 8)])
    torch.mm(torch.eye(7).to_sparse(), names[0].t())
    return keys.sum()
"""


@pytest.fixture
def lists(here: Project) -> Project:
    (here.root / "train.py").write_text(LISTS)
    return here


def test_each_tensor_of_a_list_is_an_input(lists):
    found, definition = extracted(lists, "aten::cat", like="2x9x3x4+2x1x3x4")
    old, new = definition.tensor_inputs.values()
    assert (list(definition.inputs), old.shape, new.shape) == (
        ["tensors0", "tensors1"], ("d0", "d1", "d2", "d3"), ("d0", 1, "d2", "d3")
    )  # fmt: skip
    assert definition.outputs["out"].shape == ("d0", "d1 + 1", "d2", "d3")
    assert "2x9x3x4+2x1x3x4-float32" in [one.name for one in definition.workloads]
    file, given = definition_file.load_definition(found.path), (torch.randn(2, 9, 3, 4), torch.randn(2, 1, 3, 4))
    expected = torch.cat(given, 1)
    assert torch.equal(file.reference(*given), expected)
    assert extraction_file.read_extraction(lists, "cat") == found.extraction
    assert [one.element for one in found.extraction.slots] == [0, 1, None]


def test_sizes_that_a_list_adds_up_are_sums(lists):
    _, definition = extracted(lists, "aten::concat")
    assert definition.tensor_inputs["tensors1"].shape == ("d2", "d1")
    assert definition.outputs["out"].shape == ("d0 + d2", "d1")


def test_results_in_a_list_are_outputs_each(lists):
    found, definition = extracted(lists, "aten::_foreach_sqrt")
    assert [one.shape for one in definition.outputs.values()] == [("d0", "d1"), ("d2",)]
    assert definition.tolerance.reduction == "1"  # type: ignore[union-attr]
    assert "results[0], results[1]" in found.path.read_text()
    _, definition = extracted(lists, "aten::_foreach_norm")
    assert [one.shape for one in definition.outputs.values()] == [(), (), ()]
    assert definition.scalar_inputs == {}
    assert definition.tolerance.reduction == "d2 * d1"  # type: ignore[union-attr]


def test_a_long_list_is_named_by_its_first_tensor_and_their_number(lists):
    _, definition = extracted(lists, "aten::stack")
    assert definition.workloads[0].name == "5x7-and-3-more-float32"
    assert definition.outputs["out"].shape == (4, "d0", "d1")


def test_a_list_whose_length_follows_a_size_keeps_that_size(lists):
    _, definition = extracted(lists, "aten::unsafe_split")
    assert definition.tensor_inputs["x"].shape == (6, "d0")
    assert len(definition.outputs) == 3


def test_nothing_in_a_list_is_a_constant(lists):
    (lists.root / "train.py").write_text(LISTS.replace("    table[table > 0]\n", ""))
    found, definition = extracted(lists, "aten::index")
    assert list(definition.inputs) == ["x", "indices1"]
    assert "index.Tensor(x, [None, indices1])" in found.path.read_text()


def test_sizes_that_grow_are_said(lists):
    found, definition = extracted(lists, "aten::hstack")
    assert definition.outputs["out"].shape == (1, "d0 + 1", "d1")
    assert any("change from step to step" in note for note in found.notes)


def test_calls_are_chosen_by_their_name(lists):
    found, _ = extracted(lists, "aten::cat", like="2x9x3x4+2x1x3x4")
    others = next(note for note in found.notes if "--like" in note)
    assert "2x9x3x4" not in others  # the call with a slice has the same name
    assert "5x7+6x7-float32" in others
    found, _ = extracted(lists, "aten::cat", like="6x7", name="rows")
    assert [one.workload for one in found.extraction.called] == ["5x7+6x7-float32"]
    with pytest.raises(MissingInput, match=r"No call of aten::cat matches `9x9`; .*5x7"):
        extracted(lists, "aten::cat", like="9x9", name="other")


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("aten::_foreach_add_", "writes into its arguments; .*fused-optimizer"),
        ("aten::_foreach_exp", "80 tensors, .* 64 at most; .*fused-optimizer"),
        ("aten::mm", "passes no tensor, .*such as a sparse tensor"),
    ],
)
def test_lists_that_cannot_be_a_definition_are_said(lists, operator, said):
    with pytest.raises(Misuse, match=said):
        extracted(lists, operator)
    assert not lists.kernels.exists()


def test_a_result_whose_size_is_in_the_values_is_said(lists):
    (lists.root / "train.py").write_text(LISTS.replace("    table[:, torch.tensor([0, 2, 3])]\n", ""))
    with pytest.raises(Misuse, match="follow no simple formula"):
        extracted(lists, "aten::index")


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


CAT = """
#include <warpsmith.hpp>
extern "C" void run(const Tensor& old, const Tensor& more, Tensor& out_) {
  const float *x = old.data<float>(), *y = more.data<float>();
  float* out = out_.data<float>();
  const int64_t n = old.size(0), t = old.size(1), h = old.size(2), d = old.size(3);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= t; ++j)
      for (int64_t k = 0; k < h; ++k)
        for (int64_t l = 0; l < d; ++l)
          *out++ = j < t ? x[i * old.stride(0) + j * old.stride(1) + k * old.stride(2) + l * old.stride(3)]
                         : y[(i * h + k) * d + l];
}
"""


@pytest.mark.slow
@pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
def test_kernels_are_checked_on_an_extracted_definition(here, monkeypatch):
    (here.root / "train.py").write_text(STEP.replace("dtype=torch.bfloat16", "dtype=torch.float32"))
    found, _ = extracted(here, "aten::_softmax")
    assert judged(here, monkeypatch, found, SOFTMAX) == 0
    assert judged(here, monkeypatch, found, SOFTMAX.replace("/= sum", "/= sum + 1e-3f")) == 1


@pytest.mark.slow
@pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
def test_kernels_of_a_list_are_checked_on_an_extracted_definition(lists, monkeypatch):
    found, _ = extracted(lists, "aten::cat", like="2x9x3x4+2x1x3x4")
    assert judged(lists, monkeypatch, found, CAT) == 0
    assert judged(lists, monkeypatch, found, CAT.replace("? x", "? 0 * x")) == 1


def judged(here: Project, monkeypatch: pytest.MonkeyPatch, found: ExtractedOperator, text: str) -> int:
    """The exit code of `warpsmith judge --check` of a version in C++."""
    folder = found.path.parent / "cpp"
    folder.mkdir(exist_ok=True)
    version = folder / f"v{1 + len(list(folder.iterdir()))}.cpp"
    version.write_text(text)
    monkeypatch.chdir(here.root)
    monkeypatch.setattr(sys, "argv", ["warpsmith", "judge", str(version), "--check", "--target", "cpu"])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    return int(ended.value.code or 0)

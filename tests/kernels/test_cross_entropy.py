"""Cross-entropy with its gradient: its bounds pass what is honest and refuse what is not; kernels are right where
an interpreter can tell, and compile without spilling."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from compiled import compile_reports
from kernel_copies import copy_with

from warpsmith.lab.grading import correctness, near
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "cross_entropy"
FILE = definition_file.load_definition(FOLDER / "definition.py")
KERNELS = [FOLDER / "triton" / "v1.py", FOLDER / "triton" / "v2.py", *sorted(FOLDER.glob("drafts/*/*.py"))]
ODD = {one.name: one for one in FILE.definition.select("odd")}
PLAIN = ODD["3x4097-fp32-z"].model_copy(update={"axes": {"rows": 40, "cols": 400}})
SHORT = ODD["5x8195-bf16-z"].model_copy(update={"axes": {"rows": 40, "cols": 400}})
MASKED = ODD["9x3000-fp32-z-masked"]


def by_parts(
    logits, targets, z_loss, *, ignores=True, squares=True, shift=0, drops_factor=False, narrow_sum=False
):
    """Maxima and sums of parts of a row, joined as online kernels do; with one fault by choice."""
    x = logits.float()
    tops = torch.stack([part.amax(-1) for part in x.chunk(7, -1)])
    safe = tops.masked_fill(tops == -torch.inf, 0.0)
    sums = torch.stack(
        [torch.exp(part - at[:, None]).sum(-1) for part, at in zip(x.chunk(7, -1), safe, strict=True)]
    )
    if narrow_sum:
        sums = sums.bfloat16().float()
    top = tops.amax(0)
    total = (sums * torch.exp(safe - top)).sum(0)
    lse = top + total.log()
    rows = torch.arange(len(x))
    label = targets.clamp(min=0) + shift
    loss = lse - x[rows, label] + (z_loss * lse**2 if squares else 0)
    grad = torch.exp(x - top[:, None]) / total[:, None]
    if not drops_factor:
        grad = grad * (1 + 2 * z_loss * lse)[:, None]
    grad[rows, label] -= 1
    if ignores:
        loss, grad = loss.masked_fill(targets < 0, 0), grad.masked_fill(targets[:, None] < 0, 0)
    return loss, grad.to(logits.dtype)


def graded(workload, distribution=None, **faults):
    inputs = Inputs(FILE, workload, 5, "cpu").draw(distribution)
    inputs["targets"][:4] = torch.tensor([-100, 0, workload.axes["cols"] - 2, -1])
    truth = correctness.compute_truth(FILE, workload, inputs, correlated=distribution is not None)
    outputs = FILE.outputs(by_parts(*FILE.arguments(workload, inputs), **faults))
    return correctness.grade_outputs(truth, outputs).status


@pytest.mark.parametrize("workload", [PLAIN, SHORT, MASKED], ids=lambda one: one.name)
@pytest.mark.parametrize("distribution", [None, "large", "far", "huge", "one_hot", "constant"])
def test_parts_joined_online_hold_the_bounds(workload, distribution):
    assert graded(workload, distribution) == "PASSED"


@pytest.mark.parametrize(
    "fault",
    [
        {"ignores": False},
        {"squares": False},
        {"shift": 1},
        {"drops_factor": True},
        {"narrow_sum": True},
    ],
    ids=str,
)
def test_what_is_wrong_fails(fault):
    assert graded(PLAIN, **fault) == "INCORRECT_NUMERICAL"


def test_the_reference_is_pytorchs_loss_and_its_gradient():
    logits = torch.randn(30, 90, requires_grad=True)
    targets = torch.randint(90, (30,))
    targets[::7] = -100
    loss, grad = FILE.reference(logits.detach(), targets, 0.01)
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    expected = expected + 0.01 * (targets >= 0) * torch.logsumexp(logits, 1) ** 2
    expected.sum().backward()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(grad, logits.grad)


def test_about_one_row_of_a_call_is_ignored():
    for rows, cols in ((8192, 131072), (5, 8195), (1, 300007)):
        workload = PLAIN.model_copy(update={"axes": {"rows": rows, "cols": 1}})
        spec = FILE.definition.inputs["targets"].distribution.replace("cols", str(cols))
        many = FILE.definition.model_copy(
            update={
                "inputs": {"targets": FILE.definition.inputs["targets"].model_copy(update={"distribution": spec})}
            }
        )
        draws = Inputs(definition_file.DefinitionFile(many, FILE.path, "", FILE.reference), workload, 3, "cpu")
        drawn = [draws.draw()["targets"] for _ in range(20)]
        assert max(int(one.max()) for one in drawn) < cols
        assert 0.2 < sum(int((one < 0).sum()) for one in drawn) / len(drawn) < 3


def test_floors():
    """At 4.3 TB/s, in us."""
    work = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    assert {name: round(one.bytes / 4.3e12 * 1e6) for name, one in work.items()} == {
        "8192x131072-bf16": 999,
        "4096x152064-bf16": 579,
        "16384x32768-bf16": 499,
    }


def stand_in(monkeypatch, name, function):
    module = ModuleType(name)
    setattr(module, function.__name__, function)
    for parent in (name.rpartition(".")[0], name.partition(".")[0]):
        monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    monkeypatch.setitem(sys.modules, name, module)


def cross_entropy_forward(x, target, weight, ignore, z_loss, smoothing, reduction, softcap, returns_z):
    """What Liger's function of that name does."""
    assert (ignore, smoothing, reduction, x.requires_grad) == (-100, 0.0, "none", True)
    assert set(target[target < 0].tolist()) <= {-100}
    loss, grad = FILE.reference(x.detach(), target, z_loss)
    x.detach().copy_(grad)
    return loss.to(x.dtype), None, None, None, x


def cross_entropy_fwd(x, target, ignore_index=-100, return_dx=False):
    """What QuACK's function of that name does."""
    assert set(target[target < 0].tolist()) <= {ignore_index}
    return FILE.reference(x, target, 0.0) if return_dx else None


@pytest.mark.parametrize(
    ("peer", "module", "function"),
    [
        ("liger", "liger_kernel.ops.cross_entropy", cross_entropy_forward),
        ("quack", "quack.cross_entropy", cross_entropy_fwd),
    ],
)
def test_peers_are_called_as_they_wish(peer, module, function, monkeypatch):
    stand_in(monkeypatch, module, function)
    workload = SHORT.model_copy(update={"scalars": {"z_loss": 0.0}})
    inputs = Inputs(FILE, workload, 5, "cpu").draw()
    inputs["targets"][:2] = torch.tensor([-3, -1])
    truth = near.widen_bounds(FILE, workload, inputs, correctness.compute_truth(FILE, workload, inputs))
    result = peers.get_peer(FILE, peer).run(*FILE.arguments(workload, inputs))
    assert correctness.grade_outputs(truth, FILE.outputs(result)).status == "PASSED"


def test_quack_declines_the_z_loss(monkeypatch):
    stand_in(monkeypatch, "quack.cross_entropy", cross_entropy_fwd)
    with pytest.raises(NotImplementedError, match="no z-loss"):
        peers.get_peer(FILE, "quack").run(torch.randn(2, 8), torch.tensor([0, 1]), 0.01)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("v1", {}),
        ("v1", {"IN_REGISTERS": 1, "THREADS_OF_TILE": 128}),
        ("v1", {"IN_REGISTERS": 1, "THREADS_OF_TILE": 128, "BACKWARDS": 0}),
        ("v2", {}),
    ],
    ids=str,
)
def test_versions_are_right_where_the_interpreter_can_tell(name, constants, interpret, tmp_path):
    answer = interpret(copy_with(tmp_path, FOLDER / "triton" / f"{name}.py", **constants))
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert len(answer["graded"]) == 9


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_kernels_compile_without_spilling(path, tmp_path, monkeypatch):
    main = {"cuda": cuda_compile.main, "triton": triton_compile.main}[path.parent.name]
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["8192x131072-bf16", "16384x32768-bf16"]
    reports = compile_reports(main, path, FILE.definition, asked, tmp_path)
    assert [report.spill_bytes for report in reports] == [0] * len(reports)
    notes = "; ".join(note for report in reports for note in report.notes)
    assert "will not launch" not in notes
    if path.stem == "v2":
        assert max(report.registers for report in reports) <= 64, "one block a multiprocessor"
    elif path.parent.name == "cuda":
        assert "cluster 2" in notes
        sass = "".join(one.read_text() for one in tmp_path.glob("*.sass"))
        assert {name for name in ("UBLKCP", "STAS") if name in sass} == {"UBLKCP", "STAS"}
        assert {report.shared_bytes // 1024 for report in reports} == {224}, "no more fits than the ring"

"""examples/gpt_block.py at sizes that a processor does at once."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path

import pytest
import torch

SPEC = importlib.util.spec_from_file_location("gpt_block", Path(__file__).parents[1] / "examples/gpt_block.py")
gpt_block = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gpt_block)

pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # dynamo does

TINY = ["--device", "cpu", "--repeats", "2", "--backend", "eager"]  # compiling for real takes a minute


@pytest.fixture
def references():
    return gpt_block.Kernels(*map(gpt_block.reference, gpt_block.OPERATORS))


@pytest.fixture
def uncompiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)


def test_kernels_and_step_are_told_apart(capsys, uncompiled):
    assert gpt_block.main([*TINY, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["kernels"]) == list(gpt_block.OPERATORS)
    for row in (*report["kernels"].values(), report["step"]):
        assert list(row["seconds"]) == list(gpt_block.WAYS)
        low, high = row["interval"]["compiled"]
        assert low <= row["speedup"]["compiled"] <= high
    text = gpt_block.table(report).splitlines()
    assert [line.split("  ")[0] for line in text[1:5]] == [*gpt_block.OPERATORS, "training step"]


@pytest.mark.slow
def test_the_block_compiles_with_the_kernels_in_it():
    assert gpt_block.main(TINY) == 0


def test_a_kernel_that_is_wrong_shows(references, capsys, monkeypatch, uncompiled):
    def halved(*values):
        dx, dw = references.norm_backward(*values)
        return dx / 2, dw

    def best(op, device):
        own = halved if op == "rmsnorm_backward" else gpt_block.reference(op)
        function = functools.partial(own)
        function.solution = "toy/v1"
        return function

    monkeypatch.setattr(gpt_block, "best", best)
    assert gpt_block.main(TINY) == 1
    assert "largest difference" in capsys.readouterr().out


def test_gradients_are_those_of_the_block_without_quantisation(references):
    """As far as fp8 goes: against autograd through plain layers."""
    torch.manual_seed(1)
    norm_linear, swiglu_linear = gpt_block.autograd_functions(references)
    x, stream, scale = (torch.randn(size, dtype=torch.bfloat16) for size in ((8, 256), (8, 256), (256,)))
    weight = torch.randn(512, 256, dtype=torch.bfloat16) / 16
    gradient = torch.randn(8, 512, dtype=torch.bfloat16)
    near(
        lambda *t: norm_linear.apply(*t, *gpt_block.quantize_weight(weight)),
        lambda x, stream, scale, weight: (
            torch.nn.functional.rms_norm(x + stream, (256,), scale, gpt_block.EPS) @ weight.t(),
            x + stream,
        ),
        (x, stream, scale, weight),
        (gradient, torch.randn(8, 256, dtype=torch.bfloat16)),
    )
    down = torch.randn(128, 256, dtype=torch.bfloat16) / 16
    near(
        lambda *t: (swiglu_linear.apply(*t, *gpt_block.quantize_weight(down)),),
        lambda x, down: ((torch.nn.functional.silu(x[:, :256]) * x[:, 256:]) @ down.t(),),
        (gradient, down),
        (torch.randn(8, 128, dtype=torch.bfloat16),),
    )


def near(run, plain, inputs, gradients):
    """Results and gradients of two functions agree to a few hundredths, which fp8's three bits allow."""
    found = []
    for function, dtype in ((run, torch.bfloat16), (plain, torch.float32)):
        leaves = [tensor.to(dtype).detach().clone().requires_grad_() for tensor in inputs]
        outputs = function(*leaves)
        torch.autograd.backward(outputs, [gradient.to(dtype) for gradient in gradients])
        found.append([*(output.detach() for output in outputs), *(leaf.grad for leaf in leaves)])
    for one, other in zip(*found, strict=True):
        assert float((one.float() - other).norm() / other.norm()) < 0.06


def test_sizes_that_no_scale_fits_are_refused(capsys):
    with pytest.raises(SystemExit):
        gpt_block.parse_options([*TINY, "--width", "100"])
    assert "multiples of 128" in capsys.readouterr().err

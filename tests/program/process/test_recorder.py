"""What the profiler saw, in figures."""

from __future__ import annotations

import pytest
from test_operators import recorded

from warpsmith.program.process import profiler_recording

torch = pytest.importorskip("torch")


def test_an_operator_that_consists_of_others_has_all_of_their_time():
    x = torch.randn(64, 256)
    with profiler_recording.record_profiler(record_shapes=False) as found:
        torch.nn.functional.rms_norm(x, (256,))
        x.exp().sum()
    seen = profiler_recording.summarize_step(found)
    assert {"aten::rms_norm", "aten::exp", "aten::sum"} <= set(seen["times"])
    assert not {"aten::_fused_rms_norm", "aten::pow", "aten::mean"} & set(seen["times"])
    assert {"aten::rms_norm", "aten::pow"} <= set(seen["operators"]), "calls are counted all the same"
    assert 0 < sum(seen["times"].values()) < seen["seconds"]


def test_what_is_proposed_by_name_is_what_extract_sees(tmp_path):
    """PyTorch's profiler sees `cat` in `stack`; a dispatch mode, by which operators are extracted, does not."""
    text = """
import torch
table, at = torch.randn(9, 4, requires_grad=True), torch.tensor([1, 3])

def train_step():
    rows = torch.nn.functional.embedding(at, table)
    torch.stack([rows, rows]).sum().backward()
"""
    with profiler_recording.record_profiler(record_shapes=False) as found:
        scope = {}  # type: ignore[var-annotated]
        exec(text, scope)
        scope["train_step"]()
    seen = set(profiler_recording.summarize_step(found)["times"])
    assert {"aten::stack", "aten::embedding"} <= seen
    assert not {"aten::cat", "aten::index_select"} & seen
    rows = {row.name for row in recorded(tmp_path, text=text).operators.rows}
    assert {"aten::stack", "aten::embedding"} <= rows


def test_what_an_optimizers_closure_runs_is_no_time_of_the_optimizer():
    weight = torch.nn.Parameter(torch.randn(256, 256))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def closure():
        loss = sum((weight @ weight).square().sum() for _ in range(20))
        loss.backward()
        return loss

    with profiler_recording.record_profiler(record_shapes=False) as found:
        optimizer.step(closure)
        optimizer.step(closure=closure)
    seen = profiler_recording.summarize_step(found)
    assert seen["backwards"] == seen["optimizer_steps"] == 2
    assert 0 < seen["optimizer_seconds"] < 0.5 * seen["seconds"], "forward and backward passes take most of it"

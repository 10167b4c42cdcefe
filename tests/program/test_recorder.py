"""What the profiler saw, in figures."""

from __future__ import annotations

import pytest

from warpsmith.program import recorder

torch = pytest.importorskip("torch")


def test_an_operator_that_consists_of_others_has_all_of_their_time():
    x = torch.randn(64, 256)
    with recorder.recording(record_shapes=False) as found:
        torch.nn.functional.rms_norm(x, (256,))
        x.exp().sum()
    seen = recorder.observed(found)
    assert {"aten::rms_norm", "aten::exp", "aten::sum"} <= set(seen["times"])
    assert not {"aten::_fused_rms_norm", "aten::pow", "aten::mean"} & set(seen["times"])
    assert {"aten::rms_norm", "aten::pow"} <= set(seen["operators"]), "calls are counted all the same"
    assert 0 < sum(seen["times"].values()) < seen["seconds"]

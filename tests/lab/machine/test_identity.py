"""Identity of a machine: the GPUs that the driver lists."""

from __future__ import annotations

import sys

import pytest

from warpsmith.lab.machine import identity


def test_every_gpu_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    rows = "0, GPU-a, NVIDIA H200\n1, GPU-b, NVIDIA L40S, a part\n[broken]"
    monkeypatch.setattr(identity, "_output", lambda command: rows)
    assert identity.list_gpus() == [("0", "GPU-a", "NVIDIA H200"), ("1", "GPU-b", "NVIDIA L40S, a part")]
    monkeypatch.setattr(identity, "_output", lambda command: None)
    assert identity.list_gpus() == []

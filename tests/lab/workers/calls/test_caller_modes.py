"""Modes of a caller: a call that leaves them alone is right, and one that sets them to the usual ones is not."""

from __future__ import annotations

import pytest
import torch

from warpsmith.lab.workers.calls.caller_modes import flush_subnormals
from warpsmith.lab.workers.process_state import flushes_subnormals

if not torch.set_flush_denormal(False):
    pytest.skip("this processor cannot flush subnormal numbers", allow_module_level=True)


def test_subnormal_numbers_are_zero_meanwhile():
    before = flushes_subnormals()
    with flush_subnormals(1):
        assert flushes_subnormals() == (True, True)
    with flush_subnormals(0):
        assert flushes_subnormals() == before
    assert flushes_subnormals() == before == (False, False)


def test_a_call_that_resets_them_fails():
    with pytest.raises(RuntimeError, match="it changed whether its caller flushes"), flush_subnormals(1):
        torch.set_flush_denormal(False)
    assert flushes_subnormals() == (False, False)

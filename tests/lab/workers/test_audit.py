"""What PyTorch's operators are heard doing in a solution's place."""

from __future__ import annotations

import sys

import pytest
import torch

from warpsmith.lab.workers import audit


def heard(function: object) -> dict[str, int]:
    with audit.record_dispatch() as heard:
        function()  # type: ignore[operator]
    return dict(heard)


def test_operators_that_compute_are_told_from_those_that_move_memory() -> None:
    x = torch.randn(8, 16)
    operators = heard(lambda: torch.softmax(x.t().contiguous(), 1).clone())
    assert list(audit.computing_operators(operators)) == ["aten._softmax"]
    assert audit.computing_operators(operators)["aten._softmax"] == 128


def test_another_name_is_the_same_operator() -> None:
    x = torch.randn(8, 16)
    names = audit.computing_operators(heard(lambda: getattr(torch, "soft" + "max")(x, 1)))
    assert list(names) == ["aten._softmax"]
    assert "aten.mm" in audit.computing_operators(heard(lambda: x @ x.t()))


def test_laying_out_memory_computes_nothing() -> None:
    x = torch.randn(8, 16)
    operators = heard(lambda: torch.empty_like(x).copy_(x[:, ::2].repeat_interleave(1, 0).new_zeros(8, 16)).half())
    assert not {"aten.copy_", "aten.empty_like", "aten._to_copy"} & set(audit.computing_operators(operators))
    assert "aten.copy_" in operators


def test_the_largest_comes_first() -> None:
    assert list(audit.computing_operators({"aten.mm": 3, "aten.empty": 9, "mine.op": 7})) == ["mine.op", "aten.mm"]


def test_nothing_is_heard_afterwards() -> None:
    with audit.record_dispatch() as heard:
        pass
    torch.randn(3).exp()
    assert dict(heard) == {}


def test_nothing_that_compiles_is_imported_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each worker would pay two seconds for it.
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    assert "aten.exp" in heard(lambda: torch.ones(3).exp())
    assert "torch._dynamo" not in sys.modules

"""What PyTorch's operators are heard doing in a solution's place."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest
import torch

from warpsmith.lab.workers.calls import audit

heard = audit.operators_of_call


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


def _leave_the_modes() -> None:
    with torch.utils._python_dispatch._disable_current_modes():  # type: ignore[attr-defined]
        torch.ones(8, 16).exp()


def _call_from_a_thread() -> None:
    thread = threading.Thread(target=lambda: torch.ones(8, 16).exp())
    thread.start()
    thread.join()


def _call_under_another_name() -> None:
    with torch.profiler.record_function("aten::empty"), torch.utils._python_dispatch._disable_current_modes():  # type: ignore[attr-defined]
        torch.ones(8, 16).exp()


@pytest.mark.parametrize("call", [_leave_the_modes, _call_from_a_thread, _call_under_another_name])
def test_the_profiler_hears_what_the_mode_does_not(call: Callable[[], None]) -> None:
    assert audit.computing_operators(heard(call))["aten.exp"] == 128


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("argmax", ()), ("sum", (-1,)), ("cumsum", (-1,)), ("topk", (2,)), ("sort", ()), ("amax", ())],
)
def test_an_operator_that_arranges_memory_below_is_heard_from_a_thread(name, arguments):
    x = torch.randn(8, 16)

    def call() -> None:
        thread = threading.Thread(target=lambda: getattr(x, name)(*arguments))
        thread.start()
        thread.join()

    assert audit.computing_operators(heard(call))[f"aten.{name}"] == 128


def test_a_composite_of_moves_computes_nothing() -> None:
    x = torch.randn(8, 16)
    with torch.utils._python_dispatch._disable_current_modes():  # type: ignore[attr-defined]
        assert audit.computing_operators(heard(lambda: x.t().contiguous().type_as(x).expand_as(x.t()).to(x))) == {}


def test_a_call_without_operators_is_silent() -> None:
    assert heard(lambda: None) == {}


def test_nothing_that_compiles_is_imported_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each worker would pay two seconds for it.
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    assert "aten.exp" in heard(lambda: torch.ones(3).exp())
    assert "torch._dynamo" not in sys.modules


@pytest.mark.parametrize(("computed", "raises"), [(64, True), (4, False)])
def test_each_call_is_heard_where_a_version_is_wrapped(computed, raises):
    def run(x):
        y = torch.empty_like(x)
        y[:computed].copy_(x[:computed] * 2)
        return y

    heard, x = audit.without_library(run), torch.ones(64)
    if raises:
        with pytest.raises(ValueError, match=r"aten.mul computes 64 elements.*a library does the work"):
            heard(x)
    else:
        assert heard(x)[0] == 2

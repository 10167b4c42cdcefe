"""What the tensors that a call allocates hold."""

from __future__ import annotations

import pytest
import torch

from warpsmith.lab.workers.calls import fresh_memory


@pytest.mark.parametrize(
    "allocate",
    [
        lambda like: torch.empty(like.shape),
        torch.empty_like,
        lambda like: torch.empty_strided(like.shape, (1, 2)),
        lambda like: like.new_empty(like.shape),
    ],
)
def test_a_tensor_of_an_earlier_results_kind_holds_it(allocate):
    earlier = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with fresh_memory.prefilled_memory([earlier]):
        made = allocate(earlier)
    assert torch.equal(made, earlier)
    assert made.data_ptr() != earlier.data_ptr()


def test_tensors_of_one_kind_have_the_results_in_turn():
    first, second, other = torch.ones(4), torch.full((4,), 2.0), torch.zeros(4, dtype=torch.int64)
    with fresh_memory.prefilled_memory([first, second, other]):
        made = [torch.empty(4) for _ in range(3)]
    assert [float(tensor[0]) for tensor in made] == [1.0, 2.0, 1.0]


def test_what_is_filled_on_purpose_and_what_is_no_tensor_stay():
    with fresh_memory.prefilled_memory([torch.ones(4), "no tensor"]):
        assert torch.equal(torch.zeros(4), torch.zeros(4))
        assert torch.empty(5).shape == (5,)


def test_poison_is_no_honest_result():
    with fresh_memory.poisoned_memory():
        assert torch.empty(4).isnan().all()
        assert (torch.empty(4, dtype=torch.int64) == torch.iinfo(torch.int64).max).all()
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.uint8])
def test_numbers_are_no_poison_and_leave_the_random_state(dtype):
    state = torch.get_rng_state()
    with fresh_memory.numbered_memory():
        first, second = torch.empty(64, dtype=dtype).double(), torch.empty(64, dtype=dtype).double()
    assert first.isfinite().all()
    assert len(set(first.tolist())) > 16
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)

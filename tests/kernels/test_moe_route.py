"""The router's definition: the aligned permutation by its rules, and inputs whose every choice has a margin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.probes import Probes
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file, peer_libraries, peers
from warpsmith.lab.operator.inputs import Inputs

FILE = definition_file.load_definition(Path(__file__).parents[2] / "kernels/moe_route/definition.py")
MODULE: Any = sys.modules["warpsmith_definition_moe_route"]
ODD = FILE.definition.select("odd")
EXPERTS = 256


def named(name: str) -> Workload:
    return next(workload for workload in FILE.definition.workloads if workload.name == name)


def called(workload: Workload, seed: int = 3) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Drawn inputs, and what the reference gives for them in its own precision."""
    drawn = Inputs(FILE, workload, seed, "cpu").draw()
    return drawn, FILE.outputs(FILE.reference(*FILE.arguments(workload, drawn)))


@pytest.mark.parametrize("workload", ODD, ids=lambda workload: workload.name)
def test_float32_gives_the_choice_of_float64(workload: Workload) -> None:
    drawn = Inputs(FILE, workload, 5, "cpu").draw()
    truth = correctness.compute_truth(FILE, workload, drawn)
    grade = correctness.grade_reference(FILE, workload, drawn, truth)
    assert grade.status is Status.PASSED, grade.detail
    scores, biased, _ = MODULE.choice_in_double(drawn["logits"], drawn["bias"], bool(workload.scalars["softmax"]))
    assert torch.equal(truth.values["topk_ids"].long(), biased.topk(8).indices)
    assert scores.dtype is torch.float64


@pytest.mark.parametrize("workload", ODD, ids=lambda workload: workload.name)
def test_the_permutation_keeps_its_rules(workload: Workload) -> None:
    _, found = called(workload)
    ids, block = found["topk_ids"].flatten().tolist(), workload.axes["block"]
    routes, placed = len(ids), found["sorted_token_ids"].tolist()
    expected: list[int] = []
    owners: list[int] = []
    for expert in range(EXPERTS):
        mine = [route for route in range(routes) if ids[route] == expert]
        assert int(found["expert_counts"][expert]) == len(mine)
        blocks = -(-len(mine) // block)
        expected += mine + [routes] * (blocks * block - len(mine))
        owners += [expert] * blocks
    assert found["num_tokens_post_padded"].tolist() == [len(expected)]
    assert placed == expected + [routes] * (len(placed) - len(expected))
    assert found["expert_ids"].tolist() == owners + [-1] * (len(found["expert_ids"]) - len(owners))


def test_experts_come_best_first_out_of_four_groups_with_weights_that_sum_to_the_scale() -> None:
    drawn, found = called(named("1000-by-64-fp32"))
    scores = drawn["logits"].sigmoid()
    biased = (scores + drawn["bias"]).gather(-1, found["topk_ids"].long())
    assert bool((biased.diff(dim=-1) < 0).all())
    assert all(len(set(row)) <= 4 for row in (found["topk_ids"] // 32).tolist())
    assert torch.allclose(found["topk_weights"].sum(-1), torch.tensor(2.5))
    share = scores.gather(-1, found["topk_ids"].long())
    assert torch.allclose(found["topk_weights"], 2.5 * share / share.sum(-1, keepdim=True))


def test_equal_scores_go_to_the_lower_index() -> None:
    found = FILE.outputs(FILE.reference(torch.zeros(2, EXPERTS), torch.zeros(EXPERTS), 1.0, False, 16))
    assert found["topk_ids"].tolist() == [list(range(8))] * 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_in_16_bits_choose_others(dtype: torch.dtype) -> None:
    drawn, found = called(named("1000-by-64-fp32"))
    narrow = drawn["logits"].sigmoid().to(dtype) + drawn["bias"].to(dtype)
    grouped = narrow.float().unflatten(-1, (8, 32))
    fourth = grouped.topk(2).values.sum(-1).topk(4).values[:, -1:]
    open_ = grouped.masked_fill((grouped.topk(2).values.sum(-1) < fourth).unsqueeze(-1), float("-inf"))
    assert not torch.equal(open_.flatten(1).topk(8).indices, found["topk_ids"].long())


@pytest.mark.parametrize("wrong", ["best of a group alone", "no bias", "no groups", "bias in the weights"])
def test_a_wrong_router_is_caught(wrong: str) -> None:
    drawn, found = called(named("129-by-16-fp32-zipf"))
    scores, bias = drawn["logits"].sigmoid(), drawn["bias"]
    biased = scores if wrong == "no bias" else scores + bias
    grouped = biased.unflatten(-1, (8, 32))
    best = grouped.topk(1 if wrong == "best of a group alone" else 2).values.sum(-1)
    kept = 8 if wrong == "no groups" else 4
    out = best < best.topk(kept).values[:, -1:]
    ids = grouped.masked_fill(out.unsqueeze(-1), float("-inf")).flatten(1).topk(8).indices
    chosen = (biased if wrong == "bias in the weights" else scores).gather(-1, ids)
    weights = 2.5 * chosen / chosen.sum(-1, keepdim=True)
    right = torch.equal(ids, found["topk_ids"].long()) and torch.allclose(weights, found["topk_weights"])
    assert not right


def test_tokens_without_a_margin_are_no_inputs() -> None:
    assert not bool(MODULE.decided(torch.zeros(1, EXPERTS), torch.zeros(EXPERTS), False).any())
    drawn, _ = called(named("1000-by-64-fp32"))
    assert bool(MODULE.decided(drawn["logits"], drawn["bias"], False).all())


class Seat:
    """Stands in for a session: an honest router that rounds unlike the reference, and what it was given."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self.file, self.workload, self.drawn = FILE, workload, [{}]
        self.inputs, self.undecided, self.steps = Inputs(FILE, workload, seed, "cpu"), 0, 0

    def fill_inputs(self) -> None:
        self.write_inputs(0, self.inputs.draw())

    def write_inputs(self, slot: int, values: dict[str, torch.Tensor]) -> None:
        self.drawn[slot] = values
        self.truth = correctness.compute_truth(FILE, self.workload, values)

    def grade_reference(self) -> correctness.Grade:
        return correctness.grade_reference(FILE, self.workload, self.drawn[0], self.truth)

    def choices_are_stable(self) -> bool:
        return correctness.choices_are_stable(FILE, self.workload, self.drawn[0], self.truth)

    def call_and_grade(self, _: str) -> correctness.Grade:
        logits, bias = self.drawn[0]["logits"], self.drawn[0]["bias"]
        self.undecided += int((~MODULE.decided(logits, bias, True)).sum())
        self.steps += 1
        wide = logits.float()
        powers = torch.exp2((wide - wide.amax(-1, keepdim=True)) * 1.4426950408889634)
        log_scores = (powers * (1 / powers.flip(-1).cumsum(-1)[:, -1:])).log()  # the reference's softmax undoes it
        found = FILE.reference(log_scores, bias, 2.5, True, self.workload.axes["block"])
        return correctness.grade_outputs(self.truth, FILE.outputs(found))


@pytest.mark.parametrize("seed", range(4))
def test_in_a_training_loop_choices_keep_their_margin(seed: int) -> None:
    softmax = named("2050-by-64-bf16-softmax-empty")
    small = softmax.model_copy(update={"axes": {"tokens": 400, "block": 64}})
    one: Any = Seat(small, seed)
    Probes(FILE.definition, lambda _: one, [small], [], device="cpu", interpreted=False)._run_training_loop(one, 4)
    assert one.steps == 8
    assert one.undecided < 0.005 * 400 * one.steps


def test_empty_experts_and_skewed_ones_occur() -> None:
    _, empty = called(named("17-by-64-fp32-empty"))
    assert int((empty["expert_counts"] == 0).sum()) >= 192
    _, skewed = called(named("129-by-16-fp32-zipf"))
    assert int(skewed["expert_counts"].max()) > 10 * 129 * 8 / EXPERTS


def test_canonical_forgets_the_order_inside_an_expert_and_nothing_else() -> None:
    workload = named("129-by-16-fp32-zipf")
    _, found = called(workload)
    placed, owners, block = found["sorted_token_ids"], found["expert_ids"], workload.axes["block"]
    assert torch.equal(MODULE.canonical(placed, owners, block), placed)
    crowded = int(found["expert_counts"].argmax())
    start = int((owners == crowded).nonzero()[0]) * block
    mixed = placed.clone()
    mixed[start : start + 3] = placed[start : start + 3].flip(0)
    assert torch.equal(MODULE.canonical(mixed, owners, block), placed)
    mixed[0], mixed[start] = placed[start], placed[0]
    assert crowded == 0 or not torch.equal(MODULE.canonical(mixed, owners, block), placed)


def as_peers(name: str, workload: Workload, **changes: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a peer that returns the reference's results, some of them changed, is compared by."""
    drawn, found = called(workload)
    inputs = {**drawn, **FILE.definition.scalars(workload)}
    canonical = peers.get_peer(FILE, name).canonical
    assert canonical is not None
    return canonical(inputs, {**found, **changes})


def test_what_a_peer_leaves_open_is_compared_in_one_form() -> None:
    workload = named("129-by-16-fp32-zipf")
    _, found = called(workload)
    placed, owners, block = found["sorted_token_ids"].clone(), found["expert_ids"].clone(), workload.axes["block"]
    end = int(found["num_tokens_post_padded"])
    start = int((owners == int(found["expert_counts"].argmax())).nonzero()[0]) * block
    placed[start : start + 3] = placed[start : start + 3].flip(0)
    placed[end:], owners[end // block :] = -7, 0
    same = as_peers("vllm", workload, sorted_token_ids=placed, expert_ids=owners)
    assert all(torch.equal(same[name], found[name]) for name in found)
    placed[start], placed[0 if start else -1] = placed[0 if start else -1].clone(), placed[start].clone()
    other = as_peers("vllm", workload, sorted_token_ids=placed, expert_ids=owners)
    assert not torch.equal(other["sorted_token_ids"], found["sorted_token_ids"])


def test_only_the_peer_without_a_histogram_may_lack_it() -> None:
    workload = named("17-by-64-fp32-empty")
    _, found = called(workload)
    zeros = torch.zeros_like(found["expert_counts"])
    assert torch.equal(
        as_peers("vllm_core", workload, expert_counts=zeros)["expert_counts"], found["expert_counts"]
    )
    assert not as_peers("vllm", workload, expert_counts=zeros)["expert_counts"].any()
    wild = torch.full_like(found["topk_ids"], 1 << 30)  # no index of anything: wrong, and nothing worse
    assert not torch.equal(as_peers("vllm_core", workload, topk_ids=wild)["topk_ids"], found["topk_ids"])


@pytest.mark.parametrize("name", ["vllm", "vllm_core"])
def test_a_missing_peer_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_libraries, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match="pip install"):
        FILE.peers[name](torch.zeros(1, EXPERTS), torch.zeros(EXPERTS), 2.5, False, 16)

"""The sampler: its inputs leave float32 room enough, and their edges show a kept set that is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import edits
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.inputs import Inputs

FILE = definition_file.load_definition(Path(__file__).parents[2] / "kernels/sample_top_k_top_p/definition.py")
MODULE: Any = sys.modules["warpsmith_definition_sample_top_k_top_p"]
ODD = [workload.name for workload in FILE.definition.select("odd")]

Rows = dict[str, torch.Tensor]
Sampler = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def drawn(distribution: str, rows: int = 32, cols: int = 3000, seed: int = 7) -> Rows:
    workload = Workload(name="here", axes={"rows": rows, "cols": cols}, distribution=distribution)
    return Inputs(FILE, workload, seed, "cpu").draw()


def exact(rows: Rows) -> torch.Tensor:
    wide = {name: t.double() if t.is_floating_point() else t for name, t in rows.items()}
    tokens: torch.Tensor = FILE.reference(*wide.values())
    return tokens


def by_index(logits: torch.Tensor, least: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Every sum serially in float32, from the first to the last."""
    values = logits.numpy()
    weights = np.exp2((values - values.max(-1, keepdims=True)) * np.float32(1.4426950408889634))
    mass = np.cumsum(np.where(values < least.numpy(), np.float32(0), weights), -1, dtype=np.float32)
    return torch.from_numpy((mass > u.numpy()[:, None] * mass[:, -1:]).argmax(-1).astype(np.int32))


def serial_cut(logits: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    """The threshold with its masses summed serially in float32, from the smallest to the largest."""
    values = logits.sort(dim=-1).values.numpy()
    kth = np.take_along_axis(values, values.shape[1] - k.numpy()[:, None].astype(np.int64), -1)
    weights = np.where(values < kth, np.float32(0), np.exp(values - values[:, -1:], dtype=np.float32))
    below = np.cumsum(weights, -1, dtype=np.float32)
    inside = below > (1 - p.numpy()[:, None]) * below[:, -1:]
    first = np.take_along_axis(values, inside.argmax(-1)[:, None], -1)
    least = np.where(p.numpy()[:, None] >= 1, kth, first)
    with np.errstate(divide="ignore"):
        return torch.from_numpy(np.maximum(least, values[:, -1:] + np.log(min_p.numpy())[:, None]))


def test_the_logits_are_read_once() -> None:
    work = FILE.definition.work(FILE.definition.workloads[0])
    assert (work.bytes_read, work.bytes_written) == (128 * 131072 * 4 + 128 * 16, 128 * 4)


@pytest.mark.parametrize("name", ODD)
def test_other_orders_of_summing_give_the_same_tokens(name: str) -> None:
    workload = next(workload for workload in FILE.definition.workloads if workload.name == name)
    rows = Inputs(FILE, workload, 1, "cpu").draw()
    grade = correctness.grade_reference(FILE, workload, rows, correctness.compute_truth(FILE, workload, rows))
    assert grade.status is Status.PASSED, grade.detail


@pytest.mark.parametrize(("distribution", "cols"), [("serving", 20000), ("mixed", 20000), ("wide", 5120)])
def test_serial_float32_sums_with_another_exponential_agree(distribution: str, cols: int) -> None:
    for seed in range(2):
        rows = drawn(distribution, 8, cols, seed)
        least = serial_cut(rows["logits"], rows["k"], rows["p"], rows["min_p"])
        assert torch.equal(by_index(rows["logits"], least, rows["u"]), exact(rows))


def top_p_first(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    everything = torch.full_like(k, logits.shape[1])
    nucleus = MODULE.cut(logits, everything, p, min_p)
    return by_index(logits, torch.maximum(nucleus, MODULE.cut(logits, k, torch.ones_like(p), min_p)), u)


def one_too_many(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    least = MODULE.cut(logits, k, p, min_p)
    next_ = logits.masked_fill(logits >= least, float("-inf")).amax(-1, keepdim=True)
    return by_index(logits, next_, u)


def one_too_few(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    least = MODULE.cut(logits, k, p, min_p)
    above = logits.masked_fill(logits <= least, float("inf")).amin(-1, keepdim=True)
    return by_index(logits, torch.where(above.isinf(), least, above), u)


def k_less_one(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    return by_index(logits, MODULE.cut(logits, (k - 1).clamp(min=1), p, min_p), u)


def without_min_p(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    return by_index(logits, MODULE.cut(logits, k, p, torch.zeros_like(min_p)), u)


def narrow_sums(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    least = MODULE.cut(logits, k, p, min_p)
    weights = torch.exp(logits - logits.amax(-1, keepdim=True)).masked_fill(logits < least, 0.0)
    mass = weights.bfloat16().cumsum(-1)
    return (mass > u.unsqueeze(-1) * mass[:, -1:]).int().argmax(-1).int()


def half_exponentials(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    mass = MODULE.mass_until(logits.half(), MODULE.cut(logits, k, p, min_p).half()).float()
    return (mass > u.unsqueeze(-1) * mass[:, -1:]).int().argmax(-1).int()


def in_order_of_likelihood(
    logits: torch.Tensor, u: torch.Tensor, k: torch.Tensor, p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    values, places = logits.sort(dim=-1, descending=True)
    found = by_index(values, MODULE.cut(logits, k, p, min_p), u)
    return places.gather(-1, found.long().unsqueeze(-1)).squeeze(-1).int()


WRONG: tuple[Sampler, ...] = (
    top_p_first,
    one_too_many,
    one_too_few,
    k_less_one,
    without_min_p,
    narrow_sums,
    half_exponentials,
    in_order_of_likelihood,
)


@pytest.mark.parametrize("sampler", WRONG, ids=lambda sampler: str(sampler.__name__))
def test_a_wrong_sampler_is_caught(sampler: Sampler) -> None:
    rows = drawn("top_k" if sampler is k_less_one else "serving")  # top-p mostly hides the k-th
    wrong = (sampler(*rows.values()) != exact(rows)).float().mean()
    assert wrong > 0.05


def test_all_ties_of_the_last_are_kept() -> None:
    rows = drawn("flat", 8)
    assert bool(MODULE.kept(rows["logits"], rows["k"], rows["p"], rows["min_p"]).all())
    assert int(exact(rows).max()) >= 50  # the first 50 alone would not reach that


def test_a_token_is_one_of_the_kept() -> None:
    for distribution in ("mixed", "tied", "masked"):
        rows = drawn(distribution)
        kept = MODULE.kept(rows["logits"], rows["k"], rows["p"], rows["min_p"])
        assert bool(kept.gather(-1, exact(rows).long().unsqueeze(-1)).all())


def test_rows_without_a_margin_are_no_inputs() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = MODULE._rows("flat", 1, 1 << 17, generator)  # each token's share is half of the margin
    assert not bool(MODULE._draws(flat, generator)[1].any())


def test_the_probe_s_edits_keep_what_callers_promise() -> None:
    generator = Inputs(FILE, Workload(name="here", axes={"rows": 3, "cols": 3000}, distribution="mixed"), 5, "cpu")
    for _ in range(4):
        rows, fresh = generator.draw(), generator.draw()
        edited = {name: edits.edit_tensor(rows[name], fresh[name], within=True) for name in rows}
        assert not torch.equal(edited["u"], rows["u"])
        assert bool(((edited["u"] >= 0) & (edited["u"] < 1)).all())
        assert bool(((edited["p"] > 0) & (edited["p"] <= 1)).all())
        assert bool(((edited["min_p"] >= 0) & (edited["min_p"] <= 1)).all())
        assert bool(edited["logits"].isfinite().all())


def test_the_torch_peer_gives_the_reference_s_tokens() -> None:
    rows = drawn("serving", 16, 20000)
    assert torch.equal(FILE.peers["torch_topk"](*rows.values()), exact(rows))


def test_tokens_by_other_random_numbers_are_those_that_may_be_drawn() -> None:
    rows = drawn("mixed")
    ours, canonical = exact(rows), peers.get_peer(FILE, "flashinfer").canonical
    assert canonical is not None
    other = FILE.reference(**{**rows, "u": (rows["u"] + 0.37) % 1})
    assert not torch.equal(other, ours)
    assert torch.equal(canonical(rows, {"token": other})["token"], ours)
    least = rows["logits"].argmin(-1).int()
    kept = MODULE.kept(rows["logits"], rows["k"], rows["p"], rows["min_p"]).gather(-1, least.long().unsqueeze(-1))
    assert not bool(kept.all())
    wrong = canonical(rows, {"token": least})["token"]
    assert torch.equal(wrong == -1, ~kept.squeeze(-1))
    for nowhere in (-5, rows["logits"].shape[1]):
        assert bool((canonical(rows, {"token": torch.full_like(ours, nowhere)})["token"] == -1).all())


def test_only_the_fused_sampler_may_lack_min_p() -> None:
    rows = drawn("min_p")
    wide = MODULE.kept(rows["logits"], rows["k"], rows["p"], torch.zeros_like(rows["min_p"]))
    narrow = MODULE.kept(rows["logits"], rows["k"], rows["p"], rows["min_p"])
    beyond = (wide & ~narrow).int().argmax(-1).int()
    own, fused = (peers.get_peer(FILE, name).canonical for name in ("flashinfer", "flashinfer_fused"))
    assert own is not None
    assert fused is not None
    assert bool((own(rows, {"token": beyond})["token"] == -1).all())
    assert torch.equal(fused(rows, {"token": beyond})["token"], exact(rows))


@pytest.mark.parametrize("name", ["flashinfer", "flashinfer_exact", "flashinfer_fused", "vllm"])
def test_a_missing_peer_says_how_to_install_it(name: str) -> None:
    with pytest.raises(ImportError, match="pip install"):
        FILE.peers[name](*drawn("serving", 1, 100).values())

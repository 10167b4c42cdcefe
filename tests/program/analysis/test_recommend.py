from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warpsmith.core.trial import ProgramRules
from warpsmith.driver import routing
from warpsmith.profiling.trace.models import Parts, Trace
from warpsmith.program.analysis.models import Recommendation
from warpsmith.program.analysis.ranks import AnalyzedRanks
from warpsmith.program.analysis.recommend import complete_recommendation, recommend
from warpsmith.program.analysis.step_profile import StepProfile
from warpsmith.program.lines.raw_lines import WatchedLines
from warpsmith.program.models import ProgramFacts

OBSERVED: dict[str, Any] = {
    "seconds": 0.02, "operators": {}, "times": {}, "products": {"bfloat16": 4}, "backwards": 0,
    "optimizer_steps": 0, "graph_launches": 0, "loader_seconds": 0.0, "optimizer_seconds": 0.0,
    "allocation_seconds": 0.0, "autocast": ["bfloat16"], "shapes_vary": False,
}  # fmt: skip
FACTS: dict[str, Any] = {
    "device": "NVIDIA H200", "gpu": True, "gpu_at_hand": True, "torch": "2.11.0", "python": "3.12.3",
    "modules": {"Linear": 2}, "parameters": 100, "parameter_dtypes": {"float32": 100}, "channels_last": False,
    "optimizers": [], "loaders": [], "tf32_products": True, "tf32_convolutions": True, "compiled": ["default"],
    "cuda_graphs": 0, "world": 1, "memory_peak": 10, "memory_reserved": 20, "memory_total": 100,
    "allocation_retries": 0,
}  # fmt: skip
TRACE: dict[str, Any] = {
    "source": "trace.json.gz", "sha256": "0" * 64, "script": "train.py", "evidence": "gpu", "device": "H200",
    "rank": None,
    "region": {
        "begin_seconds": 0.0, "seconds": 0.02, "skipped_seconds": 0.0, "words": "steps",
        "steps": {
            "range": "step", "ignored": 1, "count": 2, "median_seconds": 0.01, "fastest_seconds": 0.01,
            "slowest_seconds": 0.01, "median_busy_seconds": 0.005,
        },
    },
    "busy_seconds": 0.01, "idle_share": 0.5,
    "parts": {
        "kernels_seconds": 0.01, "communication_seconds": 0.0, "copies_seconds": 0.0, "launches_seconds": 0.008,
        "host_seconds": 0.002,
    },
    "bound": "kernel-bound", "why": "", "launches": 200, "median_kernel_seconds": 3e-6,
    "gaps": {"threshold_seconds": 5e-6, "count": 0, "seconds": 0.0, "largest": []},
    "copies": [], "communication": None, "waits": {"count": 0, "seconds": 0.0}, "kernels": [], "ranking": [],
    "notes": [],
}  # fmt: skip
"""Two steps of 10 ms, half of each idle; everything that a rule could object to is as it should be."""


REPORT: dict[str, Any] = {
    "world": 2, "backend": "nccl", "collectives": [], "search_seconds": 0.0, "copy_seconds": 0.0,
    "ranks": [
        {
            "rank": rank, "step_seconds": 0.01, "wait_seconds": 0.0, "own_seconds": 0.01,
            "fastest_own_seconds": 0.0099, "slowest_own_seconds": 0.0101,
            "collective_seconds": 0.002, "exposed_seconds": 0.0,
        }
        for rank in range(2)
    ],
}  # fmt: skip
"""Two ranks that hide their collectives and wait for nobody."""


def ranks_of(*changes: dict[str, Any], kind: str = "all_reduce", loading: float = 0.0, **more: Any) -> Any:
    """Two ranks whose collectives of a kind, 6 MB a step, are exposed for 3 ms; `changes` of each rank."""
    ranks = [dict(rank, exposed_seconds=0.003) for rank in REPORT["ranks"]]
    for rank, change in zip(ranks, changes, strict=False):
        rank.update(change)
    item = {
        "kind": kind, "calls": 6, "bytes": 6e6, "seconds": 0.004, "exposed_seconds": 0.003,
        "transfer_seconds": None, "bus_rate": None,
    }  # fmt: skip
    report = {**REPORT, "ranks": ranks, "collectives": [item], **more}
    return {"report": report, "memory_peaks": [1, 1], "loader_seconds": [0.0, loading]}


EARLY = {"wait_seconds": 0.002, "own_seconds": 0.008, "fastest_own_seconds": 0.008, "slowest_own_seconds": 0.008}
"""Rank 0 waits for rank 1 in every step."""
HIDDEN = {"exposed_seconds": 0.0}
REPLICA: dict[str, Any] = {
    "buckets": [1_500_000], "cap_bytes": 25_000_000, "unused_bytes": 0, "find_unused": False,
    "bucket_views": True, "static_graph": False,
}  # fmt: skip


def case(
    facts: dict[str, Any] | None = None,
    observed: dict[str, Any] | None = None,
    trace: dict[str, Any] | None = None,
    parts: dict[str, float] | None = None,
    lines: dict[str, Any] | None = None,
    ranks: dict[str, Any] | None = None,
) -> StepProfile:
    told = Trace.model_validate(TRACE | (trace or {}))
    each = {name: seconds / 2 for name, seconds in told.parts} | (parts or {})
    made = ProgramFacts.model_validate(FACTS | (facts or {}) | {"observed": OBSERVED | (observed or {})})
    watched = WatchedLines.model_validate(lines) if lines else None
    command = ("train.py", "--step", "train_step")
    together = AnalyzedRanks.model_validate(ranks) if ranks else None
    parted = Parts.model_validate(each)
    return StepProfile(made, told, parted, command, ("-w", "8"), watched, Path("/path/to"), together)


BUCKETING = "gradient-bucketing-overlap"


def kernel(name: str, family: str, seconds: float) -> dict[str, Any]:
    return {
        "name": name, "example": name, "family": family, "calls": 4, "seconds": seconds, "alone_seconds": seconds,
        "mean_seconds": seconds / 4,
    }  # fmt: skip


def found(case: StepProfile, entry: str | None) -> Recommendation | None:
    return next((one for one in recommend(case) if one.entry == entry), None)


PRODUCTS = [kernel("gemm", "matrix-product", 0.008)]

FIRES: dict[str, tuple[dict[str, Any], float]] = {
    "cuda-graphs-for-launch-bound": ({}, 0.4),
    "torch-compile": (
        {
            "facts": {"compiled": []},
            "trace": {"kernels": [kernel("add", "elementwise", 0.004), kernel("Memcpy HtoD", "copy", 0.002)]},
        },
        0.6,
    ),
    "fused-optimizer": (
        {
            "facts": {"optimizers": [{"kind": "AdamW", "tensors": 9}]},
            "trace": {"kernels": [kernel("foreach", "optimizer", 0.004)]},
            "observed": {"optimizer_seconds": 0.002},
        },
        0.2 + 0.1,
    ),
    "scaled-dot-product-attention": (
        {
            "observed": {
                "operators": {"aten::_softmax": 2, "aten::bmm": 4},
                "times": {"aten::_softmax": 0.001, "aten::bmm": 0.002},
            }
        },
        0.3,
    ),
    "mixed-precision-bf16": (
        {"observed": {"products": {"float32": 4}, "autocast": []}, "trace": {"kernels": PRODUCTS}},
        0.4,
    ),
    "tf32-matrix-products": (
        {
            "facts": {"tf32_products": False},
            "observed": {"products": {"float32": 4}},
            "trace": {"kernels": PRODUCTS},
        },
        0.4,
    ),
    "channels-last": (
        {
            "observed": {"operators": {"aten::convolution": 3}},
            "trace": {"kernels": [kernel("conv", "convolution", 0.01)]},
        },
        0.5,
    ),
    "pinned-memory-prefetch": (
        {
            "facts": {"loaders": [{"workers": 0, "pin_memory": True, "batch": 8, "persistent": False}]},
            "observed": {"loader_seconds": 0.002},
            "parts": {"copies_seconds": 0.001, "kernels_seconds": 0.004},
        },
        0.1 + 0.1,
    ),
    "gradient-accumulation-fusion": ({"observed": {"backwards": 4, "optimizer_steps": 1}}, 0.5),
    "activation-checkpointing": ({"facts": {"memory_peak": 90}, "observed": {"backwards": 1}}, 0.0),
    "memory-pool": ({"observed": {"allocation_seconds": 0.004}}, 0.2),
    "gradient-bucketing-overlap": (
        {
            "facts": {"world": 4},
            "trace": {
                "communication": {"count": 8, "seconds": 0.01, "exposed_seconds": 0.004, "hidden_seconds": 0.006}
            },
            "parts": {"communication_seconds": 0.002, "kernels_seconds": 0.003},
        },
        0.2,
    ),
    "sharded-parallelism": ({"facts": {"world": 4, "memory_peak": 90}}, 0.0),
    "one-reduction-per-step": (
        {
            "facts": {"replicas": [REPLICA]},
            "observed": {"backwards": 4, "optimizer_steps": 1},
            "ranks": ranks_of(),
        },
        0.3 * (1 - 1 / 4),
    ),
    "data-parallel-switches": (
        {
            "facts": {"replicas": [{**REPLICA, "find_unused": True, "bucket_views": False}]},
            "ranks": ranks_of(search_seconds=0.001, copy_seconds=0.0005),
        },
        0.15,
    ),
    "sharded-prefetch": ({"facts": {"sharded_modules": 3}, "ranks": ranks_of(kind="all_gather")}, 0.3),
    "balanced-ranks": ({"ranks": ranks_of(EARLY)}, 0.2),
}
"""For each entry the least that makes its rule speak, and the share that it then names."""

SILENT: dict[str, dict[str, Any]] = {
    "cuda-graphs-for-launch-bound": {"observed": {"graph_launches": 1}},
    "torch-compile": {"facts": {"compiled": ["default"]}},
    "fused-optimizer": {"facts": {"optimizers": [{"kind": "AdamW", "tensors": 9, "fused": True}]}},
    "scaled-dot-product-attention": {
        "observed": {"operators": {"aten::_softmax": 2, "aten::bmm": 4, "aten::scaled_dot_product_attention": 1}}
    },
    "mixed-precision-bf16": {"observed": {"autocast": ["bfloat16"]}},
    "tf32-matrix-products": {"facts": {"tf32_products": True}},
    "channels-last": {"facts": {"channels_last": True}},
    "pinned-memory-prefetch": {
        "facts": {"loaders": [{"workers": 2, "pin_memory": True, "batch": 8, "persistent": True}]}
    },
    "gradient-accumulation-fusion": {"observed": {"backwards": 1, "optimizer_steps": 1}},
    "activation-checkpointing": {"facts": {"memory_peak": 40}},
    "memory-pool": {"observed": {"allocation_seconds": 0.0}},
    "gradient-bucketing-overlap": {"trace": {"communication": None}},
    "sharded-parallelism": {"facts": {"world": 1, "memory_peak": 90}},
    "one-reduction-per-step": {"facts": {"replicas": [{**REPLICA, "buckets": [6_000_000]}]}},
    "data-parallel-switches": {"facts": {"replicas": [REPLICA]}},
    "sharded-prefetch": {"ranks": ranks_of(HIDDEN, HIDDEN, kind="all_gather")},
    "balanced-ranks": {"ranks": ranks_of(EARLY | {"slowest_own_seconds": 0.012})},
}
"""What the program may have instead, and the rule says nothing."""


def test_a_compiler_may_change_the_layout_of_convolutions() -> None:
    """An image model's step became 3.1x as fast, where the bound without them said 1.28x."""
    given = {
        "facts": {"compiled": []},
        "observed": {"operators": {"aten::convolution": 3}},
        "trace": {"kernels": [kernel("conv", "convolution", 0.006)]},
    }
    one = found(case(**given), "torch-compile")
    assert one is not None
    assert one.share == pytest.approx(0.4 + 0.3)
    assert "convolutions whose layout it may change 30%" in one.evidence
    ordered = found(case(**given | {"facts": {"compiled": [], "channels_last": True}}), "torch-compile")
    assert ordered is not None
    assert ordered.share == pytest.approx(0.4)


@pytest.mark.parametrize("entry", FIRES)
def test_a_rule_names_the_share_that_it_attacks(entry: str) -> None:
    given, share = FIRES[entry]
    one = found(case(**given), entry)
    assert one is not None
    assert one.share == pytest.approx(share)
    assert one.ceiling == pytest.approx(1 / (1 - share))
    assert any(character.isdigit() for character in one.evidence)
    assert one.specialist in routing.TASKS


@pytest.mark.parametrize("entry", FIRES)
def test_a_rule_is_silent_where_there_is_nothing_to_do(entry: str) -> None:
    fires, instead = FIRES[entry][0], SILENT[entry]
    merged = {key: {**fires.get(key, {}), **instead.get(key, {})} for key in {*fires, *instead}}
    assert found(case(**merged), entry) is None


def test_buckets_attack_what_no_wait_explains() -> None:
    one = found(case(ranks=ranks_of({"wait_seconds": 0.002}), facts={"replicas": [REPLICA]}), BUCKETING)
    assert one is not None
    assert one.share == pytest.approx((0.001 + 0.003) / 2 / 0.01), "the average over the ranks"
    assert "1 bucket (1.5 MB), filled up to 25 MB" in one.evidence
    assert "bucket_cap_mb" in one.task
    assert "without DistributedDataParallel" in found(case(ranks=ranks_of()), BUCKETING).evidence  # type: ignore[union-attr]
    assert found(case(ranks=ranks_of(kind="all_gather")), BUCKETING) is None


def test_the_data_of_the_slowest_rank_are_named_if_they_are_the_reason() -> None:
    data, other = (
        found(case(ranks=ranks_of(EARLY, loading=loading)), "balanced-ranks") for loading in (0.0015, 0)
    )
    assert data is not None
    assert other is not None
    assert "1.5 ms of them for its data" in data.evidence
    assert "data of rank 1" in data.task
    assert "rank 1 does more than rank 0" in other.task


def test_what_only_a_gpu_shows_is_not_recommended_without_one() -> None:
    facts = {"gpu": False, "device": "cpu", "tf32_products": False, "memory_peak": 99}
    on_cpu = case(facts, {"products": {"float32": 4}, "autocast": [], "backwards": 2, "optimizer_steps": 1})
    assert recommend(on_cpu) == ()


def test_the_largest_share_comes_first_and_says_its_impact() -> None:
    ranked = recommend(
        case(
            {"compiled": [], "optimizers": [{"kind": "AdamW", "tensors": 9}]},
            {"optimizer_seconds": 0.0004},
            {"kernels": [kernel("add", "elementwise", 0.004)]},
        )
    )
    assert [one.entry for one in ranked] == ["torch-compile", "cuda-graphs-for-launch-bound", "fused-optimizer"]
    assert [one.impact for one in ranked] == ["High", "High", "Low"]


def test_an_operator_of_weight_is_proposed_for_a_campaign() -> None:
    times = {"aten::native_layer_norm": 0.002, "aten::mm": 0.004, "aten::sum": 0.0001}
    proposed = [one for one in recommend(case(observed={"times": times})) if one.subject]
    assert [(one.subject, one.share) for one in proposed] == [("aten::native_layer_norm", pytest.approx(0.2))]
    called = "`warpsmith program extract train.py --step train_step --op aten::native_layer_norm -- -w 8`"
    assert called in proposed[0].task


def test_waiting_inside_the_step_is_named_with_its_largest_gap() -> None:
    gaps = {
        "threshold_seconds": 5e-6, "count": 1, "seconds": 0.001,
        "largest": [{"at_seconds": 0.0, "seconds": 0.001, "after": None, "before": None, "host": "aten::item"}],
    }  # fmt: skip
    one = found(case(trace={"waits": {"count": 2, "seconds": 0.003}, "gaps": gaps}), "no-wait-in-step")
    assert one is not None
    assert "1 times per step" in one.evidence
    assert "aten::item" in one.evidence


LINE: dict[str, Any] = {
    "file": "/path/to/train.py", "line": 13, "function": "penalty", "package": "", "caller_file": "",
    "caller_line": 0, "loop": None, "copies": {}, "copied_bytes": 0, "depth": 1,
}  # fmt: skip
LOOP = {"file": "/path/to/train.py", "line": 12, "first": 13, "last": 13, "function": "penalty", "share": 0.3}
SUMS = {**LINE, "loop": LOOP, "operators": {"aten::sum": 400.0}, "bytes": {"aten::sum": 512.0}}
ON_CPU = {"gpu": False, "device": "cpu", "compiled": []}


def cpu_case(*sites: dict[str, Any], **lines: Any) -> StepProfile:
    """A step of 10 ms on a CPU: sums for 3 ms, copies for 2 ms, a softmax for 1 ms."""
    kernels = [
        kernel("aten::sum", "reduction", 0.006), kernel("aten::copy_", "copy", 0.004),
        kernel("aten::_softmax", "softmax", 0.002),
    ]  # fmt: skip
    times = {"aten::sum": 0.009, "aten::copy_": 0.001, "aten::_softmax": 0.004}
    observed = {"times": times, "operators": {"aten::sum": 802, "aten::_softmax": 2, "aten::bmm": 4}}
    trace = {"evidence": "cpu", "kernels": kernels}
    parts = {"launches_seconds": 0.0, "host_seconds": 0.005}
    return case(ON_CPU, observed, trace, parts, {"sites": sites, **lines} if sites else None)


def test_a_loop_of_small_operators_is_batched_and_needs_no_kernel() -> None:
    ranked = recommend(cpu_case(SUMS))
    loop = ranked[0]
    assert (loop.entry, loop.share, loop.effort) == ("one-batched-call", 0.3, "Low")
    assert loop.lines == ("train.py:12",)
    assert "aten::sum" not in [one.subject for one in ranked]
    compiled = next(one for one in ranked if one.entry == "torch-compile")
    assert compiled.share == pytest.approx(0.3), "copies and the softmax, without the loop's sums"
    assert "aten::sum" in [one.subject for one in recommend(cpu_case())]


def test_a_sequential_loop_is_not_batched() -> None:
    assert found(cpu_case({**SUMS, "depth": 400}), "one-batched-call") is None


def test_copies_of_strided_tensors_share_the_time_of_copies_by_their_bytes() -> None:
    copy = {
        **LINE,
        "operators": {"aten::clone": 1.0},
        "bytes": {},
        "copies": {"contiguous": 1},
        "copied_bytes": 1e6,
    }
    one = found(cpu_case(copy, copied_bytes=2e6), "no-strided-copies")
    assert one is not None
    assert (one.share, one.lines) == (pytest.approx(0.1), ("train.py:13",))


def test_without_a_gpu_an_operator_has_one_share_that_of_the_table() -> None:
    softmax = next(one for one in recommend(cpu_case()) if one.subject == "aten::_softmax")
    assert softmax.share == pytest.approx(0.1)
    assert "observed step" not in softmax.evidence
    on_gpu = case(
        observed={"times": {"aten::_softmax": 0.001}}, trace={"kernels": [kernel("softmax", "softmax", 1)]}
    )
    labelled = next(one for one in recommend(on_gpu) if one.subject == "aten::_softmax")
    assert "of the observed step" in labelled.evidence


def test_a_librarys_own_switch_comes_from_the_entry() -> None:
    inside = {
        **LINE, "file": "/site/transformers/gpt2.py", "package": "transformers",
        "caller_file": "/path/to/train.py", "caller_line": 5, "operators": {"aten::_softmax": 2.0}, "bytes": {},
    }  # fmt: skip
    one = found(cpu_case(inside), "scaled-dot-product-attention")
    assert one is not None
    assert one.lines == ("transformers/gpt2.py:13, called from train.py:5",)
    rules = ProgramRules(switches={"transformers": "attn='sdpa'", "diffusers": "other"}, specialist="cuda_graph")
    done = complete_recommendation(one, rules, "it lacks a GPU")
    assert "transformers: attn='sdpa'." in done.task
    assert "diffusers" not in done.task
    assert (done.specialist, done.lacks) == ("cuda_graph", "it lacks a GPU")
    assert complete_recommendation(one, ProgramRules(), "").task == one.task

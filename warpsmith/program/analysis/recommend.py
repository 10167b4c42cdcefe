"""What to try on a program: rules over its trace and its facts, each with the numbers that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace.models import Family
from warpsmith.profiling.trace.rank import WORTH
from warpsmith.program.analysis.models import Level, Recommendation, amdahl_bound, impact_level
from warpsmith.program.analysis.prerequisites import FUSED_OPTIMIZERS
from warpsmith.program.analysis.step_profile import StepProfile

_MEMORY_FULL = 0.8
"""Share of the device's memory from which on memory decides what is possible."""

_MEMORY_FRAGMENTED = 0.2
"""Share of the device's memory that the allocator holds beyond what was in use at most: fragments."""

_HOTSPOTS = 3
_PRODUCT_FAMILIES: tuple[Family, ...] = ("matrix-product", "convolution", "attention")
_MEMORY_BOUND_FAMILIES: tuple[Family, ...] = (
    "elementwise",
    "normalisation",
    "softmax",
    "reduction",
    "indexing",
    "copy",
)
_KERNEL_FAMILIES: tuple[Family, ...] = ("softmax", "normalisation", "reduction", "indexing")
_ATTENTION_OPERATORS = (
    "aten::_softmax", "aten::_softmax_backward_data", "aten::bmm", "aten::baddbmm", "aten::masked_fill",
    "aten::masked_fill_", "aten::where",
)  # fmt: skip


Rule = Callable[[StepProfile], Iterator[Recommendation]]


def recommend(case: StepProfile) -> tuple[Recommendation, ...]:
    """Everything that is worth trying, the largest share first, the least effort and risk where they are equal."""
    order = ("Low", "Medium", "High")
    found = [one for rule in RULES for one in rule(case)]
    return tuple(sorted(found, key=lambda one: (-one.share, order.index(one.effort), order.index(one.risk))))


def _recommend_cuda_graphs(case: StepProfile) -> Iterator[Recommendation]:
    if not case.facts.gpu or case.facts.cuda_graphs or case.seen.graph_launches:
        return
    gaps = case.share(case.parts.launches_seconds)
    launches = case.trace.launches / case.trace.repetitions
    waits = f"; the host waits for the device {case.waits:.0f} times a step" if case.waits >= 1 else ""
    yield from _recommend_if_worthwhile(
        "CUDA graphs", "cuda-graphs-for-launch-bound", gaps, "Medium", "Medium", "cuda_graph",
        f"{launches:.0f} kernels a step, half of them under {case.trace.median_kernel_seconds * 1e6:.1f} us; the "
        f"device idles {gaps:.0%} of the step in gaps as short as a launch{waits}",
        f"Capture one step and replay it: {case.command('graph', 'check')} first.",
    )  # fmt: skip


def _recommend_compile(case: StepProfile) -> Iterator[Recommendation]:
    if case.facts.compiled:
        return
    kernels, gaps = case.kernels(*_MEMORY_BOUND_FAMILIES), case.share(case.parts.launches_seconds)
    fusable = next((row.share for row in case.trace.ranking if row.kind == "fusable"), None)
    rows = "" if fusable is None else f"; elementwise kernels in a row would save {fusable:.0%} of the traced time"
    layouts = _default_layout_share(case)
    also = f", convolutions whose layout it may change {layouts:.0%}" if layouts else ""
    yield from _recommend_if_worthwhile(
        "torch.compile", "torch-compile", min(1.0, kernels + gaps + layouts), "Low", "Medium", "program",
        f"elementwise operators, reductions, norms and copies take {kernels:.0%} of the step, launch gaps "
        f"{gaps:.0%}{also}{rows}",
        "Compile the module or the step; try the modes, and look for graph breaks.",
    )  # fmt: skip


def _recommend_fused_optimizer(case: StepProfile) -> Iterator[Recommendation]:
    slow = [one for one in case.facts.optimizers if one.kind in FUSED_OPTIMIZERS and not one.fused]
    if not slow:
        return
    kernels, host = case.kernels("optimizer"), case.host(case.seen.optimizer_seconds)
    share = min(1.0, kernels + host) if case.facts.gpu else host
    what = ", ".join(f"{one.kind} over {one.tensors} tensors" for one in slow)
    yield from _recommend_if_worthwhile(
        "Fused optimizer", "fused-optimizer", share, "Low", "Low", "program",
        f"{what} without fused=True: its steps take {share:.0%}",
        "Give the optimizer fused=True.",
    )  # fmt: skip


def _recommend_attention(case: StepProfile) -> Iterator[Recommendation]:
    softmaxes, products = case.seen.calls("aten::_softmax"), case.seen.calls("aten::bmm", "aten::baddbmm")
    if case.seen.attention or not softmaxes or products < 2 * softmaxes:
        return
    share = case.operators(*_ATTENTION_OPERATORS)
    yield from _recommend_if_worthwhile(
        "scaled_dot_product_attention", "scaled-dot-product-attention", share, "Low", "Low", "program",
        f"{softmaxes} softmaxes between {products} batched products, and no fused attention: together {share:.0%}",
        "Replace the products, the mask and the softmax by one call.",
    )  # fmt: skip


def _recommend_precision(case: StepProfile) -> Iterator[Recommendation]:
    singles = case.seen.products.get("float32", 0)
    if not case.facts.gpu or not singles:
        return
    share, matrices = case.kernels(*_PRODUCT_FAMILIES), case.kernels("matrix-product")
    evidence = f"{singles} of {sum(case.seen.products.values())} products and convolutions a step are in float32"
    if not case.seen.autocast:
        yield from _recommend_if_worthwhile(
            "Mixed precision, bfloat16", "mixed-precision-bf16", share, "Low", "Medium", "program",
            f"{evidence} and take {share:.0%}",
            "Run the forward pass under torch.autocast in bfloat16, parameters and optimizer in float32.",
        )  # fmt: skip
    if not case.facts.tf32_products:
        yield from _recommend_if_worthwhile(
            "TF32 matrix products", "tf32-matrix-products", matrices, "Low", "Low", "program",
            f"{evidence}, matrix products without TF32, which take {matrices:.0%}",
            'torch.set_float32_matmul_precision("high").',
        )  # fmt: skip


def _recommend_channels_last(case: StepProfile) -> Iterator[Recommendation]:
    share = _default_layout_share(case)
    yield from _recommend_if_worthwhile(
        "Channels-last", "channels-last", share, "Low", "Low", "program",
        f"{case.seen.convolutions} convolutions a step in the default layout take {share:.0%}",
        "Move the model and its images to torch.channels_last.",
    )  # fmt: skip


def _default_layout_share(case: StepProfile) -> float:
    """The share of convolutions that do not run channels-last."""
    if not case.seen.convolutions or case.facts.channels_last:
        return 0.0
    return case.kernels("convolution")


def _recommend_loading(case: StepProfile) -> Iterator[Recommendation]:
    waits = case.host(case.seen.loader_seconds)
    copies = case.share(case.parts.copies_seconds)
    pageable = sum(one.count for one in case.trace.copies if one.pageable) / case.trace.repetitions
    poor = [one for one in case.facts.loaders if one.workers == 0 or (case.facts.gpu and not one.pin_memory)]
    if not poor and not pageable:
        return
    loader = "; ".join(
        f"a DataLoader with {one.workers} workers, {'pinned' if one.pin_memory else 'not pinned'}" for one in poor
    )
    told = [loader] if loader else []
    told += [f"it takes {waits:.0%} of the step"] if loader else []
    told += [f"{pageable:.0f} copies a step from pageable memory, {copies:.0%} exposed"] if pageable else []
    yield from _recommend_if_worthwhile(
        "Pinned memory and prefetch", "pinned-memory-prefetch", min(1.0, waits + copies), "Low", "Low", "program",
        "; ".join(told),
        "Load in workers ahead of time, pin batches, copy with non_blocking=True.",
    )  # fmt: skip


def _recommend_accumulation(case: StepProfile) -> Iterator[Recommendation]:
    if not case.seen.accumulates or not case.facts.gpu:
        return
    yield from _recommend_if_worthwhile(
        "Gradient accumulation fusion", "gradient-accumulation-fusion", case.idle, "Medium", "Low", "program",
        f"{case.seen.backwards} backward passes for {case.seen.optimizer_steps} optimizer steps, the device idles "
        f"{case.idle:.0%}, and {1 - case.memory:.0%} of its memory is free",
        "Take fewer and larger micro-batches as far as memory allows.",
    )  # fmt: skip


def _recommend_memory(case: StepProfile) -> Iterator[Recommendation]:
    if not case.facts.gpu:
        return
    full = f"{case.facts.memory_peak / 1e9:.3g} GB of {case.facts.memory_total / 1e9:.3g} GB at most in use"
    if case.memory >= _MEMORY_FULL and case.seen.backwards:
        yield _build_recommendation(
            "Activation checkpointing", "activation-checkpointing", 0.0, "Medium", "Low", "program", full,
            "Recompute cheap parts in the backward pass, so that a larger batch fits.", "Medium",
        )  # fmt: skip
    if case.memory >= _MEMORY_FULL and case.facts.world > 1:
        yield _build_recommendation(
            "Sharded parallelism", "sharded-parallelism", 0.0, "High", "Medium", "parallelism",
            f"{full} on each of {case.facts.world} ranks", "Shard parameters, gradients and optimizer state.",
            "Medium",
        )  # fmt: skip
    share = case.host(case.seen.allocation_seconds)
    retries = case.facts.allocation_retries
    spare = (case.facts.memory_reserved - case.facts.memory_peak) / max(1, case.facts.memory_total)
    if retries or share >= WORTH or spare >= _MEMORY_FRAGMENTED:
        yield _build_recommendation(
            "Memory pool", "memory-pool", share, "Low", "Low", "program",
            f"the allocator asks the device for memory during {share:.0%} of the step, gave its cache back "
            f"{retries} times, and holds {max(0.0, spare):.0%} of the device's memory that was never in use",
            "Allocate once, and let PyTorch's allocator grow its segments.",
            "Medium" if retries or spare >= _MEMORY_FRAGMENTED else None,
        )  # fmt: skip


def _recommend_bucketing(case: StepProfile) -> Iterator[Recommendation]:
    talk = case.trace.communication
    if talk is None:
        return
    share, count = case.share(case.parts.communication_seconds), talk.count / case.trace.repetitions
    yield from _recommend_if_worthwhile(
        "Gradient bucketing and overlap", "gradient-bucketing-overlap", share, "Medium", "Low", "distributed",
        f"{count:.0f} collectives a step on {case.facts.world} ranks, {share:.0%} of the step exposed",
        "Bucket gradients, start collectives as soon as they are ready, send fewer bytes.",
    )  # fmt: skip


def _recommend_fewer_waits(case: StepProfile) -> Iterator[Recommendation]:
    if not case.facts.gpu or case.waits < 1:
        return
    host = case.share(case.parts.host_seconds)
    gap = case.trace.gaps.largest[0].host if case.trace.gaps.largest else None
    yield from _recommend_if_worthwhile(
        "No waiting inside the step", None, host, "Low", "Low", "program",
        f"the host waits for the device {case.waits:.0f} times a step; gaps longer than a launch take {host:.0%}, "
        f"the largest in {gap or 'plain Python'}",
        "Keep losses and counters on the device, and read them once in many steps.",
    )  # fmt: skip


def _recommend_kernels(case: StepProfile) -> Iterator[Recommendation]:
    names = [name for name in case.seen.times if trace_names.family(name) in _KERNEL_FAMILIES]
    for name in sorted(names, key=lambda each: -case.seen.times[each])[:_HOTSPOTS]:
        share, calls = case.operators(name), case.seen.operators.get(name, 0)
        if impact_level(share) != "Low":
            yield _build_recommendation(
                f"A kernel for {name}", None, share, "High", "Medium", "optimize",
                f"{calls} calls a step take {share:.0%}",
                f"{case.command('program', 'extract', options=('--op', name))}, then a campaign.", subject=name,
            )  # fmt: skip


RULES: tuple[Rule, ...] = (
    _recommend_cuda_graphs,
    _recommend_compile,
    _recommend_fused_optimizer,
    _recommend_attention,
    _recommend_precision,
    _recommend_channels_last,
    _recommend_loading,
    _recommend_accumulation,
    _recommend_memory,
    _recommend_bucketing,
    _recommend_fewer_waits,
    _recommend_kernels,
)


def _recommend_if_worthwhile(
    title: str,
    entry: str | None,
    share: float,
    effort: Level,
    risk: Level,
    specialist: str,
    evidence: str,
    task: str,
) -> Iterator[Recommendation]:
    """The recommendation, where it attacks at least `WORTH` of the step."""
    if share >= WORTH:
        yield _build_recommendation(title, entry, share, effort, risk, specialist, evidence, task)


def _build_recommendation(
    title: str,
    entry: str | None,
    share: float,
    effort: Level,
    risk: Level,
    specialist: str,
    evidence: str,
    task: str,
    level: Level | None = None,
    *,
    subject: str = "",
) -> Recommendation:
    return Recommendation(
        title=title,
        entry=entry,
        impact=level or impact_level(share),
        share=share,
        ceiling=amdahl_bound(share),
        effort=effort,
        risk=risk,
        specialist=specialist,
        evidence=evidence,
        task=task,
        subject=subject,
    )

"""Recommendations for a program: rules over its trace and its facts, each with the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from warpsmith.core.trial import ProgramRules
from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace.models import Family
from warpsmith.profiling.trace.rank import LEAST_SHARE
from warpsmith.program.analysis import rank_rules
from warpsmith.program.analysis.models import Level, Recommendation, impact_level
from warpsmith.program.analysis.prerequisites import FUSED_OPTIMIZERS
from warpsmith.program.analysis.recommendation import build_recommendation, recommend_if_worthwhile
from warpsmith.program.analysis.step_profile import StepProfile
from warpsmith.program.lines.models import LineFinding

_MEMORY_FULL = 0.8
"""Share of the device memory in use above which memory is the limit."""

_MEMORY_FRAGMENTED = 0.2
"""Share of the device memory that the allocator holds beyond its peak use, above which memory is fragmented."""

_HOTSPOTS = 3
_LISTED = 3
_MOST_IN_LOOPS = 0.5
"""Part of an operator's calls in loops of small operators above which no kernel of its own is recommended."""

_SIMPLE_LOOP = 4
"""Operators in the body of a loop up to which it takes little effort to batch it. Chosen."""

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


def recommend(profile: StepProfile) -> tuple[Recommendation, ...]:
    """List all recommendations, the largest share first; ties go to the least effort, then to the least risk."""
    levels = ("Low", "Medium", "High")
    recommendations = [recommendation for rule in RULES for recommendation in rule(profile)]
    return tuple(
        sorted(
            recommendations,
            key=lambda recommendation: (
                -recommendation.share,
                levels.index(recommendation.effort),
                levels.index(recommendation.risk),
            ),
        )
    )


def complete_recommendation(
    recommendation: Recommendation, rules: ProgramRules | None, lacks: str
) -> Recommendation:
    """Return a recommendation with what its entry's rules say: specialist, and the switches of libraries."""
    if rules is None:
        return recommendation.model_copy(update={"lacks": lacks})
    switches = [f"{name}: {rules.switches[name]}" for name in recommendation.packages if name in rules.switches]
    task = recommendation.task
    if switches:
        task = f"The lines are a library's; use its own switch. {'; '.join(switches)}."
    return recommendation.model_copy(update={"lacks": lacks, "specialist": rules.specialist, "task": task})


def _recommend_cuda_graphs(profile: StepProfile) -> Iterator[Recommendation]:
    if not profile.facts.gpu or profile.facts.cuda_graphs or profile.observed.graph_launches:
        return
    gaps = profile.share_of(profile.parts.launches_seconds)
    launches = profile.trace.launches / profile.trace.repetitions
    count = profile.waits_per_step
    waits = f"; the host waits for the device {count:.0f} times per step" if count >= 1 else ""
    half = profile.trace.median_kernel_seconds * 1e6
    yield from recommend_if_worthwhile(
        "CUDA graphs", "cuda-graphs-for-launch-bound", gaps, "Medium", "Medium",
        f"{launches:.0f} kernels per step, half of them under {half:.1f} us; the device is idle for {gaps:.0%} of "
        f"the step in gaps as short as a launch{waits}",
        f"Capture one step and replay it: {profile.command('graph', 'check')} first.",
    )  # fmt: skip


def _recommend_compile(profile: StepProfile) -> Iterator[Recommendation]:
    if profile.facts.compiled:
        return
    loops = profile.loop_operator_share(*_MEMORY_BOUND_FAMILIES)
    kernel_share = max(0.0, profile.kernel_share(*_MEMORY_BOUND_FAMILIES) - loops)
    loop_note = ", without those of loops of small operators" if loops else ""
    gaps = profile.share_of(profile.parts.launches_seconds)
    fusable = next((row.share for row in profile.trace.ranking if row.kind == "fusable"), None)
    fusable_note = (
        "" if fusable is None else f"; elementwise kernels in a row would save {fusable:.0%} of the traced time"
    )
    layout_share = _default_layout_share(profile)
    layout_note = f", convolutions whose layout it may change {layout_share:.0%}" if layout_share else ""
    yield from recommend_if_worthwhile(
        "torch.compile", "torch-compile", min(1.0, kernel_share + gaps + layout_share), "Low", "Medium",
        f"elementwise operators, reductions, norms and copies take {kernel_share:.0%} of the step{loop_note}, "
        f"launch gaps {gaps:.0%}{layout_note}{fusable_note}",
        "Compile the module or the step; try the modes, and look for graph breaks.",
    )  # fmt: skip


def _recommend_fused_optimizer(profile: StepProfile) -> Iterator[Recommendation]:
    unfused = [
        optimizer
        for optimizer in profile.facts.optimizers
        if optimizer.kind in FUSED_OPTIMIZERS and not optimizer.fused
    ]
    if not unfused:
        return
    kernel_share = profile.kernel_share("optimizer")
    host_share = profile.host_share(profile.observed.optimizer_seconds)
    share = min(1.0, kernel_share + host_share) if profile.facts.gpu else host_share
    names = ", ".join(f"{optimizer.kind} over {optimizer.tensors} tensors" for optimizer in unfused)
    if share >= LEAST_SHARE:
        location, package = profile.optimizer_line
        at = f", called at {location}" if location else ""
        yield build_recommendation(
            "Fused optimizer", "fused-optimizer", share, "Low", "Low",
            f"{names} without fused=True: its steps take {share:.0%}{at}", "Give the optimizer fused=True.",
            lines=(location,) if location else (), packages=(package,) if package else (),
        )  # fmt: skip


def _recommend_attention(profile: StepProfile) -> Iterator[Recommendation]:
    softmaxes, products = (
        profile.observed.calls("aten::_softmax"),
        profile.observed.calls("aten::bmm", "aten::baddbmm"),
    )
    if profile.observed.attention or not softmaxes or products < 2 * softmaxes:
        return
    share = profile.operator_share(*_ATTENTION_OPERATORS)
    if share < LEAST_SHARE:
        return
    locations = profile.operator_lines("aten::_softmax")
    at = f"; softmax at {locations[0][0]}" if locations else ""
    yield build_recommendation(
        "scaled_dot_product_attention", "scaled-dot-product-attention", share, "Low", "Low",
        f"{softmaxes} softmaxes between {products} batched products, and no fused attention: together {share:.0%}"
        f"{profile.share_source(*_ATTENTION_OPERATORS)}{at}",
        "Replace the products, the mask and the softmax with one call.",
        lines=tuple(location for location, _ in locations[:_LISTED]),
        packages=tuple(dict.fromkeys(package for _, package in locations if package)),
    )  # fmt: skip


def _recommend_precision(profile: StepProfile) -> Iterator[Recommendation]:
    float32_products = profile.observed.products.get("float32", 0)
    if not profile.facts.gpu or not float32_products:
        return
    share, matrix_share = profile.kernel_share(*_PRODUCT_FAMILIES), profile.kernel_share("matrix-product")
    products = sum(profile.observed.products.values())
    evidence = f"{float32_products} of {products} products and convolutions per step are in float32"
    if not profile.observed.autocast:
        yield from recommend_if_worthwhile(
            "Mixed precision, bfloat16", "mixed-precision-bf16", share, "Low", "Medium",
            f"{evidence} and take {share:.0%}",
            "Run the forward pass under torch.autocast in bfloat16, parameters and optimizer in float32.",
        )  # fmt: skip
    if not profile.facts.tf32_products:
        yield from recommend_if_worthwhile(
            "TF32 matrix products", "tf32-matrix-products", matrix_share, "Low", "Low",
            f"{evidence}, matrix products without TF32, which take {matrix_share:.0%}",
            'torch.set_float32_matmul_precision("high").',
        )  # fmt: skip


def _recommend_channels_last(profile: StepProfile) -> Iterator[Recommendation]:
    share = _default_layout_share(profile)
    yield from recommend_if_worthwhile(
        "Channels-last", "channels-last", share, "Low", "Low",
        f"{profile.observed.convolutions} convolutions per step in the default layout take {share:.0%}",
        "Move the model and its images to torch.channels_last.",
    )  # fmt: skip


def _default_layout_share(profile: StepProfile) -> float:
    """Return the share of a step in convolutions that do not run channels-last."""
    if not profile.observed.convolutions or profile.facts.channels_last:
        return 0.0
    return profile.kernel_share("convolution")


def _recommend_loading(profile: StepProfile) -> Iterator[Recommendation]:
    loader_share = profile.host_share(profile.observed.loader_seconds)
    copy_share = profile.share_of(profile.parts.copies_seconds)
    pageable = sum(item.count for item in profile.trace.copies if item.pageable) / profile.trace.repetitions
    slow_loaders = [
        item for item in profile.facts.loaders if item.workers == 0 or (profile.facts.gpu and not item.pin_memory)
    ]
    if not slow_loaders and not pageable:
        return
    loader = "; ".join(
        f"a DataLoader with {item.workers} workers, {'pinned' if item.pin_memory else 'not pinned'}"
        for item in slow_loaders
    )
    reasons = [loader] if loader else []
    reasons += [f"it takes {loader_share:.0%} of the step"] if loader else []
    reasons += (
        [f"{pageable:.0f} copies per step from pageable memory, {copy_share:.0%} exposed"] if pageable else []
    )
    yield from recommend_if_worthwhile(
        "Pinned memory and prefetch", "pinned-memory-prefetch", min(1.0, loader_share + copy_share), "Low", "Low",
        "; ".join(reasons),
        "Load in workers ahead of time, pin batches, copy with non_blocking=True.",
    )  # fmt: skip


def _recommend_accumulation(profile: StepProfile) -> Iterator[Recommendation]:
    observed = profile.observed
    if not observed.accumulates or not profile.facts.gpu:
        return
    yield from recommend_if_worthwhile(
        "Gradient accumulation fusion", "gradient-accumulation-fusion", profile.idle_share, "Medium", "Low",
        f"{observed.backwards} backward passes for {observed.optimizer_steps} optimizer steps, the device is idle "
        f"for {profile.idle_share:.0%}, and {1 - profile.memory_share:.0%} of its memory is free",
        "Use fewer and larger micro-batches as far as memory allows.",
    )  # fmt: skip


def _recommend_memory(profile: StepProfile) -> Iterator[Recommendation]:
    if not profile.facts.gpu:
        return
    full = (
        f"{profile.facts.memory_peak / 1e9:.3g} GB of {profile.facts.memory_total / 1e9:.3g} GB in use at the peak"
    )
    if profile.memory_share >= _MEMORY_FULL and profile.observed.backwards:
        yield build_recommendation(
            "Activation checkpointing", "activation-checkpointing", 0.0, "Medium", "Low", full,
            "Recompute cheap parts in the backward pass, so that a larger batch fits.", "Medium",
        )  # fmt: skip
    if profile.memory_share >= _MEMORY_FULL and profile.facts.world > 1:
        yield build_recommendation(
            "Sharded parallelism", "sharded-parallelism", 0.0, "High", "Medium",
            f"{full} on each of {profile.facts.world} ranks", "Shard parameters, gradients and optimizer state.",
            "Medium",
        )  # fmt: skip
    share = profile.host_share(profile.observed.allocation_seconds)
    retries = profile.facts.allocation_retries
    spare = (profile.facts.memory_reserved - profile.facts.memory_peak) / max(1, profile.facts.memory_total)
    if retries or share >= LEAST_SHARE or spare >= _MEMORY_FRAGMENTED:
        yield build_recommendation(
            "Memory pool", "memory-pool", share, "Low", "Low",
            f"the allocator requests device memory during {share:.0%} of the step, released its cache {retries} "
            f"times, and holds {max(0.0, spare):.0%} of the device memory beyond its peak use",
            "Allocate once, and let PyTorch's allocator grow its segments.",
            "Medium" if retries or spare >= _MEMORY_FRAGMENTED else None,
        )  # fmt: skip


def _recommend_fewer_waits(profile: StepProfile) -> Iterator[Recommendation]:
    if not profile.facts.gpu or profile.waits_per_step < 1:
        return
    host = profile.share_of(profile.parts.host_seconds)
    gap = profile.trace.gaps.largest[0].host if profile.trace.gaps.largest else None
    lines = profile.list_lines("wait")
    line_note = f"; {_format_lines(lines)}" if lines else ""
    yield from recommend_if_worthwhile(
        "No waiting inside the step", "no-wait-in-step", host, "Low", "Low",
        f"the host waits for the device {profile.waits_per_step:.0f} times per step; gaps longer than a launch "
        f"take {host:.0%}, the largest in {gap or 'plain Python'}{line_note}",
        "Keep losses and counters on the device, and read them only every few steps.",
        tuple(line.location for line in lines),
    )  # fmt: skip


def _recommend_batched_call(profile: StepProfile) -> Iterator[Recommendation]:
    loops = [line for line in profile.list_lines("loop") if not line.sequential and not line.package]
    share = min(1.0, sum(line.share or 0 for line in loops))
    effort: Level = "Low" if all(len(line.operators) <= _SIMPLE_LOOP for line in loops) else "Medium"
    yield from recommend_if_worthwhile(
        "One batched call instead of a loop", "one-batched-call", share, effort, "Low",
        f"{_format_lines(loops)}: the {'loop takes' if len(loops) == 1 else 'loops take'} {share:.0%}",
        "Stack what the loop goes over, and write its body once over the whole: as many calls as the body has.",
        tuple(line.location for line in loops),
    )  # fmt: skip


def _recommend_fewer_copies(profile: StepProfile) -> Iterator[Recommendation]:
    copies = [line for line in profile.list_lines("copy") if not line.package]
    share = min(1.0, sum(line.share or 0 for line in copies))
    total = sum(line.bytes or 0 for line in copies)
    yield from recommend_if_worthwhile(
        "No copies of strided tensors", "no-strided-copies", share, "Low", "Low",
        f"{_format_lines(copies)}: together {total / 1e6:.3g} MB and {share:.0%}",
        "Make each tensor in the order that its reader needs, or let the reader take strides.",
        tuple(line.location for line in copies),
    )  # fmt: skip


def _recommend_kernels(profile: StepProfile) -> Iterator[Recommendation]:
    names = [name for name in profile.observed.times if trace_names.kernel_family(name) in _KERNEL_FAMILIES]
    for name in sorted(names, key=lambda operator: -profile.operator_share(operator))[:_HOTSPOTS]:
        share, calls = profile.operator_share(name), profile.observed.operators.get(name, 0)
        if impact_level(share) == "Low" or profile.loop_part(name) > _MOST_IN_LOOPS:
            continue
        locations = profile.operator_lines(name)
        lines = tuple(location for location, _ in locations[:_LISTED])
        origin = f", most at {lines[0]}" if lines else ""
        yield build_recommendation(
            f"A kernel for {name}", None, share, "High", "Medium",
            f"{calls} calls per step take {share:.0%}{profile.share_source(name)}{origin}",
            f"{profile.command('program', 'extract', options=('--op', name))}, then a campaign.", subject=name,
            lines=lines, specialist="optimize",
        )  # fmt: skip


def _format_lines(lines: Sequence[LineFinding]) -> str:
    """Name the first lines with their operations."""
    more = f" and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
    return "; ".join(f"{line.location} {line.operation}" for line in lines[:_LISTED]) + more


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
    rank_rules.recommend_bucketing,
    rank_rules.recommend_single_reduction,
    rank_rules.recommend_replica_switches,
    rank_rules.recommend_prefetch,
    rank_rules.recommend_balance,
    _recommend_fewer_waits,
    _recommend_batched_call,
    _recommend_fewer_copies,
    _recommend_kernels,
)

"""Prerequisites: what an optimization of a whole program needs, checked against the program and the machine."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from warpsmith.core.base import Slug
from warpsmith.core.hardware import Target
from warpsmith.core.trial import Prerequisite, Prerequisites, ProgramRules
from warpsmith.errors import WarpsmithError
from warpsmith.lab.machine import hardware
from warpsmith.program.capture.rules import Observation
from warpsmith.program.lines import line_rules
from warpsmith.program.lines.models import LineFinding, LineKind
from warpsmith.program.lines.raw_lines import WatchedLines
from warpsmith.program.lines.watch import watch_lines
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process import replicas
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import Runner
from warpsmith.project import Project

FUSED_OPTIMIZERS = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of PyTorch with a fused implementation."""

_HOST_STEP_COUNT = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Rprop", "Adadelta", "ASGD")
"""Optimizers that count steps on the host unless they are capturable."""

_HALF_TYPES = ("bfloat16", "float16", "half")
_CPU_BF16 = ("amx_bf16", "avx512_bf16")

_WATCHED_NEEDS = ("no-capture-blocker", "operator-loop", "host-wait", "strided-copy")
"""Prerequisites that only watched steps can answer."""

_CheckState = Literal["ok", "no", "unknown"]


@dataclass(frozen=True)
class ProgramContext:
    """The program and the machine that prerequisites are checked against."""

    facts: ProgramFacts
    """Facts of the program, with an observed step."""
    target: Target | None
    """Page of the device; None if no page names it."""
    gpus: int
    """Number of GPUs of the machine."""
    cpu_flags: frozenset[str]
    """Feature flags of the processor."""
    compiler: bool
    """True if a C++ compiler is installed."""
    sources: tuple[Path, ...]
    """The program's own files."""
    observations: tuple[Observation, ...] | None
    """Blockers of a capture in the watched steps; None if no steps were watched."""
    lines: tuple[LineFinding, ...] | None = None
    """Lines of the watched steps that cost time; None if no steps were watched."""
    differences: tuple[str, ...] = ()
    """Parameters that have other values on other ranks."""


@dataclass(frozen=True)
class ProgramInspection:
    """The program's own files, and what its watched steps showed."""

    files: tuple[Path, ...] = ()
    """The program's file and its own modules that it imports."""
    observations: tuple[Observation, ...] | None = None
    """Blockers in the watched steps; None if no steps were watched."""
    lines: WatchedLines | None = None
    """Counts by line; None if no steps were watched."""
    differences: tuple[str, ...] = ()
    """Parameters that have other values on other ranks."""


@dataclass(frozen=True)
class _CheckResult:
    state: _CheckState
    evidence: str
    machine: bool = False


def needs_watching(rules: ProgramRules) -> bool:
    """Return true if an entry has a prerequisite that only watched steps can answer."""
    return any(name in rules.needs for name in _WATCHED_NEEDS)


def inspect_program(runner: Runner, facts: ProgramFacts, *, watch: bool) -> ProgramInspection:
    """List a started program's own files, and with `watch` the blockers of a capture and the lines of its steps.

    A step that fails while it is watched, or a script that ends, ends the program's process and leaves both
    unknown. `facts` are those of the program.
    """
    path = runner.program.path
    imported = runner.call("imported_files", root=str(runner.program.folder))
    own_files = tuple(dict.fromkeys((path, *sorted(map(Path, imported)))))
    differences: tuple[str, ...] = ()
    if facts.world > 1:
        differences = tuple(replicas.differing_parameters(runner.call_ranks("sketch")))
    if not watch:
        return ProgramInspection(own_files, differences=differences)
    try:
        report = watch_lines(runner, gpu=facts.gpu)
        return ProgramInspection(own_files, report.observations, report.lines, differences)
    except WarpsmithError:
        return ProgramInspection(own_files, differences=differences)


def gather_context(
    project: Project, facts: ProgramFacts, inspection: ProgramInspection, files: Sequence[Path] = ()
) -> ProgramContext:
    """Gather what prerequisites are checked against; `files` are searched in addition to the program's own."""
    lines = None
    if inspection.lines:
        folder = inspection.files[0].parent
        lines = line_rules.find_lines(inspection.lines, folder, copy_share=0.0, gpu=facts.gpu)
    return ProgramContext(
        facts=facts,
        target=hardware.find_local_target(project) if facts.gpu else None,
        gpus=_count_gpus(),
        cpu_flags=_read_cpu_flags(),
        compiler=any(shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++") if name),
        sources=tuple(dict.fromkeys((*inspection.files, *files))),
        observations=inspection.observations,
        lines=lines,
        differences=inspection.differences,
    )


def check_prerequisites(entry: Slug, rules: ProgramRules, context: ProgramContext) -> Prerequisites:
    """Check each prerequisite of an entry, in its order."""
    results = [(name, CHECKS[name](context)) for name in rules.needs]
    return Prerequisites(
        entry=entry,
        checks=tuple(
            Prerequisite(name=name, state=result.state, evidence=result.evidence, machine=result.machine)
            for name, result in results
        ),
    )


def uncomparable_reason(program: Program, facts: ProgramFacts) -> str:
    """Explain why no edit of the program could be compared with it; empty if its step shows its results."""
    observed = facts.observed
    if observed is None or observed.returns is not False or observed.optimizer_steps:
        return ""
    return (
        f"{program.label}: its step `{program.step}` returns no number and steps no optimizer, so nothing shows "
        "whether an edit is right; return the loss or the outputs"
    )


def unmet_by_entry(
    project: Project,
    program: Program,
    facts: ProgramFacts,
    inspection: ProgramInspection,
    rules: Mapping[Slug, ProgramRules],
) -> dict[Slug, str]:
    """Return the reason why a trial of each entry would be refused, in one sentence; empty if none is known."""
    if reason := uncomparable_reason(program, facts):
        return dict.fromkeys(rules, reason)
    context = gather_context(project, facts, inspection)
    return {entry: check_prerequisites(entry, entry_rules, context).lacks for entry, entry_rules in rules.items()}


def _check_gpu(context: ProgramContext) -> _CheckResult:
    facts = context.facts
    if facts.gpu:
        return _CheckResult("ok", f"it runs on {facts.device}")
    if facts.gpu_at_hand:
        return _CheckResult("no", "it does not use the GPU of this machine; move it there first")
    return _CheckResult("no", "this machine has no GPU that PyTorch can use", machine=True)


def _check_capture(context: ProgramContext) -> _CheckResult:
    facts = context.facts
    if facts.observed and facts.observed.graph_launches:
        return _CheckResult("no", f"a step already launches {facts.observed.graph_launches} CUDA graphs")
    if context.observations is None:
        return _CheckResult("unknown", "its steps were not watched; `warpsmith graph check` watches them")
    blockers = [item for item in context.observations if item.kind != "optimizer"]  # it has its own check
    certain = [item for item in blockers if item.certainty == "certain"]
    if certain:
        return _CheckResult(
            "no", f"{_format_observations(certain)}; `warpsmith graph check` says what to do about it"
        )
    likely = [item for item in blockers if item.certainty == "likely"]
    if likely:
        return _CheckResult("unknown", f"likely: {_format_observations(likely)}; `warpsmith graph check` tries it")
    if facts.observed and facts.observed.shapes_vary:
        return _CheckResult(
            "unknown", "two steps called operators with different shapes; capture one graph per shape"
        )
    return _CheckResult("ok", "nothing in the watched steps prevents it; `warpsmith graph check` tries it")


def _check_capturable(context: ProgramContext) -> _CheckResult:
    eager = [
        optimizer
        for optimizer in context.facts.optimizers
        if optimizer.kind in _HOST_STEP_COUNT and not optimizer.capturable
    ]
    if not context.facts.optimizers:
        return _CheckResult("ok", "it has no optimizer")
    if not eager:
        return _CheckResult("ok", f"{_optimizer_kinds(context)} can step inside a graph")
    return _CheckResult(
        "unknown", f"{eager[0].kind} has capturable=False: set it, or leave the step out of the graph"
    )


def _check_fusible(context: ProgramContext) -> _CheckResult:
    optimizers = context.facts.optimizers
    if not optimizers:
        return _CheckResult("no", "it has no optimizer")
    fusible = [optimizer for optimizer in optimizers if optimizer.kind in FUSED_OPTIMIZERS]
    if not fusible:
        return _CheckResult(
            "no",
            f"{_optimizer_kinds(context)} has no fused implementation; these do: {', '.join(FUSED_OPTIMIZERS)}",
        )
    if all(optimizer.fused for optimizer in fusible):
        return _CheckResult("no", f"{_optimizer_kinds(context)} is already fused")
    unsupported = set(context.facts.parameter_dtypes) - {"float32", "float64", "float16", "bfloat16"}
    if unsupported:
        return _CheckResult("unknown", f"parameters in {', '.join(sorted(unsupported))} may not be supported")
    count = sum(optimizer.tensors for optimizer in fusible if not optimizer.fused)
    return _CheckResult("ok", f"{_optimizer_kinds(context)} updates {count} parameters without fusion")


def _check_attention(context: ProgramContext) -> _CheckResult:
    locations = [location for path in context.sources for location in _handwritten_attention(path)]
    observed = context.facts.observed
    if locations:
        return _CheckResult("ok", f"a softmax between two products at {', '.join(locations[:3])}")
    if observed and observed.attention:
        return _CheckResult(
            "no",
            f"a step calls scaled_dot_product_attention {observed.attention} times and no handwritten attention",
        )
    if (
        observed
        and observed.calls("aten::_softmax", "aten::softmax")
        and observed.calls("aten::bmm", "aten::matmul")
    ):
        return _CheckResult(
            "unknown", "a step calls softmax and batched products; check whether they are attention"
        )
    return _CheckResult("no", "no softmax between two products, in the source or in a step")


def _check_convolutions(context: ProgramContext) -> _CheckResult:
    facts = context.facts
    layers = {name: count for name, count in facts.modules.items() if name in ("Conv2d", "Conv3d")}
    called = facts.observed.convolutions if facts.observed else 0
    if facts.channels_last:
        return _CheckResult("no", "convolution weights are already in channels-last order")
    if layers:
        return _CheckResult("ok", f"{sum(layers.values())} convolution layers, {called} calls per step")
    if called:
        return _CheckResult(
            "unknown", f"{called} convolutions per step but no Conv2d or Conv3d; look at their shapes"
        )
    return _CheckResult("no", "a step has no convolution")


def _check_bf16(context: ProgramContext) -> _CheckResult:
    if not context.facts.gpu:
        supported = [flag for flag in _CPU_BF16 if flag in context.cpu_flags]
        if supported:
            return _CheckResult("ok", f"the processor has {supported[0]}")
        return _CheckResult("no", f"the processor has none of {', '.join(_CPU_BF16)}", machine=True)
    return _check_rate(context, "peak_bf16_tensor", "bfloat16 products")


def _check_tf32(context: ProgramContext) -> _CheckResult:
    if not context.facts.gpu:
        return _CheckResult(
            "no", "only NVIDIA GPUs have TensorFloat-32, and the program runs on a CPU", machine=True
        )
    return _check_rate(context, "peak_tf32_tensor", "TF32 products")


def _check_float32(context: ProgramContext) -> _CheckResult:
    facts, observed = context.facts, context.facts.observed
    lower = sorted(
        {*(observed.autocast if observed else ())}
        | {kind for kind in facts.parameter_dtypes if kind in _HALF_TYPES}
    )
    if lower:
        return _CheckResult("no", f"{', '.join(lower)} is already in use")
    if facts.gpu and facts.tf32_products and (facts.tf32_convolutions or not (observed and observed.convolutions)):
        return _CheckResult("unknown", "float32 products may already use TF32")
    products = observed.products.get("float32", 0) if observed else 0
    if products:
        return _CheckResult("ok", f"{products} products and convolutions per step are in float32")
    return _CheckResult("unknown", "no product in float32 was observed in a step")


def _check_compiler(context: ProgramContext) -> _CheckResult:
    if context.facts.gpu:
        from importlib.util import find_spec

        has_triton = find_spec("triton") is not None
        return (
            _CheckResult("ok", "Triton is installed")
            if has_triton
            else _CheckResult("no", "Triton is not installed", machine=True)
        )
    if context.compiler:
        return _CheckResult("ok", "a C++ compiler is installed")
    return _CheckResult("no", "no C++ compiler is installed; install g++ or clang++, or set CXX", machine=True)


def _check_not_compiled(context: ProgramContext) -> _CheckResult:
    if context.facts.compiled:
        return _CheckResult("no", f"torch.compile is already called, with mode {context.facts.compiled[0]}")
    return _CheckResult("ok", "torch.compile is not called")


def _check_loader(context: ProgramContext) -> _CheckResult:
    loaders, observed = context.facts.loaders, context.facts.observed
    if any(not loader.pin_memory or not loader.workers for loader in loaders):
        loader = next(loader for loader in loaders if not loader.pin_memory or not loader.workers)
        return _CheckResult("ok", f"a DataLoader with workers={loader.workers}, pin_memory={loader.pin_memory}")
    if loaders:
        return _CheckResult(
            "unknown", "its DataLoaders have workers and pinned memory; check whether they prefetch"
        )
    copies = observed.calls("aten::_to_copy", "aten::copy_") if observed else 0
    if copies:
        return _CheckResult(
            "unknown", f"no DataLoader, {copies} copies per step; check whether they come from the host"
        )
    return _CheckResult("no", "no DataLoader, and a step copies nothing")


def _check_accumulation(context: ProgramContext) -> _CheckResult:
    observed = context.facts.observed
    if observed is None:
        return _CheckResult("unknown", "no step was observed")
    if observed.accumulates:
        return _CheckResult(
            "ok", f"{observed.backwards} backward passes for {observed.optimizer_steps} optimizer steps"
        )
    return _CheckResult(
        "no", f"{observed.backwards} backward passes for {observed.optimizer_steps} optimizer steps"
    )


def _check_training(context: ProgramContext) -> _CheckResult:
    observed = context.facts.observed
    if observed and observed.backwards:
        return _CheckResult("ok", f"a step has {observed.backwards} backward passes")
    return _CheckResult("no", "a step has no backward pass")


def _check_distributed(context: ProgramContext) -> _CheckResult:
    if context.facts.world == 1:
        return _CheckResult("no", "only one process trains")
    if context.differences:
        return _CheckResult("no", describe_rank_differences(context.differences))
    return _CheckResult("ok", f"{context.facts.world} processes train together")


def _check_replicas(context: ProgramContext) -> _CheckResult:
    if context.facts.replicas:
        return _CheckResult("ok", context.facts.replicas[0].switches)
    return _CheckResult("no", "it has no DistributedDataParallel")


def _check_sharded(context: ProgramContext) -> _CheckResult:
    count = context.facts.sharded_modules
    return _CheckResult("ok" if count else "no", f"fully_shard splits {count} modules")


def describe_rank_differences(names: Sequence[str]) -> str:
    """Describe parameters that have other values on other ranks, and what to do about it."""
    more = f" and {len(names) - 1} more parameters" if len(names) > 1 else ""
    return (
        f"the ranks hold different values of {names[0]}{more}: they train apart; make the model from one seed or "
        "broadcast rank 0's parameters, and average gradients over all ranks in each step"
    )


def _check_lines(context: ProgramContext, kind: LineKind, absent: str) -> _CheckResult:
    """Check whether the watched steps showed lines of a kind in the program's own files."""
    if context.lines is None:
        return _CheckResult("unknown", "its steps were not watched; `warpsmith program analyze` watches them")
    lines = [line for line in context.lines if line.kind == kind and not line.sequential and not line.package]
    if not lines:
        return _CheckResult("no", absent)
    return _CheckResult("ok", "; ".join(f"{line.location} {line.operation}" for line in lines[:3]))


def _check_operator_loop(context: ProgramContext) -> _CheckResult:
    return _check_lines(
        context, "loop", "no Python loop calls the same small operator a hundred times a step in any order"
    )


def _check_host_wait(context: ProgramContext) -> _CheckResult:
    return _check_lines(context, "wait", "no line of a step waits for the device")


def _check_strided_copy(context: ProgramContext) -> _CheckResult:
    return _check_lines(context, "copy", "no line of a step copies a tensor only to change its strides")


def _check_devices(context: ProgramContext) -> _CheckResult:
    if context.gpus > 1:
        return _CheckResult("ok", f"the machine has {context.gpus} GPUs")
    return _CheckResult(
        "no", f"the machine has {context.gpus} GPU" + ("" if context.gpus == 1 else "s"), machine=True
    )


CHECKS: dict[str, Callable[[ProgramContext], _CheckResult]] = {
    "gpu": _check_gpu,
    "no-capture-blocker": _check_capture,
    "capturable-optimizer": _check_capturable,
    "fusible-optimizer": _check_fusible,
    "attention-by-hand": _check_attention,
    "convolutions": _check_convolutions,
    "bf16": _check_bf16,
    "tf32": _check_tf32,
    "float32": _check_float32,
    "compiler": _check_compiler,
    "not-compiled": _check_not_compiled,
    "loader": _check_loader,
    "accumulation": _check_accumulation,
    "training": _check_training,
    "distributed": _check_distributed,
    "replicas": _check_replicas,
    "sharded": _check_sharded,
    "devices": _check_devices,
    "operator-loop": _check_operator_loop,
    "host-wait": _check_host_wait,
    "strided-copy": _check_strided_copy,
}
"""Check function of each name in `core.trial.NEEDS`."""


def _check_rate(context: ProgramContext, name: str, operation: str) -> _CheckResult:
    """Check whether the device's page gives a rate for an operation."""
    if context.target is None:
        return _CheckResult("unknown", f"no hardware page names {context.facts.device}")
    figure = context.target.figures.get(name)
    if figure is None or figure.value == "UNKNOWN":
        return _CheckResult("unknown", f"the page of {context.target.id} gives no {name}")
    return _CheckResult("ok", f"{context.target.id}: {operation} at {figure.value:g} {figure.unit}")


def _handwritten_attention(path: Path) -> list[str]:
    """List the locations at which a function of the file calls softmax between two products."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return []
    locations: list[str] = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes = [node for node in ast.walk(function) if isinstance(node, ast.expr)]
            products = [node.lineno for node in nodes if _is_product(node)]
            softmaxes = [node.lineno for node in nodes if _callee_name(node) in ("softmax", "Softmax")]
            between = [line for line in softmaxes if products and min(products) <= line <= max(products)]
            locations += [f"{path.name}:{line}" for line in between]
    return list(dict.fromkeys(locations))


def _is_product(node: ast.expr) -> bool:
    is_operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    return is_operator or _callee_name(node) in ("matmul", "bmm", "einsum", "baddbmm")


def _callee_name(node: ast.expr) -> str:
    """Return the last name of a call's function; empty if the node is not a call."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else str(getattr(function, "id", ""))


def _optimizer_kinds(context: ProgramContext) -> str:
    return ", ".join(dict.fromkeys(optimizer.kind for optimizer in context.facts.optimizers))


def _format_observations(observations: Sequence[Observation]) -> str:
    return "; ".join(f"{Path(item.file).name}:{item.line} {item.description}" for item in observations[:3])


def _count_gpus() -> int:
    """Count the GPUs that PyTorch could use, without initializing CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([device for device in visible.split(",") if device.strip() and device.strip() != "-1"])
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))


def _read_cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(word for line in lines if line.startswith("flags") for word in line.split()[2:])

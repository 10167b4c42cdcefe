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
from warpsmith.knowledge.catalog import Catalog
from warpsmith.lab.machine import hardware
from warpsmith.program.capture.rules import Observation
from warpsmith.program.capture.watched_steps import watch_program
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import Runner
from warpsmith.project import Project

FUSED_OPTIMIZERS = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of PyTorch that have a fused implementation."""

_HOST_STEP_COUNT = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Rprop", "Adadelta", "ASGD")
"""Optimizers that count steps on the host unless they are capturable."""

_HALF_TYPES = ("bfloat16", "float16", "half")
_CPU_BF16 = ("amx_bf16", "avx512_bf16")

_CheckState = Literal["ok", "no", "unknown"]


@dataclass(frozen=True)
class ProgramContext:
    """What prerequisites are checked against."""

    facts: ProgramFacts
    """The program's, with a step observed."""
    target: Target | None
    """The device's page; None: no page names it."""
    gpus: int
    """GPUs of the machine."""
    cpu_flags: frozenset[str]
    """What the processor can."""
    compiler: bool
    """Whether a C++ compiler is there."""
    sources: tuple[Path, ...]
    """The program's own files."""
    observations: tuple[Observation, ...] | None
    """Blockers of a capture in the watched steps; None if no steps were watched."""


@dataclass(frozen=True)
class ProgramInspection:
    """The program's own files, and blockers of a capture in its steps."""

    files: tuple[Path, ...] = ()
    """The program's file and its own modules that it imports."""
    observations: tuple[Observation, ...] | None = None
    """Blockers in the watched steps; None if no steps were watched."""


@dataclass(frozen=True)
class _CheckResult:
    state: _CheckState
    evidence: str
    machine: bool = False


def list_program_rules(project: Project) -> dict[Slug, ProgramRules]:
    """What the entries for whole programs declare, by id; raises BadEntry where one does not read."""
    entries = Catalog.load(project).entries.values()
    return {one.id: one.matter.program for one in entries if one.matter.program}


def needs_watching(rules: ProgramRules) -> bool:
    """Return true if an entry has a prerequisite that only watched steps can answer."""
    return "no-capture-blocker" in rules.needs


def inspect_program(runner: Runner, *, watch: bool) -> ProgramInspection:
    """List a started program's own files, and with `watch` the blockers of a capture in its steps.

    A step that fails while it is watched ends the program's process and leaves its blockers unknown.
    """
    path = runner.program.path
    imported = runner.call("imported_files", root=str(runner.program.folder))
    own_files = tuple(dict.fromkeys((path, *sorted(map(Path, imported)))))
    if not watch:
        return ProgramInspection(own_files)
    try:
        return ProgramInspection(own_files, watch_program(runner).observations)
    except WarpsmithError:
        return ProgramInspection(own_files)


def gather_context(
    project: Project, facts: ProgramFacts, inspection: ProgramInspection, files: Sequence[Path] = ()
) -> ProgramContext:
    """Gather what prerequisites are checked against; `files` are searched in addition to the program's own."""
    return ProgramContext(
        facts=facts,
        target=hardware.find_local_target(project) if facts.gpu else None,
        gpus=_count_gpus(),
        cpu_flags=_read_cpu_flags(),
        compiler=any(shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++") if name),
        sources=tuple(dict.fromkeys((*inspection.files, *files))),
        observations=inspection.observations,
    )


def check_prerequisites(entry: Slug, rules: ProgramRules, scene: ProgramContext) -> Prerequisites:
    """Each prerequisite of an entry, in its order."""
    said = [(name, CHECKS[name](scene)) for name in rules.needs]
    return Prerequisites(
        entry=entry,
        checks=tuple(
            Prerequisite(name=name, state=one.state, evidence=one.evidence, machine=one.machine)
            for name, one in said
        ),
    )


def uncomparable_reason(program: Program, facts: ProgramFacts) -> str:
    """Why no edit of the program could be compared with it; empty where its step shows what it computes."""
    seen = facts.observed
    if seen is None or seen.returns is not False or seen.optimizer_steps:
        return ""
    return (
        f"{program.label}: its step `{program.step}` returns no number and steps no optimizer: nothing shows "
        "whether an edit is right; return the loss or the outputs"
    )


def unmet_by_entry(
    project: Project,
    program: Program,
    facts: ProgramFacts,
    inspection: ProgramInspection,
    rules: Mapping[Slug, ProgramRules],
) -> dict[Slug, str]:
    """Return why a trial of each entry would be refused, in one sentence; empty if nothing is known against it."""
    if blind := uncomparable_reason(program, facts):
        return dict.fromkeys(rules, blind)
    here = gather_context(project, facts, inspection)
    return {entry: check_prerequisites(entry, needs, here).lacks for entry, needs in rules.items()}


def _check_gpu(scene: ProgramContext) -> _CheckResult:
    facts = scene.facts
    if facts.gpu:
        return _CheckResult("ok", f"it runs on {facts.device}")
    if facts.gpu_at_hand:
        return _CheckResult("no", "it uses no GPU though there is one; move it there first")
    return _CheckResult("no", "this machine has no GPU that PyTorch can use", machine=True)


def _check_capture(scene: ProgramContext) -> _CheckResult:
    facts = scene.facts
    if facts.observed and facts.observed.graph_launches:
        return _CheckResult("no", f"a step launches {facts.observed.graph_launches} CUDA graphs already")
    if scene.observations is None:
        return _CheckResult("unknown", "its steps were not watched; `warpsmith graph check` watches them")
    blockers = [item for item in scene.observations if item.kind != "optimizer"]  # it has a check of its own
    certain = [item for item in blockers if item.certainty == "certain"]
    if certain:
        return _CheckResult(
            "no", f"{_format_observations(certain)}; `warpsmith graph check` says what to do about it"
        )
    likely = [item for item in blockers if item.certainty == "likely"]
    if likely:
        return _CheckResult("unknown", f"likely: {_format_observations(likely)}; `warpsmith graph check` tries it")
    if facts.observed and facts.observed.shapes_vary:
        return _CheckResult("unknown", "two steps called operators with other shapes; capture one graph a shape")
    return _CheckResult("ok", "nothing in the watched steps forbids it; `warpsmith graph check` tries it")


def _check_capturable(scene: ProgramContext) -> _CheckResult:
    eager = [one for one in scene.facts.optimizers if one.kind in _HOST_STEP_COUNT and not one.capturable]
    if not scene.facts.optimizers:
        return _CheckResult("ok", "there is no optimizer")
    if not eager:
        return _CheckResult("ok", f"{_optimizer_kinds(scene)} can step inside a graph")
    return _CheckResult(
        "unknown", f"{eager[0].kind} has capturable=False: set it, or leave the step out of the graph"
    )


def _check_fusible(scene: ProgramContext) -> _CheckResult:
    optimizers = scene.facts.optimizers
    if not optimizers:
        return _CheckResult("no", "it has no optimizer")
    known = [one for one in optimizers if one.kind in FUSED_OPTIMIZERS]
    if not known:
        return _CheckResult(
            "no",
            f"{_optimizer_kinds(scene)} has no fused implementation; these have: {', '.join(FUSED_OPTIMIZERS)}",
        )
    if all(one.fused for one in known):
        return _CheckResult("no", f"{_optimizer_kinds(scene)} is fused already")
    wrong = set(scene.facts.parameter_dtypes) - {"float32", "float64", "float16", "bfloat16"}
    if wrong:
        return _CheckResult("unknown", f"parameters in {', '.join(sorted(wrong))} may not be supported")
    count = sum(one.tensors for one in known if not one.fused)
    return _CheckResult("ok", f"{_optimizer_kinds(scene)} updates {count} parameters without it")


def _check_attention(scene: ProgramContext) -> _CheckResult:
    places = [place for path in scene.sources for place in _handwritten_attention(path)]
    seen = scene.facts.observed
    if places:
        return _CheckResult("ok", f"a softmax between two products at {', '.join(places[:3])}")
    if seen and seen.attention:
        return _CheckResult(
            "no", f"a step calls scaled_dot_product_attention {seen.attention} times, and none by hand"
        )
    if seen and seen.calls("aten::_softmax", "aten::softmax") and seen.calls("aten::bmm", "aten::matmul"):
        return _CheckResult(
            "unknown", "a step calls softmax and batched products; look whether they are attention"
        )
    return _CheckResult("no", "no softmax between two products, in the source or in a step")


def _check_convolutions(scene: ProgramContext) -> _CheckResult:
    facts = scene.facts
    layers = {name: count for name, count in facts.modules.items() if name in ("Conv2d", "Conv3d")}
    called = facts.observed.convolutions if facts.observed else 0
    if facts.channels_last:
        return _CheckResult("no", "convolution weights lie in channels-last order already")
    if layers:
        return _CheckResult("ok", f"{sum(layers.values())} convolution layers, {called} calls a step")
    if called:
        return _CheckResult(
            "unknown", f"{called} convolutions a step, and no Conv2d or Conv3d; look at their shapes"
        )
    return _CheckResult("no", "a step has no convolution")


def _check_bf16(scene: ProgramContext) -> _CheckResult:
    if not scene.facts.gpu:
        found = [flag for flag in _CPU_BF16 if flag in scene.cpu_flags]
        if found:
            return _CheckResult("ok", f"the processor has {found[0]}")
        return _CheckResult("no", f"the processor has none of {', '.join(_CPU_BF16)}", machine=True)
    return _check_rate(scene, "peak_bf16_tensor", "bfloat16 products")


def _check_tf32(scene: ProgramContext) -> _CheckResult:
    if not scene.facts.gpu:
        return _CheckResult("no", "TensorFloat-32 is of NVIDIA GPUs; the program runs on a CPU", machine=True)
    return _check_rate(scene, "peak_tf32_tensor", "TF32 products")


def _check_float32(scene: ProgramContext) -> _CheckResult:
    facts, seen = scene.facts, scene.facts.observed
    used = sorted(
        {*(seen.autocast if seen else ())} | {kind for kind in facts.parameter_dtypes if kind in _HALF_TYPES}
    )
    if used:
        return _CheckResult("no", f"{', '.join(used)} is in use already")
    if facts.gpu and facts.tf32_products and (facts.tf32_convolutions or not (seen and seen.convolutions)):
        return _CheckResult("unknown", "float32 products may use TF32 already")
    products = seen.products.get("float32", 0) if seen else 0
    if products:
        return _CheckResult("ok", f"{products} products and convolutions a step are in float32")
    return _CheckResult("unknown", "no product in float32 was seen in a step")


def _check_compiler(scene: ProgramContext) -> _CheckResult:
    if scene.facts.gpu:
        from importlib.util import find_spec

        found = find_spec("triton") is not None
        return (
            _CheckResult("ok", "Triton is there")
            if found
            else _CheckResult("no", "there is no Triton", machine=True)
        )
    if scene.compiler:
        return _CheckResult("ok", "a C++ compiler is there")
    return _CheckResult("no", "there is no C++ compiler; install g++ or clang++, or set CXX", machine=True)


def _check_not_compiled(scene: ProgramContext) -> _CheckResult:
    if scene.facts.compiled:
        return _CheckResult("no", f"torch.compile is called already, with mode {scene.facts.compiled[0]}")
    return _CheckResult("ok", "torch.compile is not called")


def _check_loader(scene: ProgramContext) -> _CheckResult:
    loaders, seen = scene.facts.loaders, scene.facts.observed
    if any(not one.pin_memory or not one.workers for one in loaders):
        one = next(one for one in loaders if not one.pin_memory or not one.workers)
        return _CheckResult("ok", f"a DataLoader with workers={one.workers}, pin_memory={one.pin_memory}")
    if loaders:
        return _CheckResult(
            "unknown", "its DataLoaders have workers and pinned memory; look whether they prefetch"
        )
    copies = seen.calls("aten::_to_copy", "aten::copy_") if seen else 0
    if copies:
        return _CheckResult(
            "unknown", f"no DataLoader, {copies} copies a step; look whether they come from the host"
        )
    return _CheckResult("no", "no DataLoader, and a step copies nothing")


def _check_accumulation(scene: ProgramContext) -> _CheckResult:
    seen = scene.facts.observed
    if seen is None:
        return _CheckResult("unknown", "no step was observed")
    if seen.accumulates:
        return _CheckResult("ok", f"{seen.backwards} backward passes for {seen.optimizer_steps} optimizer steps")
    return _CheckResult("no", f"{seen.backwards} backward passes for {seen.optimizer_steps} optimizer steps")


def _check_training(scene: ProgramContext) -> _CheckResult:
    seen = scene.facts.observed
    if seen and seen.backwards:
        return _CheckResult("ok", f"a step has {seen.backwards} backward passes")
    return _CheckResult("no", "a step has no backward pass")


def _check_distributed(scene: ProgramContext) -> _CheckResult:
    if scene.facts.world > 1:
        return _CheckResult("ok", f"{scene.facts.world} processes train together")
    return _CheckResult("no", "one process trains by itself")


def _check_devices(scene: ProgramContext) -> _CheckResult:
    if scene.gpus > 1:
        return _CheckResult("ok", f"the machine has {scene.gpus} GPUs")
    return _CheckResult("no", f"the machine has {scene.gpus} GPU" + ("" if scene.gpus == 1 else "s"), machine=True)


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
    "devices": _check_devices,
}
"""How each name of `core.trial.NEEDS` is checked."""


def _check_rate(scene: ProgramContext, name: str, what: str) -> _CheckResult:
    """Whether the device's page gives a rate for it."""
    if scene.target is None:
        return _CheckResult("unknown", f"no hardware page names {scene.facts.device}")
    figure = scene.target.figures.get(name)
    if figure is None or figure.value == "UNKNOWN":
        return _CheckResult("unknown", f"the page of {scene.target.id} gives no {name}")
    return _CheckResult("ok", f"{scene.target.id}: {what} at {figure.value:g} {figure.unit}")


def _handwritten_attention(path: Path) -> list[str]:
    """Where a function of the file calls softmax and has products before and after it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return []
    found: list[str] = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes = [node for node in ast.walk(function) if isinstance(node, ast.expr)]
            products = [node.lineno for node in nodes if _is_product(node)]
            softmaxes = [node.lineno for node in nodes if _callee_name(node) in ("softmax", "Softmax")]
            between = [line for line in softmaxes if products and min(products) <= line <= max(products)]
            found += [f"{path.name}:{line}" for line in between]
    return list(dict.fromkeys(found))


def _is_product(node: ast.expr) -> bool:
    is_operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    return is_operator or _callee_name(node) in ("matmul", "bmm", "einsum", "baddbmm")


def _callee_name(node: ast.expr) -> str:
    """The last name of a call's function; empty: it is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else str(getattr(function, "id", ""))


def _optimizer_kinds(scene: ProgramContext) -> str:
    return ", ".join(dict.fromkeys(one.kind for one in scene.facts.optimizers))


def _format_observations(observations: Sequence[Observation]) -> str:
    return "; ".join(f"{Path(item.file).name}:{item.line} {item.description}" for item in observations[:3])


def _count_gpus() -> int:
    """GPUs that PyTorch could use, without starting it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([one for one in visible.split(",") if one.strip() and one.strip() != "-1"])
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))


def _read_cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(word for line in lines if line.startswith("flags") for word in line.split()[2:])

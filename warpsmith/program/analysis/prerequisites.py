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
from warpsmith.core.trial import Prerequisite, Prerequisites, WholeProgram
from warpsmith.errors import Misuse
from warpsmith.knowledge.catalog import Catalog
from warpsmith.lab.machine import hardware
from warpsmith.program.capture import static
from warpsmith.program.capture.rules import Finding
from warpsmith.program.capture.static import Reading
from warpsmith.program.models import Facts
from warpsmith.program.process.step import Program
from warpsmith.project import Project

FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of PyTorch that have a fused implementation."""

_EAGER_STATE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Rprop", "Adadelta", "ASGD")
"""Optimizers that count steps on the host unless they are capturable."""

_LOWER = ("bfloat16", "float16", "half")
_CPU_BF16 = ("amx_bf16", "avx512_bf16")

_State = Literal["ok", "no", "unknown"]


@dataclass(frozen=True)
class Scene:
    """What prerequisites are checked against."""

    facts: Facts
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
    findings: tuple[Finding, ...]
    """What keeps the step from being captured, as far as the source tells."""


@dataclass(frozen=True)
class _Said:
    state: _State
    evidence: str
    machine: bool = False


def declared(project: Project) -> dict[Slug, WholeProgram]:
    """What the entries for whole programs declare, by id; raises BadEntry where one does not read."""
    entries = Catalog.load(project).entries.values()
    return {one.id: one.matter.program for one in entries if one.matter.program}


def scene(project: Project, facts: Facts, reading: Reading, files: Sequence[Path] = ()) -> Scene:
    """What this machine and the program are: what a run told, and what the source tells; `files` are read too."""
    return Scene(
        facts=facts,
        target=hardware.identify(project) if facts.gpu else None,
        gpus=_gpus(),
        cpu_flags=_cpu_flags(),
        compiler=any(shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++") if name),
        sources=tuple(dict.fromkeys((*reading.files, *files))),
        findings=reading.findings,
    )


def check(entry: Slug, rules: WholeProgram, scene: Scene) -> Prerequisites:
    """Each prerequisite of an entry, in its order."""
    said = [(name, CHECKS[name](scene)) for name in rules.needs]
    return Prerequisites(
        entry=entry,
        checks=tuple(
            Prerequisite(name=name, state=one.state, evidence=one.evidence, machine=one.machine)
            for name, one in said
        ),
    )


def unseen(program: Program, facts: Facts) -> str:
    """Why no edit of the program could be compared with it; empty where its step shows what it computes."""
    seen = facts.observed
    if seen is None or seen.returns is not False or seen.optimizer_steps:
        return ""
    return (
        f"{program.label}: its step `{program.step}` returns no number and steps no optimizer: nothing shows "
        "whether an edit is right; return the loss or the outputs"
    )


def lacking(
    project: Project, program: Program, facts: Facts, rules: Mapping[Slug, WholeProgram]
) -> dict[Slug, str]:
    """Why a trial of each entry would be refused, in one sentence; empty where nothing is against it.

    Of a shell command there is no source to read: its facts alone tell.
    """
    try:
        reading = static.read(program) if program.command is None else Reading((), (), {})
    except Misuse as error:  # every trial begins with it
        return dict.fromkeys(rules, str(error).rstrip("."))
    if blind := unseen(program, facts):
        return dict.fromkeys(rules, blind)
    here = scene(project, facts, reading)
    return {entry: check(entry, needs, here).lacks for entry, needs in rules.items()}


def _gpu(scene: Scene) -> _Said:
    facts = scene.facts
    if facts.gpu:
        return _Said("ok", f"it runs on {facts.device}")
    if facts.gpu_at_hand:
        return _Said("no", "it uses no GPU though there is one; move it there first")
    return _Said("no", "this machine has no GPU that PyTorch can use", machine=True)


def _capture(scene: Scene) -> _Said:
    facts = scene.facts
    found = [one for one in scene.findings if one.kind != "optimizer"]  # that has a check of its own
    if facts.observed and facts.observed.graph_launches:
        return _Said("no", f"a step launches {facts.observed.graph_launches} CUDA graphs already")
    certain = [one for one in found if one.certainty == "certain"]
    if certain:
        return _Said("no", f"{_places(certain)}; `warpsmith graph check` says what to do about it")
    likely = [one for one in found if one.certainty == "likely"]
    if likely:
        return _Said("unknown", f"likely: {_places(likely)}; `warpsmith graph check` tries it")
    if facts.observed and facts.observed.shapes_vary:
        return _Said("unknown", "two steps called operators with other shapes; capture one graph a shape")
    return _Said("ok", "nothing in the source forbids it; `warpsmith graph check` tries it")


def _capturable(scene: Scene) -> _Said:
    eager = [one for one in scene.facts.optimizers if one.kind in _EAGER_STATE and not one.capturable]
    if not scene.facts.optimizers:
        return _Said("ok", "there is no optimizer")
    if not eager:
        return _Said("ok", f"{_kinds(scene)} can step inside a graph")
    return _Said("unknown", f"{eager[0].kind} has capturable=False: set it, or leave the step out of the graph")


def _fusible(scene: Scene) -> _Said:
    optimizers = scene.facts.optimizers
    if not optimizers:
        return _Said("no", "it has no optimizer")
    known = [one for one in optimizers if one.kind in FUSED]
    if not known:
        return _Said("no", f"{_kinds(scene)} has no fused implementation; these have: {', '.join(FUSED)}")
    if all(one.fused for one in known):
        return _Said("no", f"{_kinds(scene)} is fused already")
    wrong = set(scene.facts.parameter_dtypes) - {"float32", "float64", "float16", "bfloat16"}
    if wrong:
        return _Said("unknown", f"parameters in {', '.join(sorted(wrong))} may not be supported")
    count = sum(one.tensors for one in known if not one.fused)
    return _Said("ok", f"{_kinds(scene)} updates {count} parameters without it")


def _attention(scene: Scene) -> _Said:
    places = [place for path in scene.sources for place in _by_hand(path)]
    seen = scene.facts.observed
    if places:
        return _Said("ok", f"a softmax between two products at {', '.join(places[:3])}")
    if seen and seen.attention:
        return _Said("no", f"a step calls scaled_dot_product_attention {seen.attention} times, and none by hand")
    if seen and seen.calls("aten::_softmax", "aten::softmax") and seen.calls("aten::bmm", "aten::matmul"):
        return _Said("unknown", "a step calls softmax and batched products; look whether they are attention")
    return _Said("no", "no softmax between two products, in the source or in a step")


def _convolutions(scene: Scene) -> _Said:
    facts = scene.facts
    layers = {name: count for name, count in facts.modules.items() if name in ("Conv2d", "Conv3d")}
    called = facts.observed.convolutions if facts.observed else 0
    if facts.channels_last:
        return _Said("no", "convolution weights lie in channels-last order already")
    if layers:
        return _Said("ok", f"{sum(layers.values())} convolution layers, {called} calls a step")
    if called:
        return _Said("unknown", f"{called} convolutions a step, and no Conv2d or Conv3d; look at their shapes")
    return _Said("no", "a step has no convolution")


def _bf16(scene: Scene) -> _Said:
    if not scene.facts.gpu:
        found = [flag for flag in _CPU_BF16 if flag in scene.cpu_flags]
        if found:
            return _Said("ok", f"the processor has {found[0]}")
        return _Said("no", f"the processor has none of {', '.join(_CPU_BF16)}", machine=True)
    return _figure(scene, "peak_bf16_tensor", "bfloat16 products")


def _tf32(scene: Scene) -> _Said:
    if not scene.facts.gpu:
        return _Said("no", "TensorFloat-32 is of NVIDIA GPUs; the program runs on a CPU", machine=True)
    return _figure(scene, "peak_tf32_tensor", "TF32 products")


def _float32(scene: Scene) -> _Said:
    facts, seen = scene.facts, scene.facts.observed
    used = sorted({*(seen.autocast if seen else ())} | {kind for kind in facts.parameter_dtypes if kind in _LOWER})
    if used:
        return _Said("no", f"{', '.join(used)} is in use already")
    if facts.gpu and facts.tf32_products and (facts.tf32_convolutions or not (seen and seen.convolutions)):
        return _Said("unknown", "float32 products may use TF32 already")
    products = seen.products.get("float32", 0) if seen else 0
    if products:
        return _Said("ok", f"{products} products and convolutions a step are in float32")
    return _Said("unknown", "no product in float32 was seen in a step")


def _compiler(scene: Scene) -> _Said:
    if scene.facts.gpu:
        from importlib.util import find_spec

        found = find_spec("triton") is not None
        return _Said("ok", "Triton is there") if found else _Said("no", "there is no Triton", machine=True)
    if scene.compiler:
        return _Said("ok", "a C++ compiler is there")
    return _Said("no", "there is no C++ compiler; install g++ or clang++, or set CXX", machine=True)


def _not_compiled(scene: Scene) -> _Said:
    if scene.facts.compiled:
        return _Said("no", f"torch.compile is called already, with mode {scene.facts.compiled[0]}")
    return _Said("ok", "torch.compile is not called")


def _loader(scene: Scene) -> _Said:
    loaders, seen = scene.facts.loaders, scene.facts.observed
    if any(not one.pin_memory or not one.workers for one in loaders):
        one = next(one for one in loaders if not one.pin_memory or not one.workers)
        return _Said("ok", f"a DataLoader with workers={one.workers}, pin_memory={one.pin_memory}")
    if loaders:
        return _Said("unknown", "its DataLoaders have workers and pinned memory; look whether they prefetch")
    copies = seen.calls("aten::_to_copy", "aten::copy_") if seen else 0
    if copies:
        return _Said("unknown", f"no DataLoader, {copies} copies a step; look whether they come from the host")
    return _Said("no", "no DataLoader, and a step copies nothing")


def _accumulation(scene: Scene) -> _Said:
    seen = scene.facts.observed
    if seen is None:
        return _Said("unknown", "no step was observed")
    if seen.accumulates:
        return _Said("ok", f"{seen.backwards} backward passes for {seen.optimizer_steps} optimizer steps")
    return _Said("no", f"{seen.backwards} backward passes for {seen.optimizer_steps} optimizer steps")


def _training(scene: Scene) -> _Said:
    seen = scene.facts.observed
    if seen and seen.backwards:
        return _Said("ok", f"a step has {seen.backwards} backward passes")
    return _Said("no", "a step has no backward pass")


def _distributed(scene: Scene) -> _Said:
    if scene.facts.world > 1:
        return _Said("ok", f"{scene.facts.world} processes train together")
    return _Said("no", "one process trains by itself")


def _devices(scene: Scene) -> _Said:
    if scene.gpus > 1:
        return _Said("ok", f"the machine has {scene.gpus} GPUs")
    return _Said("no", f"the machine has {scene.gpus} GPU" + ("" if scene.gpus == 1 else "s"), machine=True)


CHECKS: dict[str, Callable[[Scene], _Said]] = {
    "gpu": _gpu,
    "no-capture-blocker": _capture,
    "capturable-optimizer": _capturable,
    "fusible-optimizer": _fusible,
    "attention-by-hand": _attention,
    "convolutions": _convolutions,
    "bf16": _bf16,
    "tf32": _tf32,
    "float32": _float32,
    "compiler": _compiler,
    "not-compiled": _not_compiled,
    "loader": _loader,
    "accumulation": _accumulation,
    "training": _training,
    "distributed": _distributed,
    "devices": _devices,
}
"""How each name of `core.trial.NEEDS` is checked."""


def _figure(scene: Scene, name: str, what: str) -> _Said:
    """Whether the device's page gives a rate for it."""
    if scene.target is None:
        return _Said("unknown", f"no hardware page names {scene.facts.device}")
    figure = scene.target.figures.get(name)
    if figure is None or figure.value == "UNKNOWN":
        return _Said("unknown", f"the page of {scene.target.id} gives no {name}")
    return _Said("ok", f"{scene.target.id}: {what} at {figure.value:g} {figure.unit}")


def _by_hand(path: Path) -> list[str]:
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
            softmaxes = [node.lineno for node in nodes if _called(node) in ("softmax", "Softmax")]
            between = [line for line in softmaxes if products and min(products) <= line <= max(products)]
            found += [f"{path.name}:{line}" for line in between]
    return list(dict.fromkeys(found))


def _is_product(node: ast.expr) -> bool:
    is_operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    return is_operator or _called(node) in ("matmul", "bmm", "einsum", "baddbmm")


def _called(node: ast.expr) -> str:
    """The last name of a call's function; empty: it is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else str(getattr(function, "id", ""))


def _kinds(scene: Scene) -> str:
    return ", ".join(dict.fromkeys(one.kind for one in scene.facts.optimizers))


def _places(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{Path(one.file).name}:{one.line} {one.what}" for one in findings[:3])


def _gpus() -> int:
    """GPUs that PyTorch could use, without starting it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([one for one in visible.split(",") if one.strip() and one.strip() != "-1"])
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))


def _cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(word for line in lines if line.startswith("flags") for word in line.split()[2:])

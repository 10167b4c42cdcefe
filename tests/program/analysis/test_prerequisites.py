from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from programs import program
from trial_kit import FACTS, OBSERVED

from warpsmith import project as projects
from warpsmith.core.trial import NEEDS, Prerequisite, ProgramRules
from warpsmith.errors import SolutionFailed
from warpsmith.knowledge.catalog import Catalog
from warpsmith.lab.machine import hardware
from warpsmith.program.analysis import prerequisites
from warpsmith.program.analysis.prerequisites import ProgramContext, ProgramInspection
from warpsmith.program.capture.rules import Observation
from warpsmith.program.lines.models import LineFinding, LineKind
from warpsmith.program.models import LoaderFacts, OptimizerFacts, ReplicaFacts
from warpsmith.program.process.program import resolve_step_program

H200 = hardware.read_target_page(projects.find_project(), "h200").target
CPU = ProgramContext(
    facts=FACTS, target=None, gpus=0, cpu_flags=frozenset(), compiler=True, sources=(), observations=()
)  # fmt: skip
GPU_FACTS = FACTS.model_copy(update={"gpu": True, "gpu_at_hand": True, "device": "NVIDIA H200"})
GPU = replace(CPU, facts=GPU_FACTS, target=H200, gpus=1)
REPLICA = ReplicaFacts(
    buckets=(8,), cap_bytes=8, unused_bytes=0, find_unused=False, bucket_views=True, static_graph=False
)
ADAM = OptimizerFacts(kind="AdamW", tensors=12, fused=False, capturable=False)


def seen(scene: ProgramContext, **changes: object) -> ProgramContext:
    """The scene with another observed step."""
    return facts(scene, observed=OBSERVED.model_copy(update=changes))


def facts(scene: ProgramContext, **changes: object) -> ProgramContext:
    """The scene with other facts."""
    return replace(scene, facts=scene.facts.model_copy(update=changes))


def checked(name: str, scene: ProgramContext) -> Prerequisite:
    (one,) = prerequisites.check_prerequisites("entry", ProgramRules(needs=(name,)), scene).checks
    assert one.name == name
    assert one.evidence
    return one


def found(certainty: str, kind: str = "host-read") -> tuple[Observation, ...]:
    return (Observation(kind, ".item()", "/somewhere/train.py", 12, certainty),)  # type: ignore[arg-type]


def lacking(folder: Path, text: str, scene: ProgramContext, *needs: str) -> str:
    """What a trial would be refused for."""
    rules = {"entry": ProgramRules(needs=needs)}
    return prerequisites.unmet_by_entry(
        projects.find_project(), program(folder, text), scene.facts, ProgramInspection(), rules
    )["entry"]


def test_the_first_that_does_not_hold_is_said_and_unknown_is_none(tmp_path: Path) -> None:
    text = "import torch\ndef train_step():\n    return torch.ones(2).sum()\n"
    assert lacking(tmp_path, text, CPU, "float32", "tf32", "gpu").startswith(f"it requires that {NEEDS['tf32']}: ")
    unknown = seen(CPU, products={})
    assert checked("float32", unknown).state == "unknown"
    assert lacking(tmp_path, text, unknown, "float32", "training") == ""


class Started:
    """A started program whose watched steps have one blocker, or fail."""

    def __init__(self, path: Path, *, fails: bool = False) -> None:
        self.program, self.fails, self.tasks = resolve_step_program(str(path), "train_step"), fails, list[str]()

    def call(self, task: str, **_: object) -> object:
        self.tasks.append(task)
        if task == "imported_files":
            return {str(self.program.folder / name): "0" for name in ("z.py", self.program.path.name, "a.py")}
        if self.fails:
            raise SolutionFailed("its step fails")
        return {"observations": [asdict(found("certain")[0])], "lines": {"flops": 8.0}}


def test_steps_are_watched_where_an_entry_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("def train_step(): ...\n")
    unwatched = Started(path)
    inspection = prerequisites.inspect_program(unwatched, CPU.facts, watch=False)  # type: ignore[arg-type]
    assert ([file.name for file in inspection.files], inspection.observations) == (
        ["train.py", "a.py", "z.py"],
        None,
    )
    assert unwatched.tasks == ["imported_files"]
    watched = prerequisites.inspect_program(Started(path), CPU.facts, watch=True)  # type: ignore[arg-type]
    assert (watched.observations, watched.lines and watched.lines.flops) == (found("certain"), 8.0)
    failed = prerequisites.inspect_program(Started(path, fails=True), CPU.facts, watch=True)  # type: ignore[arg-type]
    assert (failed.observations, failed.lines) == (None, None)
    assert prerequisites.needs_watching(ProgramRules(needs=("gpu", "no-capture-blocker")))
    assert not prerequisites.needs_watching(ProgramRules(needs=("gpu",)))


def line(kind: LineKind, **changes: object) -> LineFinding:
    fields = {"kind": kind, "file": "train.py", "line": 12, "function": "step", "code": "", "calls": 2}
    return LineFinding.model_validate(
        {**fields, "operation": "`.item()`", "cause": "it waits", "remedy": "do not", **changes}
    )


def test_a_line_entry_needs_a_line_of_its_kind() -> None:
    scene = replace(CPU, lines=(line("wait"), line("loop", sequential=True)))
    assert (checked("host-wait", scene).state, "train.py:12" in checked("host-wait", scene).evidence) == (
        "ok",
        True,
    )
    assert checked("operator-loop", scene).state == "no", "each iteration reads the one before"
    assert checked("operator-loop", replace(CPU, lines=(line("loop"),))).state == "ok"
    assert checked("strided-copy", scene).state == "no"
    assert checked("strided-copy", CPU).state == "unknown"


def test_every_name_has_a_check():
    assert list(prerequisites.CHECKS) == list(NEEDS)


@pytest.mark.parametrize(
    ("name", "scene", "state", "says"),
    [
        ("gpu", GPU, "ok", "it runs on NVIDIA H200"),
        ("gpu", facts(CPU, gpu_at_hand=True), "no", "move it there first"),
        ("no-capture-blocker", GPU, "ok", "graph check"),
        ("no-capture-blocker", replace(GPU, observations=found("certain")), "no", "train.py:12 .item()"),
        (
            "no-capture-blocker",
            replace(GPU, observations=found("likely")),
            "unknown",
            "likely: train.py:12 .item()",
        ),
        ("no-capture-blocker", replace(GPU, observations=found("look")), "ok", "nothing in the watched steps"),
        ("no-capture-blocker", replace(GPU, observations=None), "unknown", "graph check"),
        (
            "no-capture-blocker",
            replace(GPU, observations=found("certain", "optimizer")),
            "ok",
            "nothing in the watched steps",
        ),
        ("no-capture-blocker", seen(GPU, shapes_vary=True), "unknown", "different shapes"),
        ("no-capture-blocker", seen(GPU, graph_launches=3), "no", "launches 3 CUDA graphs"),
        ("capturable-optimizer", GPU, "ok", "no optimizer"),
        ("capturable-optimizer", facts(GPU, optimizers=(ADAM,)), "unknown", "capturable=False"),
        (
            "capturable-optimizer",
            facts(GPU, optimizers=(ADAM.model_copy(update={"capturable": True}),)),
            "ok",
            "AdamW",
        ),
        ("fusible-optimizer", facts(CPU, optimizers=(ADAM,)), "ok", "AdamW updates 12 parameters"),
        (
            "fusible-optimizer",
            facts(CPU, optimizers=(ADAM.model_copy(update={"fused": True}),)),
            "no",
            "already fused",
        ),
        (
            "fusible-optimizer",
            facts(CPU, optimizers=(OptimizerFacts(kind="LBFGS", tensors=2),)),
            "no",
            "LBFGS has no",
        ),
        ("fusible-optimizer", CPU, "no", "no optimizer"),
        ("attention-by-hand", CPU, "no", "no softmax between"),
        (
            "attention-by-hand",
            seen(CPU, operators={"aten::scaled_dot_product_attention": 4}),
            "no",
            "scaled_dot_product_attention 4 times",
        ),
        (
            "attention-by-hand",
            seen(CPU, operators={"aten::_softmax": 4, "aten::bmm": 8}),
            "unknown",
            "batched products",
        ),
        ("convolutions", CPU, "no", "no convolution"),
        ("convolutions", facts(CPU, modules={"Conv2d": 5}), "ok", "5 convolution layers"),
        ("convolutions", facts(CPU, modules={"Conv2d": 5}, channels_last=True), "no", "already"),
        ("convolutions", seen(CPU, operators={"aten::convolution": 2}), "unknown", "2 convolutions"),
        ("bf16", GPU, "ok", "989.5 TFLOP/s"),
        ("bf16", replace(GPU, target=None), "unknown", "no hardware page names NVIDIA H200"),
        ("bf16", CPU, "no", "amx_bf16"),
        ("bf16", replace(CPU, cpu_flags=frozenset({"avx512_bf16"})), "ok", "avx512_bf16"),
        ("tf32", GPU, "ok", "494.5 TFLOP/s"),
        ("tf32", CPU, "no", "NVIDIA GPUs"),
        ("float32", CPU, "ok", "6 products"),
        ("float32", seen(CPU, autocast=("bfloat16",)), "no", "bfloat16 is already"),
        ("float32", facts(CPU, parameter_dtypes={"float16": 3}), "no", "float16 is already"),
        ("float32", facts(GPU, tf32_products=True), "unknown", "TF32"),
        ("compiler", CPU, "ok", "C++ compiler"),
        ("compiler", replace(CPU, compiler=False), "no", "install g++"),
        ("not-compiled", CPU, "ok", "not called"),
        ("not-compiled", facts(CPU, compiled=("default",)), "no", "mode default"),
        ("loader", CPU, "no", "no DataLoader"),
        ("loader", seen(CPU, operators={"aten::copy_": 2}), "unknown", "2 copies"),
        (
            "loader",
            facts(CPU, loaders=(LoaderFacts(workers=0, pin_memory=False, batch=8, persistent=False),)),
            "ok",
            "workers=0",
        ),
        (
            "loader",
            facts(CPU, loaders=(LoaderFacts(workers=2, pin_memory=True, batch=8, persistent=True),)),
            "unknown",
            "prefetch",
        ),
        ("accumulation", CPU, "no", "1 backward passes for 1"),
        ("accumulation", seen(CPU, backwards=4), "ok", "4 backward passes for 1"),
        ("training", CPU, "ok", "1 backward passes"),
        ("training", seen(CPU, backwards=0), "no", "no backward pass"),
        ("distributed", CPU, "no", "one process"),
        ("distributed", facts(CPU, world=4), "ok", "4 processes"),
        ("distributed", replace(facts(CPU, world=4), differences=("net.weight",)), "no", "values of net.weight"),
        ("replicas", CPU, "no", "no DistributedDataParallel"),
        ("replicas", facts(CPU, replicas=(REPLICA,)), "ok", "static_graph=False"),
        ("sharded", CPU, "no", "0 modules"),
        ("sharded", facts(CPU, sharded_modules=4), "ok", "4 modules"),
        ("devices", replace(CPU, gpus=8), "ok", "8 GPUs"),
        ("devices", GPU, "no", "1 GPU"),
    ],
)
def test_each_state_has_its_evidence(name, scene, state, says):
    one = checked(name, scene)
    assert (one.state, says in one.evidence) == (state, True), one


def test_a_step_that_shows_nothing_lacks_everything(tmp_path):
    text = "def train_step():\n    pass\n"
    silent = seen(CPU, returns=False, optimizer_steps=0)
    assert lacking(tmp_path, text, silent).endswith("return the loss or the outputs")
    for told in ({"returns": True}, {"returns": None}, {"optimizer_steps": 1}):
        assert lacking(tmp_path, text, seen(CPU, **{"returns": False, "optimizer_steps": 0} | told)) == "", told


@pytest.mark.parametrize("name", ["gpu", "bf16", "tf32", "devices"])
def test_what_the_machine_lacks_is_not_the_program_s_fault(name):
    assert checked(name, CPU).machine


def test_attention_by_hand_is_found_in_the_source(tmp_path: Path) -> None:
    by_hand = tmp_path / "model.py"
    by_hand.write_text(
        "def attend(q, k, v):\n    scores = q @ k.transpose(-1, -2)\n    return scores.softmax(-1) @ v\n"
    )
    other = tmp_path / "loss.py"
    other.write_text("def loss(x, w):\n    return (x @ w).softmax(-1).log()\n\ndef broken(:\n")
    scene = replace(CPU, sources=(by_hand, other, tmp_path / "gone.py"))
    one = checked("attention-by-hand", scene)
    assert (one.state, one.evidence) == ("ok", "a softmax between two products at model.py:3")


def test_what_is_refused_names_what_does_not_hold():
    found = prerequisites.check_prerequisites("entry", ProgramRules(needs=("training", "gpu", "loader")), CPU)
    assert [one.name for one in found.refused] == ["gpu", "loader"]


def test_the_shipped_entries_stand_together():
    entries = {
        one.id: one.matter.program
        for one in Catalog.load(projects.find_project()).entries.values()
        if one.matter.program
    }
    assert set(entries) == {
        "cuda-graphs-for-launch-bound", "torch-compile", "fused-optimizer", "scaled-dot-product-attention",
        "mixed-precision-bf16", "tf32-matrix-products", "channels-last", "pinned-memory-prefetch",
        "gradient-accumulation-fusion", "activation-checkpointing", "memory-pool", "gradient-bucketing-overlap",
        "balanced-ranks", "data-parallel-switches", "one-reduction-per-step", "sharded-prefetch",
        "sharded-parallelism", "one-batched-call", "no-wait-in-step", "no-strided-copies", "split-cache-decode",
    }  # fmt: skip
    for id, rules in entries.items():
        assert {*rules.after, *rules.excludes} <= set(entries), id
        assert id not in _before(id, entries), f"{id} comes before itself"


def _before(id: str, entries: dict[str, ProgramRules]) -> set[str]:
    """Everything that comes first, near and far."""
    found: set[str] = set()
    waiting = list(entries[id].after)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += entries[one].after
    return found

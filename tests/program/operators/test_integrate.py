"""Accepted kernels back in a program: the switch, what is covered, and what is kept."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_operators import Here
from trial_kit import clock, pause

from warpsmith import languages
from warpsmith import project as projects
from warpsmith.core.trial import TrialVerdict
from warpsmith.errors import CorruptRecord, MachineLacks, MissingInput, Misuse
from warpsmith.lab.operator import definition_file
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.languages.base import Build
from warpsmith.program.operators import (
    extract,
    extraction_file,
    integrate,
    kernel_override,
    transfer_audit,
)
from warpsmith.program.operators.models import Extraction
from warpsmith.program.operators.transfer_record import Transfer
from warpsmith.program.process import operator_values
from warpsmith.program.process.program import Program, resolve_step_program
from warpsmith.program.tasks import transfer
from warpsmith.program.trials import pair_timing, trial
from warpsmith.project import Project
from warpsmith.use import choice, operator
from warpsmith.use.choice import BestVersion

torch = pytest.importorskip("torch")

STEP = '''"""A program."""

from __future__ import annotations

import torch
from trial_kit import pause
from test_integrate import KERNEL

torch.manual_seed(1)
x = torch.nn.Parameter(torch.randn(6, 16))

def train_step():
    before = KERNEL.calls
    y = torch.softmax(x * 2, -1)
    pause(0.004 if KERNEL.calls == before else KERNEL.pause)
    loss = y.square().sum()
    loss.backward()
    with torch.no_grad():
        x.sub_(x.grad)
    x.grad = None
    return loss
'''
KERNEL = SimpleNamespace(calls=0, run=None, pause=0.0015)
"""The accepted version; a step in which it was called is as long as `pause` and the kernel."""


def honest(x: Any) -> Any:
    pause(0.0005)
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


class Caching:
    """Keeps the last result, of the same tensor with the same content."""

    def __init__(self) -> None:
        self.key: Any = None

    def __call__(self, x: Any) -> Any:
        key = (id(x), x._version, x.double().sum().item())
        if key != self.key:
            self.key, self.result = key, honest(x)
        return self.result.clone()


class Side(Here):
    """A side in this process: whether it has a kernel is its own program's affair."""

    def __init__(self, program: Program, *given: Any, env: Any = None, **more: Any) -> None:
        super().__init__(program, *given, **more)
        self._off = bool(env)
        self._own: dict[str, Any] = {}

    def start(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel_override, "_libraries", self._own)
            if self._off:
                patch.setenv(kernel_override.SWITCH, "0")
            super().start()
        self._set(False)

    def run(self, *given: Any, **more: Any) -> Any:
        self._set(True)
        try:
            return super().run(*given, **more)
        finally:
            self._set(False)

    def _set(self, on: bool) -> None:
        """The overrides of this side are in place while it runs alone."""
        for op in list(self._own):
            self._own.pop(op)._destroy()
            if on:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(kernel_override, "_libraries", self._own)
                    kernel_override._install(op)
            else:
                self._own[op] = SimpleNamespace(_destroy=lambda: None)

    def __exit__(self, *given: object) -> None:
        self._set(False)
        super().__exit__(*given)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A project with `softmax` extracted from its program, and a version of it accepted."""
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "train.py").write_text(STEP)
    monkeypatch.chdir(tmp_path)
    for module in (pair_timing, trial, integrate, extract):
        monkeypatch.setattr(module, "open_runner", Side)
    monkeypatch.setattr(transfer, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(pair_timing, "BATCH_SECONDS", 0.005)
    monkeypatch.setattr(pair_timing, "BUDGET", TimingBudget(rounds=5, most=6, seconds=0.5, width=0.05))
    monkeypatch.setattr(pair_timing.time_pair, "__defaults__", (pair_timing.BUDGET, print, ()))
    monkeypatch.setattr(pair_timing.time_program, "__defaults__", (pair_timing.BUDGET, print))
    found = projects.find_project(tmp_path)
    extract.extract_operator(found, program(found), operator="aten::_softmax", tell=lambda _: None)
    accept(found, monkeypatch, honest)
    operator._best.cache_clear()
    yield found
    kernel_override.disable()
    operator._best.cache_clear()


def test_the_file_keeps_its_mode(here):
    (here.root / "train.py").chmod(0o755)
    assert run(here).is_kept
    assert (here.root / "train.py").stat().st_mode & 0o777 == 0o755


def program(here: Project) -> Program:
    return resolve_step_program(str(here.root / "train.py"), "train_step")


def accept(here: Project, monkeypatch: pytest.MonkeyPatch, run: Any, pause: float = 0.0015) -> None:
    def counted(*given: Any) -> Any:
        KERNEL.calls += 1
        return run(*given)

    KERNEL.pause = pause
    file = here.kernels / "softmax" / "toy" / "v3.toy"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(str(here.root) + repr(run))
    chosen = BestVersion(
        op="softmax", solution="toy/v3", language="toy", target="cpu", device="a device", file=file,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(), record=file.parent / "record.json", speedups=(),
    )  # fmt: skip
    toy = SimpleNamespace(
        missing=lambda kind: None, build=lambda source, *_: Build(source, source, ()), load=lambda *_: counted
    )
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {"cpu": [chosen]})
    monkeypatch.setattr(languages, "get", lambda name: toy)
    operator._best.cache_clear()


def run(here: Project, **more: Any) -> integrate.Integration:
    return integrate.integrate_kernel(here, "softmax", program(here), tell=lambda _: None, **more)


def test_an_honest_kernel_that_makes_the_step_faster_is_kept(here):
    found = run(here)
    assert found.is_kept, found.closed.record.decision.reason
    text = (here.root / "train.py").read_text()
    assert text == integrate.insert_line(STEP, kernel_override.enabling_line("softmax"), here.root / "train.py")
    assert found.transfer.inflated == ()
    assert found.transfer.measured is not None
    assert found.transfer.measured.speedup == pytest.approx(2, rel=0.05)
    kept = Transfer.model_validate_json((found.closed.folder / transfer_audit.TRANSFER_FILE).read_bytes())
    assert kept == found.transfer
    with pytest.raises(Misuse, match="already has the line of softmax"):
        run(here)


def test_a_kernel_that_gains_where_inputs_repeat_is_said_and_restored(here, monkeypatch):
    accept(here, monkeypatch, Caching())
    found = run(here)
    assert found.closed.record.decision.verdict is TrialVerdict.RESTORED
    assert "residual share" in found.closed.record.decision.reason
    assert [one.workload for one in found.transfer.inflated] == [one.workload for one in found.transfer.workloads]
    assert (here.root / "train.py").read_text() == STEP


def test_noise_that_could_hide_a_kept_result_is_no_pass(here, monkeypatch):
    """Each call waits for up to a hundred times as long as it computes, whatever it is called with."""
    chance = random.Random(3)

    def noisy(x):
        pause(chance.choice((0.0, 0.02)))
        return honest(x)

    monkeypatch.setattr(transfer, "PASSES", (1, 2))
    accept(here, monkeypatch, noisy)
    found = run(here)
    assert not found.is_kept
    assert "too noisy" in found.closed.record.decision.reason
    assert (here.root / "train.py").read_text() == STEP


def test_what_chance_makes_of_a_few_pairs_more_of_them_take_back(here, monkeypatch):
    """An honest kernel's first repeated calls happen to take half the time of all its others."""
    passes = []

    class Lucky(transfer._PairTimer):
        def time_pairs(self, condition: str) -> None:
            super().time_pairs(condition)
            passes.append(condition)
            if condition == "same" and passes.count("same") == 1:
                self.times[condition] = [(reference, 0.5 * own) for reference, own in self.times[condition]]

    monkeypatch.setattr(transfer, "_PairTimer", Lucky)
    monkeypatch.setattr(transfer, "PASSES", (1, 4))
    assert run(here).is_kept
    assert len(passes) > 3


def test_more_passes_settle_what_a_few_do_not(here, monkeypatch):
    passes = []
    settled = iter([False, False, False, True])
    monkeypatch.setattr(
        transfer, "detects_kept_result", lambda error, seconds: passes.append(error) or next(settled)
    )
    assert run(here).is_kept
    assert len(passes) == 4


def test_a_kernel_that_gains_nothing_is_restored(here, monkeypatch):
    accept(here, monkeypatch, honest, pause=0.0035)
    found = run(here)
    assert not found.is_kept
    assert "no gain" in found.closed.record.decision.reason
    assert (here.root / "train.py").read_text() == STEP


def test_a_kernel_that_is_wrong_in_the_program_is_restored(here, monkeypatch):
    accept(here, monkeypatch, lambda x: honest(x) * 1.01)
    found = run(here)
    assert not found.is_kept
    assert "wrong numerics" in found.closed.record.decision.reason
    assert (here.root / "train.py").read_text() == STEP


def test_without_an_extraction_or_a_version_nothing_is_edited(here, monkeypatch):
    with pytest.raises(MissingInput, match="was not extracted from a program"):
        integrate.integrate_kernel(here, "other", program(here))
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {})
    with pytest.raises(MissingInput, match="No version of softmax was accepted for cpu"):
        run(here)
    (here.kernels / "softmax" / "calls.json").write_text("{}")
    with pytest.raises(CorruptRecord, match="does not read"):
        run(here)
    assert (here.root / "train.py").read_text() == STEP


def test_a_trial_is_of_the_best_version_and_of_no_other(here, monkeypatch):
    """`best` would run the next best one; the record would name the wrong one."""
    lacking = SimpleNamespace(missing=lambda kind: "No C++ compiler is on PATH.")
    monkeypatch.setattr(languages, "get", lambda name: lacking)
    with pytest.raises(MachineLacks, match=r"toy/v3 cannot run here.*No C\+\+ compiler"):
        run(here)
    assert (here.root / "train.py").read_text() == STEP


def enabled(here: Project) -> bool:
    """What the line does, in a file of the project."""
    scope = {"__file__": str(here.root / "train.py")}
    exec(f"{kernel_override.enabling_line('softmax').replace('enable(', 'found = enable(')}", scope)
    return bool(scope["found"])


def test_only_calls_that_the_definition_covers_are_replaced(here, monkeypatch):
    monkeypatch.chdir("/")
    assert enabled(here)
    KERNEL.calls = 0
    x = torch.randn(6, 16, requires_grad=True)
    y = torch.softmax(x, -1)
    assert KERNEL.calls == 1
    y.square().sum().backward()  # PyTorch's own gradient
    assert x.grad is not None
    for other in (
        torch.randn(7, 16), torch.randn(16, 6).t(), torch.randn(6, 16).double(), torch.randn(6, 16)[None]
    ):  # fmt: skip
        torch.softmax(other, -1)
    torch.softmax(x, 0)
    assert KERNEL.calls == 1
    kernel_override.disable()
    torch.softmax(x, -1)
    assert KERNEL.calls == 1


def test_the_switch_leaves_pytorch_alone(here, monkeypatch):
    monkeypatch.setenv(kernel_override.SWITCH, "0")
    assert not enabled(here)
    monkeypatch.delenv(kernel_override.SWITCH)
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {})
    with pytest.warns(UserWarning, match="no version was accepted"):
        assert not enabled(here)


def test_the_records_are_read_once(here, monkeypatch):
    read, ranked = [], choice.rank_versions
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: read.append(op) or ranked(project, op))
    assert enabled(here)
    assert read == ["softmax"]


def test_where_no_version_can_run_the_operator_stays_pytorchs(here, monkeypatch):
    lacking = SimpleNamespace(missing=lambda kind: "No C++ compiler is on PATH.")
    monkeypatch.setattr(languages, "get", lambda name: lacking)
    with pytest.warns(UserWarning, match=r"No C\+\+ compiler is on PATH; PyTorch's own operator runs") as caught:
        assert not enabled(here)
    assert len(caught) == 1


def test_a_result_in_another_order_is_given_back_as_pytorch_does(here):
    found = extraction_file.read_extraction(here, "softmax")
    turned = Extraction.model_validate(
        {
            **found.model_dump(),
            "slots": [found.slots[0].model_copy(update={"order": (1, 0)}), *found.slots[1:]],
            "results": [found.results[0].model_copy(update={"order": (1, 0)})],
        }
    )
    x = torch.randn(16, 6).t()
    (given,) = kernel_override._definition_inputs(turned.slots, [x, -1, False])
    assert given.is_contiguous()
    (back,) = kernel_override._operator_results(turned, given)
    assert (back.shape, back.stride()) == (x.shape, x.stride())


LISTS = """
import torch

a, b, c = torch.randn(2, 9, 4), torch.randn(2, 3, 4), torch.randn(2, 1, 4)
x = torch.randn(2, 4, 9).transpose(1, 2)

def train_step():
    torch._foreach_exp([a, c])
    torch._foreach_abs([b])
    torch.concat([b, c], 1)
    torch.cat([x, b], 1)
    return torch.cat([a, b], 1).sum() + torch.cat([a, b, c], 1).sum()
"""


@pytest.fixture
def put(here, monkeypatch):
    """`put(op, operator, run, like)` extracts an operator and puts `run` in its place; gives its calls."""
    (here.root / "train.py").write_text(LISTS)
    versions: dict[str, BestVersion] = {}
    runs: dict[str, Any] = {}
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {"cpu": [versions[op]]})
    monkeypatch.setattr(languages, "get", lambda name: SimpleNamespace(
        missing=lambda kind: None, build=lambda source, *_: Build(source, source, ()), load=lambda *_: runs[name]
    ))  # fmt: skip

    def make(op: str, name: str, run: Any, like: str = "") -> list[Any]:
        extract.extract_operator(here, program(here), operator=name, name=op, like=like, tell=lambda _: None)
        calls: list[Any] = []
        runs[op] = lambda *given: calls.append(given) or run(*given)
        file = here.kernels / op / "v1.toy"
        file.write_text(f"{here.root} {op}")
        versions[op] = BestVersion(
            op=op, solution="toy/v1", language=op, target="cpu", device="a device", file=file,
            sha256=hashlib.sha256(file.read_bytes()).hexdigest(), record=file, speedups=(),
        )  # fmt: skip
        kernel_override._install(op)
        return calls

    return make


def joined(*given: Any) -> Any:
    """What `torch.cat` along dimension 1 gives, without that operator."""
    out = given[0].new_empty(2, sum(one.shape[1] for one in given), 4)
    place = 0
    for one in given:
        out[:, place : place + one.shape[1]] = one
        place += one.shape[1]
    return out


def test_a_list_is_replaced_at_its_length_sizes_types_and_layouts_alone(put):
    calls = put("kv", "aten::cat", joined, "2x9x4+2x3x4-float32")
    a, b = torch.randn(2, 9, 4, requires_grad=True), torch.randn(2, 3, 4)
    y = torch.cat([a, b], 1)
    assert len(calls) == 1
    assert torch.equal(y, torch.cat([a.double(), b.double()], 1).float())
    y.square().sum().backward()
    assert torch.equal(a.grad, 2 * a)
    for given, dim in (
        ([a, b, b[:, :1]], 1), ([b, a], 1), ([a[:1], b[:1]], 1), ([a, b.half()], 1), ([a], 1), ([a, a], 0),
        ([torch.randn(2, 4, 9).transpose(1, 2), b], 1),
        ([torch.randn(9, 4), torch.randn(3, 4)], 0),
    ):  # fmt: skip
        torch.cat(given, dim)
    assert len(calls) == 1


def test_a_list_of_results_comes_back_as_one(put):
    calls = put("exps", "aten::_foreach_exp", lambda *given: tuple(one.exp() for one in given))
    given = [torch.randn(2, 9, 4), torch.randn(2, 1, 4)]
    found = torch._foreach_exp(given)
    assert type(found) in (list, tuple)
    assert all(torch.equal(one, each.exp()) for one, each in zip(found, given, strict=True))
    torch._foreach_exp([*given, given[0]])
    assert len(calls) == 1


def test_a_list_of_one_result_stays_a_list(put):
    calls = put("magnitudes", "aten::_foreach_abs", lambda one: one.abs())
    given = torch.randn(2, 3, 4)
    (found,) = torch._foreach_abs([given])
    assert torch.equal(found, given.abs())
    assert len(calls) == 1


def test_two_kernels_of_one_operator_stand_beside_each_other(put):
    two = put("two", "aten::cat", joined, "2x9x4+2x3x4-float32")
    three = put("three", "aten::cat", joined, "2x9x4+2x3x4+2x1x4-float32")
    two.clear()  # the program was run with it
    a, b, c = torch.randn(2, 9, 4), torch.randn(2, 3, 4), torch.randn(2, 1, 4)
    torch.cat([a, b], 1)
    torch.cat([a, b, c], 1)
    torch.cat([c, b, c], 1)
    assert (len(two), len(three)) == (1, 1)
    kernel_override.disable()
    torch.cat([a, b], 1)
    assert (len(two), len(three)) == (1, 1)


def test_where_a_composite_needs_a_gradient_pytorch_runs(put):
    calls = put("concat", "aten::concat", joined)
    b, c = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 1, 4)
    torch.concat([b, c], 1).sum().backward()
    assert b.grad is not None
    assert not calls
    torch.concat([b.detach(), c], 1)
    assert len(calls) == 1


def test_a_call_with_fewer_dimensions_than_a_transposed_input_is_pytorchs(here):
    """The program's calls are of transposed tensors; another part of it gives ones of two dimensions."""
    (here.root / "train.py").write_text(
        "import torch\nx = torch.randn(2, 4, 9).transpose(1, 2)\ndef train_step():\n    return x.exp().sum()\n"
    )
    found = extract.extract_operator(here, program(here), operator="aten::exp", tell=lambda _: None)
    covered = kernel_override.CoveredCalls(
        found.extraction, definition_file.load_definition(found.path).definition
    )
    operator = torch.ops.aten.exp.default
    assert covered(operator_values.bind_arguments(operator, [torch.randn(2, 4, 9).transpose(1, 2)], {}))
    assert not covered(operator_values.bind_arguments(operator, [torch.randn(4, 9)], {}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\n", "LINE\nimport torch\n"),
        ('"""Doc.\n\nMore."""\nimport torch\n', '"""Doc.\n\nMore."""\nLINE\nimport torch\n'),
        ('"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n',
         '"""Doc."""\nfrom __future__ import annotations\nLINE\n\nx = 1\n'),
        ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\nx = 1\n",
         "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\nLINE\nx = 1\n"),
        ("", "LINE\n"),
        ('"""Doc."""\r\nx = 1\r\n', '"""Doc."""\r\nLINE\r\nx = 1\r\n'),
        ('"""Doc.\x0c"""\nx = "\u2028"', '"""Doc.\x0c"""\nLINE\nx = "\u2028"'),
    ],
)  # fmt: skip
def test_the_line_stands_after_docstring_and_future_imports(text, expected):
    assert integrate.insert_line(text, "LINE", Path("train.py")) == expected


def test_what_is_no_python_is_said():
    with pytest.raises(Misuse, match="not Python"):
        integrate.insert_line("def (", "LINE", Path("train.py"))

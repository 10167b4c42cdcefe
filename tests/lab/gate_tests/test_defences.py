"""Defences of the gate: each refuses an attack that gets through when only that defence is switched off.

`DEFENCES` is the table. Where two defences overlap, either alone refuses the attack; then both are switched off
together, and a comment says why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

import pytest
import session_clock
from lab_samples import needs_early_start
from opened_walls import OPENED
from workshop import Workshop

from warpsmith.core import gate_rules, trust
from warpsmith.core.campaign import Thresholds
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Evaluation, Verdict
from warpsmith.core.trust import Check
from warpsmith.lab.gate import correctness_check, decision, judge, lint, unseen
from warpsmith.lab.gate.calls import leftovers
from warpsmith.lab.gate.calls.callers import OtherCallers
from warpsmith.lab.gate.calls.late_calls import LateCalls
from warpsmith.lab.gate.calls.probes import Probes
from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate.request import Candidate
from warpsmith.lab.gate_tests import cases as redteam_cases
from warpsmith.lab.gate_tests import redteam
from warpsmith.lab.gate_tests.cases import CORPUS, RedTeamCase
from warpsmith.lab.grading import adversarial, correctness, error_figures, odd, shapes
from warpsmith.lab.machine import hardware, system
from warpsmith.lab.operator import definition_file, inputs
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.timing import answers, session, slots, timing
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers import arena, worker_host
from warpsmith.lab.workers.calls.fresh_memory import FreshContent
from warpsmith.lab.workers.side import Limits, Side
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.cpp import language as cpp_language
from warpsmith.project import Project

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

Switch = Callable[[pytest.MonkeyPatch], None]
"""Removes a part of the grader until the test ends."""

_QUICK = Limits(seconds=60)
_BEFORE_TIMING = frozenset(("lint", "build", "correctness", "probes"))
"""Checks that the test of the corpus runs too, so that a refusal there need not be shown again."""
_AHEAD_SECONDS = 0.02
"""Core time in which a thread of an attack has computed from inputs that were just written."""
_CALLED: WeakSet[Side] = WeakSet()
_SLOW = frozenset(("time limit", "memory limit"))
_EARLY = ("inputs that arrive late", "inputs that arrive late, captured")
"""Defences that only a GPU can show."""


class Defence(NamedTuple):
    """A defence against an attack, and the switches that turn it off."""

    attack: str
    off: tuple[Switch, ...] = ()
    """In the grader."""
    walls: tuple[str, ...] = ()
    """Of the worker, by their names in `WALLS`."""
    timed: bool = False
    """Whether it takes timing to refuse it; then it must be accepted without the defence."""
    limits: Limits = _QUICK
    """With the defence."""
    wider: Limits = _QUICK
    """Without it."""


def without(owner: Any, name: str, put: Any = lambda *_, **__: None) -> Switch:
    """Replace `owner.name` by `put`; by default by a function that does nothing."""
    return lambda patch: patch.setattr(owner, name, put)


def _seed_the_same(self: Inputs) -> None:
    self._generator.manual_seed(7)


def _draw_the_same(self: Inputs, *arguments: Any, **named: Any) -> Any:
    _seed_the_same(self)
    return _draw(self, *arguments, **named)


def _several_the_same(self: Inputs, count: int, *arguments: Any, **named: Any) -> Any:
    return (_draw_the_same(self, *arguments, **named) for _ in range(count))


def _call_unpoisoned(
    self: Session, name: str, slot: int = 0, *, fresh: FreshContent = "", **options: bool
) -> float:
    return _call(self, name, slot, **options)


def _call_after_a_start(self: Session, name: str, *arguments: Any, **named: Any) -> float:
    self.sides[name].resume()
    session_clock.wait_for_sleep(self.sides[name].pid)
    return _call(self, name, *arguments, **named)


def _call_while_threads_run(self: Session, name: str, *arguments: Any, **named: Any) -> float:
    worker = self.sides[name]
    if worker in _CALLED:  # its first call starts the thread
        session_clock.yield_to_main_thread(worker.pid)  # a thread that only waits is no part of the call
        session_clock.wait_for_core_time(worker.pid, _AHEAD_SECONDS)
    if name == SOLUTION:
        _CALLED.add(worker)
    return _call(self, name, *arguments, **named)


def _write_at_once(self: Session, slot: int, values: Any) -> None:
    """Write inputs so that no thread of a worker that is not stopped otherwise sees half of them."""
    for worker in self.sides.values():
        _pause(worker)
    _write(self, slot, values)
    for worker in self.sides.values():
        worker.resume()


def _graded_after_a_while(self: Session, *arguments: Any, **options: Any) -> Any:
    time.sleep(0.4 if self.workload.axes["total"] > 4000 else 0)
    return _graded(self, *arguments, **options)


def _late_uncaptured(self: Session, name: str, *, captured: bool) -> str:
    return "left out" if captured else _late(self, name, captured=False)


def _truth_without(**put: Any) -> Callable[..., Any]:
    def truth(*arguments: Any, **named: Any) -> Any:
        found = _truth(*arguments, **named)
        return replace(found, **{name: dict.fromkeys(found.values, value) for name, value in put.items()})

    return truth


def _special_anything(output: Any, expected: Any, bound: Any = None) -> Any:
    special, same = _special(output, expected, bound)
    return special, same | special


def _select_declared(self: Definition, *sets: Any) -> list[Workload]:
    return [workload for workload in _select(self, *sets) if workload.set != "odd"]


_select = Definition.select
_draw, _call, _late, _graded = (
    Inputs.draw,
    Session.call_side,
    Session.call_with_late_inputs,
    Session.grade_last_call,
)
_pause, _write = Side.pause, Session._write_slot
_truth, _special = correctness.compute_truth, error_figures.match_special_values

PLAIN_ROWS = (
    without(adversarial, "MASKED_ROWS", "normal"),
    without(adversarial, "PADDED_ROWS", "normal"),
    without(adversarial, "MIXED_ROWS", "normal"),
    without(adversarial, "UNMIXED", ("normal",)),
)
_LOOKS = 5
"""Judgements at most of an attack without its defence: noise may hide its gain, a draw its luck. One is enough."""

GUIDED = (
    without(unseen.guided_shapes, "draw_guided_workloads", lambda *_, **__: []),
    without(CorrectnessCheck, "_check_planted"),
    without(CorrectnessCheck, "_check_near_scalar"),
)
"""Draws at numbers of the source."""
COUNTED = without(
    judge,
    "build_with_counters",
    lambda language, source, definition, folder: {SOLUTION: language.build(source, definition, folder)},
)
"""Counters of lines."""
SHAPES = (
    *GUIDED,
    COUNTED,
    without(CorrectnessCheck, "_check_aliased"),
    without(shapes, "draw_class_workloads", lambda *_, **__: []),
    without(unseen.kept_shapes, "draw_kept_workloads", lambda *_, **__: []),
    without(shapes, "draw_close_workload", lambda *_, **__: None),
    without(shapes, "draw_middle_workload", lambda *_, **__: None),
    without(shapes, "draw_larger_workload", lambda *_, **__: None),
    without(shapes, "draw_far_workloads", lambda *_, **__: []),
    without(CorrectnessCheck, "check_plain"),
    without(Probes, "_call_on_views"),
)
"""Draws, calls and counters that are switched off with each defence, because they find many attacks too."""
NEAR = without(odd, "draw_near_workloads", lambda *_, **__: [])
NO_LOADERS = tuple(rule for rule in lint._REFUSALS if rule[0] is not lint._LOADER)

_CORES_OF_A_WATCHER = 3
CALLERS = without(OtherCallers, "check")
"""Inputs in pages of their own end with a call, and a version that still looks at them ends too."""
PAGES = without(OtherCallers, "check_pages")
CONDITIONS = without(
    judge.conditions, "check_conditions", lambda *_: Check(name="other conditions", ran=False, how="off")
)
LATE_EDITS = without(Probes, "_edit_after_calls")
ODD_EDITS = without(Probes, "_edit_at_odd_sizes")
SUCCESSION = without(Probes, "_call_in_succession")
OTHER_EDITS = (LATE_EDITS, ODD_EDITS, SUCCESSION)
DELIVERED_LATE = (
    without(Session, "reads_memory_of", lambda *_: False),
    without(Session, "_delivery", lambda *_: {}),
)

STATE = (without(leftovers, "require_same_state"),)

DEFENCES: dict[str, Defence] = {
    "lint of loaders": Defence(
        "matmul/cpp/attack_library_symbol.cpp",
        (without(lint, "_REFUSALS", NO_LOADERS), without(cpp_language, "_refuse_loaders")),
    ),
    "poison of outputs": Defence(
        "segment_sum/cpp/attack_trusts_output.cpp", (without(arena.Arena, "poison_all"),)
    ),
    "poison of the worker's memory": Defence(
        "matmul/cpp/attack_beta_zero.cpp", (without(Session, "call_side", _call_unpoisoned), *PLAIN_ROWS)
    ),
    "guard bands": Defence(
        "segment_sum/cpp/attack_before_start.cpp", (without(arena.Arena, "guards_are_intact", lambda *_: True),)
    ),
    "guard bands, far": Defence(
        "segment_sum/cpp/attack_far_write.cpp", (without(arena.Arena, "guards_are_intact", lambda *_: True),)
    ),
    "guards of NaN": Defence(
        "rmsnorm/cpp/attack_masks_by_zero.cpp",
        (without(slots, "NAN_PATTERN", arena.GUARD_PATTERN), CALLERS, PAGES),
    ),
    "inputs compared": Defence(
        "rmsnorm/cpp/attack_scales_in_place.cpp",
        (
            without(slots, "equal_bytes", lambda *_: True),
            without(correctness_check, "list_layouts", lambda *_: ("contiguous",)),
            without(correctness_check, "list_dense_layouts", lambda *_: ("contiguous",)),
            CALLERS,
            PAGES,
        ),
    ),
    "fresh inputs": Defence(
        "softmax/cpp/attack_large_cache.cpp",
        (
            without(Inputs, "draw", _draw_the_same),
            without(Inputs, "draw_several", _several_the_same),
            without(Inputs, "_reseed", _seed_the_same),
            *PLAIN_ROWS,
        ),
    ),
    "bound of elements": Defence(
        "rmsnorm/cpp/attack_last_of_row.cpp",
        (
            without(correctness, "compute_truth", _truth_without(required=0.0, norms=1e6)),
            without(correctness.gate_rules, "MISMATCH_BOUNDS", (1e30, 1e30)),
            without(CorrectnessCheck, "_may_mask", lambda *_: False),  # signs of infinite results
        ),
    ),
    "bound of the norm": Defence(
        "rmsnorm/cpp/attack_skips_small.cpp",
        (
            without(correctness, "compute_truth", _truth_without(norms=1e6)),
            *PLAIN_ROWS,
            without(correctness_check, "list_layouts", lambda *_: ("contiguous",)),
            without(correctness_check, "list_dense_layouts", lambda *_: ("contiguous",)),
        ),
    ),
    "places of NaN": Defence(
        "softmax/triton/attack_swallows_nan.py",
        (
            without(error_figures, "match_special_values", _special_anything),
            without(inputs.Inputs, "adversarial_distributions", ()),
        ),
    ),
    "shape": Defence("argmax/triton/attack_broadcast_shape.py", (without(session, "check_outputs"),)),
    "dtype": Defence("argmax/triton/attack_unsigned.py", (without(session, "check_outputs"),)),
    # A lazy result has no bytes yet when they are read at the answer. With its kernel launches suppressed it
    # computes afterwards, and then looks as if it did not need its kernels.
    "plain types": Defence(
        "argmax/triton/attack_lazy_tensor.py",
        (*DELIVERED_LATE, without(Probes, "_suppress_kernels")),
        ("plain types",),
    ),
    # A result that is wrong at declared odd sizes is wrong at drawn ones too.
    "odd sizes": Defence(
        "matmul/cpp/attack_hardcoded_sizes.cpp",
        (
            without(Definition, "select", _select_declared),
            without(odd, "derive_odd_workloads", lambda _: []),
            NEAR,
        ),
    ),
    "shapes at numbers of the source": Defence("rmsnorm/cpp/attack_far_threshold.cpp", GUIDED),
    "numbers of the source among inputs": Defence("softmax/cpp/attack_magic_value.cpp", GUIDED),
    "numbers of the source as numbers of the call": Defence("rmsnorm/cpp/attack_magic_number.cpp", GUIDED),
    "adversarial rows at large shapes": Defence("softmax_large/cpp/attack_no_shift.cpp", PLAIN_ROWS),
    "near sizes": Defence("softmax/cpp/attack_known_sizes.cpp", (NEAR,)),
    "adversarial distributions": Defence(
        "argmax/cpp/attack_last_of_ties.cpp", (without(inputs.Inputs, "adversarial_distributions", ()),)
    ),
    "layouts": Defence(
        "rmsnorm/cpp/attack_ignores_strides.cpp",
        (without(correctness_check, "list_layouts", lambda *_: ("contiguous",)),),
    ),
    "the same tensors with other numbers": Defence(
        "rmsnorm/cpp/attack_keeps_scales.cpp", (without(CorrectnessCheck, "_check_other_numbers"),)
    ),
    "revisit": Defence("matmul/cpp/attack_stale_lanes.cpp", (without(CorrectnessCheck, "check_again"), ODD_EDITS)),
    "one tensor as two inputs": Defence(
        "distance/cpp/attack_same_tensor.cpp", (without(CorrectnessCheck, "_check_aliased"),)
    ),
    "repeat": Defence(
        "softmax/cpp/attack_poison_sniffer.cpp",
        (without(CorrectnessCheck, "_check_repeat"), without(gate_rules, "NUMBERS_SHARE", 0)),
    ),
    "inputs that arrive late": Defence(
        "softmax/triton/attack_early_start.py", (without(LateCalls, "calls", lambda *_: ()),)
    ),
    "inputs that arrive late, captured": Defence(
        "softmax/triton/attack_early_when_captured.py",
        (without(Session, "call_with_late_inputs", _late_uncaptured),),
    ),
    "edits in place": Defence(
        "softmax/cpp/attack_fingerprint_cache.cpp",
        (without(Probes, "_edit_in_place"), *OTHER_EDITS),
    ),
    "exchanged places": Defence(
        "softmax/cpp/attack_known_content.cpp",
        (
            without(Probes, "_exchange_addresses"),
            without(Probes, "_edit_in_place"),
            LATE_EDITS,
            ODD_EDITS,
            SUCCESSION,
        ),
    ),
    "earlier results in memory": Defence(
        "softmax/cpp/attack_result_in_place.cpp", (without(Probes, "_reuse_memory"), SUCCESSION)
    ),
    "results held": Defence("softmax/triton/attack_shared_output.py", (without(Probes, "_hold_results"),)),
    "edits at timed sizes": Defence(
        "softmax/cpp/attack_fingerprint_at_one_size.cpp",
        (without(Probes, "_edit_at_timed_sizes"), without(Probes, "_time_repeats")),
        timed=True,
    ),
    "state of the process": Defence(
        "softmax/cpp/attack_flushes_subnormals.cpp", (without(Probes, "_compare_state"),)
    ),
    "memory of outputs": Defence(
        "softmax/triton/attack_oversized_storage.py", (without(answers, "_check_storages"),)
    ),
    "training loop": Defence(
        "matmul/cpp/attack_small_steps.cpp",
        (
            without(Probes, "_run_training_loop"),
            without(Probes, "_let_weights_drift"),
            without(Probes, "_edit_in_place"),
            LATE_EDITS,
            ODD_EDITS,
            SUCCESSION,
        ),
    ),
    "own kernels": Defence(
        "argmax/triton/attack_library_thread.py",
        (without(Probes, "_suppress_kernels"), without(Probes, "_record_library_calls")),
    ),
    "library calls": Defence(
        "softmax/triton/attack_copied_library.py", (without(Probes, "_record_library_calls"),)
    ),
    "kept results by time": Defence(
        "softmax/cpp/attack_content_memo.cpp",
        (without(Probes, "_time_repeats"), CONDITIONS),
        timed=True,
    ),
    "bounded memory": Defence("matmul/cpp/attack_unbounded_packs.cpp", (without(Probes, "_bound_memory"),)),
    "processes left": Defence("argmax/cpp/attack_daemon.cpp", (without(Side, "descendants", lambda _: []),)),
    "threads left": Defence(
        "segment_sum/cpp/attack_thread_leak.cpp",
        (without(leftovers, "require_few_left", lambda *_: None), without(Probes, "_require_no_growth")),
    ),
    "outputs at the answer": Defence("softmax/triton/attack_lazy_delivery.py", DELIVERED_LATE),
    "stopped worker": Defence(
        "softmax/cpp/attack_input_watcher.cpp",
        (
            without(Side, "pause"),
            without(Session, "_write_slot", _write_at_once),
            without(Session, "call_side", _call_while_threads_run),
            *STATE,  # the clock of these tests pins workers
            CALLERS,
            without(leftovers, "require_few_leftovers"),
            CONDITIONS,
        ),
        timed=True,
    ),
    "clock before the start": Defence(
        "softmax/cpp/attack_sigcont.cpp",
        (without(Session, "call_side", _call_after_a_start), *STATE, CALLERS),
        timed=True,
    ),
    "timed outputs graded": Defence(
        "softmax/cpp/attack_late_replay.cpp",
        (
            without(timing, "_grades_this_round", lambda *_: False),
            without(Probes, "_edit_at_timed_sizes"),
            CONDITIONS,
        ),
        timed=True,
    ),
    "another environment": Defence(
        "rmsnorm/cpp/attack_benchmark_only.cpp",
        (CONDITIONS,),
        timed=True,
    ),
    "decision": Defence(
        "softmax/cpp/attack_pins_others.cpp",
        (
            without(
                decision,
                "decide_verdict",
                lambda *_, **__: ProvisionalDecision(True, decision.accept_without_rival()),
            ),
        ),
        timed=True,
    ),
    "sealed arena": Defence(
        "argmax/cpp/attack_truncates_arena.cpp", (without(arena.fcntl, "fcntl", lambda *_: 0),)
    ),
    "files read": Defence("argmax/cpp/attack_reads_project.cpp", walls=("files",)),
    "files of the user": Defence("argmax/cpp/attack_reads_home.cpp", walls=("files",)),
    # File systems are read-only too.
    "files written": Defence("argmax/cpp/attack_writes_outside.cpp", walls=("files", "mounts")),
    # Landlock's ports go with the namespace; and no socket of the network can be made or connected.
    "network": Defence("argmax/cpp/attack_network.cpp", walls=("network namespace", "network calls")),
    "signals": Defence("argmax/cpp/attack_stops_grader.cpp", walls=("signals",)),
    # Landlock, the user namespace and the lost capabilities each refuse it.
    "memory of others": Defence("argmax/cpp/attack_reads_arenas.cpp", walls=("memory of others",)),
    "memory of others, traced": Defence("argmax/cpp/attack_traces_host.cpp", walls=("memory of others",)),
    "limits of others": Defence("argmax/cpp/attack_limits_host.cpp", walls=("limits of others",)),
    # Only a process with as many capabilities may bind the superuser's processes to cores.
    "cores of others": Defence("argmax/cpp/attack_pins_host.cpp", walls=("cores of others", "capabilities")),
    # Where nothing holds processes in the group, those that left it are signalled one by one. Grading large
    # tensors takes as long as the pause does.
    "process group": Defence(
        "segment_sum/cpp/attack_session_escape.cpp",
        (
            without(Side, "_strays", lambda _: []),
            without(Session, "grade_last_call", _graded_after_a_while),
            NEAR,
            *STATE,
        ),
        ("process group",),
    ),
    "file sizes": Defence("argmax/cpp/attack_file_flood.cpp", walls=("file sizes",)),
    "time limit": Defence("softmax/cpp/attack_stalls.cpp", limits=Limits(seconds=2)),
    "memory limit": Defence("softmax/cpp/attack_memory_bomb.cpp", limits=Limits(memory_bytes=1 << 29)),
}


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_host, "_PRELOADED", (*worker_host._PRELOADED, "opened_walls"))
        root = tmp_path_factory.mktemp("project")
        (root / "warpsmith.toml").write_text("")
        here = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
        with WorkerHost("cpu", interpret=True) as host:
            yield Gate(Workshop(here), host, "cpu")


@pytest.fixture(scope="module")
def gpu_gate(gate: Gate) -> Iterator[Gate]:
    target = hardware.find_local_target(gate.workshop.project)
    if target is None or target.kind != "gpu":
        pytest.skip("no hardware page names this GPU")
    with WorkerHost("cuda") as host:
        yield Gate(gate.workshop, host, target.id)


class Gate:
    """Judges cases on one target with one worker host."""

    def __init__(self, workshop: Workshop, host: WorkerHost, target: str) -> None:
        self.workshop, self.host, self.target = workshop, host, target
        probe = host.start_side("probe", Limits())
        self.lacks = ", ".join(check.name for check in trust.missing(probe.isolation))
        probe.close()

    def judge(
        self, case: RedTeamCase, defence: Defence, limits: Limits, walls: tuple[str, ...] = ()
    ) -> Evaluation:
        """Judge a case with the worker's `walls` taken down."""
        request = self.workshop.request(
            _definition(case.path.parent.parent / "definition.py"),
            Candidate(case.path, case.language, case.path.stem),
            best=Candidate(case.best, case.language, case.best.stem) if case.best and defence.timed else None,
            timed=defence.timed,
            limits=limits,
            budget=TimingBudget(rounds=6, most=6, seconds=0),
            thresholds=Thresholds(max_repeats=4),
            page=hardware.read_target_page(self.workshop.project, self.target),
            measurement=self.workshop.measurement(self.target, floor=0.2),
        )
        hidden = list(self.host._hidden)
        self.host._hidden += [str(OPENED / wall) for wall in walls]
        try:
            return judge.judge_version(request, self.host)
        finally:
            self.host._hidden[:] = hidden
            for idle in self.host._idle:
                idle.close()
            self.host._idle.clear()


@cache
def _definition(path: Path) -> DefinitionFile:
    return definition_file.load_definition(path)


@cache
def _case(name: str) -> RedTeamCase:
    (found,) = redteam_cases.load_cases(CORPUS, [name])
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in _SLOW else n for n in DEFENCES if n not in _EARLY],
)
def test_an_attack_holds_it(name: str, gate: Gate, monkeypatch: pytest.MonkeyPatch):
    if name == "stopped worker" and len(os.sched_getaffinity(0)) < _CORES_OF_A_WATCHER:
        pytest.skip("a thread that watches needs a core beside the caller's and the grader's")
    held(DEFENCES[name], gate, monkeypatch)


@pytest.mark.gpu
@needs_early_start
@pytest.mark.parametrize("name", _EARLY)
def test_an_attack_that_starts_early_holds_it(name: str, gpu_gate: Gate, monkeypatch: pytest.MonkeyPatch):
    held(DEFENCES[name], gpu_gate, monkeypatch)


def held(defence: Defence, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the attack is refused with the defence and gets through without it."""
    case = _case(defence.attack)
    if gate.lacks and "isolation" in case.header.needs:
        pytest.skip(f"this machine lacks {gate.lacks}")
    shown = gate.target == "cpu" and _BEFORE_TIMING.issuperset(case.header.caught)
    if defence.timed or defence.limits != _QUICK or not shown:
        with monkeypatch.context() as patch:
            use_core_clock(defence, gate, patch)
            refused = gate.judge(case, defence, defence.limits)
        step = redteam.refusing_step(refused)
        assert refused.decision.verdict is Verdict.ROLLBACK, refused.decision.reason
        assert step in case.header.caught, f"{step}: {refused.decision.reason}"
    for switch in (*defence.off, *SHAPES):
        switch(monkeypatch)
    use_core_clock(defence, gate, monkeypatch)
    for _ in range(_LOOKS):
        through = gate.judge(case, defence, defence.wider, defence.walls)
        got_through = through.decision.verdict.accepted if defence.timed else through.correct
        if got_through:
            break
    assert got_through, through.decision.reason


def use_core_clock(defence: Defence, gate: Gate, patch: pytest.MonkeyPatch) -> None:
    """Time a version by the work that it does, which no load lengthens; a GPU has events for that."""
    if defence.timed and gate.target == "cpu":
        session_clock.use_core_clock(patch.setattr)

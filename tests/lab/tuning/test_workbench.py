"""Tests for the workbench on real kernels, with scripted times: each variant gets its line, whatever others do."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_samples import SQUARE
from session_clock import use_scripted_clock
from workshop import Workshop

from warpsmith.core.evaluation import REFERENCE, Interval
from warpsmith.errors import MachineFailed, MachineLacks, Misuse
from warpsmith.lab.tuning import workbench
from warpsmith.lab.tuning.variants import list_variants, parse_sweep
from warpsmith.lab.tuning.workbench import Bench, VariantResult, Workbench
from warpsmith.lab.workers.worker_host import WorkerHost

pytestmark = pytest.mark.usefixtures("forked_workers")

KERNEL = """\
#include <warpsmith.hpp>
constexpr int SPEED = 2, MODE = 0;
extern "C" void run(const Tensor& x_, Tensor& y_) {
  static_assert(MODE != 4);
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  volatile int speed = SPEED;
  for (int64_t i = 0; i < x_.size(0); ++i) y[i] = x[i] * x[i];
  if (MODE == 1) y[0] += 1;
  if (MODE == 2) __builtin_trap();
  if (MODE == 3) for (volatile int k = 0; k < 1; ) {}
}
"""
ODD = SQUARE.replace('axes={"n": 1000}', 'axes={"n": 1000}, set="odd"')


def scripted_seconds(source: str) -> float:
    """A tenth of a millisecond, divided by the source's `SPEED`."""
    return 1e-4 / int(re.search(r"SPEED = (\d+)", source)[1])


@pytest.fixture
def run_variants(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Workbench, list]]:
    """`run_variants(sweep, best=..., seconds=..., text=...)`: the workbench after its run, and what it yielded."""
    use_scripted_clock(monkeypatch.setattr, scripted_seconds)
    monkeypatch.setattr(workbench, "CALL_SECONDS", (1.0, 1.0))

    def run(
        sweep: str, text: str = KERNEL, definition: str = ODD, **changes: object
    ) -> tuple[Workbench, list[VariantResult]]:
        file = workshop.load("square", definition)
        path = workshop.project.root / "a.cpp"
        path.write_text(text, encoding="utf-8")
        bench = Bench(
            file=file,
            kind="cpu",
            variants=list_variants([path], parse_sweep(sweep)),
            workloads=file.definition.select("representative"),
            **changes,
        )
        instance = Workbench(bench)
        return instance, list(instance.run())

    return run


def test_every_variant_gets_its_result(run_variants):
    instance, results = run_variants("SPEED=1,4 MODE=0..4")
    last = {name.removeprefix("a.cpp "): result for name, result in instance.results.items()}
    assert len(results) >= len(last) == 10
    for speed in (1, 4):
        assert last[f"SPEED={speed} MODE=1"].state == "wrong"
        assert "INCORRECT_NUMERICAL at small: y[0] is" in last[f"SPEED={speed} MODE=1"].message
        assert "killed by SIG" in last[f"SPEED={speed} MODE=2"].message
        assert "did not end within 1 s" in last[f"SPEED={speed} MODE=3"].message
        assert last[f"SPEED={speed} MODE=4"].state == "not built"
        assert "static assertion failed" in last[f"SPEED={speed} MODE=4"].message
    assert [result.variant for result in instance.ranked()] == ["a.cpp SPEED=4 MODE=0", "a.cpp SPEED=1 MODE=0"]
    assert last["SPEED=4 MODE=0"].speedup == pytest.approx(8.0, rel=0.05)
    assert last["SPEED=4 MODE=0"].seconds["large"] == pytest.approx(2.5e-5, rel=0.05)


def test_the_faster_half_is_timed_again_until_the_fastest_stands_apart(run_variants):
    instance, results = run_variants("SPEED=1..8", seconds=600.0)
    stages = {stage: [r.variant for r in results if r.stage == stage] for stage in range(4)}
    assert [len(stages[stage]) for stage in range(4)] == [8, 4, 0, 0]
    assert {name[-1] for name in stages[1]} == {"5", "6", "7", "8"}
    assert [result.variant[-1] for result in instance.ranked()[:3]] == ["8", "7", "6"]


def test_variants_take_all_stages_until_one_is_decided(run_variants, monkeypatch):
    monkeypatch.setattr(workbench, "_is_decided", lambda _: False)
    _, results = run_variants("SPEED=1..5", seconds=600.0)
    assert [sum(result.stage == stage for result in results) for stage in range(4)] == [5, 3, 3, 3]


@pytest.mark.parametrize(
    ("intervals", "decided"),
    [
        ([(1.10, 1.12), (1.05, 1.09)], True),
        ([(1.10, 1.12), (1.05, 1.11)], False),
        ([(1.10, 1.12), None], False),
        ([(1.10, 1.12)], True),
    ],
)
def test_the_fastest_is_decided_where_its_interval_stands_apart(intervals, decided):
    ranked = [
        VariantResult(variant=str(at), state="timed", interval=pair and Interval(low=pair[0], high=pair[1]))
        for at, pair in enumerate(intervals)
    ]
    assert workbench._is_decided(ranked) is decided


def test_workers_outlive_a_stage_and_a_null_kernel_runs_beside_them(run_variants, monkeypatch):
    started = []
    start_side = WorkerHost.start_side
    monkeypatch.setattr(
        WorkerHost, "start_side", lambda host, name, *rest, **more: (
            started.append(name) or start_side(host, name, *rest, **more)
        )
    )  # fmt: skip
    instance, results = run_variants("SPEED=1..3", seconds=600.0)
    assert {result.stage for result in results} == {0, 1}
    assert sorted(started) == ["a.cpp SPEED=1", "a.cpp SPEED=2", "a.cpp SPEED=3", "null kernel", "reference"]
    assert instance.null_seconds["large"] == pytest.approx(2e-4, rel=0.05)  # the scripted time of trusted sides
    assert set(instance.stopwatch.seconds) == {"build", "start", "check", "time", "end"}


def test_the_time_bounds_the_run(run_variants):
    _, results = run_variants("SPEED=1..8", seconds=0.01)
    assert [result.state for result in results].count("timed") == workbench.WIDTH["cpu"]
    assert {result.state for result in results[3:]} == {"not run"}
    assert "does not fit into" in results[-1].message


def test_equal_machine_code_is_timed_once(run_variants):
    text = KERNEL.replace("SPEED = 2", "SPEED = 2, UNUSED = 1")
    instance, _ = run_variants("UNUSED=1..3", text=text)
    states = [instance.results[f"a.cpp UNUSED={value}"].state for value in (1, 2, 3)]
    assert sorted(states) == ["same code", "same code", "timed"]


def test_the_best_version_is_the_anchor(run_variants, workshop: Workshop):
    best = workshop.solution(KERNEL.replace("SPEED = 2", "SPEED = 4"), version="v7")
    instance, _ = run_variants("SPEED=8", best=best)
    assert instance.ranked()[0].speedup == pytest.approx(2.0, rel=0.05)
    assert instance.anchor_seconds["large"] == pytest.approx(2.5e-5, rel=0.05)


@pytest.mark.parametrize("fails", [False, True])
def test_the_fastest_is_timed_beside_the_baselines_at_the_end(run_variants, monkeypatch, fails):
    waits: list[None] = []
    process = SimpleNamespace(wait=lambda: waits.append(None))
    monkeypatch.setattr(workbench, "compile_meanwhile", lambda *_: nullcontext(process))
    monkeypatch.setattr(workbench, "BASELINES", (REFERENCE, "peer"))
    peer = "def peer(x):\n    return x.no_such_method() if FAILS else x * x\npeers = {'peer': peer}\n"
    text = f"{ODD}{peer.replace('FAILS', str(fails))}"
    bench, results = run_variants("SPEED=2,8", definition=text, baselines=True)
    assert [mean.against for mean in bench.baselines] == ([REFERENCE] if fails else [REFERENCE, "peer"])
    assert all(mean.speedup > 1 for mean in bench.baselines)
    workloads = {workload.name for workload in bench.bench.workloads}
    assert all(set(seconds) == workloads for seconds in bench.baseline_seconds.values())
    assert {result.state for result in results} == {"timed"}
    assert waits  # before anything is timed, since a CPU's cores are shared


def test_a_best_version_that_fails_ends_the_run(run_variants, workshop: Workshop):
    best = workshop.solution(KERNEL.replace("MODE = 0", "MODE = 1"), version="v7")
    with pytest.raises(MachineFailed, match=r"The best version, cpp/v7, fails.* INCORRECT"):
        run_variants("SPEED=8", best=best)


def test_a_best_version_that_does_not_build_any_more_ends_the_run(run_variants, workshop: Workshop):
    best = workshop.solution(KERNEL.replace("MODE = 0", "MODE = 4"), version="v7")
    with pytest.raises(MachineFailed, match=r"The best version, cpp/v7, does not build any more: "):
        run_variants("SPEED=8", best=best)


def test_an_interpreted_language_is_only_checked(workshop: Workshop):
    text = (
        "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        "def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + at, mask=at < n)\n    tl.store(y_ptr + at, x * x, mask=at < n)\n\n\n"
        "def run(x):\n    y = torch.empty_like(x)\n"
        "    square[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)\n    return y\n"
    )
    file = workshop.load("square", ODD)
    path = workshop.project.root / "a.py"
    path.write_text(text, encoding="utf-8")
    instance = Workbench(Bench(file, "cpu", list_variants([path], {}), file.definition.select("representative")))
    assert [result.state for result in instance.run()] == ["correct"]
    assert instance.ranked() == []


def test_what_cannot_run_is_refused_before_anything_is_built(workshop: Workshop, tmp_path: Path):
    file = workshop.load("square", ODD)
    path = tmp_path / "a.cc"
    path.write_text(KERNEL, encoding="utf-8")
    with pytest.raises(Misuse, match=r"ends in `\.cpp`"):
        Workbench(Bench(file, "cpu", list_variants([path], {}), ()))
    path = path.rename(path.with_suffix(".cpp"))
    with pytest.raises(MachineLacks, match="runs on a CPU only"):
        Workbench(Bench(file, "gpu", list_variants([path], {}), ()))

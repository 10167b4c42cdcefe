from __future__ import annotations

import pytest
from lab_samples import SQUARE, needs_early_start

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Verdict
from warpsmith.core.hardware import Ceiling
from warpsmith.lab.gate import judge
from warpsmith.lab.gate.calls import late_calls
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.timing import energy
from warpsmith.lab.timing.timing import TimingBudget

pytestmark = pytest.mark.gpu

VECTOR = SQUARE.replace('"n": 1000', '"n": 1 << 20').replace('"n": 5000', '"n": 1 << 26')

HONEST = """\
import torch
import triton
import triton.language as tl

SIDE = torch.cuda.Stream()

@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * x, mask=at < n)

def launch(x, y):
    square[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)

def run(x):
    y = torch.empty_like(x)
    launch(x, y)
    return y
"""

ESCAPE = HONEST.replace("    launch(x, y)\n", "    with torch.cuda.stream(SIDE):\n        launch(x, y)\n")


EARLY = HONEST.replace("BLOCK=1024)", "BLOCK=1024, launch_pdl=True)")
WAITS = EARLY.replace("    x = tl.load", "    gdc_wait()\n    x = tl.load").replace(
    "\n\nSIDE", "\nfrom triton.language.extra.cuda import gdc_wait\n\nSIDE"
)

TWICE = HONEST.replace("    launch(x, y)\n", "    launch(x, y)\n    launch(x, y)\n")


@pytest.fixture
def judged(workshop):
    target = hardware.find_local_target(workshop.project)
    if target is None or target.kind != "gpu":
        pytest.skip("no hardware page names this GPU")
    measurement = workshop.measurement(target.id)
    copy = Ceiling(value=3000.0, unit="GB/s", best=3100.0, spread=0.01, how="made up")
    measurement = measurement.model_copy(update={"ceilings": {"copy": copy}})

    def run(source, best=None, **changes):
        file = workshop.load("square", VECTOR)
        usual = {
            "page": hardware.read_target_page(workshop.project, target.id),
            "measurement": measurement,
            "budget": TimingBudget(rounds=3, most=3, seconds=0),
            "best": workshop.solution(best, "triton", "v0") if best else None,
        }
        return judge.judge_version(workshop.request(file, workshop.solution(source, "triton"), **usual, **changes))

    return run


def test_an_honest_kernel_is_accepted(judged):
    found = judged(HONEST)
    assert found.decision.verdict is Verdict.ACCEPT, found.decision.reason
    timing = found.timed["large"]
    assert timing.clock == "graph"
    assert timing.clock_slack < 0.2  # on a busy host; replays bound it where single blocks are too uncertain
    assert timing.cold
    assert {check.name for check in found.trust if not check.ran} == set()


def test_work_that_escapes_to_another_stream_is_not_accepted(judged):
    found = judged(ESCAPE)
    assert found.decision.verdict is Verdict.ROLLBACK, found.decision.reason
    assert found.status in ("IMPLAUSIBLE_TIME", "INCORRECT_NUMERICAL")


def test_a_wrong_kernel_is_not_accepted(judged):
    found = judged(HONEST.replace("x * x, mask", "x * x * 1.001, mask"))
    assert (found.decision.verdict, found.status) == (Verdict.ROLLBACK, "INCORRECT_NUMERICAL")


@needs_early_start
@pytest.mark.parametrize(("source", "right"), [(EARLY, False), (WAITS, True)], ids=["never waits", "waits"])
def test_a_kernel_that_starts_early_must_wait(judged, source, right):
    found = judged(source, timed=False)
    assert found.correct is right, found.decision.reason
    if right:
        (check,) = [check for check in found.trust if check.name == late_calls.LATE_CALLS]
        assert check.ran
        assert check.how.endswith("from a CUDA graph too")
    else:
        assert (found.decision.verdict, found.status) == (Verdict.ROLLBACK, "INCORRECT_NUMERICAL")
        assert "while its inputs were still being written" in found.decision.reason


def test_a_kernel_that_takes_less_energy_is_accepted(judged, monkeypatch):
    if energy.Gauge(identity.visible_gpu().uuid).joules() is None:
        pytest.skip("this GPU counts no joules")
    monkeypatch.setattr(gate_rules, "ENERGY_PAIRS", 2)
    found = judged(HONEST, best=TWICE, objective="energy")
    assert found.decision.verdict is Verdict.ACCEPT, found.decision.reason
    assert "in joules a call" in found.decision.reason
    assert found.gain.interval.low > 1.2
    for name, read in found.energy.workloads.items():
        assert read.joules < read.best_joules, name
        assert read.readings == 2
        assert 20 < read.joules / found.timed[name].seconds < 2000  # watts of a board

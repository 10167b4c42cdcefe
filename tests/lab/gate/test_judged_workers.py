"""Workers of a judgement: whatever they answer, leave behind or end with, there is a verdict."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest
from lab_samples import HONEST, SQUARE, kernel, workers

from warpsmith.core.evaluation import (
    Status,
    Verdict,
)
from warpsmith.core.trust import Check
from warpsmith.lab.gate import judge, request
from warpsmith.lab.machine import system
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
pytestmark = [needs_compiler, pytest.mark.usefixtures("idle")]


def test_a_host_of_its_own_leaves_nothing(workshop):
    before = set(psutil.Process().children(recursive=True))
    file = workshop.load("square", SQUARE)
    found = judge.judge_version(workshop.request(file, workshop.solution(kernel("std::abort();"))))
    assert found.status is Status.RUNTIME_ERROR
    assert set(psutil.Process().children(recursive=True)) <= before


LIES = """
import sys
Channel = sys.modules["warpsmith.lab.workers.channel"].Channel
send, left = Channel.send, [{after}]

def lie(channel, message, files=()):
    left[0] -= 1
    send(channel, message if left[0] > 0 else {answer}, files)

Channel.send = lie
"""


@pytest.mark.parametrize("after", [1, 3, 12])
@pytest.mark.parametrize(
    "answer",
    [
        '{"ok": True}',
        '{"ok": False, "error": "\\ud800", "message": 7}',
        '{**message, "outputs": 5, "operators": {"aten.softmax": 10**400}}',
        '{**message, "outputs": [{"type": {}, "shape": [True], "dtype": 5, "strides": [None], "address": 2**70}]}',
    ],
)
def test_whatever_a_worker_answers_there_is_a_verdict(workshop, lent, answer, after):
    pytest.importorskip("triton")
    file = workshop.load("softmax", SOFTMAX)
    source = TRITON + LIES.replace("{after}", str(after)).replace("{answer}", answer)
    found = judge.judge_version(workshop.request(file, workshop.solution(source, "triton")))
    assert found.decision.verdict is Verdict.ROLLBACK
    assert found.model_dump_json()


def test_a_worker_that_ends_after_its_last_timed_call(workshop, monkeypatch):
    file = workshop.load("square", SQUARE)
    gate = judge._Gate(workshop.request(file, workshop.solution(kernel(HONEST))))
    gate.device = "cuda"
    monkeypatch.setattr(gate, "_check_idle", lambda _: Check(name="machine idle", ran=True, how="alone"))
    monkeypatch.setattr(gate, "_settle_with_peers", lambda _: None)

    def gone():
        raise SideFailed(Status.RUNTIME_ERROR, "the worker exited with code 0")

    with pytest.raises(judge._StepFailed):
        gate._time(SimpleNamespace(running={SOLUTION: SimpleNamespace(resources=gone)}))
    assert gate.decision.reason == "RUNTIME_ERROR at *: the worker exited with code 0"


NESTS = """
#include <fcntl.h>
#include <sys/stat.h>
static const bool nested = [] {
  const int start = open(".", O_RDONLY | O_DIRECTORY);
  const char* next = "{first}";
  for (int i = 0; i < 2000; ++i, next = "a") {
    mkdir(next, 0700);  // another process of it may have left the first one
    if (chdir(next)) std::abort();
  }
  if (fchdir(start)) std::abort();
  return true;
}();
"""


def test_folders_deeper_than_the_grader_recurses_do_not_stop_it(judged, lent):
    judgement = judged(kernel(HONEST, NESTS.replace("{first}", "nests")))
    assert judgement.decision.verdict is Verdict.ROLLBACK
    assert "files of the working folder" in judgement.decision.reason


def test_a_cache_may_be_as_deep(judged, lent):
    assert judged(kernel(HONEST, NESTS.replace("{first}", "triton_cache_dir"))).decision.verdict.accepted


@pytest.mark.parametrize("body", [HONEST, "std::abort();"])
def test_a_host_has_workers_ready_for_the_next_judgement(workshop, host, body):
    file = workshop.load("square", SQUARE)
    judge.judge_version(workshop.request(file, workshop.solution(kernel(body))), host)
    assert workers(host) == []
    assert {side.trusted for side in host._idle} == {False, True}


SOFTMAX = (
    SQUARE.replace('("n",)', '("n", 40)').replace('"n": 1000', '"n": 3').replace('"n": 5000', '"n": 7')
    .replace("x * x", "torch.softmax(x, -1)").replace('name="square"', 'name="softmax"')
    .replace('flops="n",', 'flops="n", tolerance=Tolerance(reduction="40"),')
)  # fmt: skip

TRITON = """\
import torch
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < cols
    x = tl.load(x_ptr + at, mask=inside, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + at, e / tl.sum(e, 0), mask=inside)

def run(x):
    y = torch.empty_like(x)
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ("return y", "PASSED"),
        ("return y.double()", "INCORRECT_DTYPE"),
        ("return y[:, :-1]", "INCORRECT_SHAPE"),
        ("return y * 1.001", "INCORRECT_NUMERICAL"),
        ("raise SystemExit", "RUNTIME_ERROR"),
    ],
)
def test_triton_is_interpreted_on_a_cpu(workshop, lent, changed, status):
    pytest.importorskip("triton")
    file = workshop.load("softmax", SOFTMAX)
    candidate = workshop.solution(TRITON.replace("return y", changed), "triton")
    found = judge.judge_version(workshop.request(file, candidate))
    assert workers(lent) == []
    assert found.status is Status(status), found.decision.reason
    if status == "PASSED":
        assert [(s.name, s.state) for s in found.steps][-2:] == [("probes", "passed"), ("timing", "skipped")]
        assert found.decision.verdict is Verdict.INVALID
        assert "only interprets on cpu" in found.decision.reason
    else:
        assert found.decision.verdict is Verdict.ROLLBACK


def test_the_real_host_is_what_judgements_use():
    assert request.WorkerHost is WorkerHost


@pytest.mark.parametrize(
    ("handler", "verdict", "said"),
    [
        ("if (getpid() == home) _exit(0);", Verdict.ROLLBACK, "ends with exit code 0 instead of"),
        ("if (getpid() == home) std::abort();", Verdict.ROLLBACK, "ends by SIGABRT instead of"),
        ("if (getpid() == home) std::this_thread::sleep_for(std::chrono::milliseconds(1));", Verdict.ACCEPT, ""),
    ],
)
def test_a_handler_that_changes_the_exit_code_of_its_own_process(judged, lent, handler, verdict, said):
    source = f"""
#include <chrono>
#include <cstdlib>
#include <thread>
#include <unistd.h>
static const pid_t home = getpid();
static const int registered = std::atexit([] {{ {handler} }});
"""
    found = judged(kernel(HONEST, source))
    assert found.decision.verdict is verdict, found.decision.reason
    assert said in found.decision.reason

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from lab_samples import SQUARE, workers

from warpsmith.core.evaluation import Status
from warpsmith.lab import side as sides
from warpsmith.lab.side import Failed, Limits, WorkerHost

UNRULY = (
    SQUARE
    + """
def hang(x):
    while True:
        time.sleep(1)
def spin(x):
    ctypes.CDLL(None).signal(15, 1)
    while True:
        pass
def abort(x):
    os.abort()
def segfault(x):
    ctypes.string_at(0)
def exit(x):
    sys.exit(0)
def leave(x):
    os._exit(0)
def leave_three(x):
    os._exit(3)
def throw(x):
    raise ValueError("no\\nsuch thing")
def memory_error(x):
    raise MemoryError("no room")
def eat(x):
    held = []
    for _ in range(24):
        held.append(torch.ones(16 << 20))
        time.sleep(0.02)
    time.sleep(60)
def flood(x):
    for _ in range(40):
        os.write(1, b"flood " * 100_000)
        print("x" * 100_000)
    return x * x
def daemon(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open(os.path.join(os.path.dirname(__file__), "pid"), "w").write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not os.path.exists(os.path.join(os.path.dirname(__file__), "pid")):
        time.sleep(0.01)
    return x * x
def talk(x):
    os.write(2, b"last words\\n")
    os.abort()
def mutate(x):
    x[3] = 0
    return x * x
def narrow(x):
    return (x * x).half()
def short(x):
    return x[:-1] ** 2
def two(x):
    return x, x
def array(x):
    return (x * x).numpy()
def parameter(x):
    return torch.nn.Parameter(x * x)
def unwritten(x):
    y = torch.empty_like(x)
    y[:-1] = (x * x)[:-1]
    return y
peers = {name: value for name, value in list(globals().items()) if callable(value)}
"""
)


@pytest.fixture
def unruly(workshop):
    return workshop.load("square", UNRULY)


def failure(bench, file, peer, **limits):
    one = bench(file, peer, Limits(**{"seconds": 30, **limits}))
    one.fill()
    with pytest.raises(Failed) as caught:
        one.check(peer)
    return caught.value


def test_an_honest_side_passes(bench, unruly):
    one = bench(unruly)
    one.fill()
    assert one.check("reference").status is Status.PASSED
    assert one.seconds("reference")[0] > 0


@pytest.mark.parametrize("peer", ["hang", "spin"])
def test_a_hang_ends_at_the_limit(bench, host, unruly, peer):
    one = bench(unruly, peer, Limits(seconds=5))
    one.fill()
    one.sides[peer]._limits = Limits(seconds=0.5)
    started = time.monotonic()
    with pytest.raises(Failed) as caught:
        one.check(peer)
    assert time.monotonic() - started < 3
    assert (caught.value.status, caught.value.side) == (Status.TIMEOUT, peer)
    assert "within 0.5 s" in caught.value.message
    assert workers(host) == []


@pytest.mark.parametrize(
    ("peer", "said"),
    [
        ("abort", "was killed by SIGABRT"),
        ("segfault", "was killed by SIGSEGV"),
        ("exit", "exited with code 0"),
        ("leave", "exited with code 0"),
        ("leave_three", "exited with code 3"),
        ("throw", "ValueError: no such thing"),
        ("talk", "last said: last words"),
    ],
)
def test_what_ends_a_worker_is_named_and_is_never_a_pass(bench, host, unruly, peer, said):
    found = failure(bench, unruly, peer)
    assert (found.status, found.side) == (Status.RUNTIME_ERROR, peer)
    assert said in found.message


def test_a_dead_side_stays_dead(bench, unruly):
    one = bench(unruly, "abort")
    one.fill()
    for said in ("SIGABRT", "is not running"):
        with pytest.raises(Failed, match=said):
            one.check("abort")
    assert one.sides["abort"].close() == 0


def test_a_worker_that_takes_too_much_memory(bench, host, unruly):
    found = failure(bench, unruly, "eat", memory_bytes=1 << 29)
    assert (found.status, found.side) == (Status.OUT_OF_MEMORY, "eat")
    assert "over 0.5 GiB" in found.message
    assert workers(host) == []


def test_a_memory_error_is_out_of_memory(bench, unruly):
    assert failure(bench, unruly, "memory_error").status is Status.OUT_OF_MEMORY


def test_a_flood_of_output_does_not_block(bench, unruly):
    one = bench(unruly, "flood")
    one.fill()
    assert one.check("flood").status is Status.PASSED


def test_what_a_worker_detached_dies_with_it(bench, unruly):
    one = bench(unruly, "daemon")
    one.fill()
    assert one.check("daemon").status is Status.PASSED
    pid = int((unruly.path.parent / "pid").read_text())
    assert psutil.pid_exists(pid)
    one.sides["daemon"].close()
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize(
    ("peer", "status", "said"),
    [
        ("mutate", Status.INPUT_MUTATED, "changed its input x"),
        ("narrow", Status.INCORRECT_DTYPE, "y is float16, not float32"),
        ("short", Status.INCORRECT_SHAPE, r"y has the shape [999], not [1000]"),
        ("two", Status.INCORRECT_SHAPE, "returned 2 values, not 1"),
        ("array", Status.INCORRECT_DTYPE, "y is a ndarray"),
        ("parameter", Status.INCORRECT_DTYPE, "y is a Parameter"),
    ],
)
def test_what_a_side_returns_is_looked_at(bench, unruly, peer, status, said):
    found = failure(bench, unruly, peer)
    assert found.status is status
    assert said in found.message


def test_what_was_not_written_is_nan(bench, unruly):
    one = bench(unruly, "unwritten")
    one.fill()
    grade = one.check("unwritten")
    assert grade.status is Status.INCORRECT_NUMERICAL
    assert "y[999] is nan" in grade.detail


def test_every_fill_is_fresh_and_poisons_the_outputs(bench, unruly):
    one = bench(unruly)
    one.fill()
    first = one.drawn[0]["x"].clone()
    one.check("reference")
    one.fill()
    assert not torch.equal(first, one.drawn[0]["x"])
    place = one._places[0][1]["y"]
    assert place.view(one._arenas.outputs["reference"].memory).isnan().all()


def test_workers_get_no_secrets(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a secret")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "ANTHROPIC_API_KEY" not in sides._environment(False)
    assert "TRITON_INTERPRET" not in sides._environment(False)
    assert sides._environment(True)["TRITON_INTERPRET"] == "1"


def test_one_thread(host, workshop):
    file = workshop.load("square", SQUARE.replace("return x * x", "return x * torch.get_num_threads()"))
    from warpsmith.lab import session

    arenas = session.allocate(file, file.definition.workloads, ["reference"], "cpu")
    side = host.side("reference", Limits(seconds=30))
    side.load(
        file.definition, (file.path, "reference"), [arenas.inputs, arenas.outputs["reference"]], "cpu", threads=1
    )
    side.answer("load")
    assert len(psutil.Process(side._pid).cpu_affinity()) == 1
    side.close()
    arenas.close()


PARENT = """
import sys, time
from warpsmith.lab.side import Limits, WorkerHost
host = WorkerHost("cpu")
one = host.side("solution", Limits())
print(host._process.pid, one._pid, flush=True)
time.sleep(600)
"""


def test_nothing_outlives_a_grader_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert all(_lives(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(_lives(pid) for pid in pids):
        time.sleep(0.02)
    assert not any(_lives(pid) for pid in pids)


def test_closing_a_host_ends_workers_that_were_not_closed():
    with WorkerHost("cpu") as host:
        side = host.side("solution", Limits())
        pids = [host._process.pid, side._pid]
        folder = host._folder.name
        assert all(_lives(pid) for pid in pids)
        side._channel.close()
    assert not any(_lives(pid) for pid in pids)
    assert not Path(folder).exists()


def _lives(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

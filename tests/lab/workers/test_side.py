from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from lab_samples import SQUARE, workers

from warpsmith.core.evaluation import Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.workers import memory_kills, process, worker_host, zygote
from warpsmith.lab.workers import side as side_module
from warpsmith.lab.workers.arena import Arena
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost

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
kept = []
def share(x):
    import mmap
    kept.append(mmap.mmap(-1, 64 << 20))
    kept[-1].write(b"1" * (64 << 20))
    return x * x
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
    one.fill_inputs()
    with pytest.raises(SideFailed) as caught:
        one.call_and_grade(peer)
    return caught.value


def test_an_honest_side_passes(bench, unruly):
    one = bench(unruly)
    one.fill_inputs()
    assert one.call_and_grade("reference").status is Status.PASSED
    assert one.call_side("reference") > 0


@pytest.mark.parametrize("peer", ["hang", "spin"])
def test_a_hang_ends_at_the_limit(bench, host, unruly, peer):
    one = bench(unruly, peer, Limits(seconds=5))
    one.fill_inputs()
    one.sides[peer]._limits = Limits(seconds=0.5)
    with pytest.raises(SideFailed) as caught:
        one.call_and_grade(peer)
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
        ("talk", "last output was: last words"),
    ],
)
def test_what_ends_a_worker_is_named_and_is_never_a_pass(bench, host, unruly, peer, said):
    found = failure(bench, unruly, peer)
    assert (found.status, found.side) == (Status.RUNTIME_ERROR, peer)
    assert said in found.message


def test_a_dead_side_stays_dead(bench, unruly):
    one = bench(unruly, "abort")
    one.fill_inputs()
    for said in ("SIGABRT", "is not running"):
        with pytest.raises(SideFailed, match=said):
            one.call_and_grade("abort")
    assert one.sides["abort"].close() == 0


def test_a_worker_that_takes_too_much_memory(bench, host, unruly):
    found = failure(bench, unruly, "eat", memory_bytes=1 << 29)
    assert (found.status, found.side) == (Status.OUT_OF_MEMORY, "eat")
    assert "over 0.5 GiB" in found.message
    assert workers(host) == []


@pytest.mark.parametrize(
    ("kills", "held", "expected"),
    [
        (0, 0, (SideFailed, "the worker was killed")),
        (1, 0, (MachineFailed, "for want of memory")),
        (1, 4 << 30, (SideFailed, "it for want of memory")),
    ],
    ids=["no kill", "not its fault", "its fault"],
)
def test_a_kill_by_the_kernel_is_the_machines_fault(bench, unruly, monkeypatch, kills, held, expected):
    one = bench(unruly, "hang")
    one.fill_inputs()
    side = one.sides["hang"]
    side.runs_foreign_code, side._most_bytes = True, held
    monkeypatch.setattr(memory_kills, "count_memory_kills", lambda: side._kills + kills)
    threading.Timer(0.5, os.kill, (side.pid, signal.SIGKILL)).start()
    with pytest.raises(expected[0], match=expected[1]):
        one.call_and_grade("hang")


def test_memory_that_a_worker_shares_by_itself_counts_beside_its_tensors(bench, unruly):
    one = bench(unruly, "share")
    one.fill_inputs()
    held = []
    for _ in range(2):
        assert one.call_and_grade("share").status is Status.PASSED
        one.sides["share"].check_limits()
        held.append(one.sides["share"]._most_bytes)
    assert held[1] - held[0] > 60 << 20


@pytest.mark.parametrize(("device", "tensors"), [("cpu", 5 << 30), ("cuda", 0)])
def test_tensors_of_a_gpu_are_no_memory_of_the_host(bench, unruly, monkeypatch, device, tensors):
    side = bench(unruly).sides["reference"]
    monkeypatch.setattr(side, "tell", lambda *_: None)
    arena = SimpleNamespace(size=5 << 30, handle=lambda: ({}, ()))
    side.load(unruly.definition, (unruly.path, "reference"), [arena], device)
    assert side._tensor_bytes == tensors


def test_a_memory_error_is_out_of_memory(bench, unruly):
    assert failure(bench, unruly, "memory_error").status is Status.OUT_OF_MEMORY


def test_a_flood_of_output_does_not_block(bench, unruly):
    one = bench(unruly, "flood")
    one.fill_inputs()
    assert one.call_and_grade("flood").status is Status.PASSED


def test_what_a_worker_detached_dies_with_it(bench, unruly):
    one = bench(unruly, "daemon")
    one.fill_inputs()
    assert one.call_and_grade("daemon").status is Status.PASSED
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
    one.fill_inputs()
    grade = one.call_and_grade("unwritten")
    assert grade.status is Status.INCORRECT_NUMERICAL
    assert "y[999] is nan" in grade.detail


def test_every_fill_is_fresh_and_poisons_the_outputs(bench, unruly):
    one = bench(unruly)
    one.fill_inputs()
    first = one.drawn[0]["x"].clone()
    one.call_and_grade("reference")
    one.fill_inputs()
    assert not torch.equal(first, one.drawn[0]["x"])
    place = one._placements[0][1]["y"]
    assert place.view(one._arenas.outputs["reference"].memory).isnan().all()


def test_workers_get_no_secrets(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a secret")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    for steady in (True, False):
        compiled, interpreted = (worker_host._environment(interpret, steady) for interpret in (False, True))
        assert "ANTHROPIC_API_KEY" not in compiled
        assert "TRITON_INTERPRET" not in compiled
        assert interpreted["TRITON_INTERPRET"] == "1"


def test_a_worker_cannot_replace_its_log(alone):
    """What it says last is shown, so its log must not become a link to a file that it cannot read."""
    side = alone()
    assert not (side._folder / "scratch" / "output.txt").exists()
    assert (side._folder / "output.txt").is_file()


def test_one_thread(host, workshop):
    file = workshop.load("square", SQUARE)
    side, arenas = host.start_side("reference", Limits(seconds=30)), [Arena(4096, "cpu"), Arena(4096, "cpu")]
    side.load(file.definition, (file.path, "reference"), arenas, "cpu", threads=1)
    side.answer("load")
    assert len(psutil.Process(side.pid).cpu_affinity()) == 1
    side.close()
    for arena in arenas:
        arena.close()


PARENT = """
import sys, time
from pathlib import Path
from warpsmith.lab.workers.arena import Arena
from warpsmith.lab.operator import definition_file
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
file = definition_file.load_definition(Path(sys.argv[1]))
host = WorkerHost("cpu")
one = host.start_side("solution", Limits(), trusted=sys.argv[2] == "trusted")
one.load(file.definition, (file.path, "reference"), [Arena(4096, "cpu"), Arena(4096, "cpu")], "cpu")
one.answer("load")
print(host._process.pid, one.pid, *one.descendants(), flush=True)
time.sleep(600)
"""

DAEMON = """
if __name__ != "__main__" and "WARPSMITH_GRADER" not in os.environ and os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
time.sleep(0.2)
"""


@pytest.mark.parametrize("kind", ["trusted", "untrusted"])
def test_nothing_outlives_a_grader_that_is_killed(workshop, kind):
    """A trusted worker can leave its process group: what it left is ended by the zygote, which is told."""
    path = workshop.define("square", SQUARE + DAEMON)
    command = [sys.executable, "-c", PARENT, str(path), kind]
    environment = {**os.environ, "WARPSMITH_GRADER": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert all(_lives(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(_lives(pid) for pid in pids):
        time.sleep(0.02)
    assert not any(_lives(pid) for pid in pids)


@pytest.fixture
def alone(host, workshop):
    """`alone(peer, trusted=...)`: a loaded worker, without a session."""
    file = workshop.load("square", UNRULY + LOADS)
    made = []

    def make(peer="reference", trusted=False):
        side = host.start_side(peer, Limits(seconds=30), trusted=trusted)
        arenas = [Arena(4096, "cpu"), Arena(4096, "cpu")]
        made.append((side, arenas))
        side.load(file.definition, (file.path, peer), arenas, "cpu")
        side.answer("load")
        return side

    yield make
    for side, arenas in made:
        side.close()
        for arena in arenas:
            arena.close()


LOADS = """
if os.getcwd().endswith("scratch"):
    import threading
    kept = ctypes.create_string_buffer(b"0123456789" * 1000)
    print(ctypes.addressof(kept), flush=True)
    def count():
        while True:
            kept[0] = bytes([(kept[0][0] + 1) % 256])
            time.sleep(0.0005)
    threading.Thread(target=count, daemon=True).start()
"""


def said(side):
    return int((side._folder / "output.txt").read_text())


@pytest.mark.parametrize("trusted", [False, True])
def test_a_paused_side_stands_still_and_goes_on(alone, trusted):
    side = alone(trusted=trusted)
    address, seen = said(side), []
    side.pause()
    assert process.read_stat(str(side.pid)).state == "T"
    for _ in range(2):
        byte = bytearray(1)
        side.read(address, memoryview(byte))
        seen.append(byte[0])
        time.sleep(0.02)
    side.resume()
    time.sleep(0.05)
    side.read(address, memoryview(byte))
    assert seen[0] == seen[1] != byte[0]


def test_pausing_takes_less_than_a_millisecond_of_a_core(alone):
    side, seconds = alone(), []
    for _ in range(20):
        started = time.thread_time()
        side.pause()
        seconds.append(time.thread_time() - started)
        side.resume()
        time.sleep(0.002)
    assert min(seconds) < 1e-3  # load only adds time


def test_a_side_that_has_ended_can_be_paused_and_resumed(alone):
    side = alone()
    side.close()
    side.pause()
    side.resume()
    assert side.descendants() == []


def test_a_side_leaves_with_the_code_that_it_is_told(alone, host):
    assert alone().leave(7) == 7
    assert workers(host) == []


def test_a_paused_side_can_be_closed(alone, host):
    side = alone()
    side.pause()
    side.close()
    assert workers(host) == []


def test_memory_of_a_worker_is_read_in_full_or_not_at_all(alone):
    side = alone()
    assert side.unreadable_reason() is None
    address, found = said(side), bytearray(10_000)
    side.pause()
    side.read(address, memoryview(found))
    assert found[1:] == (b"0123456789" * 1000)[1:]
    for wrong in (0, 8, -1, 1 << 70, (1 << 63) - 8):
        with pytest.raises(SideFailed, match="cannot be read") as caught:
            side.read(wrong, memoryview(found))
        assert caught.value.status is Status.RUNTIME_ERROR
    side.read(0, memoryview(b""))


def test_what_a_worker_started_is_counted_as_its_own(alone, host, workshop):
    workshop.define("square", UNRULY + LOADS + DAEMON)
    leaver, other = alone(), None
    workshop.define("square", UNRULY + LOADS)
    other = alone()
    assert len(leaver.descendants()) == 1
    assert process.read_stat(str(leaver.descendants()[0])).parent == host._process.pid
    assert other.descendants() == []


def test_an_idle_worker_is_taken_from_the_pool(host, workshop):
    try:
        host.restock(2, trusted=1)
        host.restock(1)
        idle = [side.pid for side in host._idle]
        assert len(idle) == 3
        taken = (
            host.start_side("solution", Limits(seconds=7)),
            host.start_side("reference", Limits(), trusted=True),
        )
        assert taken[0].pid in idle[:2]  # by chance: its process id must not say which side it becomes
        assert taken[1].pid == idle[2]
        assert (taken[0].name, taken[0]._limits.seconds) == ("solution", 7)
        assert [bool(side.isolation) for side in taken] == [True, False]
        assert sorted(one.pid for one in workers(host)) == sorted(side.pid for side in taken)
        assert [side.pid for side in host._idle] == [pid for pid in idle[:2] if pid != taken[0].pid]
    finally:
        for side in (*taken, *host._idle):
            side.close()
        host._idle.clear()


@pytest.mark.parametrize("said", [{}, {"resources": 5}, {"resources": [{"kernel": 1}]}, {"resources": [[]]}])
def test_a_worker_that_does_not_say_what_was_compiled(alone, monkeypatch, said):
    side = alone()
    assert side.resources() == ()
    monkeypatch.setattr(side, "ask", lambda _: {"ok": True, **said})
    with pytest.raises(SideFailed, match="does not report what it compiled"):
        side.resources()


def test_a_killed_worker_is_dead_before_it_is_closed(host):
    side = host.start_side("solution", Limits())
    assert side.isolation
    side.kill()
    assert process.await_stop(side.pid)
    assert os.WTERMSIG(side.close()) == signal.SIGKILL
    side.kill()
    assert side.close() == 0


def test_a_warm_worker_answers_before_it_loads(host):
    side = host.start_side("solution", Limits(seconds=30))
    side.warm("cpu")
    with pytest.raises(SideFailed, match="KeyError"):
        side.ask({"do": "what no worker does"})
    side.close()


def test_a_worker_that_cannot_start_is_the_machines_failure(host, monkeypatch):
    monkeypatch.setattr(host, "_hidden", [0])
    with pytest.raises(MachineFailed, match="could not be started"):
        host.start_side("solution", Limits()).unreadable_reason()


def test_a_device_that_cannot_be_opened_is_the_machines_failure(host):
    side = host.start_side("solution", Limits(seconds=30))
    side.warm("no such device")
    with pytest.raises(MachineFailed, match="could not be started: ⟦RuntimeError"):
        side.ask({"do": "resources"})
    side.close()


def test_the_start_of_a_device_has_a_limit_of_its_own(host, monkeypatch):
    monkeypatch.setattr(side_module, "_START_SECONDS", 20.0)
    side = host.start_side("solution", Limits(seconds=0.0))
    side.warm("cpu")
    with pytest.raises(SideFailed, match="did not end within 0 s"):
        side.ask({"do": "resources"})
    side.close()


def test_closing_a_host_ends_workers_that_were_not_closed():
    with WorkerHost("cpu") as host:
        side = host.start_side("solution", Limits())
        pids = [host._process.pid, side.pid]
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


def test_a_stopped_worker_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zygote, "_GRACE_SECONDS", 20.0)
    with subprocess.Popen(["sleep", "60"]) as stopped:
        try:
            stopped.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            assert zygote._exit_status(stopped.pid) is None
            assert time.monotonic() - began < 10
        finally:
            stopped.kill()


def test_an_interrupt_from_the_keyboard_is_for_the_grader_alone(host: WorkerHost):
    """Else the host prints a traceback, or looks as if something had killed it."""
    assert os.getpgid(host._process.pid) != os.getpgrp()

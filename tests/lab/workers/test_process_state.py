"""State of a process before and after a call."""

from __future__ import annotations

import ctypes
import locale
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from warpsmith.lab.workers.calls import openmp_state
from warpsmith.lab.workers.process_state import describe_changes, read_initial_state, read_process_state


def changed_parts(change: object) -> list[str]:
    before = read_initial_state("cpu")
    change()  # type: ignore[operator]
    return [clause.partition(":")[0] for clause in describe_changes(before, read_process_state("cpu"))]


def test_nothing_changes_by_itself_or_by_computing() -> None:
    torch.softmax(torch.ones(3, 4), -1)
    assert changed_parts(lambda: torch.softmax(torch.ones(3, 4), -1).sum()) == []


_ABORT = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value


def set_new_handler(address):
    ctypes.CDLL("libstdc++.so.6")._ZSt15set_new_handlerPFvvE(ctypes.c_void_p(address))


def pin_openmp_threads():
    """Bind the threads of each pool, but the first, to one core."""
    torch.ones(1 << 16).sum()
    for library in openmp_state._loaded_libraries():
        number = library.omp_get_thread_num
        body = openmp_state._BODY(lambda _, number=number: number() and os.sched_setaffinity(0, [max(CORES)]))
        library.GOMP_parallel(body, None, 0, 0)


CORES = os.sched_getaffinity(0)


@pytest.fixture
def restored(tmp_path):
    language = locale.setlocale(locale.LC_ALL)
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    folder, state, drawn = Path.cwd(), torch.get_rng_state(), random.getstate()
    name = Path("/proc/self/comm").read_bytes().strip()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)  # a team of one has no thread beside this one
    yield tmp_path
    torch.set_num_threads(threads)
    os.chdir(folder)
    locale.setlocale(locale.LC_ALL, language)
    set_new_handler(None)
    ctypes.CDLL(None).prctl(29, ctypes.c_ulong(0), 0, 0, 0)
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), CORES)
    torch.set_rng_state(state)
    random.setstate(drawn)
    torch.set_flush_denormal(False)
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(False)
    ctypes.CDLL(None).fesetround(0)
    ctypes.CDLL(None).prctl(15, name)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda _: torch.set_flush_denormal(True), "flushing of subnormal numbers"),
        (lambda _: ctypes.CDLL(None).fesetround(0x800), "rounding mode"),
        (lambda folder: os.chdir(folder), "working folder"),
        (lambda _: signal.setitimer(signal.ITIMER_PROF, 100, 100), "timers"),
        (lambda _: ctypes.CDLL(None).prctl(15, b"a name"), "name of the thread"),
        (lambda _: signal.signal(signal.SIGCHLD, lambda *_: None), "signal handlers"),
        (lambda folder: os.chdir(folder) or Path("a_file").touch(), "files of the working folder"),
        (lambda _: ctypes.CDLL(None).setlocale(6, b"C"), "locale"),
        (lambda _: ctypes.CDLL(None).prctl(29, ctypes.c_ulong(10**6), 0, 0, 0), "slack of timers"),
        (lambda _: set_new_handler(_ABORT), "handler of short memory"),
        (lambda _: pin_openmp_threads(), "cores of OpenMP's threads"),
        (lambda _: random.random(), "Python's random numbers"),
        (lambda _: torch.rand(1), "PyTorch's random numbers"),
        (lambda _: torch.set_default_dtype(torch.float64), "default type"),
        (lambda _: torch.use_deterministic_algorithms(True), "deterministic algorithms"),
        (lambda _: torch.set_float32_matmul_precision("high"), "float32 precision of products"),
    ],
)
def test_a_change_is_named(restored, change, part) -> None:
    assert part in changed_parts(lambda: change(restored))


def test_caches_of_libraries_may_appear(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not changed_parts(lambda: [Path(name).mkdir() for name in (".nv", "cuda_cache_path")])


def test_reading_the_random_numbers_of_the_c_library_leaves_them() -> None:
    library = ctypes.CDLL(None)
    library.srandom(7)
    first = library.random()
    library.srandom(7)
    read_process_state("cpu")
    assert library.random() == first


def test_random_numbers_of_the_c_library() -> None:
    assert "random numbers of the C library" in changed_parts(lambda: ctypes.CDLL(None).srandom(3))
    assert not changed_parts(lambda: None)


def test_a_session_of_its_own_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmp_state, "read_modes", lambda _: [])  # no fork has the threads of its parent
    child = os.fork()
    if not child:
        os._exit("session and group" not in changed_parts(os.setsid))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_change_says_from_what_to_what() -> None:
    assert describe_changes({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4"}) == [
        "b: 2 to 4",
        "c: 3 to unreadable",
    ]


@pytest.mark.parametrize(
    ("handler", "changes", "seconds"),
    [
        ("os._exit(0)", "['exit code of a child, off by']", 1.0),
        ("(time.sleep(0.05), os._exit(0))", "['exit code of a child, off by']", 1.0),
        ("threading.Event().wait()", "[]", 0.8),
    ],
)
def test_handlers_that_change_the_exit_code_of_a_program(handler: str, changes: str, seconds: float) -> None:
    program = """
import ctypes, os, sys, threading, time
from warpsmith.lab.workers.process_state import describe_changes, read_initial_state, read_process_state
before = read_initial_state("cpu")
handler = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: HANDLER)
ctypes.CDLL(None).__cxa_atexit(handler, None, None)
started = time.monotonic()
changes = describe_changes(before, read_process_state("cpu"))
print(time.monotonic() - started, [clause.partition(":")[0] for clause in changes], flush=True)
os._exit(0)
""".replace("HANDLER", handler)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )
    took, _, said = ended.stdout.strip().partition(" ")
    assert said == changes
    assert float(took) < seconds


def test_a_caught_signal_that_asks_to_end() -> None:
    library, before = ctypes.CDLL(None), read_initial_state("cpu")
    library.signal.restype, library.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: None)
    earlier = library.signal(signal.SIGQUIT, ctypes.cast(handler, ctypes.c_void_p))
    try:
        changes = describe_changes(before, read_process_state("cpu"))
    finally:
        library.signal(signal.SIGQUIT, earlier)
    assert "handlers of signals" in [clause.partition(":")[0] for clause in changes]

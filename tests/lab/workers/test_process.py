from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import pytest

from warpsmith.core import gate_rules
from warpsmith.lab.workers import process


def test_the_living_below_a_process():
    tree = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    with subprocess.Popen([sys.executable, "-c", tree]) as top:
        while len(found := process.list_descendants([top.pid], 10)) < 1:
            assert process.is_alive(top.pid)
        assert process.read_stat(str(found[0])).parent == top.pid
        assert process.list_descendants([top.pid], 10) == found
        process.signal_all(1 << 30, [top.pid, *found], signal.SIGKILL)  # no such group
    assert process.list_descendants([top.pid], 10) == []


def test_what_has_ended_does_not_live():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.read_stat(str(child.pid)).state == "Z"
    assert not process.is_alive(child.pid)
    child.wait()
    assert process.read_stat(str(child.pid)) is None
    assert (process.list_children(child.pid), process.private_bytes(child.pid)) == ([], 0)
    assert process.await_stop(child.pid)


def test_a_process_that_was_not_told_to_stop_is_not_awaited_for_ever(monkeypatch):
    monkeypatch.setattr(gate_rules, "STOP_SECONDS", 0.05)
    with subprocess.Popen(["sleep", "60"]) as child:
        assert not process.await_stop(child.pid)
        child.send_signal(signal.SIGSTOP)
        assert process.await_stop(child.pid)
        child.kill()


SHARING = """
import os, time
held = b"x" * (64 << 20)
os.fork()
os.write(1, b"%d\\n" % os.getpid())
time.sleep(20)
"""


def test_pages_that_processes_share_count_in_proportion():
    with subprocess.Popen([sys.executable, "-c", SHARING], stdout=subprocess.PIPE) as parent:
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        private = sum(map(process.private_bytes, pids))
        proportional = sum(map(process.proportional_bytes, pids))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    assert private > 128 << 20
    assert 64 << 20 < proportional < 96 << 20


def test_memory_is_read_from_where_it_lies():
    held, found = ctypes.create_string_buffer(b"0123456789"), bytearray(4)
    process.read_memory(os.getpid(), ctypes.addressof(held) + 3, memoryview(found))
    assert found == b"3456"
    with pytest.raises(OSError, match="Bad address"):
        process.read_memory(os.getpid(), 8, memoryview(found))
    with pytest.raises(OSError, match="not an address"):
        process.read_memory(os.getpid(), -8, memoryview(found))
    with pytest.raises(TypeError):
        process.read_memory(os.getpid(), ctypes.addressof(held), memoryview(b"read-only"))


def test_busy_counts_the_core_and_not_the_wait():
    with subprocess.Popen(["sleep", "60"]) as asleep:
        try:
            before, mine = process.core_seconds(asleep.pid), process.core_seconds(os.getpid())
            while process.core_seconds(os.getpid()) - mine < 0.1:
                sum(range(10000))
            assert process.core_seconds(asleep.pid) - before < 0.05
        finally:
            asleep.kill()
    assert process.core_seconds(asleep.pid) == 0

"""Hostile code in a worker, for real: what each wall refuses, and by which layer."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from lab_samples import SQUARE, workers

from warpsmith import landlock
from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.sandbox import walls
from warpsmith.lab.workers import process
from warpsmith.lab.workers.arena import Arena
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.languages.base import Build

PROLOGUE = """
import contextlib, ctypes, errno, json, mmap, os, resource, signal, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def tried(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except (OSError, ValueError) as error:
        return errno.errorcode.get(getattr(error, "errno", None), str(error))
    return "done"
def system_call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
def write(path, text="x"):
    with open(path, "w") as file:
        file.write(text)
found = {}
"""
EPILOGUE = """
json.dump(found, open("found.json", "w"))
def run(x):
    return x * x
"""


class Villain:
    """A solution that does what a test says when it is loaded, and leaves what came of it in its folder."""

    def __init__(self, host, workshop, limits, trusted=False):
        self.side = host.start_side("solution", limits, trusted=trusted)
        self.file = workshop.load("square", SQUARE)
        self.workshop = workshop
        self.arenas = [Arena(4096, "cpu"), Arena(4096, "cpu")]

    def does(self, text):
        candidate = self.workshop.solution(PROLOGUE, "triton")
        candidate.path.write_text(PROLOGUE + text + EPILOGUE)
        build = Build(candidate.path, candidate.path, ())
        self.side.load(self.file.definition, build, self.arenas, "cpu", "triton")
        self.side.answer("load")
        return json.loads((self.scratch / "found.json").read_text())

    @property
    def scratch(self):
        return self.side._folder / "scratch"

    def close(self):
        self.side.close()
        while self.arenas:
            self.arenas.pop().close()


@pytest.fixture
def villain(host, workshop):
    made = []

    def make(trusted=False, **limits):
        made.append(Villain(host, workshop, Limits(**{"seconds": 30, **limits}), trusted))
        return made[-1]

    yield make
    for one in made:
        one.close()


def holds(one, *walls):
    """Skip, with what is missing, where this machine cannot put a wall up."""
    checks = {check.name: check for check in one.side.isolation}
    for wall in walls:
        if not checks[wall].ran:
            pytest.skip(f"{wall}: {checks[wall].how}")


def test_what_holds_is_said_before_a_candidate_is_loaded(villain):
    names = {"network", "files", "file modes", "signals", "memory of others", "process group", "limits"}
    assert {check.name for check in villain().side.isolation} == names
    assert villain(trusted=True).side.isolation == ()


def test_writes_end_at_the_scratch_folder(villain, tmp_path):
    """Landlock, and mounts that are read-only."""
    one = villain()
    holds(one, "files")
    victim = tmp_path / "victim"
    victim.write_text("whole")
    found = one.does(f"""
for path in ({str(victim)!r}, {str(tmp_path / "new")!r}, "/tmp/warpsmith-new", "/usr/new", {__file__!r},
             "/proc/sys/kernel/hostname", sys.prefix + "/new"):
    found[path] = tried(write, path)
found["truncate"] = tried(os.truncate, {str(victim)!r}, 0)
found["rename"] = tried(os.rename, {str(victim)!r}, "moved")
found["unlink"] = tried(os.unlink, {str(victim)!r})
found["link"] = tried(os.link, {str(victim)!r}, "linked")
found["own"], found["null"] = tried(write, "mine"), tried(write, "/dev/null")
""")
    assert (found.pop("own"), found.pop("null")) == ("done", "done")
    assert set(found.values()) <= {"EACCES", "EROFS", "EXDEV"}
    assert victim.read_text() == "whole"


def test_modes_and_times_of_files_outside_stay(villain, tmp_path):
    """The mount namespace; Landlock does not look at them."""
    one = villain()
    holds(one, "file modes")
    victim = tmp_path / "victim"
    victim.write_text("")
    mode = victim.stat().st_mode
    found = one.does(f"""
found = {{"chmod": tried(os.chmod, {str(victim)!r}, 0), "utime": tried(os.utime, {str(victim)!r}),
          "unmount": system_call("umount2", b"/dev/shm", 2)}}
clear = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
found["writable again"] = system_call("syscall", 442, -100, b"/", 0, clear, 32)
libc.unshare(0x10020000)
found["writable in another namespace"] = system_call("syscall", 442, -100, b"/", 0, clear, 32)
""")
    assert set(found.values()) <= {"EROFS", "EPERM"}
    assert victim.stat().st_mode == mode


def test_reads_end_at_what_a_kernel_needs(villain, tmp_path):
    """Landlock."""
    one = villain()
    holds(one, "files")
    (tmp_path / "record.json").write_text("{}")
    other = villain()
    paths = [
        str(tmp_path / "record.json"), str(one.file.path), str(Path.home()), str(Path(__file__).parent), "/",
        "/tmp", "/etc/shadow", str(other.side._folder / "output.txt"), str(other.scratch), str(one.side._folder),
    ]  # fmt: skip
    found = one.does(f"""
for path in {paths!r}:
    found[path] = tried(os.listdir if os.path.isdir(path) else open, path)
found["python"] = tried(open, os.__file__)
import warpsmith.languages.cpp.language
found["compiler"] = subprocess.run(["c++", "--version"], capture_output=True).returncode
""")
    assert (found.pop("python"), found.pop("compiler")) == ("done", 0)
    assert found == dict.fromkeys(paths, "EACCES")


def test_a_hidden_folder_among_the_readable_ones(tmp_path):
    for name in ("kept/deep/secret", "kept/open", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    found = dict(landlock.grant_reading(tmp_path, [tmp_path / "kept" / "deep"]))
    assert found == {
        tmp_path: landlock.LIST, tmp_path / "kept": landlock.LIST,
        tmp_path / "kept" / "open": landlock.READ, tmp_path / "other": landlock.READ,
    }  # fmt: skip
    assert dict(landlock.grant_reading(tmp_path / "other", [tmp_path / "kept"])) == {
        tmp_path / "other": landlock.READ
    }


def test_packages_of_a_target_folder_are_readable_and_a_project_is_not(tmp_path, monkeypatch):
    (target := tmp_path / "site").mkdir()
    (target / "cuda_core-1.2.2.dist-info").mkdir()
    (project := tmp_path / "project").mkdir()
    monkeypatch.setattr(sys, "path", [str(target), str(project), str(tmp_path / "gone"), *sys.path])
    folders = list(walls._python_folders())
    assert target.resolve() in folders
    assert project.resolve() not in folders


def test_no_network(villain, tmp_path):
    """seccomp refuses the sockets; the namespace would have no other end for them."""
    one = villain()
    holds(one, "network", "process group")
    path = str(tmp_path / "socket")
    with (
        socket.create_server(("127.0.0.1", 0)) as stream,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
    ):
        datagrams.bind(("127.0.0.1", 0))
        abstract.bind("\0warpsmith-test")
        named.bind(path)
        for listener in (abstract, named):
            listener.listen()
        found = one.does(f"""
def reach(family, kind, address):
    with socket.socket(family, kind) as one:
        one.connect(address)
found = {{
    "tcp": tried(reach, socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {stream.getsockname()[1]})),
    "udp": tried(reach, socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", {datagrams.getsockname()[1]})),
    "vsock": tried(reach, socket.AF_VSOCK, socket.SOCK_STREAM, (2, 1024)),
    "abstract": tried(reach, socket.AF_UNIX, socket.SOCK_STREAM, "\\0warpsmith-test"),
    "named": tried(reach, socket.AF_UNIX, socket.SOCK_STREAM, {path!r}),
    "io_uring": system_call("syscall", 425, 1, ctypes.create_string_buffer(256)),
    "interfaces": [name for _, name in socket.if_nameindex()],
}}
""")
    assert found == {
        "tcp": "EAFNOSUPPORT", "udp": "EAFNOSUPPORT", "vsock": "EAFNOSUPPORT",
        "abstract": "ECONNREFUSED", "named": "ECONNREFUSED", "io_uring": "ENOSYS", "interfaces": ["lo"],
    }  # fmt: skip


def test_nobody_else_can_be_signalled(villain, host):
    """Landlock from version 6."""
    one, other = villain(), villain()
    holds(one, "signals")
    pids = [os.getpid(), host._process.pid, other.side.pid]
    found = one.does(f"""
for pid in {pids}:
    handle = os.pidfd_open(pid)
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT):
        found[f"{{pid}} {{number}}"] = tried(os.kill, pid, number)
        found[f"{{pid}} {{number}} by handle"] = tried(signal.pidfd_send_signal, handle, number)
child = subprocess.Popen(["sleep", "60"])
child.kill()
found["own child"] = child.wait()
""")
    assert found.pop("own child") == -9
    assert set(found.values()) == {"EPERM"}
    assert other.does("found['alive'] = True")


def test_nobody_elses_memory_or_files_can_be_opened(villain, host):
    """Landlock, and the user namespace."""
    one, other = villain(), villain()
    holds(one, "memory of others")
    other.does("found['loaded'] = True")
    secret = ctypes.create_string_buffer(b"a secret")
    memory = other.arenas[0]._file
    paths = [f"/proc/{pid}/{name}" for pid in (os.getpid(), host._process.pid, other.side.pid)
             for name in ("mem", "environ", "maps", "cwd/x", "root/etc/passwd", "fd/1")]  # fmt: skip
    found = one.does(f"""
for path in {[*paths, f"/proc/{os.getpid()}/fd/{memory}"]!r}:
    found[path] = tried(open, path, "rb")
for pid in {[os.getpid(), other.side.pid]}:
    for fd in os.listdir(f"/proc/{{pid}}/fd") if tried(os.listdir, f"/proc/{{pid}}/fd") == "done" else ():
        found[f"/proc/{{pid}}/fd/{{fd}}"] = tried(open, f"/proc/{{pid}}/fd/{{fd}}", "rb")
into = ctypes.create_string_buffer(8)
spans = [(ctypes.c_uint64 * 2)(ctypes.addressof(into), 8), (ctypes.c_uint64 * 2)({ctypes.addressof(secret)}, 8)]
found["process_vm_readv"] = system_call("process_vm_readv", {os.getpid()}, spans[0], 1, spans[1], 1, 0)
found["ptrace"] = system_call("ptrace", 16, {os.getpid()}, None, None)
""")
    assert secret.value == b"a secret"
    assert set(found.values()) <= {"EACCES", "EPERM"}


def test_a_rival_cannot_be_slowed(villain, host):
    """seccomp: calls that name another process of the same user."""
    one, rival = villain(), villain()
    holds(one, "process group")
    before = os.sched_getaffinity(rival.side.pid), os.getpriority(os.PRIO_PROCESS, rival.side.pid)
    found = one.does(f"""
with contextlib.suppress(OSError):
    os.sched_setaffinity({rival.side.pid}, [0])
found["priority"] = tried(os.setpriority, os.PRIO_PROCESS, {rival.side.pid}, 19)
found["limits"] = tried(resource.prlimit, {rival.side.pid}, resource.RLIMIT_AS, (1, 1))
found["mine"] = tried(os.sched_setaffinity, 0, [0])
""")
    after = os.sched_getaffinity(rival.side.pid), os.getpriority(os.PRIO_PROCESS, rival.side.pid)
    assert before == after
    assert found == {"priority": "EPERM", "limits": "EPERM", "mine": "done"}


def test_nothing_leaves_the_process_group_and_nothing_wakes_itself(villain):
    """seccomp: the calls look as if they had worked, or fail."""
    one = villain()
    holds(one, "process group")
    found = one.does("""
child = os.fork()
if child == 0:
    os.setsid()
    os.setpgid(0, 0)
    if os.fork() == 0:
        write("group", str(os.getpgid(0)))
    os._exit(0)
os.waitpid(child, 0)
while not os.path.exists("group") or not open("group").read():
    time.sleep(0.001)
found["group"] = int(open("group").read())
timer = ctypes.c_void_p()
event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
found["timer"] = system_call("syscall", 222, 1, event, ctypes.byref(timer))
import fcntl
found["wake by input"] = tried(fcntl.fcntl, os.pipe()[0], 10, signal.SIGCONT)
found["slow pages"] = system_call("syscall", 323, 1)
""")
    assert found.pop("group") == one.side.pid
    assert set(found.values()) == {"EPERM"}


def test_a_fork_bomb_is_a_failure_of_the_solution(villain, host):
    """The grader's count, and one signal for the whole group."""
    one = villain()
    with pytest.raises(SideFailed) as caught:
        one.does("""
for _ in range(300):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
time.sleep(600)
""")
    assert caught.value.status is Status.RUNTIME_ERROR
    assert f"more than {gate_rules.MAX_PROCESSES} processes" in caught.value.message
    assert [process for process in workers(host) if process.pid == one.side.pid] == []


def test_a_file_has_a_largest_size(villain):
    """RLIMIT_FSIZE; nothing is written by a hole at the end."""
    found = villain().does(f"""
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("big", "wb") as file:
    file.seek({gate_rules.LARGEST_FILE_BYTES} - 1)
    found["last byte"] = tried(lambda: (file.write(b"x"), file.flush()))
    found["one more"] = tried(os.write, file.fileno(), b"x")
found["raise the limit"] = tried(resource.setrlimit, resource.RLIMIT_FSIZE, (-1, -1))
""")
    assert found["last byte"] == "done"
    assert found["one more"] == "EFBIG"
    assert found["raise the limit"] != "done"


def test_an_untrusted_worker_lives_in_its_scratch_folder(villain):
    one = villain()
    found = one.does("""
import tempfile
names = ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "CUDA_TILE_CACHE_DIR",
         "CUTE_DSL_CACHE_DIR")
found = {name: os.environ[name] for name in names} | {"cwd": os.getcwd(), "temporary": tempfile.gettempdir()}
found["file"] = __file__
""")
    assert all(Path(path).resolve().is_relative_to(one.scratch.resolve()) for path in found.values())
    assert Path(found["file"]).name == "v1.py"
    one.close()
    assert not one.scratch.exists()


def test_a_trusted_side_is_not_shut_in(villain, tmp_path):
    """torch.compile writes its caches where the user keeps them."""
    assert villain(trusted=True).does(f"found['home'] = tried(write, {str(tmp_path / 'x')!r})") == {"home": "done"}


WITHOUT = """
import os, sys
from pathlib import Path
from warpsmith.lab.sandbox import walls as sandbox
def refuse(*_):
    raise OSError(38, "Function not implemented")
sandbox._unshare = sandbox._drop_capabilities = refuse
sandbox.landlock.restrict_process = sandbox.seccomp.install_filter = refuse
os.setsid()
for check in sandbox.enter_sandbox(Path(sys.argv[1])):
    print(check.name, check.ran, check.how, sep="|")
"""


def test_a_layer_that_is_missing_is_said(tmp_path):
    (tmp_path / "scratch").mkdir()
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "scratch")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {name: (ran, how) for name, ran, how in (line.split("|") for line in ended.stdout.splitlines())}
    assert [name for name, (ran, _) in found.items() if ran == "True"] == ["limits"]
    assert "needs Linux 5.13 or later with Landlock" in found["files"][1]
    assert "allow unprivileged user namespaces" in found["network"][1]
    assert "system call filters" in found["process group"][1]


def test_entering_takes_milliseconds_of_a_core(host):
    side = host.start_side("solution", Limits())
    side.unreadable_reason()
    assert 0 < process.core_seconds(side.pid) < 1
    side.close()

"""Walls around a worker that runs a candidate: namespaces, Landlock, a system call filter, and limits.

The freshly forked worker enters them while it is single-threaded and has loaded nothing. Every wall is tested
afterwards, and those that do not hold are reported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import site
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith import landlock
from warpsmith.core import gate_rules
from warpsmith.core.trust import Check
from warpsmith.lab.sandbox import seccomp
from warpsmith.landlock import DEVICE, EDIT, LIST, WRITE, Grant

_NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x40000000  # mount, IPC, user, network
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_CAPABILITIES = 0x20080522

_READABLE = (*landlock.SYSTEM, "/proc", "/sys", "/etc/nvidia", "/etc/OpenCL")
_DEVICES = ("null", "zero", "full", "random", "urandom", "nvidia*", "dri")
_TOOLS = ("cc", "c++", "gcc", "clang", "nvcc", "ptxas")
_REMEDIES = {
    "namespaces": "allow unprivileged user namespaces to this user or container",
    "mounts": "needs Linux 5.12 or later",
    "landlock": "needs Linux 5.13 or later with Landlock among its security modules",
    "capabilities": "the process keeps them",
    "seccomp": "needs a kernel with system call filters",
}
_TOO_OLD = {"signals": "Landlock of Linux 6.12 or later is needed"}
_CACHES = (
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "CUDA_TILE_CACHE_DIR",
    "CUTE_DSL_CACHE_DIR",
    "CUDA_CACHE_PATH",
)
"""Environment variables that name a library's cache."""
_SHARED = Path("/dev/shm")
_NVIDIA = Path("/dev/nvidiactl")


def enter_sandbox(scratch: Path, hidden: Sequence[Path] = ()) -> tuple[Check, ...]:
    """Confine this process: it may write only below `scratch`, and may not read what is `hidden` or anything that
    running a kernel does not need.

    Raises:
        OSError: the scratch folder cannot be written from inside.
    """
    scratch = scratch.resolve()
    network = _network_namespace()
    failures: dict[str, str] = {}
    _set_environment(scratch)
    with _recording_failure(failures, "namespaces"):
        _unshare()
    _set_limits()  # In the namespace, only its own processes count.
    if "namespaces" not in failures:
        with _recording_failure(failures, "mounts"):
            _mount(scratch)
    grants = _grants(scratch, [path.resolve() for path in hidden], "mounts" not in failures)
    with _recording_failure(failures, "landlock"):
        landlock.restrict_process(grants)
    with _recording_failure(failures, "capabilities"):
        _drop_capabilities()
    with _recording_failure(failures, "seccomp"):
        seccomp.install_filter()
    os.chdir(scratch)
    (scratch / "tmp").mkdir()
    return _test_walls(scratch, network, failures)


def cache_folder(variable: str) -> str:
    """Return the path below the scratch folder of the cache that an environment variable names."""
    return variable.lower()


def is_cache(name: str) -> bool:
    """Tell whether a name in the scratch folder is a library's: a cache, or hidden as in a home folder."""
    return name.startswith(".") or name in map(cache_folder, _CACHES)


def _set_environment(scratch: Path) -> None:
    """Set the environment so that caches and home folders lie below the scratch folder."""
    os.environ |= {name: str(scratch / cache_folder(name)) for name in _CACHES}
    os.environ |= {"HOME": str(scratch), "TRITON_HOME": str(scratch), "TMPDIR": str(scratch / "tmp")}
    tempfile.tempdir = None


def _set_limits() -> None:
    """Limit this process and what it starts. The kernel does not count the processes of the superuser."""
    for kind, value in (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, gate_rules.LARGEST_FILE_BYTES),
        (resource.RLIMIT_NOFILE, gate_rules.MAX_OPEN_FILES), (resource.RLIMIT_NPROC, gate_rules.MAX_THREADS),
    ):  # fmt: skip
        hard = resource.getrlimit(kind)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _unshare() -> None:
    """Enter new namespaces, in which the user keeps their id."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMESPACES) != 0:
        raise _os_error("user namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _mount(scratch: Path) -> None:
    """Make every file system read-only, including file modes and owners.

    The exceptions are the scratch folder and a private /dev/shm of this worker.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    scratch_path = os.fsencode(scratch)
    size = f"size={gate_rules.SHARED_MEMORY_BYTES}".encode()
    for arguments in (
        (None, b"/", None, _RECURSIVE | _PRIVATE, None),
        (scratch_path, scratch_path, None, _BIND, None),
        (b"tmpfs", os.fsencode(_SHARED), b"tmpfs", 0, size),
    ):
        if libc.mount(*arguments) != 0:
            raise _os_error("private mounts")
    writable = [scratch_path, os.fsencode(_SHARED), *([b"/proc"] if _NVIDIA.exists() else [])]
    for path, flags, add, clear in (
        (b"/", _AT_RECURSIVE, _READ_ONLY, 0), *((path, 0, 0, _READ_ONLY) for path in writable)
    ):  # fmt: skip
        attributes = (ctypes.c_uint64 * 4)(add, clear, 0, 0)
        if libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, path, flags, attributes, ctypes.sizeof(attributes)) != 0:
            raise _os_error("read-only mounts")


def _drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise _os_error("capabilities")


def _grants(scratch: Path, hidden: list[Path], own_shared: bool) -> list[Grant]:
    """List what may be read, executed and written."""
    package = Path(__file__).resolve().parents[2]
    hidden = [*hidden, package / "shipped"]
    roots = dict.fromkeys([*map(Path, _READABLE), *_python_folders(), *_toolchain_folders(), package])
    grants = [grant for root in roots for grant in landlock.grant_reading(root, hidden)]
    grants += [(device, DEVICE) for name in _DEVICES for device in Path("/dev").glob(name)]
    if _NVIDIA.exists():
        grants.append(
            (Path("/proc/self"), EDIT)
        )  # CUDA writes its thread names there and fails to start otherwise.
    return [*grants, (Path("/dev"), LIST), (scratch, WRITE), *([(_SHARED, WRITE)] if own_shared else [])]


def _python_folders() -> Iterator[Path]:
    """Yield the folders of the interpreter and its packages, those of `pip install --target` on the path included.

    A project on the path of an editable install is not among them.
    """
    yield from (
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.prefix).resolve(),
        Path(sys.base_prefix).resolve(),
    )
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    for entry in sys.path:
        if entry in packages or entry.endswith("-packages") or next(Path(entry).glob("*.dist-info"), None):
            yield Path(entry).resolve()


def _toolchain_folders() -> Iterator[Path]:
    """Yield the folders of compilers that Triton calls, and of libraries, if they are outside the system's
    folders."""
    programs = [shutil.which(name) for name in (*_TOOLS, *(os.environ.get(key, "") for key in ("CC", "CXX")))]
    yield from (root for name in programs if name and (root := Path(name).resolve().parents[1]) != Path("/"))
    folders = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    yield from (Path(name).resolve() for name in folders if name)
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    yield from (Path(name).resolve() for name in libraries if name.startswith("/"))


@dataclass(frozen=True)
class _Wall:
    """One operation that must fail inside the sandbox."""

    name: str
    holds: Callable[[], bool]
    needs: tuple[str, ...]
    how: str


def _test_walls(scratch: Path, before: Path, failures: dict[str, str]) -> tuple[Check, ...]:
    """Test every wall from inside and report which ones hold."""
    outside = os.getppid()
    is_separate = _network_namespace() != before
    network = "a separate network namespace" if is_separate else "network sockets are refused"
    mode = scratch.parent.stat().st_mode
    walls = (
        _Wall("network", lambda: _is_refused(_connect), ("namespaces", "seccomp"), network),
        _Wall(
            "files", lambda: _is_refused(os.listdir, "/"), ("landlock",), "Landlock: only listed files can be read"
        ),
        _Wall(
            "file modes",
            lambda: _is_refused(os.chmod, scratch.parent, mode),
            ("namespaces", "mounts"),
            "file systems are read-only except for the scratch folder",
        ),
        _Wall(
            "signals",
            lambda: _is_refused(os.kill, outside, 0),
            ("landlock",),
            "Landlock: only to its own processes",
        ),
        _Wall(
            "memory of others",
            lambda: _is_refused(os.open, f"/proc/{outside}/mem", os.O_RDONLY),
            ("landlock", "namespaces"),
            "Landlock: other processes cannot be traced",
        ),
        _Wall(
            "process group",
            lambda: not _is_refused(os.setsid),
            ("seccomp",),
            "seccomp: no process can leave it",
        ),
    )
    file_size = f"{gate_rules.LARGEST_FILE_BYTES >> 30} GiB"
    limits = f"{gate_rules.MAX_PROCESSES} processes, counted by the grader; {file_size} per file"
    return (*(_check(wall, failures) for wall in walls), Check(name="limits", ran=True, how=limits))


def _check(wall: _Wall, failures: dict[str, str]) -> Check:
    if wall.holds():
        return Check(name=wall.name, ran=True, how=wall.how)
    reasons = "; ".join(failures[part] for part in wall.needs if part in failures)
    return Check(
        name=wall.name, ran=False, how=reasons or _TOO_OLD.get(wall.name, "the kernel does not prevent it")
    )


def _is_refused(call: Callable[..., object], *arguments: object) -> bool:
    try:
        call(*arguments)
    except OSError:
        return True
    return False


def _connect() -> None:
    """Connect to the loopback interface; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("127.0.0.1", 9))


def _network_namespace() -> Path:
    return Path("/proc/self/ns/net").readlink()


@contextlib.contextmanager
def _recording_failure(failures: dict[str, str], part: str) -> Iterator[None]:
    """Record an error of one layer, so that the other layers are still set up."""
    try:
        yield
    except OSError as error:
        failures[part] = f"{error.strerror or error}: {_REMEDIES[part]}"


def _os_error(operation: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{operation}: {os.strerror(number)}")

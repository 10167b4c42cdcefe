"""The walls around a worker that runs a candidate: namespaces, Landlock, a filter of system calls, limits.

Entered by the freshly forked worker while it is single-threaded and has loaded nothing. Every wall is tried
afterwards, and what does not hold is said.
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

from warpsmith.core.trust import Check
from warpsmith.lab.sandbox import landlock, seccomp
from warpsmith.lab.sandbox.landlock import DEVICE, EDIT, LIST, WRITE, Grant

MOST_PROCESSES = 64
"""Processes that a worker may have started at a time; the grader counts."""
LARGEST_FILE = 1 << 30
"""Bytes of one file."""
_OPEN_FILES = 4096
_THREADS = 4096
_SHARED_MEMORY = 256 << 20

_NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x40000000  # mount, IPC, user, network
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_CAPABILITIES = 0x20080522

_READABLE = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/proc", "/sys",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/nvidia", "/etc/OpenCL",
)  # fmt: skip
_DEVICES = ("null", "zero", "full", "random", "urandom", "nvidia*", "dri")
_TOOLS = ("cc", "c++", "gcc", "clang", "nvcc", "ptxas")
_REMEDIES = {
    "namespaces": "allow unprivileged user namespaces to this user or container",
    "mounts": "needs Linux 5.12 or later",
    "landlock": "needs Linux 5.13 or later with Landlock among its security modules",
    "capabilities": "they stay as they are",
    "seccomp": "needs a kernel with filters of system calls",
}
_TOO_OLD = {"signals": "Landlock of Linux 6.12 or later is needed"}
_SHARED = Path("/dev/shm")
_NVIDIA = Path("/dev/nvidiactl")


def enter_sandbox(scratch: Path, hidden: Sequence[Path] = ()) -> tuple[Check, ...]:
    """Shut this process in: it may write below `scratch` only, and read neither what is `hidden` nor anything
    that running a kernel does not need.

    Raises:
        OSError: the scratch folder cannot be written from inside.
    """
    scratch = scratch.resolve()
    network = _network_namespace()
    lacks: dict[str, str] = {}
    _set_environment(scratch)
    with _recording_failure(lacks, "namespaces"):
        _unshare()
    _set_limits()  # in the namespace only its own processes count
    if "namespaces" not in lacks:
        with _recording_failure(lacks, "mounts"):
            _mount(scratch)
    grants = _grants(scratch, [path.resolve() for path in hidden], "mounts" not in lacks)
    with _recording_failure(lacks, "landlock"):
        landlock.restrict_process(grants)
    with _recording_failure(lacks, "capabilities"):
        _drop_capabilities()
    with _recording_failure(lacks, "seccomp"):
        seccomp.install_filter()
    os.chdir(scratch)
    (scratch / "tmp").mkdir()
    return _test_walls(scratch, network, lacks)


def cache_folder(variable: str) -> str:
    """Below the scratch folder, where the cache lies that a variable of the environment names."""
    return variable.lower()


def _set_environment(scratch: Path) -> None:
    """What programs ask the environment for: caches and homes below the scratch folder."""
    caches = ("TRITON", "TORCHINDUCTOR", "CUDA_TILE", "CUTE_DSL")
    names = (*(f"{cache}_CACHE_DIR" for cache in caches), "CUDA_CACHE_PATH")
    os.environ |= {name: str(scratch / cache_folder(name)) for name in names}
    os.environ |= {"HOME": str(scratch), "TRITON_HOME": str(scratch), "TMPDIR": str(scratch / "tmp")}
    tempfile.tempdir = None


def _set_limits() -> None:
    """Limits of the process and of what it starts. The kernel does not count the processes of the superuser."""
    for kind, value in (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_NOFILE, _OPEN_FILES), (resource.RLIMIT_NPROC, _THREADS),
    ):  # fmt: skip
        hard = resource.getrlimit(kind)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _unshare() -> None:
    """Namespaces of its own, in which the user is who he was."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMESPACES) != 0:
        raise _os_error("user namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _mount(scratch: Path) -> None:
    """Every file system read-only, the mode and the owner of files with it, but the scratch folder and a
    /dev/shm that is this worker's alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.fsencode(scratch)
    size = f"size={_SHARED_MEMORY}".encode()
    for arguments in (
        (None, b"/", None, _RECURSIVE | _PRIVATE, None),
        (here, here, None, _BIND, None),
        (b"tmpfs", os.fsencode(_SHARED), b"tmpfs", 0, size),
    ):
        if libc.mount(*arguments) != 0:
            raise _os_error("private mounts")
    writable = [here, os.fsencode(_SHARED), *([b"/proc"] if _NVIDIA.exists() else [])]
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
    """What may be read, run and written."""
    package = Path(__file__).resolve().parents[2]
    hidden = [*hidden, package / "shipped"]
    roots = dict.fromkeys([*map(Path, _READABLE), *_python_folders(), *_toolchain_folders(), package])
    grants = [grant for root in roots for grant in landlock.grant_reading(root, hidden)]
    grants += [(device, DEVICE) for name in _DEVICES for device in Path("/dev").glob(name)]
    if _NVIDIA.exists():
        grants.append((Path("/proc/self"), EDIT))  # CUDA names its threads there, and does not start otherwise
    return [*grants, (Path("/dev"), LIST), (scratch, WRITE), *([(_SHARED, WRITE)] if own_shared else [])]


def _python_folders() -> Iterator[Path]:
    """The interpreter and its packages. A project on the path of an editable install is not among them."""
    yield from (
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.prefix).resolve(),
        Path(sys.base_prefix).resolve(),
    )
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    yield from (Path(entry).resolve() for entry in sys.path if entry in packages or entry.endswith("-packages"))


def _toolchain_folders() -> Iterator[Path]:
    """Compilers that Triton calls, and libraries, where they are not the system's."""
    named = [shutil.which(name) for name in (*_TOOLS, *(os.environ.get(key, "") for key in ("CC", "CXX")))]
    yield from (root for name in named if name and (root := Path(name).resolve().parents[1]) != Path("/"))
    folders = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    yield from (Path(name).resolve() for name in folders if name)
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    yield from (Path(name).resolve() for name in libraries if name.startswith("/"))


@dataclass(frozen=True)
class _Wall:
    """One thing that must not work from inside."""

    name: str
    holds: Callable[[], bool]
    needs: tuple[str, ...]
    how: str


def _test_walls(scratch: Path, before: Path, lacks: dict[str, str]) -> tuple[Check, ...]:
    """Every wall, tried."""
    outside = os.getppid()
    apart = _network_namespace() != before
    network = "a network namespace of its own" if apart else "sockets of the network are refused"
    mode = scratch.parent.stat().st_mode
    walls = (
        _Wall("network", lambda: _is_refused(_connect), ("namespaces", "seccomp"), network),
        _Wall("files", lambda: _is_refused(os.listdir, "/"), ("landlock",), "Landlock: a list of what may be read"),
        _Wall("file modes", lambda: _is_refused(os.chmod, scratch.parent, mode), ("namespaces", "mounts"),
              "file systems are read-only but for the scratch folder"),
        _Wall("signals", lambda: _is_refused(os.kill, outside, 0), ("landlock",), "Landlock: to its own only"),
        _Wall("memory of others", lambda: _is_refused(os.open, f"/proc/{outside}/mem", os.O_RDONLY),
              ("landlock", "namespaces"), "Landlock: other processes cannot be traced"),
        _Wall("process group", lambda: not _is_refused(os.setsid), ("seccomp",), "seccomp: nothing leaves it"),
    )  # fmt: skip
    limits = f"{MOST_PROCESSES} processes, counted by the grader; {LARGEST_FILE >> 30} GiB a file"
    return (*(_check(wall, lacks) for wall in walls), Check(name="limits", ran=True, how=limits))


def _check(wall: _Wall, lacks: dict[str, str]) -> Check:
    if wall.holds():
        return Check(name=wall.name, ran=True, how=wall.how)
    why = "; ".join(lacks[part] for part in wall.needs if part in lacks)
    return Check(name=wall.name, ran=False, how=why or _TOO_OLD.get(wall.name, "the kernel lets it through"))


def _is_refused(call: Callable[..., object], *arguments: object) -> bool:
    try:
        call(*arguments)
    except OSError:
        return True
    return False


def _connect() -> None:
    """Reach for the loopback interface; a datagram socket sends nothing by that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("127.0.0.1", 9))


def _network_namespace() -> Path:
    return Path("/proc/self/ns/net").readlink()


@contextlib.contextmanager
def _recording_failure(lacks: dict[str, str], part: str) -> Iterator[None]:
    """A layer that this machine lacks is written down, and the others are put up all the same."""
    try:
        yield
    except OSError as error:
        lacks[part] = f"{error.strerror or error}: {_REMEDIES[part]}"


def _os_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")

"""State of a process that a kernel shares with its caller, who finds there what a call has changed."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import platform
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from warpsmith.lab.sandbox import walls
from warpsmith.lab.workers.calls import openmp_state

ProcessState = dict[str, str]
"""Name of a part of the state to its value, as text or as a digest."""


def read_process_state(device: str) -> ProcessState:
    """Read the state of this process and thread; parts that the installed PyTorch lacks are left out."""
    return _read_parts(_READERS | (_CPU_READERS | _LATE_READERS if device == "cpu" else _CUDA_READERS))


def _read_parts(readers: Mapping[str, Callable[[], object]]) -> ProcessState:
    state = {}
    for name, read in readers.items():
        try:
            state[name] = str(read())
        except (AttributeError, RuntimeError, OSError):
            continue
    return state


def read_initial_state(device: str) -> ProcessState:
    """Read the state of this process before a version is loaded; what is certain then is not looked at."""
    return _read_parts(_READERS | (_CPU_READERS if device == "cpu" else _CUDA_READERS)) | (
        _CERTAIN if device == "cpu" else {}
    )


def describe_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a clause for each part that differs; one that can no longer be read has changed too."""
    values = {name: after.get(name, "unreadable") for name in before}
    return [f"{name}: {before[name]} to {value}" for name, value in values.items() if value != before[name]]


def _torch() -> Any:  # noqa: ANN401 - a module whose flags are read by name
    import torch

    return torch


def flushes_subnormals(least: float = sys.float_info.min, subnormal: float = 5e-324) -> tuple[bool, bool]:
    """Return True for each of these: a subnormal result becomes zero; a subnormal operand counts as zero."""
    return least * 0.5 == 0.0, subnormal * 2.0**100 == 0.0


def _rounding_mode(unit: float = 1.0, little: float = 1e-20) -> tuple[bool, bool, bool]:
    """Return which sums round away from the nearest number, as the vector unit computes them.

    The C library's `fegetround` reads another register, which compiled kernels do not use.
    """
    return unit + little > unit, -unit - little < -unit, unit - little < unit


def _floating_modes() -> tuple[object, ...]:
    return flushes_subnormals(), _rounding_mode()


def _digest(value: object) -> str:
    content = value.numpy().tobytes() if hasattr(value, "numpy") else repr(value).encode()
    return hashlib.sha256(content).hexdigest()[:12]


def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208


def _handlers() -> str:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV, signal.SIGALRM, signal.SIGCHLD)
    return _digest([signal.getsignal(number) for number in numbers])


def _mask(*numbers: signal.Signals) -> int:
    return sum(1 << (number - 1) for number in numbers)


_SENT = _mask(
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM, signal.SIGTERM, signal.SIGCHLD, signal.SIGCONT,
    signal.SIGTSTP, signal.SIGPIPE,
)  # fmt: skip
"""Signals that a caller sends or waits for."""

_WATCHED = {"SigBlk": _SENT, "SigIgn": _SENT, "SigCgt": _mask(signal.SIGALRM, signal.SIGCHLD, signal.SIGCONT)}
"""Masks in /proc and the signals that count in each; compilers catch those that end a process, to clean up."""


def _signal_masks() -> dict[str, str]:
    """Return the kernel's masks of signals: blocked, ignored and caught, whoever set them."""
    fields = (line.split(":\t", 1) for line in _status_lines() if line.startswith(tuple(_WATCHED)))
    return {name: f"{int(mask, 16) & _WATCHED[name]:x}" for name, mask in fields}


def _signal_actions() -> str:
    """Return a digest of the C library's handlers, some of which Python does not know."""
    library, actions = ctypes.CDLL(None), []
    for number in sorted(signal.valid_signals()):
        action = ctypes.create_string_buffer(_ACTION_BYTES)
        if library.sigaction(number, None, action) == 0:
            actions.append((int(number), action.raw[: ctypes.sizeof(ctypes.c_void_p)]))
    return _digest(actions)


def _child_exit_code() -> int:
    """Return how far the exit code of a forked child is from the one that it asks the C library for.

    It runs the handlers that kernels registered. A child that is killed or hangs says nothing about them: the
    library of PyTorch's profiler, once used, waits at its end for a thread that no child has.
    """
    code, started = random.SystemRandom().randrange(_LEAST_CODE, _MOST_CODE), time.monotonic()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).exit(code)
    awake, activity = started, ""
    while time.monotonic() < min(started + _CHILD_SECONDS, awake + _CHILD_IDLE_SECONDS):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.WEXITSTATUS(status) - code if os.WIFEXITED(status) else 0
        if (last := _activity(child)) != activity or not last.startswith("S"):
            awake, activity = time.monotonic(), last
        time.sleep(_CHILD_STEP)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 0


def _activity(pid: int) -> str:
    """Return the letter of a process's state and the time that it has computed so far, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return " ".join((fields[0], *fields[11:13]))


def _status_lines() -> list[str]:
    return Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()


def _umask() -> str:
    return next(line for line in _status_lines() if line.startswith("Umask"))


def _c_environment() -> str:
    """Return a digest of the C library's variables, which Python's copy does not follow."""
    pointers = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    entries: list[bytes] = []
    while pointers[len(entries)]:
        entries.append(bytes(pointers[len(entries)] or b""))
    return _digest(sorted(entries))


def _control_words() -> str:
    """Return the control words of the floating-point units: rounding, precision, traps and registers in use,
    without exception flags."""
    environment = ctypes.create_string_buffer(64)
    ctypes.CDLL(None).fegetenv(environment)
    if platform.machine() != "x86_64":
        return environment.raw.hex()
    status = int.from_bytes(environment.raw[28:32], "little")
    return f"{environment.raw[:2].hex()} {environment.raw[8:10].hex()} {status & ~0x3F:x}"


def _locale() -> str:
    """Return the C library's names of languages and forms of numbers."""
    setlocale = ctypes.CDLL(None).setlocale
    setlocale.restype = ctypes.c_char_p
    return str(setlocale(_LC_ALL, None))


def _new_handler() -> object:
    """Return the address of what C++ calls where memory is short."""
    read = ctypes.CDLL("libstdc++.so.6")._ZSt15get_new_handlerv
    read.restype = ctypes.c_void_p
    return read()


def _c_random_numbers() -> str:
    """Return a digest of the state of the C library's `random`, which stays as it is."""
    library, other = ctypes.CDLL(None), ctypes.create_string_buffer(_RANDOM_BYTES)
    library.initstate.restype = library.setstate.restype = ctypes.c_void_p
    library.setstate.argtypes = [ctypes.c_void_p]
    state = library.initstate(1, other, _RANDOM_BYTES)
    content = ctypes.string_at(state, _RANDOM_BYTES)
    library.setstate(state)
    return _digest(content)


def _standard_files() -> list[str]:
    return [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]  # noqa: PTH115


_LEAST_CODE, _MOST_CODE = 3, 100
"""Exit codes that a child asks for."""

_CHILD_SECONDS, _CHILD_IDLE_SECONDS, _CHILD_STEP = 1.0, 0.1, 0.001
"""Seconds that it may take, that it may sleep at a stretch, and between two looks at it."""

_ACTION_BYTES = 256
"""Room for the C library's `struct sigaction`, which begins with the address of the handler."""

_LC_ALL = 6

_TIMER_SLACK = 30
"""Number of `prctl` that returns the nanoseconds by which timers of the thread may be late."""

_RANDOM_BYTES = 128
"""Bytes of the state that the C library's `random` begins with."""

_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)

_LIMITS = 10
"""Kinds of limits that every Linux has."""

_READERS: dict[str, Callable[[], object]] = {
    "flushing of subnormal numbers": flushes_subnormals,
    "rounding mode": _rounding_mode,
    "cores of the thread": lambda: sorted(os.sched_getaffinity(0)),
    "priority": lambda: os.getpriority(os.PRIO_PROCESS, 0),
    "working folder": os.getcwd,
    "session and group": lambda: (os.getsid(0), os.getpgid(0)),
    "environment": lambda: _digest(sorted(os.environ.items())),
    "limits": lambda: [resource.getrlimit(number) for number in range(_LIMITS)],
    "signal handlers": _handlers,
    "signals blocked, ignored or caught": _signal_masks,
    "file mode mask": _umask,
    "control words": _control_words,
    "standard input and output": _standard_files,
    "timers": lambda: [signal.getitimer(timer)[1] for timer in _TIMERS],
    "name of the thread": lambda: Path("/proc/self/comm").read_text(),
    "pending alarm": lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 0,
    "scheduling policy": lambda: os.sched_getscheduler(0),
    "garbage collection": lambda: (gc.isenabled(), gc.get_threshold()),
    "recursion limit": sys.getrecursionlimit,
    "search path": lambda: _digest(sys.path),
    "Python's random numbers": lambda: _digest(random.getstate()),
    "PyTorch's random numbers": lambda: _digest(_torch().get_rng_state()),
    "default type": lambda: _torch().get_default_dtype(),
    "default device": lambda: _torch().get_default_device(),
    "gradients": lambda: _torch().is_grad_enabled(),
    "inference mode": lambda: _torch().is_inference_mode_enabled(),
    "autocast": lambda: (_torch().is_autocast_enabled("cuda"), _torch().is_autocast_enabled("cpu")),
    "deterministic algorithms": lambda: _torch().are_deterministic_algorithms_enabled(),
    "anomaly detection": lambda: _torch().is_anomaly_enabled(),
    "float32 precision of products": lambda: _torch().get_float32_matmul_precision(),
    "TF32 in products": lambda: _torch().backends.cuda.matmul.allow_tf32,
    "TF32 in convolutions": lambda: _torch().backends.cudnn.allow_tf32,
    "reduced sums in fp16": lambda: _torch().backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
    "reduced sums in bf16": lambda: _torch().backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    "cuDNN's benchmark": lambda: _torch().backends.cudnn.benchmark,
    "cuDNN's determinism": lambda: _torch().backends.cudnn.deterministic,
    "threads of PyTorch": lambda: _torch().get_num_threads(),
}

_CPU_READERS: dict[str, Callable[[], object]] = {
    "environment of the C library": _c_environment,
    "random numbers of the C library": _c_random_numbers,
    "handlers of signals": _signal_actions,
    "locale": _locale,
    "handler of short memory": _new_handler,
    "slack of timers": lambda: ctypes.CDLL(None).prctl(_TIMER_SLACK, 0, 0, 0, 0),
    "settings of OpenMP": openmp_state.read_settings,
    "cores of OpenMP's threads": lambda: openmp_state.read_modes(lambda: tuple(sorted(os.sched_getaffinity(0)))),
    "modes of OpenMP's threads": lambda: openmp_state.read_modes(_floating_modes),
    "files of the working folder": lambda: [name for name in _names(".") if not walls.is_cache(name)],
    "shared memory": lambda: _names("/dev/shm"),
}
"""Parts that CUDA's compiler and libraries change."""

_LATE_READERS: dict[str, Callable[[], object]] = {"exit code of a child, off by": _child_exit_code}
_CERTAIN = {"exit code of a child, off by": "0"}
"""Parts that take long to read, and what they are before a version is loaded."""

_CUDA_READERS: dict[str, Callable[[], object]] = {
    "the GPU's random numbers": lambda: _digest(_torch().cuda.get_rng_state()),
    "current device": lambda: _torch().cuda.current_device(),
    "current stream": lambda: _torch().cuda.current_stream().cuda_stream,
}

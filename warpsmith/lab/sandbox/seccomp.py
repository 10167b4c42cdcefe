"""Filter of the system calls that namespaces and Landlock leave open to workers.

A call that the filter answers with 0 does nothing and appears to succeed: honest libraries make such calls and
would stop at an error.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from dataclasses import dataclass
from errno import EAFNOSUPPORT, ECONNREFUSED, ENOSYS, EPERM

_NO_NEW_PRIVILEGES = 38
_SET_FILTER, _KEEP_SPECULATION = 1, 1 << 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_OTHER_ABI = 0x40000000
_F_SETSIG = 10
_AF_UNIX, _AF_NETLINK = 1, 16

_MACHINES = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}
"""Number of the architecture, and of its system call `seccomp`."""


@dataclass(frozen=True)
class SyscallRule:
    """Rule that refuses one system call."""

    x86_64: int
    """Number of the call on x86_64."""
    aarch64: int
    """Number of the call on aarch64."""
    answer: int
    """Error number that the call returns, or 0."""
    argument: int = 0
    """Index of the argument whose lower 32 bits decide, if the rule has a condition."""
    only: int | None = None
    """Value of the argument for which alone the call is refused."""
    unless: tuple[int, ...] = ()
    """Values of the argument for which the call is allowed."""


_RULES = (
    # Everything that a worker starts stays in its process group: one signal stops or ends it all at once.
    SyscallRule(112, 157, 0),  # setsid
    SyscallRule(109, 154, 0),  # setpgid
    # No sockets lead out: not those in the file system, the network, or the host of a virtual machine.
    SyscallRule(42, 203, ECONNREFUSED),  # connect
    SyscallRule(41, 198, EAFNOSUPPORT, unless=(_AF_UNIX, _AF_NETLINK)),  # socket
    SyscallRule(425, 425, ENOSYS),  # io_uring_setup: its requests bypass the filter
    # Only the grader may continue a stopped worker, and no page of a worker may block the grader.
    SyscallRule(222, 107, EPERM),  # timer_create: a timer could send SIGCONT
    SyscallRule(244, 184, EPERM),  # mq_notify
    SyscallRule(72, 25, EPERM, argument=1, only=_F_SETSIG),  # fcntl
    SyscallRule(323, 282, EPERM),  # userfaultfd
    # Processes of the same user: a worker could slow a rival or set the grader's limits. 0 is the caller itself.
    SyscallRule(203, 122, 0, unless=(0,)),  # sched_setaffinity
    SyscallRule(144, 119, 0, unless=(0,)),  # sched_setscheduler
    SyscallRule(142, 118, 0, unless=(0,)),  # sched_setparam
    SyscallRule(314, 274, 0, unless=(0,)),  # sched_setattr
    SyscallRule(302, 261, EPERM, unless=(0,)),  # prlimit64
    SyscallRule(141, 140, EPERM),  # setpriority
    SyscallRule(251, 30, EPERM),  # ioprio_set
    # Keys of the user in the kernel.
    SyscallRule(248, 217, ENOSYS),  # add_key
    SyscallRule(249, 218, ENOSYS),  # request_key
    SyscallRule(250, 219, ENOSYS),  # keyctl
)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install_filter() -> None:
    """Filter the calls of this process and its children from now on.

    Raises:
        OSError: the kernel or the architecture has no such filter.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(ENOSYS, f"there is no system call filter for {machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = _program(machine)
    program = _FilterProgram(
        len(instructions), b"".join(struct.pack("<HBBI", *instruction) for instruction in instructions)
    )
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(
        _MACHINES[machine][1], _SET_FILTER, _KEEP_SPECULATION, ctypes.byref(program)
    ):
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


_Instruction = tuple[int, int, int, int]
"""Instruction: code, instructions to skip if true, instructions to skip if false, operand."""


def _program(machine: str) -> list[_Instruction]:
    foreign = _refuse(ENOSYS)
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, _MACHINES[machine][0]), foreign,
        (_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _OTHER_ABI), foreign,
    ]  # fmt: skip
    for rule in _RULES:
        body = _decide(rule)
        program += [(_EQUAL, 0, len(body), getattr(rule, machine)), *body]
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def _decide(rule: SyscallRule) -> list[_Instruction]:
    """Return the instructions that follow when the call's number matches the rule; they always return."""
    load = (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * rule.argument)
    allow = (_RETURN, 0, 0, _ALLOW)
    if rule.only is not None:
        return [load, (_EQUAL, 1, 0, rule.only), allow, _refuse(rule.answer)]
    if rule.unless:
        tests = [(_EQUAL, len(rule.unless) - i, 0, value) for i, value in enumerate(rule.unless)]
        return [load, *tests, _refuse(rule.answer), allow]
    return [_refuse(rule.answer)]


def _refuse(answer: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | answer)

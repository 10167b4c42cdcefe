"""A filter of system calls for workers: what namespaces and Landlock leave open.

A call that the filter answers with 0 does nothing and looks as if it had worked, for honest libraries make it
and would stop at an error.
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
"""The architecture's number, and that of the call `seccomp`."""


@dataclass(frozen=True)
class SyscallRule:
    """One refused call."""

    x86_64: int
    """Its number."""
    aarch64: int
    """Its number there."""
    answer: int
    """The error that it gives, or 0."""
    argument: int = 0
    """Which argument decides, where one does: its lower 32 bits."""
    only: int | None = None
    """Refused only where the argument is this."""
    unless: tuple[int, ...] = ()
    """Refused unless the argument is one of these."""


_RULES = (
    # Everything that a worker starts stays in its process group: one signal stops or ends it all at once.
    SyscallRule(112, 157, 0),  # setsid
    SyscallRule(109, 154, 0),  # setpgid
    # No way out over sockets in the file system, over the network, or to the host of a virtual machine.
    SyscallRule(42, 203, ECONNREFUSED),  # connect
    SyscallRule(41, 198, EAFNOSUPPORT, unless=(_AF_UNIX, _AF_NETLINK)),  # socket
    SyscallRule(425, 425, ENOSYS),  # io_uring_setup: its requests pass no filter
    # Nothing continues a stopped worker but the grader, and no page of it keeps the grader waiting.
    SyscallRule(222, 107, EPERM),  # timer_create: a timer may send SIGCONT
    SyscallRule(244, 184, EPERM),  # mq_notify
    SyscallRule(72, 25, EPERM, argument=1, only=_F_SETSIG),  # fcntl
    SyscallRule(323, 282, EPERM),  # userfaultfd
    # Processes of the same user: a rival could be slowed, or the grader's limits set. 0 is the caller itself.
    SyscallRule(203, 122, 0, unless=(0,)),  # sched_setaffinity
    SyscallRule(144, 119, 0, unless=(0,)),  # sched_setscheduler
    SyscallRule(142, 118, 0, unless=(0,)),  # sched_setparam
    SyscallRule(314, 274, 0, unless=(0,)),  # sched_setattr
    SyscallRule(302, 261, EPERM, unless=(0,)),  # prlimit64
    SyscallRule(141, 140, EPERM),  # setpriority
    SyscallRule(251, 30, EPERM),  # ioprio_set
    # The user's keys in the kernel.
    SyscallRule(248, 217, ENOSYS),  # add_key
    SyscallRule(249, 218, ENOSYS),  # request_key
    SyscallRule(250, 219, ENOSYS),  # keyctl
)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install_filter() -> None:
    """Filter the calls of this process and its children from here on.

    Raises:
        OSError: the kernel or the architecture has no such filter.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(ENOSYS, f"no filter of system calls for {machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = _program(machine)
    program = _FilterProgram(len(instructions), b"".join(struct.pack("<HBBI", *one) for one in instructions))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(
        _MACHINES[machine][1], _SET_FILTER, _KEEP_SPECULATION, ctypes.byref(program)
    ):
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


_Instruction = tuple[int, int, int, int]
"""Code, how many to skip if true, how many if false, operand."""


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
    """What follows where the number is the rule's; it always returns."""
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

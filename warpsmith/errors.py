"""Errors that a user can meet: one class for each kind, with its exit code.

A message says in one sentence what is wrong, where, and what to do.
"""

from __future__ import annotations


class WarpsmithError(Exception):
    """Base of all errors that end a command with one sentence on stderr."""

    exit_code = 2


class SolutionFailed(WarpsmithError):
    """The solution was judged and failed."""

    exit_code = 1


class Misuse(WarpsmithError):
    """The command, its arguments or a file that the user wrote is wrong."""

    exit_code = 2


class BadDefinition(Misuse):
    """A definition does not import, does not validate, or its reference fails."""


class BadEntry(Misuse):
    """A knowledge entry does not parse, or makes a claim that no record supports."""


class MissingInput(WarpsmithError):
    """A file that the command needs does not exist yet."""

    exit_code = 3


class UnknownFigure(MissingInput):
    """A computation needs a hardware figure that its page gives as UNKNOWN."""


class CorruptRecord(MissingInput):
    """A record on disk is incomplete, was edited by hand, or does not validate."""


class UnreadableRecord(CorruptRecord):
    """The machine cannot read a record at the moment, which says nothing about its content: no repair moves it."""


class LeftOut(UserWarning):
    """A campaign does not read, so what was asked for is answered without it."""


class MachineLacks(WarpsmithError):
    """The machine lacks a compiler, a device or a library that the command needs."""

    exit_code = 4


class MachineFailed(MachineLacks):
    """The machine or the reference failed during a judgement, which is not the fault of the solution."""


class CompanionFailed(MachineFailed):
    """A process that runs beside a candidate failed, or the host of all of them: the machine's fault, unless it
    happens again beside the candidate and not without it."""


class Unreachable(MachineLacks):
    """Another machine cannot be reached, or the connection to it was lost."""


class TimedOut(WarpsmithError):
    """A step exceeded its time limit."""

    exit_code = 5


class Ambiguous(WarpsmithError):
    """Timing stayed within the noise after every allowed repetition."""

    exit_code = 6


class AgentStopped(WarpsmithError):
    """The agents stopped: the budget is spent, their API failed, or they repeatedly proposed something that is
    refused."""

    exit_code = 7


class Busy(WarpsmithError):
    """Another process holds the campaign."""

    exit_code = 2

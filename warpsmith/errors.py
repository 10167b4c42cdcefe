"""Every error a user can meet, one class a kind, each with the exit code of its kind.

A message says what is wrong, where, and what to do, in one sentence.
"""

from __future__ import annotations


class WarpsmithError(Exception):
    """Base of all errors that end a command with one sentence on stderr."""

    exit_code = 2


class SolutionFailed(WarpsmithError):
    """The solution was judged and did not pass."""

    exit_code = 1


class Misuse(WarpsmithError):
    """The command, its arguments or a file the user wrote is wrong."""

    exit_code = 2


class BadDefinition(Misuse):
    """A definition does not import, does not validate or its reference fails."""


class BadEntry(Misuse):
    """A knowledge entry does not parse or says something that no record backs."""


class MissingInput(WarpsmithError):
    """Something the command needs is not on disk yet."""

    exit_code = 3


class UnknownFigure(MissingInput):
    """A computation needs a hardware figure that its page gives as UNKNOWN."""


class CorruptRecord(MissingInput):
    """A record on disk is torn, edited by hand or does not validate."""


class MachineLacks(WarpsmithError):
    """The machine lacks a compiler, a device or a library that the command needs."""

    exit_code = 4


class MachineFailed(MachineLacks):
    """The machine or the reference failed during a judgement; the solution is not to blame."""


class TimedOut(WarpsmithError):
    """A step outlasted its time limit."""

    exit_code = 5


class Ambiguous(WarpsmithError):
    """Timing stayed inside the noise after every allowed repetition."""

    exit_code = 6


class AgentStopped(WarpsmithError):
    """The agents' side ended: the budget is spent, their API failed, or they kept proposing what is refused."""

    exit_code = 7


class Busy(WarpsmithError):
    """Another process holds the campaign."""

    exit_code = 2

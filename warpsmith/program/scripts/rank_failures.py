"""Failures of one rank of a command: which rank failed first, and what it said.

When a rank fails, the others fail too, because they miss it in a collective, or the launcher ends them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

from warpsmith.errors import MachineLacks, SolutionFailed
from warpsmith.lab.workers.channel import Message

_LOST_PEER = re.compile(r"closed by peer|reset by peer|remote process|broken pipe|peer closed|timed out", re.I)
_EXIT_CODE = re.compile(r"exitcode: (-?\d+)\) local_rank: (\d+)")
"""Words of torchrun's log on the rank that it saw fail."""

_ABORT_REASON = re.compile(r"^ *what\(\): +(?:\[enforce fail at [^\]]*\] *)?(.{1,300})", re.M)
"""Words of C++ on the exception that ended a process, such as Gloo's on sizes that differ between ranks."""


@dataclass(frozen=True)
class RankFailure:
    """The rank that failed first."""

    rank: int
    """Number of the rank."""
    answer: Message | None
    """Its error as `serve.describe_request_error` describes it; None if it ended without a word."""
    alone: bool
    """True if no other rank failed in the same way."""


def first_rank_failure(answers: Mapping[int, Message | None], log: Path | None) -> RankFailure | None:
    """Return the rank that failed first; None if none failed.

    Args:
        answers: rank to its answer; None for a rank that closed its channel.
        log: file with the command's output. Of ranks that ended without a word, it names the first.
    """
    failed = [(rank, answer) for rank, answer in answers.items() if answer is not None and not answer["ok"]]
    failed.sort(key=lambda item: item[1].get("time", 0.0))
    causes = [item for item in failed if not _misses_peer(item[1])]
    ended = [rank for rank, answer in answers.items() if answer is None]
    if causes:
        rank, first = causes[0]
        return RankFailure(rank, first, sum(answer["kind"] == first["kind"] for _, answer in causes) == 1)
    if ended:
        logged = next((rank for rank in _logged_exit_codes(log) if rank in ended), ended[0])
        return RankFailure(logged, None, len(ended) == 1)
    return RankFailure(*failed[0], len(failed) == 1) if failed else None


def only_misses_peers(answers: Mapping[int, Message | None]) -> bool:
    """Tell whether those that failed so far did so because they miss another rank, which has said nothing yet."""
    return all(answer is not None and (answer["ok"] or _misses_peer(answer)) for answer in answers.values())


def _misses_peer(answer: Message) -> bool:
    return bool(_LOST_PEER.search(answer["message"]))


def failure_error(
    label: str, failure: RankFailure, world: int | None, doing: str, log: Path | None
) -> SolutionFailed | MachineLacks:
    """Return the error for a rank that failed.

    Args:
        label: the command.
        failure: the rank.
        world: number of ranks; None if not known.
        doing: what it did, such as `5 steps`.
        log: file with the command's output.
    """
    subject = f"`{label}`: rank {failure.rank}{f' of {world}' if world else ''}"
    output = f" Its output: {log}" if log else ""
    answer = failure.answer
    if answer is None:
        return SolutionFailed(
            f"{subject} {_describe_end(failure.rank, log)} during {doing}; all ranks were ended.{output}"
        )
    message = answer["message"].rstrip(".")
    step = f"in its step {answer['at']}" if "at" in answer else f"during {doing}"
    if answer["kind"] == "memory":
        return MachineLacks(
            f"{subject}{' alone' if failure.alone else ''} runs out of memory {step}: {message}; all ranks were "
            "ended: give it less to hold, or free its device."
        )
    return SolutionFailed(f"{subject} fails {step}: {message}; all ranks were ended.{output}")


def logged_failure(log: Path | None) -> RankFailure | None:
    """Return the failure of the rank that the launcher saw end first; None if its log names none."""
    ranks = list(_logged_exit_codes(log))
    return RankFailure(ranks[0], None, len(ranks) == 1) if ranks else None


def _describe_end(rank: int, log: Path | None) -> str:
    """Describe how a rank ended, from the launcher's words in the log."""
    codes = _logged_exit_codes(log)
    if rank not in codes:
        return "ended by itself"
    code = codes[rank]
    if code >= 0:
        return f"ended with exit code {code}"
    reason = _ABORT_REASON.search(_read_log(log)) if -code == Signals.SIGABRT else None
    return f"was killed by {Signals(-code).name}{f' ({reason[1].rstrip()})' if reason else ''}"


def _logged_exit_codes(log: Path | None) -> dict[int, int]:
    """Return the exit code of each rank that the launcher saw fail, the first one first."""
    return {int(match[2]): int(match[1]) for match in _EXIT_CODE.finditer(_read_log(log))}


def _read_log(log: Path | None) -> str:
    return log.read_text(errors="replace") if log is not None and log.is_file() else ""

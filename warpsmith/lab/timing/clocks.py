"""Clocks: what a GPU's events tell in the worker, held against the grader's own clock.

What the grader's clock sees beyond the events is hand-over, and that is as long for the solution as for the
reference. On a busy host it is too uncertain to say much of one block. But a block that is replayed many times is
handed over once: work that hides from the events hides at each replay.
"""

from __future__ import annotations

import math

from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Replays, Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import Failed

SHARE = 0.02
"""Of a block, that the clocks may differ by."""

_HAND_OVER_SECONDS = 30e-6
_LAUNCH_SECONDS = 1.5e-6
_NEAREST = 3
_WANTED = 0.1
"""Slack, as a share of a block, from which on single blocks say enough."""
_MORE = 48
"""Blocks that are run at most, of either kind: a disturbance passes, hidden work does not."""
_REPLAYED_SECONDS = 0.03
_LATE_SHARE = 1 / 3
"""Of a block, by which a process may answer later than the reference's for good, by where it runs."""


def agree(session: Session, samples: Samples) -> None:
    """Run what it takes to tell, with rounds behind; nothing where no reference ran beside the solution.

    Raises:
        Failed: the events hide work, or nothing shows that they do not.
    """
    if REFERENCE not in session.sides:
        return
    samples.replays = None  # of an earlier batch: another process may run now
    for _ in range(_MORE):
        if _narrow(samples) or (session.graphs and not _late(session, samples)):
            break
        session.fill(quick=True)
        for name in session.order():
            if name in (SOLUTION, REFERENCE):
                samples.blocks[name].append(session.timed(name, fetch=True))
    unclear = session.graphs and not _narrow(samples)
    if _late(session, samples) or (unclear and not _steady(session, samples)):
        raise Failed(Status.IMPLAUSIBLE_TIME, _said(samples))


def slack(samples: Samples) -> float:
    """Share of a block by which the events may be short, for all that was seen: by its replays, where it was
    replayed."""
    block = samples.block_seconds
    if samples.replays is None:
        return _slack(samples) / block
    more = samples.replays.times - 1
    return (_grown(samples, more) + _apart(samples)) / more / block


def parent_seconds(samples: Samples) -> float:
    """A call by the grader's clock: the events' time with what a replay more cost beyond them, or where there were
    none what was seen beyond them, less what was seen of the reference."""
    told = statistics.median(samples.seconds[SOLUTION])
    if samples.replays is None:
        beyond = _excess(samples)
    else:
        beyond = _growth(samples, samples.replays) / (samples.replays.times - 1)
    return max(told + beyond / samples.slots, told / 2)


def _narrow(samples: Samples) -> bool:
    """Whether single blocks tell enough, and nothing of hidden work."""
    return _apart(samples) <= _WANTED * samples.block_seconds and _excess(samples) <= _slack(samples)


def _steady(session: Session, samples: Samples) -> bool:
    """Whether what the grader's clock sees beyond the events does not grow with replays.

    A host that became slower is no lie: what the reference, asked beside, answers later than before is left out.
    """
    times = math.ceil(_REPLAYED_SECONDS / samples.block_seconds) + 1
    replayed, beside = [], []
    for _ in range(_MORE):
        session.fill(quick=True)
        beside.append(session.timed(REFERENCE, fetch=True).unseen)
        replayed.append(session.timed(SOLUTION, fetch=True, times=times).unseen)
        slower = min(beside) - _hand_over(samples, REFERENCE) if len(beside) >= _NEAREST else 0.0
        samples.replays = Replays(times, min(replayed) - max(0.0, slower))
        if _growth(samples, samples.replays) <= _grown(samples, times - 1):
            return True
    return False


def _growth(samples: Samples, replays: Replays) -> float:
    """Seconds beyond the events that replays took more than a single block."""
    return replays.unseen - _hand_over(samples, SOLUTION)


def _grown(samples: Samples, more: int) -> float:
    """Seconds that so many more replays may take beyond the events."""
    return SHARE * samples.block_seconds * more + _HAND_OVER_SECONDS


def _late(session: Session, samples: Samples) -> bool:
    """Whether the solution's process answers later than the reference's by more than where it runs explains, and
    where no replays tell of hidden work, by more than noise does."""
    moderate = _room(samples) + _LATE_SHARE * samples.block_seconds
    return _excess(samples) > (moderate if session.graphs else _slack(samples))


def _excess(samples: Samples) -> float:
    """Seconds a block that the grader's clock saw beyond the events, more than for the reference."""
    return _hand_over(samples, SOLUTION) - _hand_over(samples, REFERENCE)


def _hand_over(samples: Samples, name: str) -> float:
    """The least that the grader's clock saw beyond the events, of the blocks that the median time rests on.

    Disturbances only lengthen it. Work that is hidden from the events lengthens it in every block that they
    make look fast.
    """
    return _nearest(samples, name)[0]


def _nearest(samples: Samples, name: str) -> list[float]:
    middle = statistics.median(samples.seconds[name])
    return sorted(block.unseen for block in samples.blocks[name] if block.seconds <= middle)[:_NEAREST]


def _slack(samples: Samples) -> float:
    """Seconds a block by which the clocks may differ: how far the least disturbed blocks lie apart, and room."""
    return _apart(samples) + _room(samples)


def _room(samples: Samples) -> float:
    """A share of the block, the hand-over's own unsteadiness, and where calls are launched one by one the host's
    cost of one more launch a call."""
    launches = samples.slots if samples.eager else 0
    return SHARE * samples.block_seconds + _HAND_OVER_SECONDS + _LAUNCH_SECONDS * launches


def _apart(samples: Samples) -> float:
    """Twice how far the least disturbed blocks lie apart."""
    nearest = (_nearest(samples, name) for name in (SOLUTION, REFERENCE))
    return 2 * max(values[-1] - values[0] for values in nearest)


def _said(samples: Samples) -> str:
    said = (
        f"events say {samples.block_seconds * 1e6:.0f} us a block of {samples.slots} calls; "
        f"the grader's clock sees {_hand_over(samples, SOLUTION) * 1e6:.0f} us more, where it sees "
        f"{_hand_over(samples, REFERENCE) * 1e6:.0f} us more for the reference"
    )
    if samples.replays is None:
        return said
    return f"{said}, and {samples.replays.unseen * 1e6:.0f} us more of {samples.replays.times} replays"

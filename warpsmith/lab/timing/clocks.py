"""Clock check: the events that a worker reads on a GPU, compared with the grader's own clock.

The time that the grader's clock sees beyond the events is hand-over, which is as long for the solution as for the
reference. On a busy host it is too uncertain for a conclusion from single blocks. But a block that is replayed
many times is handed over once, while work that hides from the events hides at each replay.
"""

from __future__ import annotations

import math

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Replays, Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed


def check_clocks(session: Session, samples: Samples) -> None:
    """Run blocks and replays after the rounds until the events prove honest.

    Does nothing where the session has no reference.

    Raises:
        SideFailed: the events hide work, or nothing shows that they do not.
    """
    if REFERENCE not in session.sides:
        return
    samples.replays = None  # those of an earlier batch may come from another process
    for _ in range(gate_rules.CLOCK_RUNS):
        if _single_blocks_suffice(samples) or (session.graphs and not _answers_late(session, samples)):
            break
        session.fill_inputs(quick=True)
        for name in session.shuffled_sides():
            if name in (SOLUTION, REFERENCE):
                samples.blocks[name].append(session.time_block(name, fetch=True))
    unclear = session.graphs and not _single_blocks_suffice(samples)
    if _answers_late(session, samples) or (unclear and not _replays_hide_nothing(session, samples)):
        raise SideFailed(Status.IMPLAUSIBLE_TIME, _describe(samples))


def clock_slack(samples: Samples) -> float:
    """Return the share of a block by which the events may be short, given all blocks and replays.

    Uses the replays where there are any.
    """
    block = samples.block_seconds
    if samples.replays is None:
        return _allowed_difference(samples) / block
    more = samples.replays.times - 1
    return (_allowed_growth(samples, more) + _hand_over_uncertainty(samples)) / more / block


def grader_seconds(samples: Samples) -> float:
    """Return the seconds of a call by the grader's clock, without the hand-over.

    This is the events' time plus the extra cost of one more replay beyond the events. Without replays it is the
    events' time plus what the grader's clock saw beyond them, less the same for the reference.
    """
    event_seconds = statistics.median(samples.seconds[SOLUTION])
    if samples.replays is None:
        beyond = _excess_hand_over(samples)
    else:
        beyond = _observed_growth(samples, samples.replays) / (samples.replays.times - 1)
    return max(event_seconds + beyond / samples.slots, event_seconds / 2)


def _single_blocks_suffice(samples: Samples) -> bool:
    """Return True if single blocks are conclusive and show no hidden work."""
    narrow = _hand_over_uncertainty(samples) <= gate_rules.NARROW_SHARE * samples.block_seconds
    return narrow and _excess_hand_over(samples) <= _allowed_difference(samples)


def _replays_hide_nothing(session: Session, samples: Samples) -> bool:
    """Return True if the time that only the grader's clock sees does not grow with the number of replays.

    A host that became slower is no lie. The reference is timed in turn with the replays, and the delay that it
    shows relative to its earlier blocks is subtracted.
    """
    times = math.ceil(gate_rules.REPLAY_SECONDS / samples.block_seconds) + 1
    replayed, references = [], []
    for _ in range(gate_rules.CLOCK_RUNS):
        session.fill_inputs(quick=True)
        references.append(session.time_block(REFERENCE, fetch=True).unseen)
        replayed.append(session.time_block(SOLUTION, fetch=True, times=times).unseen)
        enough = len(references) >= gate_rules.NEAREST_BLOCKS
        slower = min(references) - _hand_over(samples, REFERENCE) if enough else 0.0
        samples.replays = Replays(times, min(replayed) - max(0.0, slower))
        if _observed_growth(samples, samples.replays) <= _allowed_growth(samples, times - 1):
            return True
    return False


def _observed_growth(samples: Samples, replays: Replays) -> float:
    """Return the seconds beyond the events that replays took more than a single block."""
    return replays.unseen - _hand_over(samples, SOLUTION)


def _allowed_growth(samples: Samples, more: int) -> float:
    """Return the seconds that `more` further replays may take beyond the events."""
    return gate_rules.CLOCK_SHARE * samples.block_seconds * more + gate_rules.HAND_OVER_SECONDS


def _answers_late(session: Session, samples: Samples) -> bool:
    """Return True if the solution's process answers too much later than the reference's.

    With graphs, the allowance is what the place where a process runs explains, since replays show hidden work.
    Without them, it is what noise explains.
    """
    moderate = _fixed_allowance(samples) + gate_rules.LATE_ANSWER_SHARE * samples.block_seconds
    return _excess_hand_over(samples) > (moderate if session.graphs else _allowed_difference(samples))


def _excess_hand_over(samples: Samples) -> float:
    """Return the seconds per block that the grader's clock saw beyond the events, less those of the reference."""
    return _hand_over(samples, SOLUTION) - _hand_over(samples, REFERENCE)


def _hand_over(samples: Samples, name: str) -> float:
    """Return the least that the grader's clock saw beyond the events, over the blocks up to the median time.

    Disturbances only lengthen it. Work that is hidden from the events lengthens it in every block that the events
    make look fast.
    """
    return _shortest_hand_overs(samples, name)[0]


def _shortest_hand_overs(samples: Samples, name: str) -> list[float]:
    middle = statistics.median(samples.seconds[name])
    hand_overs = sorted(block.unseen for block in samples.blocks[name] if block.seconds <= middle)
    return hand_overs[: gate_rules.NEAREST_BLOCKS]


def _allowed_difference(samples: Samples) -> float:
    """Return the seconds per block by which the clocks may differ."""
    return _hand_over_uncertainty(samples) + _fixed_allowance(samples)


def _fixed_allowance(samples: Samples) -> float:
    """Return a share of the block plus the hand-over's own variation, in seconds.

    Where calls are launched one by one, this includes the host's cost of one more launch per call.
    """
    launches = samples.slots if samples.eager else 0
    share = gate_rules.CLOCK_SHARE * samples.block_seconds
    return share + gate_rules.HAND_OVER_SECONDS + gate_rules.LAUNCH_SECONDS * launches


def _hand_over_uncertainty(samples: Samples) -> float:
    """Return a multiple of the distance between the shortest hand-overs of a side, in seconds."""
    shortest = (_shortest_hand_overs(samples, name) for name in (SOLUTION, REFERENCE))
    return gate_rules.DISTANCE_FACTOR * max(values[-1] - values[0] for values in shortest)


def _describe(samples: Samples) -> str:
    message = (
        f"the events give {samples.block_seconds * 1e6:.0f} us for a block of {samples.slots} calls; "
        f"the grader's clock sees {_hand_over(samples, SOLUTION) * 1e6:.0f} us more, and "
        f"{_hand_over(samples, REFERENCE) * 1e6:.0f} us more for the reference"
    )
    if samples.replays is None:
        return message
    return f"{message}, and {samples.replays.unseen * 1e6:.0f} us more for {samples.replays.times} replays"

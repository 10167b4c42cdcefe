"""Read what traced waves did (`wstates*.json` of a thread trace) into shares of their cycles.

Each file has, for one state, times and the number of waves in the state from each time on. The writer leaves out a
file without waves. The states' numbers are those of rocprofiler-sdk's trace_decoder_types.h.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from warpsmith.errors import Misuse

_STATES = {1: "idle", 2: "exec", 3: "wait", 4: "stall"}
"""Names of the states by number; 0 is an empty slot."""


def read_wave_states(folder: Path) -> dict[str, float]:
    """Return the percent of the traced waves' cycles in waits and in stalls; empty if the folder has no such file.

    Raises:
        Misuse: a file is not JSON, or its times and numbers of waves do not match.
    """
    cycles = {name: _cycles(folder / f"wstates{number}.json") for number, name in _STATES.items()}
    whole = sum(cycles.values())
    return {f"traced_{name}_pct": 100 * cycles[name] / whole for name in ("wait", "stall")} if whole > 0 else {}


def state_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of states in a folder."""
    return tuple(sorted(folder.glob("wstates*.json")))


def _cycles(path: Path) -> float:
    """Return the cycles that all waves spent in one state; 0 without a file."""
    if not path.is_file():
        return 0.0
    try:
        content = json.loads(path.read_bytes())
        times, waves = content["time"], content["state"]
        if len(times) != len(waves):
            raise ValueError(path)
        return float(
            sum((end - start) * count for (start, end), count in zip(pairwise(times), waves, strict=False))
        )
    except (ValueError, KeyError, TypeError):
        raise Misuse(f"{path} is not the wave states of a rocprofv3 thread trace, or is damaged.") from None

"""Read a report of NVIDIA Nsight Compute (ncu) into counters."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.errors import MachineLacks, MissingInput, Misuse, TimedOut
from warpsmith.packages import install_command
from warpsmith.profiling.counters import Advice, Counters, Launch
from warpsmith.profiling.formula import derive_values
from warpsmith.profiling.ncu import dump as ncu_dump
from warpsmith.profiling.ncu.metrics import DURATION, TABLE, readable_metrics
from warpsmith.profiling.report_file import report_path

_READ_SECONDS = 120
_MAGIC = b"NVR\0"
_DEVICE = "device__attribute_display_name"
_CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
_GRID = tuple(f"launch__grid_dim_{axis}" for axis in "xyz")
_BLOCK = tuple(f"launch__block_dim_{axis}" for axis in "xyz")
_SECONDS = {
    **dict.fromkeys(("ns", "nsecond"), 1e-9),
    **dict.fromkeys(("us", "usecond"), 1e-6),
    **dict.fromkeys(("ms", "msecond"), 1e-3),
    **dict.fromkeys(("s", "second"), 1.0),
}
_GLOBAL_SPEEDUP = 2  # ncu_report.SpeedupType.GLOBAL: of the whole run; a local one is of one unit only
_LINK = re.compile(r"@url:(?P<url>[^@]*?):https?:[^@]*@|@(?:section|sass|source):[^@]*?(?P<text>[^:@]*)@")


def read_ncu_report(path: Path, project_root: Path | None = None) -> Counters:
    """Read the launches of a report with the values of their metrics; works without a GPU.

    Args:
        path: path of the `.ncu-rep` file.
        project_root: folder that the report's path is made relative to if it lies inside.

    Raises:
        MissingInput: there is no such file, it cannot be read, or it holds no kernel.
        Misuse: it is not an ncu report, is damaged, or lacks a launch's time.
        MachineLacks: ncu-report is not installed or does not load.
        TimedOut: reading takes more than two minutes.
    """
    raws = read_raw_launches(path)
    return Counters(
        tool="ncu",
        report=report_path(path, project_root),
        sha256=files.file_sha256(path),
        launches=tuple(_launch(index, raw, path) for index, raw in enumerate(raws)),
    )


def missing_reader() -> str:
    """Return why no report can be read on this machine; empty if one can."""
    if importlib.util.find_spec("ncu_report") is None:
        return f"ncu-report is not installed: run `{install_command('ncu')}`."
    return ""


def read_raw_launches(path: Path, *, samples: bool = False) -> list[dict[str, Any]]:
    """Return the launches of a report as `ncu_dump` describes them.

    Args:
        path: path of the `.ncu-rep` file.
        samples: add the samples of each instruction.

    Raises:
        MissingInput: there is no such file, it cannot be read, or it holds no kernel.
        Misuse: it is not an ncu report, or is damaged.
        MachineLacks: ncu-report is not installed or does not load.
        TimedOut: reading takes more than two minutes.
    """
    head = _head(path)
    raws = _dump(path, is_report=head == _MAGIC, samples=samples)
    if not raws and head == _MAGIC:
        raise MissingInput(
            f"{path} contains no kernel: ncu matched none, or the file is truncated; profile again."
        )
    if not raws:
        raise Misuse(f"{path} is not an ncu report: give the .ncu-rep file that `ncu --export` wrote.")
    if not all(raw["whole"] for raw in raws):
        raise _damaged(path)
    return raws


def _head(path: Path) -> bytes:
    """Return the file's first bytes; raise Misuse for an empty file."""
    if path.is_dir():
        raise Misuse(f"{path} is a folder: name the .ncu-rep file in it.")
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except FileNotFoundError:
        raise MissingInput(f"{path} does not exist: give the .ncu-rep file that `ncu --export` wrote.") from None
    except OSError as error:
        raise MissingInput(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    if not head:
        raise Misuse(f"{path} is empty: profile again.")
    return head


def _dump(path: Path, *, is_report: bool, samples: bool) -> list[dict[str, Any]]:
    """Return the launches that `ncu_dump` prints, from a process
    of its own, because a damaged report may crash it."""
    if lacks := missing_reader():
        raise MachineLacks(lacks)
    names = [*readable_metrics(), _DEVICE, *_CAPABILITY, *_GRID, *_BLOCK]
    # -P keeps the script's folder off the import path: it has modules with common names.
    command = [sys.executable, "-P", ncu_dump.__file__, str(path.resolve())]
    command += [ncu_dump.SAMPLES] if samples else []
    try:
        result = subprocess.run(
            command,
            input=json.dumps(names),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_READ_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimedOut(
            f"{path} could not be read in {_READ_SECONDS} s: profile fewer launches, or again if it is damaged."
        ) from None
    if result.returncode == ncu_dump.NOT_LOADED:
        raise MachineLacks(f"ncu-report does not load ({result.stderr}): run `{install_command('ncu')}` again.")
    if result.returncode != 0:
        if is_report:
            raise _damaged(path)
        return []
    launches: list[dict[str, Any]] = json.loads(result.stdout)
    return launches


def _damaged(path: Path) -> Misuse:
    return Misuse(f"{path} is truncated or damaged: copy it again, or profile again.")


def _launch(index: int, raw: dict[str, Any], path: Path) -> Launch:
    metrics: dict[str, Any] = raw["metrics"]
    reading = {
        name: float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }
    scale = _SECONDS.get(raw["units"].get(DURATION, ""))
    if not (scale and reading.get(DURATION, 0) > 0):
        raise Misuse(f"{path} has no {DURATION} of `{raw['kernel']}`: profile with `--section SpeedOfLight`.")
    values, absent = derive_values(TABLE, reading)
    return Launch(
        index=index,
        kernel=raw["kernel"],
        device=str(metrics.get(_DEVICE) or ""),
        architecture=_architecture(reading),
        grid=_extent(reading, _GRID, "launch__grid_size"),
        block=_extent(reading, _BLOCK, "launch__block_size"),
        seconds=reading[DURATION] * scale,
        values=values,
        absent=absent,
        advice=tuple(dict.fromkeys(_advice(raw["rules"]))),
    )


def _architecture(reading: dict[str, float]) -> str:
    if not all(part in reading for part in _CAPABILITY):
        return ""
    major, minor = (int(reading[part]) for part in _CAPABILITY)
    return f"sm_{major}{minor}"


def _extent(reading: dict[str, float], axes: tuple[str, ...], whole: str) -> tuple[int, int, int]:
    """Return the three dimensions; their product in the first
    if the report has no more, zeros if not even that."""
    if all(axis in reading for axis in axes):
        x, y, z = (int(reading[axis]) for axis in axes)
        return x, y, z
    return (int(reading[whole]), 1, 1) if whole in reading else (0, 0, 0)


def _advice(rules: Iterable[dict[str, Any]]) -> Iterable[Advice]:
    for rule in rules:
        message = rule.get("rule_message") or {}
        title = _strip_links(message.get("title") or "") or _first_sentence(
            _strip_links(message.get("message") or "")
        )
        if title:
            yield Advice(rule=rule.get("rule_identifier", ""), title=title, speedup_pct=_speedup(rule))


def _speedup(rule: dict[str, Any]) -> float | None:
    """Return the estimated gain over the whole run; ncu's local estimates are of one unit and would mislead."""
    estimate = rule.get("speedup_estimation") or {}
    speedup = estimate.get("speedup")
    if estimate.get("type") != _GLOBAL_SPEEDUP or speedup is None or not math.isfinite(speedup):
        return None
    return float(speedup)


def _strip_links(text: str) -> str:
    """Remove the tool's link markup from the text."""
    return _LINK.sub(lambda link: link["url"] or link["text"] or "", text).strip()


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]

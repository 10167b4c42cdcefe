"""Scratch logs of `warpsmith try` and `tune`: where they are, and how many variants were tried for a round."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from warpsmith import files
from warpsmith.project import Project

FOLDER = "tries"
"""Folder of the logs, in the project's `.warpsmith/`; a log has one JSON object a line, a result each."""

_STAMP = re.compile(r"\d{8}-\d{6}\.jsonl")
_RUN = ("timed", "correct")


def make_log_path(project: Project, op: str, target: str) -> Path:
    """Return the path of a new log, in a folder that exists."""
    folder = _folder(project)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{op}-{target}-{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl"


def log_configs(project: Project, op: str, target: str, configs: Iterable[Mapping[str, int]]) -> None:
    """Write a log of the configurations that a search timed."""
    names = (", ".join(f"{name}={value}" for name, value in config.items()) for config in configs)
    lines = [json.dumps({"variant": name, "state": "timed"}) + "\n" for name in names]
    files.write_file(make_log_path(project, op, target), "".join(lines))


def adopt_logs(project: Project, origin: Project, op: str, target: str) -> None:
    """Copy the logs of another project, as of now; two of the same second get names a second apart."""
    for path in sorted(_folder(origin).glob(f"{op}-{target}-*.jsonl")):
        time = datetime.now(UTC)
        while (copy := _folder(project) / f"{op}-{target}-{time:%Y%m%d-%H%M%S}.jsonl").exists():
            time += timedelta(seconds=1)
        files.write_file(copy, path.read_bytes())


def count_variants(project: Project, op: str, target: str, since: float, until: float) -> int:
    """Count the variants that were right and ran, in logs that ended between two times in seconds since the epoch.

    The same variant in two logs counts twice, since its text may have changed. A line that a kill cut off does not
    count.
    """
    count = 0
    for path in _folder(project).glob(f"{op}-{target}-*.jsonl"):
        if _STAMP.fullmatch(path.name.removeprefix(f"{op}-{target}-")) and since <= path.stat().st_mtime <= until:
            count += len(_variants_that_ran(path.read_text(encoding="utf-8", errors="replace")))
    return count


def _variants_that_ran(log: str) -> set[str]:
    names = set()
    for line in log.splitlines():
        try:
            result = json.loads(line)
            names |= {str(result["variant"])} if result["state"] in _RUN else set()
        except (ValueError, KeyError, TypeError):
            continue
    return names


def _folder(project: Project) -> Path:
    return project.scratch / FOLDER

"""Versions of a kernel: their files, the one that the open round works on, and duplicates of earlier ones."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files, languages
from warpsmith.campaign.history import records
from warpsmith.campaign.history.fingerprints import source_fingerprint
from warpsmith.campaign.history.journal import JournalLine
from warpsmith.campaign.history.records import StoredRound
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.text import VERSION
from warpsmith.errors import MissingInput, Misuse
from warpsmith.languages.base import Language
from warpsmith.ledger.store import RECORD
from warpsmith.project import Project


@dataclass(frozen=True)
class Solution:
    """File of one version, which need not exist yet."""

    language: str
    """Language of the version."""
    version: str
    """Name of the version in its language: `v3`, or `v3_k2f9` of a campaign whose versions have a suffix."""
    path: Path
    """`<kernels>/<op>/<language>/<version><suffix>`."""

    @property
    def name(self) -> str:
        """Name of the version in records: `triton/v3`."""
        return f"{self.language}/{self.version}"

    @property
    def number(self) -> int:
        """Number of the version."""
        return version_number(self.version)

    @property
    def snapshot(self) -> str:
        """Name of its copy next to a record."""
        return f"{self.language}-{self.version}{self.path.suffix}"


def parse_version_name(name: str) -> tuple[str, str]:
    """Parse a name such as `triton/v3` into language and version; raises Misuse."""
    match = re.fullmatch(rf"([a-z][a-z0-9_]*)/({VERSION})", name)
    if not match:
        raise Misuse(f"`{name}` is no version; write it as `triton/v3`.")
    return match[1], match[2]


def version_number(version: str) -> int:
    """Return the number of a version such as `v3` or `v3_k2f9`."""
    return int(version[1:].partition("_")[0])


def version_with_number(number: int, suffix: str | None) -> str:
    """Return the name of a version with a number and a campaign's suffix, if it has one."""
    return f"v{number}_{suffix}" if suffix else f"v{number}"


def find_solution(project: Project, op: str, name: str) -> Solution:
    """Find the version of a name such as `triton/v3`; raises Misuse."""
    language, version = parse_version_name(name)
    path = project.kernels / op / language / f"{version}{languages.get(language).suffix}"
    return Solution(language, version, path)


def list_versions(project: Project, op: str, language: str) -> list[str]:
    """List the versions that have a file, by their numbers."""
    suffix = languages.get(language).suffix
    return _versions((project.kernels / op / language).glob(f"v*{suffix}"), "", suffix)


def next_version_number(project: Project, op: str, language: str) -> int:
    """Return the first number above those of all versions that a campaign of the operator has judged in a
    round."""
    suffix = languages.get(language).suffix
    versions = []
    for folder in project.devlog.glob(f"{op}/*/rounds/{files.NUMBERED}"):
        snapshots = _versions(folder.glob(f"{language}-v*{suffix}"), f"{language}-", suffix)
        versions += snapshots or _recorded_version(folder / RECORD, language)  # a clone has no snapshots
    return max(map(version_number, versions), default=0) + 1


def new_solution(project: Project, op: str, language: str, suffix: str | None) -> Solution:
    """Choose a version that neither a file nor a record has, with a campaign's suffix if it has one."""
    numbers = map(version_number, list_versions(project, op, language))
    number = max(*numbers, next_version_number(project, op, language) - 1) + 1
    return find_solution(project, op, f"{language}/{version_with_number(number, suffix)}")


def refuse_lost(solution: Solution, lost: Sequence[JournalLine]) -> None:
    """Refuse a version that was judged and whose verdict has vanished.

    Raises:
        Misuse: its file is the one that was judged, or differs from it at most in comments and layout.
    """
    for line in lost:
        if is_lost(solution, line):
            raise Misuse(
                f"{solution.path} was judged as {line.solution} in round {line.round}, and that verdict is gone;"
                " it counts as judged, so change the version before it is judged."
            )


def is_lost(solution: Solution, line: JournalLine) -> bool:
    """Return True if the version is the one of a verdict that has vanished."""
    if records.has_content(solution.path, line.solution_sha256 or ""):
        return True
    if line.solution_fingerprint is None or not (line.solution or "").startswith(f"{solution.language}/"):
        return False
    return source_fingerprint(languages.get(solution.language), solution.path) == line.solution_fingerprint


def due_solution(
    project: Project,
    op: str,
    language: str,
    rounds: Sequence[StoredRound],
    proven: Sequence[str] = (),
    lost: Sequence[JournalLine] = (),
    *,
    suffix: str | None = None,
    from_scratch: bool = False,
    left_out: Collection[str] = (),
) -> Solution:
    """Choose the version that the open round works on.

    A baseline takes an existing version that this campaign has not judged: one that no campaign has recorded, else
    the last of `proven` (best versions of earlier campaigns), else the latest. Every other round takes a new
    version. A version of a `lost` verdict was judged too. A baseline `from_scratch` takes none that a campaign
    has recorded. None of `left_out` is taken: versions that were judged without a device.

    With the campaign's `suffix` a new version keeps its name while it is designed, also if a merge meanwhile
    brings higher numbers.
    """
    judged = {stored.record.solution for stored in rounds} | {line.solution or "" for line in lost}
    own = [version for other, version in map(parse_version_name, filter(None, judged)) if other == language]
    following = max(next_version_number(project, op, language), *(version_number(each) + 1 for each in own), 1)
    names = [f"{language}/{version}" for version in list_versions(project, op, language)]
    existing = [name for name in names if name not in left_out]
    begun = [name for name in names if suffix and name.endswith(f"_{suffix}") and name not in judged]
    chosen = begun[0] if begun else f"{language}/{version_with_number(following, suffix)}"
    if records.best_round(stored.record for stored in rounds) is None and existing and not begun:
        newest = [existing[-1]] if version_number(parse_version_name(existing[-1])[1]) >= following else []
        recorded = [*(name for name in reversed(proven) if name in existing), existing[-1]]
        choices = newest if from_scratch else [*newest, *recorded]
        chosen = next((name for name in choices if name not in judged), chosen)
    return find_solution(project, op, chosen)


def find_duplicate(solution: Solution, rounds: Sequence[StoredRound]) -> StoredRound | None:
    """Find the rolled back, struck or best round, masked or not, that has the same normalised source."""
    best = records.best_round(stored.record for stored in rounds)
    language = languages.get(solution.language)
    own = source_fingerprint(language, solution.path)
    for stored in rounds:
        record = stored.record
        rejected = not record.verdict.stands and not _lost_to_struck(record, rounds)
        same_language = record.solution.startswith(f"{solution.language}/")
        relevant = same_language and (rejected or record is best)
        if relevant and _recorded_fingerprint(language, stored, solution.path.parents[1]) == own:
            return stored
    return None


def refuse_duplicate(solution: Solution, rounds: Sequence[StoredRound]) -> None:
    """Refuse a version whose verdict is known.

    Raises:
        Misuse: except for comments and layout, it is the best version or one that was rolled back.
    """
    same = find_duplicate(solution, rounds)
    if same:
        raise Misuse(
            f"{solution.path} is no new version: {describe_duplicate(same)}; change it before it is judged."
        )


def describe_duplicate(same: StoredRound) -> str:
    """Describe the version that a duplicate repeats."""
    record = same.record
    fate = "struck" if record.struck else "the best version" if record.verdict.stands else "rolled back"
    return f"it differs at most in comments and layout from {record.solution}, {fate} in round {record.round}"


def _lost_to_struck(record: RoundRecord, rounds: Sequence[StoredRound]) -> bool:
    """Return whether a correct version lost to one that was struck since, so that its verdict is open again."""
    struck = {stored.record.solution for stored in rounds if stored.record.struck}
    return not record.struck and record.evaluation.correct and record.parent in struck


def _recorded_fingerprint(language: Language, stored: StoredRound, versions: Path) -> str:
    """Fingerprint of the version that a round judged; empty if its source is gone."""
    try:
        return source_fingerprint(language, records.judged_file(stored, versions))
    except MissingInput:
        return ""


def _recorded_version(path: Path, language: str) -> list[str]:
    """Return the version that a record names, if it is of this language and the record reads."""
    try:
        name = json.loads(path.read_bytes())["solution"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [parse_version_name(name)[1]] if str(name).startswith(f"{language}/v") else []


def _versions(paths: Iterable[Path], prefix: str, suffix: str) -> list[str]:
    pattern = re.compile(rf"{re.escape(prefix)}({VERSION}){re.escape(suffix)}")
    versions = [match[1] for path in paths if (match := pattern.fullmatch(path.name))]
    return sorted(versions, key=lambda version: (version_number(version), version))

"""Runs the commands of the project settings in the worktrees of a campaign's two sides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from warpsmith import files
from warpsmith.core.repo import STDOUT, CommandRun, Level, RepoSettings, Side
from warpsmith.core.text import Tell
from warpsmith.errors import Misuse, TimedOut
from warpsmith.repo import benchmark, command, failed_logs
from warpsmith.repo.benchmark import BadTable, BenchmarkRow
from warpsmith.repo.command import FinishedCommand
from warpsmith.repo.worktrees import BASE, CANDIDATE, Repository


class CommandFailed(Misuse):
    """A command of the settings ended with an exit code other than 0."""


class CommandTimedOut(TimedOut):
    """A command of the settings ran longer than its limit."""


FAILURES = (BadTable, CommandFailed, CommandTimedOut)
"""Failures of a command. The side that it ran in says whether base or candidate is to blame."""


@dataclass
class SideRunner:
    """Tests and measures base and candidate, each in its own worktree."""

    repository: Repository
    """Repository that the worktrees belong to."""
    settings: RepoSettings
    """Settings with the commands to run."""
    folder: Path
    """Folder of the worktrees and the logs."""
    tell: Tell = lambda _: None
    """Takes one line about each command."""
    runs: list[CommandRun] = field(default_factory=list)
    """Commands that ran so far."""
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """Key columns of each row that the benchmark printed so far."""
    emptied: bool = False
    """True while the kernel's files of a side are empty, so that commands are expected to fail."""

    def bring(self, base: str, candidate: str) -> None:
        """Bring each worktree to its commit."""
        for side, commit in ((BASE, base), (CANDIDATE, candidate)):
            self.repository.worktree(self.worktree(side), commit)
            if self.repository.bring(self.worktree(side), commit):
                self._build_mark(side).unlink(missing_ok=True)

    def worktree(self, side: Side) -> Path:
        """Worktree of a side."""
        return self.folder / side

    def root(self, side: Side) -> Path:
        """Root of the project in a side's worktree."""
        return self.worktree(side) / self.repository.prefix

    def empty(self, side: Side) -> None:
        """Empty the kernel's files."""
        self.emptied = True
        for path in self.settings.kernel:
            (self.root(side) / path).write_bytes(b"")

    def restore(self, side: Side) -> None:
        """Undo `empty`, and drop what was built from the empty files."""
        self.emptied = False
        self._build_mark(side).unlink(missing_ok=True)
        self.repository.bring(self.worktree(side), self.repository.head_of(self.worktree(side)))

    def rebuild(self, side: Side) -> None:
        """Rebuild a side, unless its tree is built already; raises one of FAILURES."""
        if self.settings.rebuild is None:
            return
        tree = self.repository.tree_of(self.repository.head_of(self.worktree(side)))
        if self._build_mark(side).is_file() and self._build_mark(side).read_text() == tree:
            return
        self._run("rebuild", side, self.settings.rebuild)
        files.write_file(self._build_mark(side), tree)

    def test(self, side: Side, level: Level) -> None:
        """Run the test of a level; raises one of FAILURES."""
        quick = self.settings.quick.test if self.settings.quick and level == "quick" else None
        self._run("test", side, quick or self.settings.test)

    def benchmark(
        self, side: Side, level: Level, representative: Mapping[str, Mapping[str, str]]
    ) -> dict[str, BenchmarkRow]:
        """Run the benchmark once and return its rows by name; raises one of FAILURES.

        Args:
            side: the side to measure.
            level: the rows to measure: all, or the representative ones.
            representative: rows of the quick level, from name to key columns.
        """
        text, environment, quick = self.settings.benchmark, {}, self.settings.quick
        if quick and level == "quick":
            text = quick.benchmark or text
            if quick.environment:
                environment[quick.environment] = json.dumps(list(representative.values()))
        table = self.root(side) / self.settings.csv
        if self.settings.csv != STDOUT:
            table.unlink(missing_ok=True)
        finished = self._run("benchmark", side, text, environment)
        output, source = finished.output, f"stdout of `benchmark` in {side}"
        if self.settings.csv != STDOUT:
            if not table.is_file():
                raise BadTable(
                    f"`benchmark` did not write {self.settings.csv} in {side}; correct it, or `csv` in the"
                    " settings."
                )
            output, source = table.read_text(errors="replace"), f"{self.settings.csv} in {side}"
        rows = benchmark.parse_table(self.settings, output, source)
        self.keys |= row_keys(rows, tuple(rows))
        return rows

    def program(self, side: Side, text: str, environment: Mapping[str, str] | None = None) -> float:
        """Run the whole program, or a traced form of it, and return its seconds; raises one of FAILURES."""
        return self._run("program", side, text, environment).seconds

    def _run(
        self,
        name: Literal["rebuild", "test", "benchmark", "program"],
        side: Side,
        text: str,
        environment: Mapping[str, str] | None = None,
    ) -> FinishedCommand:
        limit: float = getattr(self.settings.timeouts, "benchmark" if name == "program" else name)
        self.tell(f"{name} in {side}")
        log = self.folder / "logs" / f"{name}-{side}.out"
        finished = command.run_command(text, self.root(side), limit, log, environment)
        self.runs.append(
            CommandRun(
                what=name,
                side=side,
                exit_code=finished.exit_code,
                seconds=finished.seconds,
                left_running=finished.left_running,
            )
        )
        if finished.ok:
            return finished
        sentence = f"`{name}` (`{text}`) fails in the worktree {side}: {finished.failure}"
        if not self.emptied:
            copy = failed_logs.store_failed_log(self.folder, f"{name}-{side}", finished)
            sentence += f"; {self.repository.project.relative(copy)} has its output"
        raise CommandTimedOut(f"{sentence}.") if finished.exit_code is None else CommandFailed(f"{sentence}.")

    def _build_mark(self, side: Side) -> Path:
        return self.folder / f"{side}.built"


def row_keys(rows: Mapping[str, BenchmarkRow], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Key columns of some rows, by name."""
    return {name: rows[name].keys for name in names}

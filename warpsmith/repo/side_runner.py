"""The yard: a campaign's two worktrees in which commands run, and the contract's commands in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from warpsmith import files
from warpsmith.core.progress import Tell
from warpsmith.core.repo import STDOUT, CommandRun, Level, RepoSettings, Side
from warpsmith.errors import Misuse, TimedOut
from warpsmith.repo import benchmark, command
from warpsmith.repo.benchmark import BadTable, BenchmarkRow
from warpsmith.repo.command import FinishedCommand
from warpsmith.repo.worktrees import BASE, CANDIDATE, Repository


class CommandFailed(Misuse):
    """A command of the contract ended with an exit code other than 0."""


class CommandTimedOut(TimedOut):
    """A command of the contract outlasted its limit."""


FAILURES = (BadTable, CommandFailed, CommandTimedOut)
"""What a command of the contract can come to; whose fault it is depends on where it ran."""


@dataclass
class SideRunner:
    """Where base and candidate are tested and measured."""

    repository: Repository
    """Whose worktrees."""
    contract: RepoSettings
    """Its commands."""
    folder: Path
    """Holds the worktrees and the logs."""
    tell: Tell = lambda _: None
    """Is told what is going on."""
    runs: list[CommandRun] = field(default_factory=list)
    """What was run so far."""

    def bring(self, base: str, candidate: str) -> None:
        """Bring both worktrees to a commit each."""
        for side, commit in ((BASE, base), (CANDIDATE, candidate)):
            self.repository.worktree(self.place(side), commit)
            if self.repository.bring(self.place(side), commit):
                self._built(side).unlink(missing_ok=True)

    def place(self, side: Side) -> Path:
        """A side's worktree."""
        return self.folder / side

    def root(self, side: Side) -> Path:
        """The project's root in a side's worktree."""
        return self.place(side) / self.repository.prefix

    def empty(self, side: Side) -> None:
        """Make the kernel's files empty."""
        for path in self.contract.kernel:
            (self.root(side) / path).write_bytes(b"")

    def restore(self, side: Side) -> None:
        """Take back what `empty` did, and what was built from it."""
        self._built(side).unlink(missing_ok=True)
        self.repository.bring(self.place(side), self.repository.head_of(self.place(side)))

    def rebuild(self, side: Side) -> None:
        """Bring a side's sources into effect, where that is not done already; raises one of FAILURES."""
        if self.contract.rebuild is None:
            return
        tree = self.repository.tree_of(self.repository.head_of(self.place(side)))
        if self._built(side).is_file() and self._built(side).read_text() == tree:
            return
        self._run("rebuild", side, self.contract.rebuild)
        files.write_file(self._built(side), tree)

    def test(self, side: Side, level: Level) -> None:
        """Run the test; raises one of FAILURES."""
        quick = self.contract.quick.test if self.contract.quick and level == "quick" else None
        self._run("test", side, quick or self.contract.test)

    def benchmark(
        self, side: Side, level: Level, representative: Mapping[str, Mapping[str, str]]
    ) -> dict[str, BenchmarkRow]:
        """Run the benchmark once; returns its rows by name, and raises one of FAILURES.

        Args:
            side: where.
            level: at which rows.
            representative: the quick level's rows: name to key columns.
        """
        text, environment, quick = self.contract.benchmark, {}, self.contract.quick
        if quick and level == "quick":
            text = quick.benchmark or text
            if quick.environment:
                environment[quick.environment] = json.dumps(list(representative.values()))
        table = self.root(side) / self.contract.csv
        if self.contract.csv != STDOUT:
            table.unlink(missing_ok=True)
        done = self._run("benchmark", side, text, environment)
        if self.contract.csv == STDOUT:
            return benchmark.parse_table(self.contract, done.output, f"stdout of `benchmark` in {side}")
        if not table.is_file():
            raise BadTable(f"`benchmark` did not write {self.contract.csv} in {side}; mend it, or `csv`.")
        return benchmark.parse_table(
            self.contract, table.read_text(errors="replace"), f"{self.contract.csv} in {side}"
        )

    def _run(
        self,
        what: Literal["rebuild", "test", "benchmark"],
        side: Side,
        text: str,
        environment: Mapping[str, str] | None = None,
    ) -> FinishedCommand:
        limit: float = getattr(self.contract.timeouts, what)
        self.tell(f"{what} in {side}")
        log = self.folder / "logs" / f"{what}-{side}.out"
        done = command.run_command(text, self.root(side), limit, log, environment)
        self.runs.append(
            CommandRun(
                what=what,
                side=side,
                exit_code=done.exit_code,
                seconds=done.seconds,
                left_running=done.left_running,
            )
        )
        if done.ok:
            return done
        place = self.repository.project.relative(log)
        sentence = f"`{what}` (`{text}`) fails in the worktree {side}: {done.why}; {place} has all it wrote."
        raise CommandTimedOut(sentence) if done.exit_code is None else CommandFailed(sentence)

    def _built(self, side: Side) -> Path:
        return self.folder / f"{side}.built"


def row_keys(rows: Mapping[str, BenchmarkRow], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Name to key columns of some rows."""
    return {name: rows[name].keys for name in names}

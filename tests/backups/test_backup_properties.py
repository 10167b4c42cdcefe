"""Whatever is done in whatever order, no byte that a restore overwrote is ever lost."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from warpsmith import backups
from warpsmith import project as projects
from warpsmith.backups import journal, user_files
from warpsmith.errors import MissingInput

NAMES = ("a.py", "b.bin")
lines = st.lists(st.sampled_from([b"1", b"2", b"3", b"\0", b"\xff\r"]), max_size=6)
content = st.builds(lambda parts, end: b"\n".join(parts) + end, lines, st.sampled_from([b"", b"\n"]))
name = st.sampled_from(NAMES)
some = st.lists(name, min_size=1, max_size=2)


class Life(RuleBasedStateMachine):
    """Two files, edited by agents and by their user alike; `ours` has every content that a restore replaced."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.project = projects.find_project(self.root)
        self.ours: set[bytes] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def now(self) -> dict[str, user_files.Content]:
        return {name: user_files.read_content(self.root / name) for name in NAMES}

    def act(self, act: Callable[..., object], names: list[str], **options: bool) -> bool:
        """Whether it was done; what it was refused for leaves files and journal alone."""
        before, held = self.now(), len(journal.read_journal(self.project))
        try:
            act(self.project, [self.root / name for name in names], **options)
        except (MissingInput, backups.RestoreConflict):
            assert self.now() == before
            assert len(journal.read_journal(self.project)) == held
            return False
        after = self.now()
        assert act is backups.restore_files or after == before
        self.ours |= {before[name].data or b"" for name in NAMES if after[name] != before[name]} - {b""}
        return True

    @rule(name=name, data=content, mode=st.sampled_from([0o644, 0o755, 0o400]))
    def edit(self, name: str, data: bytes, mode: int) -> None:
        user_files.write_content(self.root / name, user_files.Content(data, mode))

    @rule(name=name, head=content)
    def add_on_top(self, name: str, head: bytes) -> None:
        now = user_files.read_content(self.root / name)
        if now.data is not None:
            user_files.write_content(self.root / name, user_files.Content(head + b"\n4\n5\n" + now.data, now.mode))

    @rule(name=name)
    def remove(self, name: str) -> None:
        user_files.write_content(self.root / name, user_files.Content(None))

    @rule(names=some)
    def open(self, names: list[str]) -> None:
        assert self.act(backups.open_backups, names)

    @rule(names=some)
    def seal(self, names: list[str]) -> None:
        self.act(backups.seal_backups, names)

    @rule(names=some)
    def keep(self, names: list[str]) -> None:
        self.act(backups.keep_edits, names)

    @rule(names=some, force=st.booleans())
    def restore(self, names: list[str], force: bool) -> None:
        tops = {backup.path: backup for backup in backups.standing_backups(self.project)}
        before = self.now()
        if not self.act(backups.restore_files, names, force=force):
            return
        for name in names:
            top, after = tops[name], user_files.read_content(self.root / name).state
            untouched = top.sealed is None or before[name].state == top.sealed
            assert not (force or untouched) or after == top.original
        standing = {(backup.path, backup.number) for backup in backups.standing_backups(self.project)}
        assert not standing & {(name, tops[name].number) for name in names}

    @invariant()
    def nothing_is_lost(self) -> None:
        blobs = {path.name: path.read_bytes() for path in self.root.glob(".warpsmith/backups/blobs/*")}
        assert {hashlib.sha256(data).hexdigest() for data in self.ours} <= set(blobs)
        assert all(hashlib.sha256(data).hexdigest() == sha256 for sha256, data in blobs.items())
        listed = backups.list_backups(self.project)
        assert all(one.sound for one in listed)
        needed = {state.sha256 for one in listed for state in (one.backup.original, one.backup.sealed) if state}
        aside = {one.sha256 for one in backups.list_asides(self.project)}
        assert (set(blobs) <= needed | aside, needed & aside) == (True, set())

    @invariant()
    def nothing_is_left_behind(self) -> None:
        assert {path.name for path in self.root.iterdir()} <= {*NAMES, ".warpsmith"}


TestLife = Life.TestCase
TestLife.settings = settings(derandomize=True, deadline=None, max_examples=30, stateful_step_count=25)

"""The models of backups: what must not be cannot be written, and each field says what it is."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from warpsmith.backups import models as backup
from warpsmith.backups.models import FileState, JournalAction

ENTRY = {"path": "train.py", "state": {"sha256": "a" * 64, "size": 3, "mode": 0o644}}
ACTION = {
    "number": 1, "action": "backup", "at": "2026-11-21 10:00", "label": "", "files": [ENTRY], "digest": "b" * 64,
}  # fmt: skip


def test_an_action_reads_back_what_it_writes():
    action = JournalAction.model_validate(ACTION)
    assert json.loads(action.model_dump_json()) == ACTION
    assert JournalAction.model_validate_json(action.model_dump_json()) == action


@pytest.mark.parametrize(
    "change",
    [{"number": 0}, {"action": "undo"}, {"at": "today"}, {"files": []}, {"digest": "b"}, {"further": 1}],
    ids=lambda change: next(iter(change)),
)
def test_what_no_action_is(change):
    with pytest.raises(ValidationError):
        JournalAction.model_validate(ACTION | change)


def test_no_file_has_no_size_and_no_mode():
    assert FileState(sha256=None) == FileState(sha256=None, size=0, mode=0)
    with pytest.raises(ValidationError):
        FileState(sha256="a" * 64, mode=0o10000)


@pytest.mark.parametrize(
    "name", ["FileState", "FileEntry", "JournalAction", "Backup", "BackupStatus", "AsideContent", "RestoredFile"]
)
def test_every_field_is_described(name):
    schema = getattr(backup, name).model_json_schema()
    for kind in (schema, *schema.get("$defs", {}).values()):
        assert all(field.get("description") or "$ref" in field for field in kind["properties"].values()), kind

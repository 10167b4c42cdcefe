"""Ports on disk, and what their record cannot say."""

from __future__ import annotations

import pytest
from port_samples import make_port
from pydantic import ValidationError

from warpsmith import project
from warpsmith.port import store
from warpsmith.port.models import PortRecord


def test_a_record_survives_its_json():
    record = make_port()
    assert PortRecord.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize("changes", [{"timed": True}, {"targets": ()}, {"seconds": 1.0}])
def test_a_port_has_no_times(changes):
    with pytest.raises(ValidationError):
        make_port(**changes)


def test_folders_are_numbered_and_a_broken_record_says_why(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    here = project.find_project(tmp_path)
    folder = store.next_port_folder(here, "softmax")
    assert folder.relative_to(here.devlog).as_posix() == "softmax/ports/001"
    folder.mkdir(parents=True)
    path = folder / store.RECORD
    path.write_text(make_port().model_dump_json())
    assert store.read_port(path) == make_port()
    assert store.next_port_folder(here, "softmax").name == "002"
    assert store.list_port_records(here, "softmax") == [path]
    assert store.list_port_records(here, "other") == []
    for name in ("999", "1000"):
        (folder.parent / name).mkdir()
        (folder.parent / name / store.RECORD).write_text("{}")
    assert [listed.parent.name for listed in store.list_port_records(here, "softmax")] == ["001", "999", "1000"]
    assert store.next_port_folder(here, "softmax").name == "1001"
    path.write_text("{}")
    assert "definition" in store.read_port(path)

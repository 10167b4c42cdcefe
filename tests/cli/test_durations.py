"""Durations of complete runs, kept in the project."""

import pytest

from warpsmith.cli import console, durations
from warpsmith.core.text import PartCounter
from warpsmith.project import Project


@pytest.fixture
def duration(tmp_path):
    project = Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs" / "knowledge")
    return durations.duration_of(project, "judge norm/cpp")


def test_a_duration_is_of_one_job_on_one_machine(duration, monkeypatch):
    assert duration.seconds() is None
    duration.save(12.34)
    assert duration.seconds() == 12.3
    assert durations.Duration(duration.path, "judge norm/triton").seconds() is None
    monkeypatch.setattr(durations.platform, "node", lambda: "elsewhere")
    assert duration.seconds() is None


def test_a_damaged_file_has_no_durations(duration):
    duration.path.parent.mkdir()
    duration.path.write_text('{"a": ')
    assert duration.seconds() is None
    duration.save(1.0)
    assert duration.seconds() == 1.0


def test_only_a_run_that_was_told_as_complete_is_kept(duration, capsys):
    with console.progress(duration) as tell:
        PartCounter(tell, 2).begin("building")
    assert duration.seconds() is None
    with console.progress(duration) as tell:
        PartCounter(tell, 2).end("decision")
    assert duration.seconds() is not None
    assert capsys.readouterr() == ("", "")  # nothing is shown without a terminal


def test_a_project_that_cannot_be_written_ends_no_command(duration):
    duration.path.parent.write_text("a file in the way")
    duration.save(1.0)
    assert duration.seconds() is None

"""Records of a program: one folder for each file and step, and folders from before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpsmith.program.analysis.record_names import matching_names, record_name
from warpsmith.program.process.program import resolve_step_program
from warpsmith.project import Project, find_project

pytestmark = pytest.mark.own_process


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "warpsmith.toml").touch()
    for path in ("train.py", "a/train.py", "b/train.py", "v1.2/train.py", "ddp.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    monkeypatch.chdir(tmp_path)
    return find_project(tmp_path)


def named(here: Project, path: str, step: str = "step") -> str:
    return record_name(here, resolve_step_program(path, step))


def old_record(here: Project, name: str, **subject: str) -> None:
    path = here.devlog / "programs" / name / "analyses" / "001.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"subject": {"path": "a/train.py", "step": "step"} | subject}))


def test_no_two_programs_share_a_name(here: Project) -> None:
    names = [
        named(here, "train.py"),
        named(here, "a/train.py"),
        named(here, "b/train.py"),
        named(here, "b/train.py", "eval"),
    ]
    assert names == ["train.step", "a.train.step", "b.train.step", "b.train.eval"]
    assert named(here, "v1.2/train.py") not in names
    assert named(here, "b.train", "step") == "b.train.step"


def test_a_command_is_named_after_its_script(here: Project) -> None:
    launched = "python -m torch.distributed.run --nproc_per_node 2 ddp.py --fast"
    assert record_name(here, resolve_step_program(None, None, command=launched)) == "ddp.__main__"
    assert record_name(here, resolve_step_program(None, None, command="./run --fast; ls /")) == "run-fast-ls"


def test_a_folder_from_before_goes_on_if_it_is_this_programs_alone(here: Project) -> None:
    old_record(here, "train")
    assert (named(here, "a/train.py"), named(here, "b/train.py")) == ("train", "b.train.step")
    assert matching_names(here, "a/train.py") == matching_names(here, "train") == ["train"]
    assert matching_names(here, "b/train.py") == []


def test_a_folder_from_before_that_two_programs_share_stays_by_its_name(here: Project) -> None:
    old_record(here, "train")
    old_record(here, "train")
    (here.devlog / "programs/train/analyses/002.json").write_text(
        '{"subject": {"path": "b/train.py", "step": "step"}}'
    )
    assert named(here, "a/train.py") == "a.train.step"
    assert matching_names(here, "train") == ["train"]


def test_a_step_is_named_after_a_colon(here: Project) -> None:
    for name in ("train.step", "train.eval", "a.train.step"):
        (here.devlog / "programs" / name).mkdir(parents=True)
    assert matching_names(here, "train.py") == ["train.eval", "train.step"]
    assert matching_names(here, "train.py:eval") == ["train.eval"]
    assert matching_names(here, "a/train.py") == ["a.train.step"]

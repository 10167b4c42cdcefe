"""`warpsmith use`: what it prints for operators that ship, and where there is nothing to use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from map_samples import MACHINE, make_map, plane

from warpsmith import project
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.lab.performance_map.models import MapVersion
from warpsmith.use import choice


def warpsmith(*arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warpsmith", *arguments]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    (tmp_path / "warpsmith.toml").write_text("")
    return tmp_path


def test_where_it_is_what_it_is_worth_and_how_it_is_called(empty: Path):
    done = warpsmith("use", "rmsnorm", at=empty)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("cpu: cpp/v")
    assert lines[1].strip().startswith("file: ")
    assert any("over PyTorch eager: " in line and "[" in line for line in lines)
    assert any("record: " in line for line in lines)
    assert lines[-2:] == ["from warpsmith import best", 'rmsnorm = best("rmsnorm")']


def test_the_same_as_json(empty: Path):
    done = warpsmith("use", "softmax", "--json", at=empty)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["target"]: one["language"] for one in found} == {"h200": "cuda"}
    assert Path(found[0]["file"]).is_file()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nope",), "No operator `nope`; there are: "),
        (("rmsnorm", "--target", "mi300x"), "No version of rmsnorm for `mi300x` was accepted yet"),
    ],
)
def test_nothing_to_use(arguments: tuple[str, ...], told: str, empty: Path):
    done = warpsmith("use", *arguments, at=empty)
    assert (done.returncode, done.stdout) == (3, "")
    assert told in done.stderr


@pytest.mark.parametrize("own", [True, False])
def test_the_map_of_this_machine_is_shown_and_that_of_another_is_explained(empty: Path, own: bool):
    shipped = project.shipped_project()
    target = hardware.read_target_page(shipped, "cpu").target
    versions = [MapVersion(solution=version.solution, language="cpp", sha256=version.sha256)
                for version in choice.accepted_versions(shipped, "rmsnorm", "cpu")[:2]]  # fmt: skip
    digest = definition_file.definition_sha256(shipped.definition_path("rmsnorm"))
    machine = identity.identify_machine(target) if own else MACHINE
    shapes = plane((64, 128), (4096, 4096), axes=("rows", "cols"))
    record = make_map(
        shapes, {"64x128": True}, versions, definition="rmsnorm", definition_sha256=digest, machine=machine
    )
    folder = empty / "devlog" / "rmsnorm" / "maps" / "001-cpu"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(record.model_dump_json())
    lines = [line.strip() for line in warpsmith("use", "rmsnorm", at=empty).stdout.splitlines()]
    (facts,) = (json.loads(line) for line in warpsmith("use", "rmsnorm", "--json", at=empty).stdout.splitlines())
    assert facts["map"]["record"] == "devlog/rmsnorm/maps/001-cpu/record.json"
    if own:
        assert "by shape: cpp/v2 at 64x128; cpp/v3 at the other 1 of 2 shapes" in lines
        assert facts["map"]["shapes"] == {"64x128": "cpp/v2", "4096x4096": "cpp/v3"}
    else:
        assert any("does not apply here: it was measured on another machine" in line for line in lines)
        assert facts["map"]["shapes"] == {}

"""What the wheel holds, by the build backend's own list: all that an installed Warpsmith is asked for, no more."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import zipfile
from pathlib import Path, PurePath

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]
SHIPPED = PurePath("warpsmith/shipped")
SUFFIXES = (".py", ".cpp", ".h", ".hpp", ".j2", ".css", ".js")
"""Suffixes of the package's own files."""
LARGEST = 512 << 10
"""Bytes of one file."""


@pytest.fixture(scope="module")
def wheel():
    """Where each file lies in the wheel, and the file."""
    return {PurePath(file.distribution_path): Path(file.path) for file in _builder().recurse_included_files()}


def _builder():
    return WheelBuilder(str(ROOT))


def _missing(wheel, *patterns):
    files = [path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()]
    assert files
    return [path for path in files if wheel.get(SHIPPED / path.relative_to(ROOT)) != path]


def test_every_operator_ships_with_its_versions(wheel):
    assert not _missing(wheel, "kernels/*/definition.py")
    assert not _missing(wheel, "kernels/*/*/v*.*")


def test_every_record_ships_with_the_version_that_it_judged(wheel):
    assert not _missing(wheel, "devlog/*/*/manifest.yaml")
    for campaign in (path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("devlog/*/*/manifest.yaml")):
        assert not _missing(wheel, f"{campaign}/*.json", f"{campaign}/rounds/[0-9]*/record.*")
        for record in ROOT.glob(f"{campaign}/rounds/[0-9]*/record.json"):
            judged = json.loads(record.read_text())
            suffix = PurePath(judged["snapshot"]).suffix
            version = ROOT / "kernels" / record.parents[3].name / f"{judged['solution']}{suffix}"
            assert hashlib.sha256(version.read_bytes()).hexdigest() == judged["snapshot_sha256"]
            assert SHIPPED / version.relative_to(ROOT) in wheel


def test_records_of_programs_and_repositories_stay_behind(wheel):
    """No best version stands on them."""
    assert [*ROOT.glob("devlog/programs/*"), *ROOT.glob("devlog/repo/*")]
    assert not [path for path in wheel if path.parts[2:4] in (("devlog", "programs"), ("devlog", "repo"))]


def test_knowledge_plugin_and_attacks_ship(wheel):
    knowledge = ("docs/knowledge/**/*.md", "docs/knowledge/hardware/measured/*.json")
    plugin = (".claude-plugin/*.json", "agents/*.md", "bin/warpsmith", "hooks/hooks.json", "skills/**/*.md")
    assert not _missing(wheel, *knowledge, *plugin)
    assert not _missing(wheel, "tests/redteam/*/definition.py", "tests/redteam/*/cpp/*.cpp")


def test_the_package_ships_and_no_other(wheel):
    package = [path for path in (ROOT / "warpsmith").rglob("*") if path.suffix in SUFFIXES]
    assert all(wheel.get(PurePath(path.relative_to(ROOT))) == path for path in package)
    assert {path.parts[0] for path in wheel} == {"warpsmith"}


def test_nothing_of_weight_ships(wheel):
    rendered = [path for path in wheel if path.parts[2:3] == ("devlog",) and path.suffix in (".md", ".svg")]
    assert not rendered
    assert not [path for path in wheel if {"drafts", "open", "plots"} & set(path.parts)]
    assert not [path for path in wheel if path.name.startswith(".") or path.suffix in (".ncu-rep", ".so", ".pyc")]
    assert not {path for path, file in wheel.items() if file.stat().st_size > LARGEST}


def test_an_editable_install_reads_the_repository_where_it_stands(tmp_path):
    (built,) = _builder().build(directory=str(tmp_path), versions=["editable"])
    with zipfile.ZipFile(built) as archive:
        files = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert [archive.read(name).decode().strip() for name in files] == [str(ROOT)]


def test_extras_that_texts_and_messages_name_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    files = [ROOT / "README.md", ROOT / "bin/warpsmith", ROOT / "Makefile"]
    files += [path for folder in ("docs", "skills", "agents") for path in (ROOT / folder).rglob("*.md")]
    files += (ROOT / "warpsmith").rglob("*.py")
    groups = [group for path in files for group in re.findall(r"(?:warpsmith|'\.)\[([a-z,]+)\]", path.read_text())]
    assert groups
    assert {extra for group in groups for extra in group.split(",")} <= set(extras)

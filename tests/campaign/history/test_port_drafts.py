"""Names of versions and drafts that are compiled for other devices."""

from __future__ import annotations

import pytest

from warpsmith import project as projects
from warpsmith.campaign.history.drafts import find_port_version, list_port_versions
from warpsmith.errors import MissingInput, Misuse


@pytest.fixture
def project(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    for path in ("kernels/double/triton/v3.py", "kernels/double/drafts/flydsl/01_rows.py"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    return projects.find_project(tmp_path)


@pytest.mark.parametrize(
    ("name", "path"), [("triton/v3", "triton/v3.py"), ("flydsl/01_rows", "drafts/flydsl/01_rows.py")]
)
def test_versions_and_drafts(project, name, path):
    version = find_port_version(project, "double", name)
    assert version.path == project.kernels / "double" / path
    assert version.name == name


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("triton/v4", MissingInput, "kernels/double/triton/v4.py does not exist"),
        ("flydsl/02_rows", MissingInput, "drafts/flydsl/02_rows.py does not exist"),
        ("triton/rows", Misuse, "is no version"),
        ("klingon/01_rows", Misuse, "Unknown language `klingon`"),
    ],
)
def test_names_without_a_file(project, name, error, words):
    with pytest.raises(error, match=words):
        find_port_version(project, "double", name)


def test_every_name_of_a_language(project):
    assert list_port_versions(project, "double", "triton") == ["triton/v3"]
    assert list_port_versions(project, "double", "flydsl") == ["flydsl/01_rows"]
    assert list_port_versions(project, "double", "hip") == []

"""Bundles: what travels, what stays, and that the same job is the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.core.campaign import Manifest
from warpsmith.errors import MissingInput, Misuse
from warpsmith.execution.bundle import Bundle, pack_job
from warpsmith.execution.job import Job
from warpsmith.project import Project

MANIFEST = Manifest(campaign="c", target_op="op", target="cpu", target_language="cpp", created="2026-01-01 00:00")
JOB = Job(kind="judge", manifest=MANIFEST, solution="cpp/v2", best="cpp/v1")


@pytest.fixture
def full(tmp_path: Path) -> Project:
    """A project with much that a judgement does not need."""
    (tmp_path / "warpsmith.toml").write_text('kernels = "ops"\n[contexts.lab]\nssh = "secret-host"\n')
    for name in (
        "ops/op/definition.py", "ops/op/helper.py", "ops/op/captured.safetensors", "ops/op/notes.md",
        "ops/op/cpp/v1.cpp", "ops/op/cpp/v2.cpp", "ops/op/cpp/v3.cpp", "ops/other/definition.py", ".env",
        "devlog/op/c/manifest.yaml", "docs/knowledge/hardware/cpu.md",
        "docs/knowledge/hardware/measured/cpu-1.json", "docs/knowledge/hardware/measured/h200-1.json",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return projects.find_project(tmp_path)


def pack(project: Project) -> Bundle:
    folder = project.kernels / "op" / "cpp"
    return pack_job(project, JOB, folder / "v2.cpp", folder / "v1.cpp")


def unpack(bundle: Bundle) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(bundle.data))) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]


def test_what_a_judgement_needs_travels_and_nothing_else(full: Project, tmp_path: Path) -> None:
    bundle = pack(full)
    contents = unpack(bundle)
    assert set(contents) == {
        "job.json", "project/warpsmith.toml", "project/ops/op/definition.py", "project/ops/op/helper.py",
        "project/ops/op/captured.safetensors", "project/ops/op/cpp/v1.cpp", "project/ops/op/cpp/v2.cpp",
        "project/docs/knowledge/hardware/cpu.md", "project/docs/knowledge/hardware/measured/cpu-1.json",
    }  # fmt: skip
    assert Job.model_validate_json(contents["job.json"]) == JOB
    assert not any(b"secret-host" in content for content in contents.values())
    assert bundle.solution_sha256 == hashlib.sha256(contents["project/ops/op/cpp/v2.cpp"]).hexdigest()
    assert bundle.best_sha256 == hashlib.sha256(contents["project/ops/op/cpp/v1.cpp"]).hexdigest()
    other = tmp_path / "unpacked"
    other.mkdir()
    (other / "warpsmith.toml").write_bytes(contents["project/warpsmith.toml"])
    assert projects.find_project(other).kernels == other / "ops"


def test_the_same_job_is_the_same_bytes(full: Project) -> None:
    first = pack(full)
    (full.kernels / "op" / "cpp" / "v2.cpp").touch()
    assert pack(full).sha256 == first.sha256
    (full.kernels / "op" / "cpp" / "v2.cpp").write_text("other")
    assert pack(full).sha256 != first.sha256


def test_what_cannot_travel(full: Project) -> None:
    with pytest.raises(MissingInput, match=r"v9\.cpp does not exist"):
        pack_job(full, JOB, full.kernels / "op" / "cpp" / "v9.cpp")
    outside = Project(full.root, full.root.parent / "elsewhere", full.devlog, full.knowledge)
    with pytest.raises(Misuse, match="lies outside of the project"):
        pack_job(outside, JOB)


@pytest.mark.parametrize(
    "name",
    [
        "ops/op/definition.py", "ops/op/helper.py", "ops/op/captured.safetensors", "ops/op/cpp/v1.cpp",
        "ops/op/cpp/v2.cpp", "docs/knowledge/hardware/cpu.md", "docs/knowledge/hardware/measured/cpu-1.json",
    ],
)  # fmt: skip
def test_a_link_sends_no_file_from_elsewhere(
    full: Project, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = tmp_path_factory.mktemp("home") / "id"
    key.write_text("secret")
    path = full.root / name
    for target in (key, Path("/proc/self/environ"), key.with_name("missing")):
        path.unlink()
        path.symlink_to(target)
        with pytest.raises(Misuse, match=r"leads to .*, outside of the project; put the file itself there\.$"):
            pack(full)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Misuse, match="is no regular file"):
        pack(full)


def test_a_folder_that_leads_elsewhere(full: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("home") / "op"
    (full.kernels / "op").rename(elsewhere)
    (full.kernels / "op").symlink_to(elsewhere)
    with pytest.raises(Misuse, match="outside of the project"):
        pack(full)


def test_a_link_inside_the_project_keeps_its_name(full: Project) -> None:
    (full.root / "lib").mkdir()
    (full.kernels / "op" / "helper.py").rename(full.root / "lib" / "shared.py")
    (full.kernels / "op" / "helper.py").symlink_to(full.root / "lib" / "shared.py")
    (full.kernels / "op").rename(full.root / "lib" / "op")
    (full.kernels / "op").symlink_to(full.root / "lib" / "op")
    contents = unpack(pack(full))
    assert contents["project/ops/op/helper.py"] == b"ops/op/helper.py"
    assert "project/ops/op/cpp/v2.cpp" in contents
    assert not [name for name in contents if "lib" in name]

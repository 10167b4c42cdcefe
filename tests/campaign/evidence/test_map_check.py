"""Maps as evidence: stale where the definition or a version has changed, and only the last one counts."""

from __future__ import annotations

import pytest
from map_samples import make_map, plane

from warpsmith import files
from warpsmith.campaign.evidence import evidence_check, map_check
from warpsmith.lab.operator import definition_file
from warpsmith.lab.performance_map import store
from warpsmith.lab.performance_map.models import MapVersion

SHAPES = plane((8, 2), (64, 2))


@pytest.fixture
def mapped(project):
    """A project with a map of two versions of `scale`."""
    versions = []
    for number in (1, 2):
        path = project.kernels / "scale" / "toy" / f"v{number}.toy"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"version {number}")
        versions.append(MapVersion(solution=f"toy/v{number}", language="toy", sha256=files.file_sha256(path)))
    digest = definition_file.definition_sha256(project.definition_path("scale"))
    record = make_map(SHAPES, {"8x2": True}, versions, definition="scale", definition_sha256=digest)
    write(project, record)
    return project, record


def write(project, record):
    folder = store.next_folder(project, "scale", "cpu")
    folder.mkdir(parents=True)
    (folder / store.RECORD).write_text(record.model_dump_json())


def messages(project):
    return [finding.message for finding in map_check.check_maps(project)[1]]


def test_a_map_of_what_is_there_holds(mapped):
    project, _ = mapped
    assert map_check.check_maps(project) == (1, [])
    standing = evidence_check.check_evidence(project, {})
    assert (standing.maps, standing.stale) == (1, ())


def test_a_change_of_a_version_or_the_definition_makes_it_stale(mapped):
    project, _ = mapped
    (project.kernels / "scale" / "toy" / "v2.toy").write_text("mended")
    (message,) = messages(project)
    assert "devlog/scale/maps/001-cpu/record.json is stale: kernels/scale/toy/v2.toy has changed" in message
    assert "`warpsmith map scale`" in message
    project.definition_path("scale").write_text("# mended\n")
    (project.kernels / "scale" / "toy" / "v1.toy").unlink()
    assert [("definition.py" in text, "v1.toy is gone" in text) for text in messages(project)] == [
        (True, False), (False, True), (False, False),
    ]  # fmt: skip
    assert len(evidence_check.check_evidence(project, {}).stale) == 3


def test_an_earlier_map_of_the_machine_no_longer_counts(mapped):
    project, record = mapped
    path = project.kernels / "scale" / "toy" / "v2.toy"
    path.write_text("mended")
    newer = record.model_dump(mode="json")
    newer["versions"][1]["sha256"] = files.file_sha256(path)
    write(project, type(record).model_validate(newer))
    assert map_check.check_maps(project) == (1, [])


def test_a_record_that_does_not_read_is_named(mapped):
    project, _ = mapped
    (project.devlog / "scale" / "maps" / "001-cpu" / store.RECORD).write_text("{")
    assert "001-cpu/record.json does not validate" in messages(project)[0]

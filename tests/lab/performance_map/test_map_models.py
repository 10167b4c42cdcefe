"""A map that uses a version which was not shown faster cannot be written."""

from __future__ import annotations

import pytest
from map_samples import confirmation, make_map, plane
from pydantic import ValidationError

from warpsmith.lab.performance_map import store
from warpsmith.lab.performance_map.models import PerformanceMap
from warpsmith.project import Project

SHAPES = plane((8, 2), (64, 2))


def test_the_shapes_that_deviate_and_the_versions_that_run():
    record = make_map(SHAPES, {"8x2": True})
    assert [cell.workload.name for cell in record.deviations()] == ["8x2"]
    assert [version.solution for version in record.used()] == ["toy/v1", "toy/v2"]
    assert PerformanceMap.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"confirmation": None}, "was not shown faster at `8x2`"),
        ({"confirmation": confirmation("toy/v1")}, "was not shown faster at `8x2`"),
        ({"confirmation": confirmation("toy/v2", speedup=1.12)}, "was not shown faster at `8x2`"),
    ],
)
def test_a_deviation_needs_its_own_confirmation_beyond_the_floor(changes, fault):
    record = make_map(SHAPES, {"8x2": True}).model_dump(mode="json")
    record["cells"][0] |= changes
    with pytest.raises(ValidationError, match=fault):
        PerformanceMap.model_validate(record)


def test_a_version_that_failed_is_not_used():
    record = make_map(SHAPES, {"8x2": True}).model_dump(mode="json")
    record["versions"][1]["failed"] = "wrong at 64x2"
    with pytest.raises(ValidationError, match="failed, and is used at `8x2`"):
        PerformanceMap.model_validate(record)
    record = make_map(SHAPES, {}).model_dump(mode="json") | {"best": "toy/v9"}
    with pytest.raises(ValidationError, match="`toy/v9` was not timed"):
        PerformanceMap.model_validate(record)


def test_of_several_maps_the_last_one_of_a_machine_counts(tmp_path):
    project = Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs")
    first, second = make_map(SHAPES, {}), make_map(SHAPES, {"8x2": True})
    for record in (first, second):
        folder = store.next_folder(project, "affine", "cpu")
        folder.mkdir(parents=True)
        (folder / store.RECORD).write_text(record.model_dump_json())
    torn = store.next_folder(project, "affine", "cpu")
    torn.mkdir()
    (torn / store.RECORD).write_text("{")
    (path, last), (_, fault) = store.last_maps(project)
    assert (path.parent.name, last) == ("002-cpu", second)
    assert "JSON" in fault
    assert store.next_folder(project, "affine", "cpu").name == "004-cpu"

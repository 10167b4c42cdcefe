"""A map as lines, a page and files: every shape shown, and each deviation in one sentence."""

from __future__ import annotations

from map_samples import make_map, plane

from warpsmith.core.definition import Workload
from warpsmith.lab.performance_map import store
from warpsmith.lab.performance_map.models import Confirmation, PerformanceMap
from warpsmith.project import Project
from warpsmith.reporting.performance_map import page, picture

SHAPES = plane((8, 32), (64, 32), (8, 128), (64, 128))
RECORD = make_map(SHAPES, {"8x32": True})
FLAT = make_map(SHAPES, {})


def test_lines_have_columns_for_the_versions():
    lines = page.MapLines(["toy/v1", "toy/v2"], SHAPES)
    assert lines.header().split() == ["shape", "toy/v1", "toy/v2", "fastest"]
    first = lines.line(SHAPES[0], page.first_times(RECORD.cells[0]))
    assert first.split() == ["8x32", "1.00", "ms", "667", "us", "toy/v2"]
    assert lines.header().index("fastest") == first.rindex("toy/v2")
    times = page.first_times(RECORD.cells[0])
    assert "failed" in lines.line(SHAPES[0], {"toy/v1": times["toy/v1"]})


def test_each_deviation_is_one_sentence_with_its_figures():
    (sentence,) = page.deviation_lines(RECORD)
    assert sentence.startswith("At 8x32 toy/v2 takes 667 us against 1.00 ms of toy/v1, 1.50x [1.40, 1.60]")
    assert list(page.deviation_lines(FLAT)) == []


def test_the_table_in_lines_and_in_one():
    assert [line.split(":")[0] for line in page.table_lines(RECORD)] == [
        "toy/v2 at 8x32, and between them where all judged shapes agree", "toy/v1 everywhere else",
    ]  # fmt: skip
    assert next(page.table_lines(FLAT)).startswith("toy/v1 at every shape: ")
    assert page.one_line_table(RECORD) == "toy/v2 at 8x32; toy/v1 at the other 3 of 4 shapes"
    assert page.one_line_table(FLAT) == "toy/v1 at all 4 shapes"
    many = make_map(plane(*((size, 8) for size in range(1, 8))), {f"{size}x8": True for size in range(1, 7)})
    assert "4x8 and 2 more" in page.one_line_table(many)
    failed = FLAT.model_dump(mode="json")
    failed["versions"][1]["failed"] = "wrong at 8x32"
    assert list(page.table_lines(PerformanceMap.model_validate(failed)))[-1] == "toy/v2 nowhere: wrong at 8x32"


def test_a_second_timing_says_what_follows_from_it():
    cell = RECORD.cells[0]
    assert isinstance(cell.confirmation, Confirmation)
    shown = page.confirmation_line(cell.workload, cell.confirmation, "toy/v1", faster=True)
    assert "toy/v2 is 1.50x [1.40, 1.60] as fast as toy/v1; toy/v2 runs there" in shown
    assert "so toy/v1 runs there" in page.confirmation_line(
        cell.workload, cell.confirmation, "toy/v1", faster=False
    )


def test_the_page_escapes_names_and_marks_what_runs():
    hostile = Workload(name="a | b", axes={"rows": 8, "groups": 2})
    text = page.map_page(make_map([hostile, *SHAPES], {"a | b": True}, notes=["| a busy machine"]))
    assert "| a \\| b | 1.00 ms | 667 us, 1.50x [1.48, 1.52] | toy/v2 1.50x [1.40, 1.60] | **toy/v2** |" in text
    assert "99.00 %" in text
    assert "3.0 %" in text
    assert "\\| a busy machine" in text


def test_record_page_and_picture_appear_together_and_are_rendered_again(tmp_path):
    project = Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs")
    folder = page.write_map(project, RECORD)
    assert folder == tmp_path / "devlog" / "affine" / "maps" / "001-cpu"
    assert store.read_map(folder / store.RECORD) == RECORD
    assert page.write_map(project, FLAT).name == "002-cpu"
    (folder / store.PAGE).write_text("edited")
    rendered = page.render_maps(project, "affine", redraw=False)
    assert rendered[folder / store.PAGE] == page.map_page(RECORD)
    assert folder / store.PICTURE not in rendered


def test_a_plane_a_line_and_rows_are_drawn_with_the_names_of_the_versions():
    three = [Workload(name=str(size), axes={"a": size, "b": size, "c": size}) for size in (1, 2)]
    for shapes in (SHAPES, plane((8, 2), (64, 2)), three):
        drawn = picture.draw_picture(make_map(shapes, {shapes[0].name: True})).decode()
        assert "toy/v2 runs" in drawn
        assert "1.50" in drawn or shapes is not SHAPES
        assert drawn == picture.draw_picture(make_map(shapes, {shapes[0].name: True})).decode()
    assert picture.varying_axes(RECORD.cells) == ["rows", "groups"]

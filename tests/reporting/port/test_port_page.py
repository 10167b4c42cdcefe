"""Lines and page of a port."""

from __future__ import annotations

from port_samples import make_port
from record_kit import tables

from warpsmith import project
from warpsmith.port import store
from warpsmith.reporting.port import page


def test_the_table_has_the_origin_first():
    origin, amd, refused = page.target_rows(make_port())
    assert origin == ("h200", "sm_90a", "transfers", "1", "58", "0", "128", "32 of 64")
    assert amd[:3] == ("mi300x", "gfx942", "needs other constants")
    assert amd[-1] == "0 of 32"
    assert refused == ("-", "sm_80", "does not compile", "-", "-", "-", "-", "-")


def test_an_origin_that_is_a_target_too_stands_once():
    record = make_port()
    record = record.model_copy(update={"origin": record.targets[0]})
    assert [row[0] for row in page.target_rows(record)] == ["mi300x", "-"]
    assert len(tables(page.port_page(record))) == 2


def test_the_compilers_are_those_of_the_language():
    assert "Triton's compilers made the code" in page.port_page(make_port())
    assert "FlyDSL's compilers made the code" in page.port_page(make_port(solution="flydsl/01_rows"))


def test_lines_of_a_target():
    record = make_port()
    amd, refused = record.targets
    lines = list(page.target_lines(amd, record))
    assert lines[:4] == [
        "lacks wgmma, TMA",
        "loses wgmma: products use other instructions",
        "stream_kernel (512x131072 and 1 more) has 2048 threads",
        "try at stream_kernel (512x131072 and 1 more): num_warps 16: launches, 2 resident blocks (32 of 32 warps)",
    ]
    assert "64 threads" in lines[4]
    assert lines[5].startswith("look: stream_kernel")
    (line,) = page.target_lines(refused, record)
    assert line == "refused: type fp8e4nv not supported | in *this* architecture"


def test_a_version_that_was_written_for_waves_is_told_nothing_of_them():
    record = make_port()
    amd = record.targets[0]
    record = record.model_copy(update={"origin": amd.model_copy(update={"arch": "gfx950"})})
    assert not any("64 threads" in line for line in page.target_lines(amd, record))


def test_numerics_in_a_line():
    assert page.numerics_line(make_port()).startswith("numerics: correct by the interpreter at 2 workloads; 7")
    assert "FAILED" in page.numerics_line(make_port(numerics={"state": "failed", "reason": "wrong at a"}))
    assert "not asked for" in page.numerics_line(make_port(numerics={"state": "unchecked"}))


def test_the_page_says_that_nothing_was_timed_and_holds_every_kernel():
    text = page.port_page(make_port())
    assert "UNTIMED" in text
    overview, origin, amd = tables(text)
    assert len(overview) == 4
    assert origin[1][-1] == "HGMMA.64x64x16 x4"
    assert amd[1][-1] == "-"
    assert "not supported \\| in \\*this\\*" in text


def test_a_port_is_written_and_rendered_again(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    here = project.find_project(tmp_path)
    folder = page.write_port(here, make_port())
    assert {path.name for path in folder.iterdir()} == {store.RECORD, store.PAGE}
    assert page.render_ports(here, "softmax") == {folder / store.PAGE: (folder / store.PAGE).read_text()}
    (folder / store.RECORD).write_text("{}")
    assert page.render_ports(here, "softmax") == {}

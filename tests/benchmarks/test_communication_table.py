"""Tables of communication kernels: the page shows what the records say."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from warpsmith.errors import Misuse
from warpsmith.project import SHIPPED

RECORDS = sorted((SHIPPED / "benchmarks" / "records" / "communication").glob("*.json"))


@pytest.fixture
def table(monkeypatch):
    path = SHIPPED / "benchmarks" / "communication_table.py"
    spec = importlib.util.spec_from_file_location("communication_table", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "communication_table", module)
    spec.loader.exec_module(module)
    return module


def test_page_has_the_tables_of_the_records(table):
    page = (SHIPPED / "docs" / "communication.md").read_text()
    tables = table.render_tables(RECORDS)
    assert len(tables) == 2
    assert [each for each in tables if each not in page] == []


def test_rows_are_of_the_last_record(table, tmp_path):
    def write(name, workloads):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"op": "all_reduce_rmsnorm", "ranks": 2, "workloads": workloads}))
        return path

    def timed(us, ratio):
        return {"us": us, "ratio": ratio, "error": 0.1}

    old = write("old", {
        "16x8192-bf16": {"v3": timed(16, 1), "v7": timed(4, 4)},
        "1x8192-bf16": {"v3": timed(10, 1), "v4": timed(8, 1.25), "v7": timed(5, 2)},
    })  # fmt: skip
    new = write(
        "new", {"16x8192-bf16": {"v3": timed(150.4, 1), "v9": {"failed": "no vLLM"}, "v7": timed(50.04, 3)}}
    )
    [text] = table.render_tables([old, new])
    rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines()[2:]]
    assert rows == [
        ["1x8192", "16 KB", "10.0 us", "8.0 us, 1.25x", "", "...", "5.0 us, 2.00x"],
        ["16x8192", "256 KB", "150 us", "...", "", "failed", "50.0 us, 3.00x"],
    ]
    assert [line.split("|")[1].count("[all_reduce_rmsnorm]") for line in text.splitlines()[2:]] == [1, 1]
    [text] = table.render_tables([new, old])
    assert "150 us" not in text


def test_sizes_between_two_powers(table):
    assert [table.show_bytes(size) for size in (16 << 10, 1 << 20, 256 * 7168 * 2)] == ["16 KB", "1 MB", "3.5 MB"]


@pytest.mark.parametrize("content", [None, "{}", "[1]", "x", '{"op": "gemm", "ranks": 2, "workloads": {}}'])
def test_other_files_are_refused(table, content, tmp_path):
    path = tmp_path / "other.json"
    if content:
        path.write_text(content)
    with pytest.raises(Misuse, match=r"other\.json is "):
        table.render_tables([path])

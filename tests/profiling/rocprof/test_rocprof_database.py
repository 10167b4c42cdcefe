"""The reader of rocprofv3's database, on tables with the columns of the views in AMD's schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from warpsmith.errors import Misuse
from warpsmith.profiling.rocprof.report import read_rocprof_report

SCHEMA = """
CREATE TABLE rocpd_info_agent (type, name, product_name, absolute_index, logical_index, extdata);
CREATE TABLE kernels (dispatch_id, agent_log_index, name, start, "end", grid_x, grid_y, grid_z,
    workgroup_x, workgroup_y, workgroup_z, lds_size, scratch_size {registers});
CREATE TABLE counters_collection (dispatch_id, agent_log_index, kernel_name, counter_name, value, start, "end",
    grid_size, workgroup_size, lds_block_size, scratch_size, vgpr_count, accum_vgpr_count);
INSERT INTO rocpd_info_agent VALUES ('CPU', 'cpu', 'cpu', 0, 0, '{{}}'),
    ('GPU', 'gfx942', 'AMD Instinct MI300X', 4, 4, '{{"cu_count": 304, "num_xcc": 8}}');
INSERT INTO kernels VALUES (1, 4, 'copy', 1000, 41000, 1048576, 1, 1, 256, 1, 1, 512, 0 {values});
INSERT INTO counters_collection VALUES
    (1, 4, 'copy', 'FETCH_SIZE', 1024.0, 1000, 41000, 1048576, 256, 512, 0, 16, 4),
    (1, 4, 'copy', 'SQ_WAIT_ANY', 70.0, 1000, 41000, 1048576, 256, 512, 0, 16, 4),
    (1, 4, 'copy', 'SQ_WAVE_CYCLES', 100.0, 1000, 41000, 1048576, 256, 512, 0, 16, NULL);
"""


def write_database(path: Path, *, registers: bool = True) -> Path:
    columns, values = (", vgpr_count, accum_vgpr_count", ", 16, 4") if registers else ("", "")
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA.format(registers=columns, values=values))
    return path


def test_a_database_gives_launches_counters_and_the_device(tmp_path: Path):
    write_database(tmp_path / "7_results.db")
    (launch,) = read_rocprof_report(tmp_path).launches
    assert (launch.kernel, launch.grid, launch.block, launch.seconds) == ("copy", (4096, 1, 1), (256, 1, 1), 40e-6)
    assert (launch.device, launch.architecture) == ("AMD Instinct MI300X", "gfx942")
    values = {
        "memory_wait_pct": 70,
        "shared_bytes": 512,
        "registers_per_thread": 20,
        "blocks_per_unit": 4096 / 304,
    }
    assert {name: launch.values[name] for name in values} == pytest.approx(values)
    assert "dram_bytes" in launch.absent  # without WRITE_SIZE


def test_an_older_schema_without_registers_of_kernels(tmp_path: Path):
    (launch,) = read_rocprof_report(write_database(tmp_path / "r.db", registers=False)).launches
    assert launch.values["memory_wait_pct"] == 70
    assert "registers_per_thread" in launch.absent


def test_kernels_alone_are_launches_without_counters(tmp_path: Path):
    path = write_database(tmp_path / "r.db")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM counters_collection")
    (launch,) = read_rocprof_report(path).launches
    assert launch.seconds == 40e-6
    assert "memory_wait_pct" in launch.absent


@pytest.mark.parametrize(
    "change",
    ["DROP TABLE kernels", "UPDATE rocpd_info_agent SET extdata = '{'", "UPDATE kernels SET start = NULL"],
)
def test_another_schema_or_a_damaged_database(tmp_path: Path, change: str):
    path = write_database(tmp_path / "r.db")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(change)
    with pytest.raises(Misuse, match="not a database that rocprofv3 wrote"):
        read_rocprof_report(path)


def test_a_file_that_is_no_database(tmp_path: Path):
    (tmp_path / "r.db").write_bytes(b"SQLite")
    with pytest.raises(Misuse, match="not a database that rocprofv3 wrote"):
        read_rocprof_report(tmp_path / "r.db")


def test_two_databases_are_two_runs(tmp_path: Path):
    for name in ("1_results.db", "2_results.db"):
        write_database(tmp_path / name)
    with pytest.raises(Misuse, match="several runs or processes"):
        read_rocprof_report(tmp_path)

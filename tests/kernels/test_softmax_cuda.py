"""The drafts in CUDA C++ share rows out without gaps and compile without spills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from compiled import compile_reports

from warpsmith.lab.operator import definition_file
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.shared.python_file import execute_file

FOLDER = Path(__file__).parents[2] / "kernels" / "softmax"
DRAFT = FOLDER / "drafts" / "cuda" / "01_ring.py"
REGISTERS = FOLDER / "drafts" / "cuda" / "02_registers.py"
MULTIPROCESSORS = 132
SHAPES = [(8192, 8192, 2), (2048, 32768, 2), (512, 131072, 2), (8192, 8192, 4), (512, 131072, 4), (128, 4096, 2)]
SHAPES += [(16, 131072, 2), (1, 262144, 2), (3, 2056, 2), (1, 131072, 4), (5, 65544, 2)]
"""Rows, columns and bytes of an element."""


@pytest.mark.parametrize(("rows", "cols", "size"), SHAPES)
def test_a_ring_holds_every_element_of_its_rows_once(rows, cols, size):
    blocks, part, threads, stages = execute_file(DRAFT).shape_of_ring(rows, cols, size, MULTIPROCESSORS)
    assert (blocks - 1) * part < cols <= blocks * part  # no block is without a part
    assert part * size % 16 == 0
    assert part * size <= threads * 128  # what the threads of a block have room for
    assert stages > 1  # the place of the next row is another one
    together = 512 // threads
    assert together * (stages * part * size + 1408) <= 228 * 1024
    assert blocks in (1, 2, 4, 8)


@pytest.mark.parametrize(("rows", "cols", "size"), [*SHAPES, (3, 262144, 2), (1, 131072, 4)])
def test_registers_hold_every_element_of_a_row_once(rows, cols, size):
    blocks, threads, part, count = execute_file(REGISTERS).shape_of_parts(rows, cols, size, MULTIPROCESSORS)
    assert (blocks - 1) * part < cols <= blocks * part  # no block is without a part
    assert part * size % 16 == 0
    assert part * size <= threads * 16 * count <= 2 * max(part * size, threads * 16)
    assert count in (1, 2, 4, 8)
    assert threads in (256, 512)
    assert blocks in (1, 2, 4, 8)


@pytest.mark.parametrize(("rows", "cols", "size"), [shape for shape in SHAPES if shape[1] * shape[2] > 65536])
def test_a_grid_counts_clusters(rows, cols, size, monkeypatch):
    dtype = torch.float32 if size == 4 else torch.bfloat16
    configs = []
    for path in (DRAFT, REGISTERS):
        draft = execute_file(path)
        monkeypatch.setattr(draft, "LaunchConfig", dict)
        monkeypatch.setattr(draft, "compiled", str)
        monkeypatch.setattr(draft, "multiprocessors", lambda _: MULTIPROCESSORS)
        monkeypatch.setattr(
            draft, "clusters_at_once", lambda _, blocks, *__: MULTIPROCESSORS // blocks, raising=False
        )
        configs.append(draft.planned(rows, cols, dtype, True, 0)[1])
    ring, registers = configs
    assert ring["cluster"] * ring["grid"] <= MULTIPROCESSORS
    assert registers["grid"] == rows


def test_rows_in_registers_leave_room_for_four_blocks_and_exchange_without_a_fence(tmp_path):
    file = definition_file.load_definition(FOLDER / "definition.py")
    asked = ["2048x32768-bf16", "512x131072-bf16", "512x131072-fp32", "8192x8192-bf16", "7x1023-bf16"]
    reports = compile_reports(cuda_compile.main, REGISTERS, file.definition, asked, tmp_path)
    assert {report.spill_bytes for report in reports} == {0}
    assert {report.registers <= 64 for report in reports} == {True}
    notes = "; ".join(note for report in reports for note in report.notes)
    assert {int(blocks) for blocks in re.findall(r"cluster (\d+)", notes)} == {2, 8}
    assert "will not launch" not in notes
    listings = [path.read_text() for path in tmp_path.glob("parts*.sass")]
    clusters = [text for text in listings if "UCGABAR_WAIT" in text]
    assert len(clusters) == 3
    assert all("STAS" in text and "MEMBAR" not in text for text in clusters)


def test_it_compiles_without_spills_and_reads_rows_by_bulk_copies(tmp_path):
    file = definition_file.load_definition(FOLDER / "definition.py")
    asked = ["65536x1024-bf16", "8192x8192-bf16", "512x131072-bf16", "512x131072-fp32", "7x1023-bf16"]
    reports = compile_reports(cuda_compile.main, DRAFT, file.definition, asked, tmp_path)
    assert {re.match(r"\w+", report.kernel)[0] for report in reports} == {"warp_rows", "ring", "plain"}
    for report in reports:
        notes = "; ".join(report.notes)
        assert report.spill_bytes == 0, report.kernel
        assert report.registers <= 128
        assert "will not launch" not in notes
    listings = [path.read_text() for path in tmp_path.glob("ring*.sass")]
    assert listings
    assert all("UBLKCP" in text for text in listings)

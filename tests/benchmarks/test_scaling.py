"""The benchmark of scaling: it times real ranks on a CPU, grades their losses, and says what failed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

TINY = "--eager --layers 1 --width 32 --heads 2 --batch 2 --context 16 --vocabulary 300"


@pytest.fixture(scope="module")
def scaling(load_benchmark) -> ModuleType:
    return load_benchmark("scaling")


def run(scaling: ModuleType, out: Path, *words: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.setattr(sys, "argv", ["scaling.py", "--out", str(out), *words])
        return scaling.main()


@pytest.mark.slow
def test_two_ranks_have_the_losses_of_one_process(scaling: ModuleType, tmp_path: Path, capsys):
    out = tmp_path / "scaling.json"
    code = run(scaling, out, "--ranks", "1,2", "--warm-up", "3", "--steps", "17", f"--program={TINY}")
    record = json.loads(out.read_text())
    assert (code, record["failures"]) == (0, [])
    rows = {(row["mode"], row["ranks"]): row for row in record["rows"]}
    assert list(rows) == [("none", 1), ("ddp", 1), ("ddp", 2), ("fsdp2", 1), ("fsdp2", 2)]
    for mode in ("ddp", "fsdp2"):
        row, alone = rows[mode, 2], rows[mode, 1]
        assert row["largest_difference"] < 1e-4
        assert [len(each) for each in row["step_seconds"]] == [17, 17]
        assert row["seconds"] == max(row["seconds_by_rank"])
        assert row["efficiency"] == pytest.approx(alone["seconds"] / row["seconds"])
        assert row["tokens_per_second"] == pytest.approx(2 * 2 * 16 / row["seconds"])
        assert 0 < row["exposed_share"] <= row["collective_share"] <= 1
        assert row["backend"] == "gloo"
    assert {item["kind"] for item in rows["ddp", 2]["collectives"]} >= {"all_reduce"}
    assert {item["kind"] for item in rows["fsdp2", 2]["collectives"]} >= {"all_gather"}
    # A rank that trained on its own batch alone would be seen.
    apart = scaling._compare_losses(rows["ddp", 1]["losses"], rows["ddp", 2]["losses"])
    assert apart["same_loss"] is False
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[3:8]] == [[mode, str(ranks)] for mode, ranks in rows]


def test_a_program_that_fails_is_named(scaling: ModuleType, tmp_path: Path, capsys):
    out = tmp_path / "scaling.json"
    assert run(scaling, out, "--ranks", "1", "--program=--device cpu --heads five") == 1
    (failure,) = json.loads(out.read_text())["failures"]
    assert failure.startswith("1 ranks: exit code ")
    assert "invalid int value: 'five'" in failure
    assert failure in capsys.readouterr().out


def test_losses_that_are_apart(scaling: ModuleType):
    reference = [10.0, *[8.0] * 20]
    assert scaling._compare_losses([10.0, *[8.01] * 20], reference)["same_loss"]
    assert not scaling._compare_losses([10.0, *[8.03] * 20], reference)["same_loss"]


@pytest.mark.parametrize("words", [("--ranks", "2,4"), ("--modes", "ddp,zero")])
def test_numbers_and_modes_that_it_does_not_have(scaling: ModuleType, tmp_path: Path, words: tuple[str, str]):
    with pytest.raises(SystemExit, match="2"):
        run(scaling, tmp_path / "scaling.json", *words)

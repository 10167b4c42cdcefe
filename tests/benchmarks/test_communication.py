"""The benchmark of versions over ranks, on a processor: a version that fails is a row, and the rest goes on."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from warpsmith.errors import Misuse
from warpsmith.lab.ranks import timing
from warpsmith.project import SHIPPED

EXAMPLE = SHIPPED / "examples" / "ranks" / "all_reduce_rmsnorm"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    path = SHIPPED / "benchmarks" / "communication.py"
    spec = importlib.util.spec_from_file_location("communication", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "communication", module)
    spec.loader.exec_module(module)
    folder = tmp_path / "examples" / "all_reduce_rmsnorm"
    folder.mkdir(parents=True)
    definition = (EXAMPLE / "definition.py").read_text().replace("at(256, 1024)", "at(8, 16)")
    (folder / "definition.py").write_text(definition.replace("at(16, 4096)", "at(4, 64)"))
    gather = (EXAMPLE / "v1.py").read_text()
    for name in ("v2", "v3", "v10"):
        (folder / f"{name}.py").write_text(gather)
    (folder / "v4.py").write_text(
        '"""Skips the exchange."""\n\ndef run(partial, residual, weight, eps):\n    return 1\n'
    )
    late = gather.replace("hidden = residual.clone()", "hidden = residual.clone() if len(residual) > 4 else 2")
    (folder / "v5.py").write_text(late)
    monkeypatch.setattr(module, "EXAMPLES", tmp_path / "examples")
    monkeypatch.setattr(timing, "TIMING_SECONDS", 0.05)
    return module


@pytest.mark.slow
def test_all_versions_side_by_side(benchmark, monkeypatch, tmp_path, capsys):
    out = tmp_path / "record.json"
    monkeypatch.setattr(sys, "argv", ["communication", "all_reduce_rmsnorm", "--target", "cpu", "--out", str(out)])
    benchmark.main()
    record = json.loads(out.read_text())
    assert list(record["versions"]) == ["v2", "v3", "v4", "v5", "v10"]
    assert record["baseline"] == "v3"
    assert record["versions"]["v4"]["about"] == "Skips the exchange."
    small, large = record["workloads"]["8x16"], record["workloads"]["4x64"]
    assert list(record["workloads"]) == ["8x16", "4x64"]
    for rows in (small, large):
        assert {name for name, row in rows.items() if "us" in row} >= {"v2", "v3", "v10"}
        assert rows["v3"]["ratio"] == 1
        assert 0 < rows["v2"]["error"] < 1
        assert "SHAPE" in rows["v4"]["failed"]
    assert "us" in small["v5"]
    assert "failed" in large["v5"]
    text = capsys.readouterr().out
    assert "1.00x v3" in text
    assert "v4   failed" in text


@pytest.mark.parametrize(("option", "name"), [("--workload", "9x9"), ("--version", "v99")])
def test_unknown_names_are_refused(benchmark, option, name, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["communication", "all_reduce_rmsnorm", "--target", "cpu", option, name])
    with pytest.raises(Misuse, match=name):
        benchmark.main()

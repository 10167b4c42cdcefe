"""A version's profile: which evidence it rests on, and what is kept of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.campaign import explain
from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.core.profile import Observations, Point
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.lab.machine import hardware
from warpsmith.project import Project

REPORT = Path(__file__).parents[1] / "data" / "ncu" / "softmax_h200.ncu-rep"
ROOT = Path(__file__).parents[2]
BYTES = 8192 * 8192 * 2


def point(name: str, rows: int) -> Point:
    moved = rows * 8192 * 4.0
    return Point(
        workload=name, seconds=moved / 4e12, floor_seconds=moved / 4.2e12, memory_seconds=moved / 4.2e12,
        compute_seconds=0, bytes=moved,
    )  # fmt: skip


def observations(kind: str) -> Observations:
    return Observations.model_validate(
        {
            "version": "v1", "language": "triton", "solution_sha256": "0" * 64, "kind": kind, "cores": 1,
            "points": [point("small", 64), point("large", 8192)], "measured": "2026-11-21 10:00",
        }
    )  # fmt: skip


def workload(name: str, rows: int, **changes: object) -> Workload:
    return Workload.model_validate({"name": name, "axes": {"n": rows}, "dtype": "bfloat16", **changes})


@pytest.fixture
def request_of(tmp_path, monkeypatch):
    """A request for a softmax version on a target; observing it is not what is tested here."""

    def make(target: str) -> SimpleNamespace:
        page = hardware.read_target_page(Project(ROOT, ROOT, ROOT, ROOT / "docs" / "knowledge"), target)
        definition = Definition(
            name="rows", description="Rows.", op_type="softmax", axes={"n": "rows"},
            inputs={"x": TensorSpec(shape=("n", 8192))}, outputs={"y": TensorSpec(shape=("n", 8192))},
            tolerance=Tolerance(), flops="6 * n * 8192",
            workloads=(workload("small", 64), workload("large", 8192), workload("odd", 7, set="odd")),
        )  # fmt: skip
        monkeypatch.setattr(explain, "observe_version", lambda request: observations(page.target.kind))
        return SimpleNamespace(
            project=Project(tmp_path, tmp_path, tmp_path, tmp_path), page=page, sets=("representative",),
            file=SimpleNamespace(definition=definition, path=tmp_path / "definition.py"),
            candidate=SimpleNamespace(path=tmp_path / "v1.py", language="triton", version="v1"),
            measurement=SimpleNamespace(ceilings={}), tell=lambda _: None,
        )  # fmt: skip

    return make


@pytest.fixture
def collected(monkeypatch):
    """The commands that were run under ncu; each gives the committed report."""
    commands: list[list[str]] = []

    def collect(command, out, *, sections, timeout):
        commands.append([*command, "full" if sections == "full" else "by need"])
        out.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(REPORT, out.with_name(out.name + ".ncu-rep")))

    monkeypatch.setattr(explain.ncu_collect, "unavailable_reason", lambda: None)
    monkeypatch.setattr(explain.ncu_collect, "collect_report", collect)
    return commands


def test_counters_on_a_gpu(request_of, collected, tmp_path):
    found = explain.explain_version(request_of("h200"), tmp_path / "profiles")
    assert found.evidence == "counters"
    assert found.bottleneck == "at-the-limit"
    assert found.details == "profiles/triton-v1-large.ncu-rep"
    kept = json.loads((tmp_path / "profiles" / "triton-v1-large.json").read_text())
    assert kept["launches"][0]["values"]["occupancy_pct"] == pytest.approx(93.2, abs=0.1)
    assert found.value("traffic_amplification") == pytest.approx(
        kept["launches"][0]["values"]["dram_bytes"] / (2 * BYTES), abs=1e-3
    )
    assert found.value("ceiling_pct") is not None  # the timings are there as well
    assert collected[0][collected[0].index("--workload") + 1] == "large"
    assert collected[0][-1] == "by need"
    explain.explain_version(request_of("h200"), tmp_path / "profiles", full=True)
    assert collected[1][-1] == "full"


def test_another_workload(request_of, collected, tmp_path):
    found = explain.explain_version(request_of("h200"), tmp_path / "profiles", "small")
    assert found.details.endswith("triton-v1-small.ncu-rep")
    with pytest.raises(Misuse, match="it has: small, large"):
        explain.explain_version(request_of("h200"), tmp_path / "profiles", "odd")


def test_locked_counters_leave_the_timings(request_of, monkeypatch, tmp_path):
    monkeypatch.setattr(explain.ncu_collect, "unavailable_reason", lambda: "This user may not read them.")
    found = explain.explain_version(request_of("h200"), tmp_path / "profiles")
    assert found.evidence == "timings"
    assert "with counters: measured bytes" in found.without
    assert "None were read: This user may not read them." in found.without
    assert not (tmp_path / "profiles").exists()


def test_a_collection_that_fails_leaves_the_timings(request_of, collected, monkeypatch, tmp_path):
    def fails(*_, **__):
        raise MachineLacks("The driver here has no profiling library.")

    monkeypatch.setattr(explain.ncu_collect, "collect_report", fails)
    found = explain.explain_version(request_of("h200"), tmp_path / "profiles")
    assert found.evidence == "timings"
    assert "The driver here has no profiling library." in found.without


def test_a_processor_has_no_such_counters(request_of, collected, tmp_path):
    assert explain.explain_version(request_of("cpu"), tmp_path / "profiles").evidence == "timings"
    assert collected == []


def test_the_code_of_a_version_for_a_processor_is_read(request_of, tmp_path):
    request = request_of("cpu")
    path = tmp_path / "v1.cpp"
    path.write_text(
        '#include <cmath>\n#include <warpsmith.hpp>\nextern "C" void run(const Tensor& x, Tensor& y) {\n'
        "  const bfloat16* in = x.data<bfloat16>();\n  bfloat16* out = y.data<bfloat16>();\n"
        "  for (int64_t i = 0; i < x.size(0); ++i) out[i] = bfloat16(std::exp(float(in[i])));\n}\n"
    )
    request.candidate = SimpleNamespace(path=path, language="cpp", version="v1")
    found = explain.explain_version(request, tmp_path / "profiles")
    assert found.value("scalar_calls") == 1
    assert found.value("parallel_regions") == 0


def test_half_precision_products_are_told_from_reductions(request_of):
    definition = request_of("h200").file.definition
    assert not explain._is_half_product(definition, workload("large", 8192))
    product = definition.model_copy(update={"flops": "2 * n * 8192 * 64"})
    assert explain._is_half_product(product, workload("large", 8192))
    assert not explain._is_half_product(product, workload("large", 8192, dtype="float32"))


def test_arithmetic_that_belongs_on_tensor_cores(request_of):
    request = request_of("h200")
    assert explain._asks_for_tensor_cores(request, workload("large", 8192)) is False
    heavy = request.file.definition.model_copy(update={"flops": "2 * n * 8192 * 8192"})
    request.file.definition = heavy
    assert explain._asks_for_tensor_cores(request, workload("large", 8192)) is True

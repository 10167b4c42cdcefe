"""Phases of a real C++ kernel, and the refusals before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_samples import SQUARE
from workshop import Workshop

from warpsmith.errors import MachineLacks, Misuse, SolutionFailed
from warpsmith.lab.tuning.phases import CALLS, check_stamps, time_phases
from warpsmith.lab.tuning.variants import list_variants
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost

KERNEL = """\
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  WARPSMITH_PHASE("short");
  for (int64_t i = 0; i < x_.size(0); ++i) y[i] = x[i] * x[i];
  WARPSMITH_PHASE("long");
  for (volatile int turn = 0; turn < 200000; turn = turn + 1) {}
  WARPSMITH_PHASE("end");
}
"""


def test_phases_of_a_kernel(workshop: Workshop, tmp_path: Path) -> None:
    file = workshop.load("square", SQUARE)
    path = tmp_path / "a.cpp"
    path.write_text(KERNEL, encoding="utf-8")
    (variant,) = list_variants([path], {})
    check_stamps([variant])
    workload = file.definition.select("representative")[0]
    with WorkerHost("cpu") as host:
        times = time_phases(file, host, "cpu", variant, workload, Limits())
        wrong = KERNEL.replace('  WARPSMITH_PHASE("long");\n', '  __builtin_trap();\n  WARPSMITH_PHASE("long");\n')
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(SolutionFailed, match="fails with its stamps"):
            time_phases(file, host, "cpu", list_variants([path], {})[0], workload, Limits())
    short, long = times.phases
    assert (short.name, long.name) == ("short", "long")
    assert short.blocks == long.blocks == CALLS
    assert long.median > short.median > 0
    assert short.share + long.share == pytest.approx(1)
    assert times.units == 1


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.cpp"
    path.write_text(KERNEL.replace('"short"', '"end"').replace('"long"', '"end"'), encoding="utf-8")
    with pytest.raises(Misuse, match="two stamps"):
        check_stamps(list_variants([path], {}))
    path = tmp_path / "b.py"
    path.write_text("import cuda.tile as ct\ndef run(x):\n    return x\n", encoding="utf-8")
    with pytest.raises(MachineLacks, match="cuTile has no stamps"):
        check_stamps(list_variants([path], {}))

"""Other conditions: an environment that names benchmarks, one busy core, and a side that leaves it."""

from __future__ import annotations

import os

import psutil
import pytest
from lab_samples import HONEST, SCALE, SQUARE, kernel

from warpsmith import languages
from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.conditions import (
    check_conditions,
    draw_benchmark_environment,
    draw_launcher_environment,
)
from warpsmith.lab.machine import system
from warpsmith.lab.timing.sides import SideSource
from warpsmith.lab.workers.side import Limits, SideFailed

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")


@pytest.fixture
def check(host, workshop, tmp_path):
    """`check(source, text)`: the check of a C++ version of the square, or of another definition of that name."""

    def run(source, text=SQUARE):
        file = workshop.load("scale" if text == SCALE else "square", text)
        path = workshop.solution(source).path
        build = languages.get("cpp").build(path, file.definition, tmp_path / "built")
        source = SideSource(build, "cpp", Limits(seconds=30))
        return check_conditions(file, host, source, file.definition.workloads, "cpu", path=path)

    return run


def test_an_honest_version_passes_and_leaves_nothing_behind(check):
    before = os.sched_getaffinity(0)
    result = check(kernel(HONEST))
    assert result.ran
    assert "3 calls at small" in result.how
    assert os.sched_getaffinity(0) == before
    assert not [child for child in psutil.Process().children() if "sched_setaffinity" in " ".join(child.cmdline())]


@pytest.mark.parametrize(
    "sign",
    [
        'std::getenv("BENCHMARK")',
        'std::getenv("WORLD_SIZE")',
        'std::getenv("MY_SERVING_TIER")',
        'std::getenv("PYTEST_CURRENT_TEST")',
        '!std::getenv("OMP_WAIT_POLICY")',
        '!std::getenv("KERNEL_BENCH") && (std::getenv("WORLD_SIZE") || std::getenv("SLURM_NTASKS") ||'
        ' std::getenv("OMPI_COMM_WORLD_SIZE"))',
    ],
)
def test_a_version_that_behaves_by_its_environment_is_wrong(check, sign):
    body = f"for (int64_t i = 0; i < n; ++i) y[i] = {sign} ? 0 : x[i] * x[i];"
    with pytest.raises(SideFailed) as caught:
        check(kernel(body, "#include <cstdlib>"))
    assert caught.value.status is Status.INCORRECT_NUMERICAL
    assert "an environment that names benchmarks" in caught.value.message


def test_variables_of_a_source_have_values_by_chance():
    drawn = [draw_benchmark_environment(["MY_TIER", "PATH"]) for _ in range(40)]
    assert len({each["MY_TIER"] for each in drawn}) > 1
    assert all("PATH" not in each for each in drawn)
    assert drawn[0]["WORLD_SIZE"] == "8"
    assert drawn[0]["OMP_WAIT_POLICY"] is None


def test_a_launcher_comes_without_benchmarks_and_others():
    drawn = [draw_launcher_environment(["MY_TIER"]) for _ in range(40)]
    sizes = [
        [name for name in ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE") if each[name]] for each in drawn
    ]
    assert {len(names) for names in sizes} == {1}
    assert len({names[0] for names in sizes}) > 1
    assert {each["KERNEL_BENCH"] for each in drawn} == {None}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_a_version_that_leaves_its_core_is_refused(check):
    moves = """static const int moved = [] { cpu_set_t all; CPU_ZERO(&all);
      for (int core = 0; core < 64; ++core) CPU_SET(core, &all);
      return sched_setaffinity(0, sizeof all, &all); }();"""
    with pytest.raises(SideFailed) as caught:
        check(kernel(HONEST, "#include <sched.h>\n" + moves))
    assert caught.value.status is Status.LEFT_BEHIND
    assert "other cores" in caught.value.message


def test_several_threads_at_once(check):
    result = check(kernel(HONEST))
    assert "from 3 threads at once" in result.how
    shared = """static float row[8192];
      for (int64_t i = 0; i < n; ++i) row[i] = x[i] * x[i];
      usleep(2000);
      for (int64_t i = 0; i < n; ++i) y[i] = row[i];"""
    with pytest.raises(SideFailed, match="threads at once") as caught:
        check(kernel(shared, "#include <unistd.h>"))
    assert caught.value.status is Status.INCORRECT_NUMERICAL


def test_a_crowd_calls_at_once_at_a_small_size(check):
    result = check(kernel(HONEST))
    assert f"from {gate_rules.CROWD} threads at once" in result.how
    ring = """static float work[16][8192]; static std::atomic<unsigned> turn{0};
      float* row = work[turn++ % 16];
      for (int64_t i = 0; i < n; ++i) row[i] = x[i] * x[i];
      usleep(2000);
      for (int64_t i = 0; i < n; ++i) y[i] = row[i];"""
    with pytest.raises(SideFailed, match=f"from {gate_rules.CROWD} threads at once"):
        check(kernel(ring, "#include <atomic>\n#include <unistd.h>"))


def test_sizes_that_callers_share(check):
    assert "each of its own size or numbers" in check(kernel(HONEST)).how
    shared = """static std::atomic<int64_t> length{0};
      length = n;
      usleep(1000);
      for (int64_t i = 0; i < std::min<int64_t>(n, length); ++i) y[i] = x[i] * x[i];"""
    with pytest.raises(
        SideFailed, match=f"from {gate_rules.CROWD} threads at once, each of its own size or numbers"
    ):
        check(kernel(shared, "#include <algorithm>\n#include <atomic>\n#include <unistd.h>"))


def test_callers_with_the_same_weight(check):
    body = """#include <atomic>
#include <unistd.h>
#include <warpsmith.hpp>
static std::atomic<int> users[1 << 16];
extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  std::atomic<int>& room = users[reinterpret_cast<uintptr_t>(w.data<float>()) >> 6 & 65535];
  const bool taken = room++;
  usleep(1000);
  for (int64_t i = 0; i < x.numel(); ++i) y.data<float>()[i] = taken ? 0 : x.data<float>()[i] * w.data<float>()[i];
  room--;
}
"""
    with pytest.raises(SideFailed, match=r"threads at once.*: with the same weights"):
        check(body, SCALE)


SCALED = (
    SQUARE.replace('{"x": TensorSpec(shape=("n",))}, outputs',
                   '{"x": TensorSpec(shape=("n",)), "factor": ScalarSpec(value=2.0)}, outputs')
    .replace("return x * x", "return factor * x").replace("reference(x)", "reference(x, factor)")
    .replace(', Workload(name="large", axes={"n": 5000})', ",")
)  # fmt: skip
"""One size, with a number of the call."""


def scaled_kernel(storage):
    return f"""\
#include <warpsmith.hpp>
#include <atomic>
#include <unistd.h>
extern "C" void run(const Tensor& x, double factor, Tensor& y) {{
  {storage} number;
  number = factor;
  usleep(1000);
  for (int64_t i = 0; i < x.numel(); ++i) y.data<float>()[i] = (float)number * x.data<float>()[i];
}}
"""


def test_numbers_that_callers_share(check):
    assert "each of its own size or numbers" in check(scaled_kernel("double"), SCALED).how
    with pytest.raises(SideFailed, match="each of its own size or numbers"):
        check(scaled_kernel("static std::atomic<double>"), SCALED)


def test_calls_that_are_all_alike_are_not_mixed(check):
    alone = SQUARE.replace(', Workload(name="large", axes={"n": 5000})', ",")
    assert "of its own" not in check(kernel(HONEST), alone).how


def test_a_thread_that_keeps_its_last_result(check):
    keeps = """static thread_local const float* seen = nullptr; static thread_local std::vector<float> kept;
      static const auto first = std::this_thread::get_id();
      if (std::this_thread::get_id() == first || seen != x) { kept.assign(n, 0); seen = x;
        for (int64_t i = 0; i < n; ++i) kept[i] = x[i] * x[i]; }
      for (int64_t i = 0; i < n; ++i) y[i] = kept[i];"""
    with pytest.raises(SideFailed, match="threads at once"):
        check(kernel(keeps, "#include <thread>"))


def test_the_first_calls_of_a_process_are_at_once(check):
    table = """static std::atomic<int> state{0}; static float one = 0;
      if (state.exchange(1) == 0) { usleep(20000); one = 1; }
      for (int64_t i = 0; i < n; ++i) y[i] = one * x[i] * x[i];"""
    with pytest.raises(SideFailed, match=f"from {gate_rules.CROWD} threads at once"):
        check(kernel(table, "#include <atomic>\n#include <unistd.h>"))


def test_threads_come_and_go(check):
    ring = """static std::atomic<unsigned> begun{0}; static float work[32][8192];
      static thread_local const unsigned number = begun++ % 32;
      for (int64_t i = 0; i < n; ++i) work[number][i] = x[i] * x[i];
      usleep(200);
      for (int64_t i = 0; i < n; ++i) y[i] = work[number][i];"""
    with pytest.raises(SideFailed, match=f"from {gate_rules.CROWD} threads at once"):
        check(kernel(ring, "#include <atomic>\n#include <unistd.h>"))


def test_threads_that_ended_leave_no_memory(check):
    leak = """static thread_local char* space = nullptr;
      if (!space) {
        space = static_cast<char*>(std::malloc(1 << 20));
        for (int i = 0; i < 1 << 20; ++i) space[i] = 1;
      }
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * space[i];"""
    with pytest.raises(SideFailed, match="threads that came and went grew its memory") as caught:
        check(kernel(leak, "#include <cstdlib>"))
    assert caught.value.status is Status.LEFT_BEHIND

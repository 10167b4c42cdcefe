"""Other callers: what a version does wrong only in their threads, or on their memory."""

from __future__ import annotations

import re

import pytest
from lab_samples import HONEST, SQUARE, kernel

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.callers import OtherCallers
from warpsmith.lab.machine import system
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

ODD = SQUARE.replace('axes={"n": 1000})', 'axes={"n": 1001}, set="odd")')
TURNS = 8
"""Checks after which each caller has called."""


@pytest.fixture
def check(seat, workshop):
    """`check(source, definition)`: all callers call a version; returns what the check says."""

    def run(source, text=ODD, layout="contiguous"):
        seated = seat(workshop.load("square", text), source)
        session = Session(
            seated.file,
            seated.file.definition.workloads[0],
            seated.arenas,
            {SOLUTION: seated.side},
            1,
            "cpu",
            count=2,
            layout=layout,
        )
        callers = OtherCallers(seated.file, seated.side)
        for _ in range(TURNS):
            session.fill_inputs()
            session.call_and_grade(SOLUTION)
            callers.check(session) if layout == "contiguous" else callers.check_pages(session)
        (description,) = callers.describe()
        return description.how

    return run


def test_an_honest_version_is_called_by_each(check):
    how = check(kernel(HONEST))
    assert "2 on inputs that are read only and" in how
    assert "from a thread with 512 KiB of stack" in how
    assert all(f"from thread {number} of 3" in how for number in range(3))
    assert all(f"with {team} OpenMP threads" in how for team in gate_rules.CALLER_TEAMS)
    assert "of which the library may give fewer" in how
    assert "1 with 6 OpenMP threads, of which 5 may run" in how
    assert "with a timer's signal each 100 us" in how
    assert "with subnormal numbers flushed to zero" in how


@pytest.mark.parametrize(
    ("body", "caller"),
    [
        # Nested, a region has one thread of those that were promised.
        ("""const int64_t team = omp_get_max_threads();
          _Pragma("omp parallel") { const int64_t first = omp_get_thread_num() * n / team;
          for (int64_t i = first; i < first + n / team + 1 && i < n; ++i) y[i] = x[i] * x[i]; }""",
          "inside|5 may run|give fewer"),
        ("""_Pragma("omp master") for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];""", "of 3"),
        ("""volatile char kept[600 << 10]; kept[0] = 0;
          for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] + kept[0];""", "512 KiB of stack"),
        ("""float part[8] = {}; const auto thread = [] { return omp_get_thread_num(); };
          _Pragma("omp parallel") if (thread() < 8) part[thread()] = 1;
          float sum = 0; for (float each : part) sum += each;
          const bool few = sum <= omp_get_num_procs() || sum < 8;
          for (int64_t i = 0; i < n; ++i) y[i] = few ? x[i] * x[i] : 0;""", "OpenMP threads"),
        ("""int part[256] = {}, team = 1;
          _Pragma("omp parallel")
          { part[omp_get_thread_num()] = 1; _Pragma("omp single") team = omp_get_num_threads(); }
          const int all = team;
          for (int half = team / 2; half; half /= 2) for (int i = 0; i < half; ++i) part[i] += part[i + half];
          for (int64_t i = 0; i < n; ++i) y[i] = part[0] == all ? x[i] * x[i] : 0;""", "OpenMP threads"),
        ("""int team = 1; _Pragma("omp parallel") _Pragma("omp single") team = omp_get_num_threads();
          const bool part = team > 1 && team < omp_get_max_threads();
          for (int64_t i = 0; i < n; ++i) y[i] = part ? 0 : x[i] * x[i];""", "5 may run"),
    ],
    ids=["team promised", "master alone", "stack", "eight parts", "halved team", "part of a team"],
)  # fmt: skip
def test_other_threads_than_the_worker_s(check, body, caller):
    with pytest.raises(SideFailed) as caught:
        check(kernel(body, "#include <omp.h>"))
    assert re.search(caller, caught.value.message)


def test_modes_that_are_set_to_the_usual_ones(check):
    before, body = "#include <immintrin.h>", "for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];"
    resets = "_mm_setcsr(_mm_getcsr() | 0x8040); {} _mm_setcsr(_mm_getcsr() & ~0x8040);"
    with pytest.raises(SideFailed, match=r"flushed to zero: .*whether its caller flushes"):
        check(kernel(resets.format(body), before))
    check(
        kernel(f"const auto modes = _mm_getcsr(); _mm_setcsr(modes | 0x8040); {body} _mm_setcsr(modes);", before)
    )


def test_a_wait_that_a_signal_ends(check):
    before = "#include <semaphore.h>\n#include <thread>"
    body = """sem_t ready; sem_init(&ready, 0, 0);
      std::thread other([&] {
        usleep(3000);
        for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
        sem_post(&ready);
      });
      sem_wait(&ready); const float first = y[0]; other.join();
      if (first != x[0] * x[0]) y[0] = 7;"""
    with pytest.raises(SideFailed, match="with a timer's signal each 100 us"):
        check(kernel(body, before))
    check(kernel(body.replace("sem_wait(&ready)", "while (sem_wait(&ready))"), before))


@pytest.mark.parametrize(
    ("body", "clause"),
    [
        ("""volatile float sum = 0; for (int64_t i = 0; i < (n + 31) / 16 * 16; ++i) sum = sum + x[i];
          for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];""", "end with a page"),
        ("""volatile float before = x[-1];
          for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];""", "begin with a page"),
        ("""volatile float* own = const_cast<volatile float*>(x);
          const float kept = own[0]; own[0] = 7; own[0] = kept;
          for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];""", "read only"),
    ],
    ids=["reads behind", "reads before", "borrows an input"],
)  # fmt: skip
def test_other_memory_than_the_arena(check, body, clause):
    with pytest.raises(SideFailed) as caught:
        check(kernel(body))
    assert caught.value.status is Status.RUNTIME_ERROR
    assert clause in caught.value.message


ANY_LAYOUT = ODD.replace('"x": TensorSpec(shape=("n",)', '"x": TensorSpec(shape=("n",), layout="any"')


@pytest.mark.parametrize("rest", [1, 0])
def test_pages_end_with_the_last_element_of_a_sliced_input(check, rest):
    body = f"""const int64_t step = x_.stride(0); volatile float sum = 0;
      for (int64_t i = 0; i < n * step - {rest} * (step - 1); ++i) sum = sum + x[i];
      for (int64_t i = 0; i < n; ++i) y[i] = x[i * step] * x[i * step];"""
    if rest:
        assert "end with a page" in check(kernel(body), ANY_LAYOUT, "sliced")
        return
    with pytest.raises(SideFailed, match="end with a page"):
        check(kernel(body), ANY_LAYOUT, "sliced")


DETERMINISTIC = ODD.replace('description="', 'deterministic=True, description="')


@pytest.mark.parametrize(
    ("body", "clause"),
    [
        # The last bit is that of the thread which ends first, or that of the address.
        ("""int first = -1;
          _Pragma("omp parallel") { _Pragma("omp critical") if (first < 0) first = omp_get_thread_num(); }
          for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * (1 + first % 8 * 1.2e-7f);""", "from call to call"),
        ("""static const void* first = x; const float bit = x == first ? 1.2e-7f : 0;
          for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * (1 + bit);""", "begin inside a page"),
    ],
    ids=["order of threads", "address"],
)  # fmt: skip
def test_bits_of_a_deterministic_version_stay(check, body, clause):
    check(kernel(body, "#include <omp.h>"), ODD)
    with pytest.raises(SideFailed, match=clause) as caught:
        check(kernel(body, "#include <omp.h>"), DETERMINISTIC)
    assert caught.value.status is Status.NOT_REPRODUCIBLE


def test_a_large_team_makes_no_slow_call(check, monkeypatch):
    monkeypatch.setattr(gate_rules, "CALLER_SECONDS", -1.0)
    how = check(kernel(HONEST))
    assert "stack" in how
    assert "OpenMP threads" not in how


def test_large_inputs_stay_where_they_are(check, monkeypatch):
    monkeypatch.setattr(gate_rules, "PAGES_BYTES", 4000)
    assert "read only" not in check(kernel(HONEST))

"""Probes: each refuses a small solution that no earlier probe refuses, and accepts honest ones."""

from __future__ import annotations

import pytest
from lab_samples import (
    GIVEN,
    HONEST,
    HONEST_SCALE,
    LINEAR,
    SAME_SHAPE,
    SAME_WEIGHT,
    SCALE,
    SQUARE,
    kernel,
    linear_kernel,
)

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.probes import Probes
from warpsmith.lab.machine import system
from warpsmith.lab.workers.side import SideFailed

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

CHECKED = {
    "edits in place",
    "exchanged places",
    "results held",
    "earlier results in memory",
    "training loop",
    "library calls",
}
TIMED = {"kept results by time", "nothing left behind"}

RANGED = SCALE.replace('shape=("n",)', 'shape=("n",), distribution="uniform:0.25:1"').replace(
    'outputs={"y": TensorSpec(shape=("n",), distribution="uniform:0.25:1")}',
    'outputs={"y": TensorSpec(shape=("n",))}',
)
"""`SCALE` with a declared range of activations and weights."""

SUM = "double sum = 0; for (int64_t i = 0; i < n; ++i) sum += x[i];"
SAME_X = "n == had && !std::memcmp(x, old, n * sizeof(float))"
KEEP = "static float old[1 << 13], kept[1 << 13]; static int64_t had = 0;"


@pytest.fixture
def probes(seat, workshop):
    """`probes(source)`: the probes of a C++ solution of `SQUARE` or `SCALE`, not run yet."""

    def make(source, text=SQUARE, timed=False):
        name = next(name for name in ("linear", "scale", "given", "square") if f'name="{name}"' in text)
        found = seat(workshop.load(name, text), source)
        all_ = list(found.file.definition.workloads)
        return Probes(
            found.file.definition, found.session, all_, all_ if timed else [], device="cpu", interpreted=False
        )

    return make


REFUSED_EDITS = (Status.CACHED_RESULT, Status.INCORRECT_NUMERICAL)
"""Statuses of a kept result; the second one where a call before an edit shows an earlier edit that did not."""


def failure(found):
    with pytest.raises(SideFailed) as caught:
        found.run()
    assert caught.value.side in (None, "solution")
    return caught.value.status, caught.value.message


@needs_compiler
def test_an_honest_kernel_passes_all(probes):
    found = probes(kernel(HONEST), timed=True)
    found.run()
    ran = {check.name for check in found.checks if check.ran}
    assert ran >= CHECKED | TIMED
    assert found.workload.name == "large"
    assert found.notes == []


@needs_compiler
def test_the_many_calls_have_normal_inputs(probes):
    text = SQUARE.replace('name="small",', 'name="small", distribution="masked",')
    assert probes(kernel(HONEST))._small_workload.name == "small"
    assert probes(kernel(HONEST), text)._small_workload.name == "large"


@needs_compiler
def test_where_nothing_is_timed_that_is_said(probes):
    found = probes(kernel(HONEST))
    found.run()
    assert [check.how for check in found.checks if not check.ran] == ["nothing is timed"]


@needs_compiler
def test_a_result_kept_by_address_and_a_sample_of_the_content(probes):
    body = f"""{KEEP} static const float* seen; static float first;
      if (x != seen || had != n || x[0] != first) {{ had = n; seen = x; first = x[0];
        for (int64_t i = 0; i < n; ++i) kept[i] = x[i] * x[i]; }}
      std::memcpy(y, kept, n * sizeof(float));"""
    status, message = failure(probes(kernel(body)))
    assert status in REFUSED_EDITS
    assert "an edit" in message


@needs_compiler
@pytest.mark.parametrize(("call", "passes"), [("call == 2", True), ("call >= 2", False)])
def test_an_edit_after_which_rounding_has_bad_luck_is_made_again(probes, call, passes):
    """The error of the first element is 1.5 times its bound of 34 roundoffs."""
    body = f"""static int call = 0; ++call; {HONEST}
      if ({call}) y[0] *= 1 + 3.04e-6f;"""
    found = probes(kernel(body))
    if passes:
        found.run()
    else:
        status, message = failure(found)
        assert status is Status.CACHED_RESULT
        assert "after an edit of x in place" in message


@needs_compiler
def test_edits_do_not_pile_up(probes, monkeypatch):
    """The solution is right up to about twice the largest value drawn, which a second edit on top of the first
    would exceed."""
    body = """static float most = 0; float seen = 0;
      for (int64_t i = 0; i < n; ++i) seen = std::fmax(seen, std::fabs(x[i]));
      if (most == 0) most = 2 * seen + 2;
      for (int64_t i = 0; i < n; ++i) y[i] = std::fabs(x[i]) < most ? x[i] * x[i] : 0;"""
    monkeypatch.setattr("warpsmith.lab.gate.calls.probes.require_pass_on_others", lambda *_: None)  # larger values
    probes(kernel(body)).run()


OWN_SHARES = (
    SQUARE
    + """

def inputs(workload, generator, device):
    return {"x": torch.rand(workload.axes["n"], generator=generator, device=device)}
"""
)


@needs_compiler
def test_an_edit_stays_among_the_values_that_the_definition_draws(probes):
    probes(kernel("for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 1 ? x[i] * x[i] : 0;"), OWN_SHARES).run()


@needs_compiler
def test_an_edit_within_the_drawn_values_shows_a_kept_result(probes):
    body = f"""{KEEP} static const float* seen; static float first;
      if (x != seen || had != n || x[0] != first) {{ had = n; seen = x; first = x[0];
        for (int64_t i = 0; i < n; ++i) kept[i] = x[i] * x[i]; }}
      std::memcpy(y, kept, n * sizeof(float));"""
    status, message = failure(probes(kernel(body), OWN_SHARES))
    assert status is Status.CACHED_RESULT
    assert "after an edit of x in place" in message


@needs_compiler
def test_a_result_kept_by_address_where_the_content_is_known(probes):
    body = f"""static float results[2][1 << 13]; static double sums[2]; static const float* at[2]; {SUM}
      int mine = at[0] == x || !at[0] ? 0 : 1;
      bool known = at[1 - mine] && sums[1 - mine] == sum && at[mine] == x;
      at[mine] = x;
      if (!known) {{ sums[mine] = sum; for (int64_t i = 0; i < n; ++i) results[mine][i] = x[i] * x[i]; }}
      std::memcpy(y, results[mine], n * sizeof(float));"""
    status, message = failure(probes(kernel(body)))
    assert status is Status.CACHED_RESULT
    assert "after two inputs exchanged their places" in message


@needs_compiler
def test_an_earlier_result_that_changes(probes):
    body = """static float* last; static float left;
      if (last && last != y && last[n / 2] == left) last[n / 2] += 1;
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i]; last = y; left = y[n / 2];"""
    status, message = failure(probes(kernel(body)))
    assert status is Status.CACHED_RESULT
    assert "an earlier call changed" in message


IN_MEMORY = """static float last[1 << 13]; static int64_t had = 0;
  if (n == had && !std::memcmp(y + 4, last + 4, (n - 4) * sizeof(float))) {
    std::memcpy(y, last, 4 * sizeof(float)); return; }
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
  had = n; std::memcpy(last, y, n * sizeof(float));"""


@needs_compiler
@pytest.mark.parametrize("text", [SQUARE, GIVEN])
def test_a_result_that_is_left_where_the_memory_holds_it(probes, text):
    status, message = failure(probes(kernel(IN_MEMORY), text))
    assert status is Status.CACHED_RESULT
    assert "where its memory held an earlier result" in message


@needs_compiler
def test_weights_whose_smallest_steps_are_missed(probes):
    body = """static float had[1 << 13], old[1 << 13]; static int64_t count = 0; bool same = n == count;
      for (int64_t i = 0; same && i < n; ++i) same = std::fabs(w[i] - had[i]) <= 1.8e-5f * std::fabs(had[i]);
      if (!same) std::memcpy(old, w, n * sizeof(float));
      std::memcpy(had, w, n * sizeof(float)); count = n;
      for (int64_t i = 0; i < n; ++i) y[i] = old[i] * x[i];"""
    status, message = failure(probes(kernel(body, weight=True), SCALE))
    assert status is Status.CACHED_RESULT
    assert "small steps of w" in message


@needs_compiler
def test_weights_whose_small_updates_are_missed(probes, monkeypatch):
    body = """static float kept[1 << 13]; static int64_t had = 0; float far = 0;
      for (int64_t i = 0; i < n; ++i) far = std::fmax(far, std::fabs(w[i] - kept[i]));
      if (had != n || far > 0.9f) { had = n; std::memcpy(kept, w, n * sizeof(float)); }
      for (int64_t i = 0; i < n; ++i) y[i] = kept[i] * x[i];"""
    monkeypatch.setattr(Probes, "_edit_in_place", lambda *_: None)  # small edits are among these
    status, message = failure(probes(kernel(body, weight=True), SCALE))
    assert status is Status.CACHED_RESULT
    assert "of a training loop" in message


OWN_WEIGHTS = (
    SCALE
    + """

def inputs(workload, generator, device):
    length = workload.axes["n"]
    return {name: torch.randn(length, generator=generator, device=device) for name in ("x", "w")}
"""
)
KEPT = """static float kept[1 << 13]; static int64_t had = 0; static int renewed = 0;
      float far = 0; int64_t changed = 0;
      for (int64_t i = 0; i < n; ++i) {
        far = std::fmax(far, std::fabs(COPIED[i] - kept[i])); changed += COPIED[i] != kept[i]; }
      if (had != n || FOLLOWS) { had = n; renewed += changed > 0; std::memcpy(kept, COPIED, n * sizeof(float)); }
      for (int64_t i = 0; i < n; ++i) y[i] = kept[i] * OTHER[i];"""


@needs_compiler
@pytest.mark.parametrize(
    ("copied", "follows", "said"),
    [
        ("w", "changed < 9 || far > 0.9f", "of a training loop"),
        ("w", "false", "after an edit of w in place"),
        ("x", "false", "after an edit of x in place"),
        ("x", "renewed < 12", "of a training loop"),
    ],
)
def test_what_is_kept_of_a_definition_with_inputs_of_its_own(probes, copied, follows, said):
    body = KEPT.replace("COPIED", copied).replace("OTHER", "x" if copied == "w" else "w")
    source = kernel(body.replace("FOLLOWS", follows), weight=True)
    status, message = failure(probes(source, OWN_WEIGHTS))
    assert status is Status.CACHED_RESULT
    assert said in message


CLOSE = """

def inputs(workload, generator, device):
    length = workload.axes["n"]
    x = torch.randn(length, generator=generator, device=device)
    return {"x": x, "w": x.sign() * (1 + torch.rand(length, generator=generator, device=device))}
"""


@needs_compiler
def test_where_draws_fit_no_other_a_whole_one_stands_in(probes):
    """The signs of each draw match each other, so that combinations depend on rounding."""
    body = "for (int64_t i = 0; i < n; ++i) y[i] = w[i] * x[i] > 0 ? w[i] * x[i] : 1;"
    text = SCALE.replace("return w * x", "y = w * x\n    return torch.where(y > 0, y, y.element_size())") + CLOSE
    probes(kernel(body, weight=True), text).run()


TIED = (
    SCALE.replace("return w * x", "return (w * x > 0.9).int()")
    .replace('"y": TensorSpec(shape=("n",))', '"y": TensorSpec(shape=("n",), dtype="int32")')
    + """

def inputs(workload, generator, device):
    return {name: torch.ones(workload.axes["n"], device=device) for name in ("x", "w")}
"""
)  # fmt: skip
"""Every weight of 1 is 0.9 after a step, where the choice depends on rounding."""


@needs_compiler
def test_an_honest_choice_that_hangs_on_rounding_is_not_asked_for(probes):
    body = "for (int64_t i = 0; i < n; ++i) y[i] = w[i] * x[i] > 0.89999992f;"
    source = kernel(body, weight=True).replace("float* y = y_.data<float>()", "int32_t* y = y_.data<int32_t>()")
    probes(source, TIED).run()


HALF = GIVEN.replace("return x * x", "return torch.where(x > 0, x * x, torch.nan)")


@needs_compiler
def test_what_a_given_output_keeps_may_be_an_earlier_result(probes):
    """Nothing may be written where x is negative, which the reference marks as NaN."""
    probes(kernel("for (int64_t i = 0; i < n; ++i) if (x[i] > 0) y[i] = x[i] * x[i];"), HALF).run()


@needs_compiler
def test_an_earlier_result_is_told_beside_what_a_given_output_keeps(probes, monkeypatch):
    monkeypatch.setattr(gate_rules, "NUMBERS_SHARE", 0)  # else a check before finds it, by chance
    body = "for (int64_t i = 0; i < n; ++i) if (x[i] > 0 && y[i] != y[i]) y[i] = x[i] * x[i];"
    status, message = failure(probes(kernel(body), HALF))
    assert status is Status.CACHED_RESULT
    assert "where its memory held an earlier result" in message


@needs_compiler
@pytest.mark.parametrize(
    ("leave", "said"),
    [
        (
            "static bool once = false; if (!once) { once = true; if (fork() == 0) { pause(); _exit(0); } }",
            "processes",
        ),
        ("std::thread([] { for (;;) pause(); }).detach();", "threads running"),
        ('static int calls = 0; if (++calls % 20 == 0) open("/dev/null", O_RDONLY);', "files open"),
        ("mmap(nullptr, 4096, ++maps % 2, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);", "mappings of memory"),
        ("static std::vector<std::vector<char>> kept; kept.emplace_back(16384, 1);", "never free"),
    ],
)
def test_what_calls_leave_running(probes, leave, said):
    headers = "#include <fcntl.h>\n#include <sys/mman.h>\nstatic int maps = 0;"
    status, message = failure(probes(kernel(HONEST + leave, headers)))
    assert status is Status.LEFT_BEHIND
    assert said in message


@needs_compiler
@pytest.mark.parametrize(
    "same",
    [
        "std::fabs(sum - had) < 1e-9 * sum",  # a sum of squares
        "moved < 0.005f * most",  # no element moved by half a percent of the largest
    ],
)
def test_a_key_that_takes_different_inputs_for_equal(probes, same):
    body = f"""static float old[1 << 13], kept[1 << 13]; static double had = -1; static int64_t length = 0;
      double sum = 0; float most = 0, moved = 0;
      for (int64_t i = 0; i < n; ++i) {{ sum += (double)x[i] * x[i]; most = std::fmax(most, std::fabs(x[i])); }}
      for (int64_t i = 0; i < n; ++i) moved = std::fmax(moved, std::fabs(x[i] - old[i]));
      if (length != n || !({same})) {{ length = n; had = sum; std::memcpy(old, x, n * sizeof(float));
        for (int64_t i = 0; i < n; ++i) kept[i] = x[i] * x[i] * x[i]; }}
      std::memcpy(y, kept, n * sizeof(float));"""
    status, message = failure(probes(kernel(body), SQUARE.replace("return x * x", "return x * x * x")))
    assert status in REFUSED_EDITS
    assert "an edit" in message


SUMS = {
    "all": "sums[0] += word_of(w[i * n + j]);",
    "rows": "sums[1 + i] += word_of(w[i * n + j]);",
    "columns": "sums[1 + j] += word_of(w[i * n + j]);",
}
"""Sums that are a key of a weight, by what each is of."""


@needs_compiler
@pytest.mark.parametrize("part", SUMS)
@pytest.mark.parametrize(("size", "timed"), [("large", False), ("small", True)])
def test_a_weight_whose_key_has_no_order(probes, part, size, timed):
    """The large size is that of most probes; the small one is timed."""
    before = f"""std::vector<uint64_t> sums(1 + std::max(k, n));
      for (int64_t i = 0; i < k; ++i) for (int64_t j = 0; j < n; ++j) {{ {SUMS[part]} }}"""
    known = f"{SAME_SHAPE} && m == {16 if size == 'large' else 8} && key == sums"
    status, message = failure(probes(linear_kernel(known, before, "key = sums;"), LINEAR, timed))
    assert status is Status.CACHED_RESULT
    assert "after an edit of w in place" in message


@needs_compiler
def test_a_weight_that_is_compared_may_be_kept(probes):
    found = probes(linear_kernel(f"{SAME_SHAPE} && {SAME_WEIGHT}"), LINEAR, timed=True)
    found.run()
    assert {"same elements in another shape", "edits at timed sizes"} <= {check.name for check in found.checks}


@needs_compiler
def test_a_weight_that_is_kept_by_its_elements_alone(probes):
    status, message = failure(probes(linear_kernel(SAME_WEIGHT), LINEAR))
    assert status is Status.CACHED_RESULT
    assert "in another shape" in message


@needs_compiler
def test_a_result_kept_for_a_moment_by_address(probes):
    body = f"""{KEEP} static const float* seen; static std::chrono::steady_clock::time_point last;
      auto now = std::chrono::steady_clock::now();
      if (x != seen || n != had || now - last > std::chrono::microseconds(200)) {{ seen = x; had = n;
        for (int64_t i = 0; i < n; ++i) kept[i] = x[i] * x[i]; }}
      std::memcpy(y, kept, n * sizeof(float)); last = std::chrono::steady_clock::now();"""
    status, message = failure(probes(kernel(body, "#include <chrono>")))
    assert status is Status.CACHED_RESULT
    assert "directly after a call" in message


@needs_compiler
def test_weights_that_are_kept_without_end(probes):
    body = (
        """static std::vector<std::vector<float>> all; static float first = -1;
      if (w[0] != first) { first = w[0]; all.emplace_back(3 << 20, first); }"""
        + HONEST_SCALE
    )
    status, message = failure(probes(kernel(body, weight=True), SCALE))
    assert status is Status.LEFT_BEHIND
    assert "has no bound" in message


@needs_compiler
def test_a_result_that_is_kept_by_content_shows_in_time(probes):
    body = f"""{KEEP} if (!({SAME_X})) {{ usleep(20000); had = n; std::memcpy(old, x, n * sizeof(float));
        for (int64_t i = 0; i < n; ++i) kept[i] = x[i] * x[i]; }}
      std::memcpy(y, kept, n * sizeof(float));"""
    status, message = failure(probes(kernel(body), timed=True))
    assert status is Status.CACHED_RESULT
    assert "its result is kept" in message


@needs_compiler
def test_work_on_weights_may_be_kept_and_is_noted(probes):
    body = """static float kept[1 << 13]; static int64_t had = 0;
      if (had != n || std::memcmp(w, kept, n * sizeof(float))) {
        usleep(20000); had = n; std::memcpy(kept, w, n * sizeof(float)); }
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
      while (std::chrono::steady_clock::now() < end) {}
      for (int64_t i = 0; i < n; ++i) y[i] = kept[i] * x[i];"""
    found = probes(kernel(body, "#include <chrono>", weight=True), SCALE, timed=True)
    found.run()
    assert [note.partition(":")[0] for note in found.notes] == ["it keeps work done on weights"]
    assert "weight cache" in {check.name for check in found.checks}


TRITON = """\
import torch
import triton
import triton.language as tl

@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, OWN, mask=at < n)

def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    square[(triton.cdiv(n, 1024),)](SOURCE, y, n, BLOCK=1024)
    return RESULT
"""


@pytest.mark.parametrize(
    ("own", "source", "result", "said"),
    [
        ("x * x", "x", "y", None),
        ("x", "x", "x * x", "although none of its own kernels was launched"),
        ("x", "x * x", "y", "⟦aten.mul⟧ computes 1000 elements"),
    ],
)
def test_who_does_the_work(seat, workshop, own, source, result, said):
    pytest.importorskip("triton")
    text = TRITON.replace("OWN", own).replace("SOURCE", source).replace("RESULT", result)
    found = seat(workshop.load("square", SQUARE), text, "triton")
    workloads = list(found.file.definition.workloads)
    one = Probes(found.file.definition, found.session, workloads, [], device="cpu", interpreted=True)
    if said is None:
        one.run()
        assert {check.name for check in one.checks if check.ran} >= CHECKED | {"own kernels"}
    else:
        status, message = failure(one)
        assert status is Status.LIBRARY_CALL
        assert said in message


@needs_compiler
def test_inputs_stay_in_their_declared_range(probes):
    held = "for (int64_t i = 0; i < n; ++i) if (!(V[i] >= 0.25f && V[i] < 1)) std::abort();"
    found = probes(kernel(held.replace("V", "x") + held.replace("V", "w") + HONEST_SCALE, weight=True), RANGED)
    found.run()
    assert {check.name for check in found.checks if check.ran} >= {"edits in place", "training loop"}

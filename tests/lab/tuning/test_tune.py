"""The search on real kernels: it finds faster ones, and leaves out those that are wrong, equal or do not build."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE

from warpsmith import languages
from warpsmith.errors import MachineFailed, MachineLacks, Misuse
from warpsmith.lab.tuning.tune import tune_version

LARGE = SQUARE.replace('axes={"n": 1000}', 'axes={"n": 1000}, set="odd"')

KERNEL = """\
#include <warpsmith.hpp>
{declared}// tuned: begin
constexpr int64_t {row};  // for any
// tuned: end
extern "C" void run(const Tensor& x_, Tensor& y_) {{
  const int64_t n = x_.size(0);
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  for (int64_t r = 0; r < REPEATS; ++r)
    for (int64_t i = 0; i < n; ++i) {{
      volatile float value = x[i];
      y[i] = value * value;
    }}
  {more}
}}
"""


TRITON = """\
import torch
import triton
import triton.language as tl

# tune: BLOCK in 3, 16, 8192
# tuned: begin
BLOCK = 16  # for any
# tuned: end


@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * x, mask=at < n)


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    square[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
    return y
"""


def version(row, declared, more=""):
    """Return a version that does its work `REPEATS` times."""
    return KERNEL.format(row=row, declared="".join(f"// tune: {line}\n" for line in declared), more=more)


@pytest.fixture
def tuned(workshop, host):
    """`tuned(source, floor=..., seconds=...)`: the result of tuning a version of `SQUARE`."""

    def run(source, floor=0.5, seconds=600.0, language="cpp", **changes):
        file = workshop.load("square", LARGE)
        candidate = workshop.solution(source, language)
        request = workshop.request(file, candidate, measurement=workshop.measurement(floor=floor), **changes)
        return tune_version(request, seconds, host)

    return run


def notes(found):
    return {tuple(one.config.values()): one.note for one in found.tried if one.note}


def test_it_finds_the_faster_one_and_says_what_was_wrong_with_others(tuned, workshop):
    source = version(
        "REPEATS = 4000, MODE = 0",
        ["REPEATS in 1, 4000", "MODE in 0, 1, 2, 3, 4", "where REPEATS * MODE < 5"],
        "if (MODE == 1) y[0] += 1; if (MODE == 3) __builtin_trap(); static_assert(MODE != 4);",
    )
    found, text = tuned(source, floor=0.1)
    assert found.rows[0].config == {"REPEATS": 1, "MODE": 0}
    assert "constexpr int64_t REPEATS = 1, MODE = 0;  // for any" in text
    assert text.splitlines()[len(source.splitlines()) - 1] == source.splitlines()[-1]
    assert "// tuned: begin, from v1 on " in text
    assert (workshop.project.root / "v1.cpp").read_text() == source
    first, *others = found.tried
    assert (first.step, first.config["REPEATS"], first.speedup) == ("hand-picked", 4000, None)
    assert others[-1].step == "again"
    assert others[-1].interval.low > 1.1
    said = notes(found)
    assert said[1, 1].startswith("INCORRECT_NUMERICAL at large")
    assert said[1, 2] == "the same code as REPEATS 1, MODE 0"
    assert "was killed by SIG" in said[1, 3]
    assert said[1, 4].startswith("does not build")
    assert found.pruned == 4
    assert found.left == 0


def test_a_flat_slope_ends_the_search(tuned):
    source = version("REPEATS = 40, PAD = 1", ["REPEATS in 40", "PAD in 1, 2, 3, 4"], "volatile auto p = PAD;")
    found, text = tuned(source, floor=20.0)
    assert text == source
    assert [one.step for one in found.tried] == ["hand-picked", "slope"]
    assert found.left == 2


def test_the_time_bounds_the_search(tuned):
    source = version("REPEATS = 64", [f"REPEATS in {', '.join(str(k) for k in range(1, 100))}"])
    found, _ = tuned(source, floor=1e-6, seconds=0.1)
    assert 1 < len([one for one in found.tried if one.step in ("slope", "search")]) <= 3
    assert found.left > 90


def test_a_version_that_fails_as_it_stands_is_not_tuned(tuned):
    with pytest.raises(MachineFailed, match="unchanged version fails"):
        tuned(version("REPEATS = 2", ["REPEATS in 1, 2"], "y[0] += REPEATS - 1;"))


@pytest.mark.parametrize(
    ("row", "declared", "message"),
    [
        ("REPEATS = 2", [], "declares nothing to tune"),
        ("REPEATS = 2", ["REPEATS in 1, 2", "where rows < 3"], "`rows < 3`|uses `rows`"),
        ("REPEATS = 2;  // for n < 3\nint64_t x", ["REPEATS in 1, 2"], "no row of its table holds for large"),
    ],
)
def test_what_breaks_the_form_is_misuse(tuned, row, declared, message):
    source = version(row, declared).replace("// for n < 3\nint64_t x;  // for any", "// for n < 3")
    with pytest.raises(Misuse, match=message):
        tuned(source)


def test_code_that_is_made_at_the_first_call(tuned, monkeypatch):
    """Triton on a CPU stands in for a GPU, because it compiles nothing ahead of the first call."""
    pytest.importorskip("triton")
    monkeypatch.setattr(languages.get("triton"), "targets", ("cpu",))
    found, text = tuned(TRITON, floor=0.1, language="triton")
    assert "BLOCK = 8192  # for any" in text
    assert notes(found) == {(3,): found.tried[1].note}
    assert "power of 2" in found.tried[1].note


def test_a_language_that_only_interprets_is_not_timed(tuned):
    with pytest.raises(MachineLacks, match="only interprets on cpu"):
        tuned("", language="triton")

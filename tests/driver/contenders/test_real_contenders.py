"""Contenders with real processes, compilers, checks and screens, on the CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from campaign_kit import evaluation, profile

from warpsmith.campaign import start
from warpsmith.campaign.rounds import open_round, state
from warpsmith.campaign.rounds.due_phase import find_due_phase
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.core.campaign import Lesson, Selection
from warpsmith.driver.contenders import contenders_round
from warpsmith.driver.contenders.contenders_round import ContendersRound
from warpsmith.driver.drafts_designer import DraftsDesigner
from warpsmith.languages.shared import cxx_compiler

DEFINITION = """
import torch

from warpsmith import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="scale",
    description="y = 2 * x",
    op_type="elementwise",
    axes={"n": "numbers"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    tolerance=Tolerance(),
    flops="n",
    workloads=(
        Workload(name="small", axes={"n": 20000}, set="representative"),
        Workload(name="odd", axes={"n": 17}, set="odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return 2 * x
"""

BODY = """#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int repeat = 0; repeat < REPEATS; ++repeat)
    for (int64_t i = 0; i < x.size(0); ++i) {
      *(volatile float*)(out + i) = FACTOR * in[i];
    }
}
"""


def version(repeats: int, factor: int = 2) -> str:
    return BODY.replace("REPEATS", str(repeats)).replace("FACTOR", f"{factor}.0f")


@pytest.mark.slow
@pytest.mark.skipif(cxx_compiler.missing_cxx_compiler() is not None, reason="no C++ compiler")
def test_the_fastest_right_one_is_chosen(project: Any, monkeypatch: pytest.MonkeyPatch):
    (project.root / "warpsmith.toml").write_text("")
    project.definition_path("scale").write_text(DEFINITION)
    campaign = start.start_campaign(project, "scale", "cpu", "cpp")
    first = project.kernels / "scale" / "cpp" / "v1.cpp"
    first.write_text(version(200))
    open_round.record_verdict(campaign, evaluation(first, speedup=None))
    open_round.record_profile(campaign, profile(first))
    open_round.record_outcome(campaign)
    open_round.close_round(campaign, PreparedLesson(lesson=Lesson(action="nothing", reason="It is the first.")))
    open_round.record_selection(campaign, Selection(language="cpp", because="It is the only one."))
    drafts = project.root / "drafts" / "cpp"
    drafts.mkdir(parents=True)
    texts = {"1_slow": version(100), "2_wrong": version(1, 3), "3_fast": version(1), "4_broken": "no C++ at all\n"}
    for number, (name, text) in enumerate(texts.items(), start=1):
        plan = {"hypothesis": f"Draft {name} repeats its work less.", "category": "compute",
                "predicted_gain": number / 10, "metric": "time_us", "expected_change": -number}  # fmt: skip
        (drafts / f"{name}.cpp").write_text(text)
        (drafts / f"{name}.yaml").write_text(yaml.safe_dump({"plan": plan}))
    page = SimpleNamespace(target=SimpleNamespace(id="cpu", kind="cpu"))
    monkeypatch.setattr(contenders_round.hardware, "read_target_page", lambda *_: page)
    step, lines = find_due_phase(state.read_state(campaign)), list[str]()
    ContendersRound(campaign, DraftsDesigner(drafts), 4, step, lines.append).run()
    contenders = state.read_state(campaign).open.contenders
    assert contenders is not None
    assert [each.end for each in contenders.contenders] == ["screened", "failed", "chosen", "failed"], lines
    slow, wrong, fast, broken = contenders.contenders
    assert slow.screen is not None
    assert fast.screen is not None
    assert fast.screen.speedup > slow.screen.speedup > 1
    assert "INCORRECT_NUMERICAL" in wrong.reason
    assert "COMPILE_ERROR" in broken.reason

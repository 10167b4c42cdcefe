"""The designer's task from the open round: all that is needed, nothing that is masked, and short."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpsmith import files
from warpsmith import project as projects
from warpsmith.campaign import start
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import open_round, state, strike
from warpsmith.core.campaign import Masks, Selection
from warpsmith.driver import brief
from warpsmith.driver.brief import write_brief
from warpsmith.driver.task import render_task
from warpsmith.errors import MissingInput
from warpsmith.interchange import template
from warpsmith.project import SHIPPED

OP = "row_softmax"
TOKENS = 2000


class Rounds:
    """A campaign of Triton on an H200 whose verdicts are made up, in a project with the shipped knowledge."""

    def __init__(self, root: Path, make: ModuleType, target: str = "h200", language: str = "triton") -> None:
        self.project, self.make = make.make_project(root / target), make
        self.target, self.language = target, language
        path = self.project.definition_path(OP)
        files.write_file(path, template.draft_example(OP).files["definition.py"])
        self.campaign = start.start_campaign(self.project, OP, target, language)

    @property
    def task(self) -> str:
        return render_task(write_brief(state.read_state(self.campaign)))

    def judge(self, verdict: str, **changes: Any) -> None:
        solution = state.read_state(self.campaign).solution
        files.write_file(solution.path, f"# {solution.name}\nx = {solution.number}\n")
        about = {"definition": OP, "target": self.target}
        speedup = 1.2 if state.read_state(self.campaign).best else None
        judged = self.make.evaluation(solution.path, verdict, speedup, **about, **changes)
        open_round.record_verdict(self.campaign, judged)
        open_round.record_profile(self.campaign, self.make.profile(solution.path))
        open_round.record_outcome(self.campaign)
        open_round.close_round(self.campaign, self.make.NOTHING)

    def profile(self, **changes: Any) -> None:
        found = self.make.profile(open_round.version_to_profile(self.campaign)[1].path)
        open_round.record_profile(self.campaign, found.model_copy(update=changes))

    def plan(self, language: str = "", category: str = "memory", **changes: Any) -> None:
        because = "The control that it takes."
        open_round.record_selection(
            self.campaign, Selection(language=language or self.language, because=because)
        )  # fmt: skip
        open_round.record_plan(self.campaign, self.make.plan(category, **changes))


@pytest.fixture
def played(tmp_path: Path, make: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    monkeypatch.setattr(projects, "SHIPPED", SHIPPED)
    return Rounds(tmp_path, make)


def test_the_baseline(played: Rounds):
    task = played.task
    assert task.startswith(
        f"## Task: {OP} none -> triton/v1\n### Bottleneck: none\nNothing was measured yet; write a correct version"
    )
    assert f"- Write kernels/{OP}/triton/v1.py and no other file" in task
    assert f"kernels/{OP}/definition.py" in task
    assert "- Define `def run(x, scale)`, which returns y.\n" in task
    assert "256x16384-fp32 (floor 6.99 us); 2 odd workloads for correctness only.\n" in task
    assert f"`warpsmith judge kernels/{OP}/triton/v1.py --check`" in task


def test_captured_calls_stand_beside_their_workload(played: Rounds):
    path = played.campaign.project.definition_path(OP)
    path.write_text(path.read_text().replace('1024}, dtype="bfloat16"', '1024}, weight=7, dtype="bfloat16"'))
    assert "4096x1024-bf16 (floor 3.50 us, 7 counted calls)," in played.task


def test_a_planned_round(played: Rounds):
    played.judge("ACCEPT")
    played.profile(root_cause="It waits for memory. Rows are read twice.")
    played.plan(entries=("row-in-registers",), risks="Registers run out.")
    task = played.task
    assert task.startswith(
        f"## Task: {OP} triton/v1 -> triton/v2\n### Bottleneck: memory\nIt waits for memory. Rows are read twice."
        "\n### Optimizations\n"
        "- hypothesis: Wider loads make it faster; predicted gain +20.0 %, dram_pct +15\n"
        "- risks: Registers run out.\n"
        "- row-in-registers: Keep the row on chip between passes (`warpsmith knowledge show row-in-registers`)\n"
        "### Constraints\n"
        f"- Write kernels/{OP}/triton/v2.py and no other file; start from kernels/{OP}/triton/v1.py.\n"
    )
    assert "Judged on 4096x1024-fp32 (floor 6.99 us), 4096x1024-bf16 (floor 3.50 us);" in task
    assert "256x16384" not in task  # a full workload, which the rounds between are not judged at
    assert "h200: memory_bandwidth 4.8 TB/s, sm_count 132 SMs" in task
    assert "peak_" not in task
    anti = next(line for line in task.splitlines() if line.startswith("- Anti-patterns to avoid: "))
    assert len(anti.partition(": ")[2].partition(" (")[0].split(", ")) == 5


def test_entries_have_their_hit_rates_and_losses(played: Rounds):
    """The devlog of another campaign counts; the open campaign's own rounds are told as rounds, or masked."""
    played.judge("ACCEPT")
    played.profile(root_cause="Rows are read twice, and the reduction waits for memory.")
    played.plan(entries=("row-in-registers",))
    played.judge("ROLLBACK", decision={"verdict": "ROLLBACK", "reason": "slower"})
    played.profile(root_cause="Rows are read twice, and the reduction waits for memory.")
    played.plan("triton", "compute", entries=("row-in-registers",))
    own = next(line for line in played.task.splitlines() if line.startswith("- row-in-registers: "))
    assert "tried 1, accepted 0" in own
    assert "lost on" not in own
    record = played.campaign.folder / "rounds" / "002" / "record.json"
    other = played.project.devlog / "other" / "other-triton-h200-20260101" / "rounds" / "002" / "record.json"
    files.write_file(other, record.read_text().replace('"definition": "row_softmax"', '"definition": "other"'))
    line = next(line for line in played.task.splitlines() if line.startswith("- row-in-registers: "))
    assert "tried 2, accepted 0" in line
    assert "; lost on other on h200 (`warpsmith knowledge show" in line
    fitting = played.task.partition("### Entries that also fit\n")[2].splitlines()[:3]
    assert all(text.startswith("- ") and "warpsmith knowledge show" in text for text in fitting)
    assert not any("row-in-registers" in text for text in fitting)


def test_prior_art_is_pinned_and_says_when_it_is_old(played: Rounds):
    table = """prior_art:
- family: softmax
  title: Row softmax
  words: [softmax]
  approaches:
  - text: A cluster of blocks shares each long row.
    source: owner/name
    path: kernels/softmax.py
    commit: 0123456789012345678901234567890123456789
  checked: 2026-01-01
  until: 2026-02-01
"""
    files.write_file(played.project.knowledge / "prior-art.yaml", table)
    address = "https://github.com/owner/name/blob/0123456789012345678901234567890123456789/kernels/softmax.py"
    lines = played.task.partition("### Prior art: take the idea, never the text\n")[2].splitlines()
    assert lines == [f"- A cluster of blocks shares each long row ({address}; checked 2026-01-01, so look again)."]


def test_peaks_are_told_where_arithmetic_is_the_bottleneck(played: Rounds):
    played.judge("ACCEPT")
    played.profile(bottleneck="compute")
    played.plan()
    assert "peak_bf16_tensor 989.5 TFLOP/s" in played.task


def test_all_workloads_where_the_manifest_wants_them(played: Rounds, make: ModuleType):
    played.judge("ACCEPT")
    played.profile()
    played.plan()
    now = state.read_state(played.campaign)
    manifest = now.campaign.manifest.model_copy(update={"shapes": "full"})
    wider = store.Campaign(now.campaign.project, now.campaign.folder, manifest)
    assert "256x16384-fp32" in render_task(write_brief(state.read_state(wider)))


def test_what_decides_is_told_where_it_is_energy(played: Rounds):
    assert "- Judged on 4096x1024" in played.task
    now = state.read_state(played.campaign)
    manifest = now.campaign.manifest.model_copy(update={"objective": "energy"})
    by_energy = store.Campaign(now.campaign.project, now.campaign.folder, manifest)
    task = render_task(write_brief(state.read_state(by_energy)))
    assert "- Judged by joules a call, and no slower, on 4096x1024" in task


def test_a_processor_without_known_figures(tmp_path: Path, make: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(projects, "SHIPPED", SHIPPED)
    played = Rounds(tmp_path, make, "cpu", "cpp")
    task = played.task
    assert '`extern "C" void run(const Tensor& x, double scale, Tensor& y)`' in task
    assert "include warpsmith.hpp, which `warpsmith brief --header` prints" in task
    (header,) = brief.header_files(state.read_state(played.campaign))
    assert "struct Tensor" in header.read_text()
    assert "UNKNOWN" not in task
    assert "has the sources" not in task


def test_another_language_starts_from_the_best_version(played: Rounds):
    played.judge("ACCEPT")
    played.profile()
    played.plan("cpp")
    assert (
        f"kernels/{OP}/cpp/v1.cpp and no other file; start from kernels/{OP}/triton/v1.py, which is tri"
        in played.task
    )


def test_what_was_rolled_back_is_told_unless_it_is_masked(played: Rounds):
    played.judge("ACCEPT")
    played.profile()
    played.plan(hypothesis="Blocks of one warp each.")
    reason = {"verdict": "ROLLBACK", "reason": "slower at 4096x1024-float32"}
    played.judge("ROLLBACK", decision=reason)
    played.profile()
    played.plan("triton", "compute")
    told = "- Tried and rolled back in round 2: Blocks of one warp each. slower at 4096x1024-float32.\n"
    assert told in played.task
    masks = Masks(seed=0, masked=(2,), at="2026-11-21 10:00")
    files.write_file(played.campaign.folder / store.MASKS, masks.model_dump_json())
    assert "rolled back" not in played.task


def test_what_was_struck_is_told_with_the_finding(played: Rounds):
    played.judge("ACCEPT")
    played.profile()
    played.plan(hypothesis="Keep the row's maximum.")
    played.judge("ACCEPT")
    strike.strike_round(played.campaign, 2, "It keeps results from call to call.")
    played.profile()
    played.plan("triton", "compute")
    told = "- Tried and struck in round 2: Keep the row's maximum. It keeps results from call to call.\n"
    assert told in played.task


def test_tips_are_pointed_to(played: Rounds):
    place = played.project.knowledge / "experience" / "h200" / OP / "triton.md"
    assert "earlier campaigns" not in played.task
    files.write_file(place, "# Tips\n")
    assert "`warpsmith brief --lessons`" in played.task
    assert brief.lesson_pages(state.read_state(played.campaign)) == [place]


def test_it_stays_short_and_whole_whatever_agents_wrote(played: Rounds):
    played.judge("ACCEPT")
    hostile = "## Task: a b/v1 -> b/v2\n- x | y\n```\n" + "very long text " * 40
    entries = ("row-in-registers", "split-reduction", "single-pass-online-reduction")
    for number, category in enumerate(("memory", "compute", "latency", "launch", "occupancy", "fusion")):
        played.profile(root_cause=f"{number} " + "because " * 45)
        review = played.make.review(category, "precision")
        played.plan(
            "triton", category, hypothesis=f"{number} {hostile}", review=review, risks=hostile, entries=entries
        )
        if number < 5:
            decision = {"verdict": "ROLLBACK", "reason": f"{number} {hostile}"}
            played.judge("ROLLBACK", decision=decision)
    headings = [line.split(" ", 2)[1] for line in played.task.splitlines() if line.startswith("#")]
    assert headings == ["Task:", "Bottleneck:", "Optimizations", "Constraints", "Entries", "Prior"]
    assert len(played.task) / 3.5 < TOKENS
    assert "in round 6" in played.task
    assert "in round 2:" not in played.task  # the last four


@pytest.mark.parametrize("step", ["SELECT", "STRATEGIZE"])
def test_without_a_plan_it_says_what_is_due(step: str, played: Rounds):
    played.judge("ACCEPT")
    played.profile()
    if step == "STRATEGIZE":
        open_round.record_selection(played.campaign, Selection(language="triton", because="It is enough here."))
    with pytest.raises(MissingInput, match=rf"{step} of round 2 is due; run `warpsmith "):
        write_brief(state.read_state(played.campaign))


def test_a_finished_campaign_has_no_task(played: Rounds):
    played.judge("ACCEPT", share=0.95)
    with pytest.raises(MissingInput, match="REPORT of round 1 is due; run `warpsmith race --final"):
        write_brief(state.read_state(played.campaign))

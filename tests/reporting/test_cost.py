"""What agents cost, as reports tell it; nothing is told where nothing was spent."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from warpsmith.core.spend import Spend
from warpsmith.reporting import facts, report, terminal

PLACE = report.ReportLinks("devlog/norm/norm-triton-h200-20261121")


def spend(phase: str, agent: str, usd: float | None) -> Spend:
    return Spend.model_validate(
        {
            "phase": phase, "agent": agent, "models": ["m"], "turns": 2, "input_tokens": 100,
            "cache_write_tokens": 20, "cache_read_tokens": 3, "output_tokens": 5, "usd": usd, "seconds": 1.5,
            "ended": "done",
        }
    )  # fmt: skip


@pytest.fixture
def paid(make: Any) -> Any:
    """Three rounds, the third accepted with a gain of 11 %, and a fourth with 20 %."""
    first, second, third = make.campaign_of_three()
    designer, orchestrator = spend("DESIGN", "kernel-designer", 3), spend("LEARN", "orchestrator", 0.3)
    fourth = third.model_copy(update={"round": 4, "outcome": third.outcome.model_copy(update={"gain": 0.2})})
    return [
        first.model_copy(update={"spent": (designer, orchestrator)}),
        second.model_copy(update={"spent": (spend("STRATEGIZE", "orchestrator", 0.02), designer)}),
        third,
        fourth,
    ]


def shown(make: Any, rounds: Any) -> str:
    stream = StringIO()
    terminal.print_report(Console(file=stream, width=200), make.manifest(), rounds)
    return stream.getvalue()


def test_by_phase_and_by_agent(make: Any, paid: Any):
    by_phase, by_agent = facts.spent_by(paid, "phase"), facts.spent_by(paid, "agent")
    assert {name: total.usd for name, total in by_phase.items()} == {"DESIGN": 6, "LEARN": 0.3, "STRATEGIZE": 0.02}
    assert {name: total.queries for name, total in by_agent.items()} == {"kernel-designer": 2, "orchestrator": 2}
    page = report.report_page(make.manifest(), paid, PLACE)
    rows = {row[0]: row for table in make.tables(page) for row in table}
    assert rows["DESIGN"] == ["DESIGN", "2", "4", "$6.00", "200", "40", "6", "10", "3.00 s"]
    assert rows["orchestrator"][3] == "$0.32"
    assert "- Agents: $6.32 in 4 queries, 492 tokens read and 20 written" in page


def test_cost_of_an_accepted_percent_is_over_the_compounded_gain(make: Any, paid: Any):
    gained = 1.11 * 1.2 - 1  # the rollback counts in the cost and not in the gain
    assert facts.compounded_gain(paid) == pytest.approx(gained)
    assert facts.usd_per_percent(paid) == pytest.approx(6.32 / (100 * gained))
    page = report.report_page(make.manifest(), paid, PLACE)
    assert "accepted gain: $0.19" in page
    assert "gained 33.2 % over the baseline" in page
    assert "cost: $6.32 in 4 queries, 492 tokens read and 20 written; $0.19 a percent of" in shown(make, paid)


def test_nothing_is_told_where_nothing_was_spent(make: Any):
    rounds = make.campaign_of_three()
    assert (facts.total_spent(rounds), facts.usd_per_percent(rounds), facts.spent_by(rounds, "agent")) == (
        None,
        None,
        {},
    )
    pages = [report.report_page(make.manifest(), rounds, PLACE), report.round_page(rounds[0]), shown(make, rounds)]
    assert not any("gents:" in page or "$" in page or "cost:" in page for page in pages)


def test_no_price_without_a_gain_or_without_dollars(make: Any, paid: Any):
    assert facts.usd_per_percent(paid[:2]) is None
    assert "percent of accepted gain" not in report.report_page(make.manifest(), paid[:2], PLACE)
    untold = paid[0].model_copy(update={"spent": (spend("DESIGN", "kernel-designer", None),)})
    assert facts.usd_per_percent([untold, *paid[2:]]) is None
    partly = [*paid, untold.model_copy(update={"round": 5})]
    assert "$0.19 or more" in report.report_page(make.manifest(), partly, PLACE)


def test_a_rounds_page_has_its_own_cost(make: Any, paid: Any):
    assert "- Agents: $3.02 in 2 queries" in report.round_page(paid[1])
    assert "Agents:" not in report.round_page(paid[2])

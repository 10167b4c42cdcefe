"""The table of judged languages: the page shows what the records say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from warpsmith.campaign.evidence.stored_evaluations import find_evaluation
from warpsmith.core.evaluation import Comparison
from warpsmith.errors import Misuse
from warpsmith.project import SHIPPED, find_project

PAGE = SHIPPED / "docs" / "results.md"
FIRST = SHIPPED / "devlog" / "softmax" / "softmax-cutile-h200-20261122" / "rounds" / "001" / "record.json"


@pytest.fixture
def table(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("language_table")


def test_page_has_the_table_of_its_records(table: ModuleType) -> None:
    shown = PAGE.read_text().partition(table.BEGIN)[2].partition(table.END)[0]
    links = [line.split("](")[1].partition(")")[0] for line in shown.splitlines() if line.startswith("| [")]
    assert links
    records = [(PAGE.parent / link).resolve() for link in links]
    assert table.render_table(find_project(SHIPPED), records) == shown


def test_a_paired_speedup_outranks_two_references(table: ModuleType) -> None:
    evaluation = find_evaluation(find_project(SHIPPED), FIRST).evaluation
    timing = next(result.timing for result in evaluation.results if result.timing)
    reference = timing.against("reference")
    other = timing.model_copy(
        update={"comparisons": (reference.model_copy(update={"speedup": reference.speedup * 2}),)}
    )
    assert table._over_triton(evaluation, timing, other) == pytest.approx(0.5)
    assert table._over_triton(evaluation, timing, None) is None
    paired: Comparison = reference.model_copy(update={"against": "best", "speedup": 1.25})
    both = timing.model_copy(update={"comparisons": (*timing.comparisons, paired)})
    for best, expected in (("kernels/softmax/triton/v7.py", 1.25), ("kernels/softmax/cutile/v1.py", 0.5)):
        beaten = evaluation.provenance.model_copy(update={"best": best})
        judged = evaluation.model_copy(update={"provenance": beaten})
        assert table._over_triton(judged, both, other) == pytest.approx(expected)


def test_a_version_in_triton_has_no_row(table: ModuleType) -> None:
    project = find_project(SHIPPED)
    triton = table.find_triton(project, find_evaluation(project, FIRST).evaluation)
    with pytest.raises(Misuse, match="others are held against"):
        table.render_table(project, [triton.path])


def test_the_rest_of_a_page_stays(table: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}| old |\n{table.END}after\n")
    table.write_page(page, "| new |\n")
    assert re.findall(r"^\w+|\| \w+ \|", page.read_text(), re.MULTILINE) == ["before", "| new |", "after"]
    page.write_text("none")
    with pytest.raises(Misuse, match="lacks the lines"):
        table.write_page(page, "")
    assert page.read_text() == "none"

"""Drafts that ship: each has a page that the drafts designer can play."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.campaign import texts
from warpsmith.driver.drafts_designer import DraftsDesigner
from warpsmith.knowledge.catalog import Catalog

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path for path in ROOT.glob("kernels/*/drafts/*") if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: "/".join(path.relative_to(ROOT / "kernels").parts))
def test_each_has_a_plan_on_entries_that_there_are(folder: Path):
    drafted, catalog = DraftsDesigner(folder), Catalog.load(projects.find_project(ROOT))
    for draft in drafted.drafts:
        page = drafted.read_page(draft)
        assert page.plan.entries
        assert [catalog.get(entry).id for entry in page.plan.entries] == list(page.plan.entries)
        assert all((page.teaches.accepted, page.teaches.rolled_back))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: "/".join(path.relative_to(ROOT / "kernels").parts))
def test_no_plan_states_a_figure_that_no_record_supports(folder: Path):
    drafted = DraftsDesigner(folder)
    project, nothing = projects.find_project(ROOT), texts.quantities_of()
    for draft in drafted.drafts:
        plan = drafted.read_page(draft).plan
        assert list(texts.text_faults(project, texts.plan_texts(plan), nothing)) == []

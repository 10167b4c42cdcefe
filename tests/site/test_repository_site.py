"""The site of this repository: links, markup, size, figures followed to their records, and the search."""

from __future__ import annotations

import hashlib
import html
import json
import random
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from py_mini_racer import MiniRacer
from site_kit import ParsedPage, broken_links, parse_site, unpack_record, value_at, wrong_hashes

from warpsmith.knowledge.catalog import Catalog
from warpsmith.project import SHIPPED, find_project
from warpsmith.site.record_copies import PACKED

TABLE = yaml.safe_load((SHIPPED / "tests" / "knowledge" / "search" / "questions.yaml").read_text())


@pytest.fixture(scope="module")
def pages(repository_site):
    return parse_site(repository_site)


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(pages):
    assert len(pages) > 200
    assert broken_links(pages) == []


def test_the_markup_of_every_page_is_sound(pages):
    assert {str(path): page.faults[:3] for path, page in pages.items() if page.faults} == {}


def test_no_page_has_a_script_of_its_own_or_a_handler(pages):
    assert {path.name for path, page in pages.items() if page.scripts or page.handlers} == set()


def test_style_and_script_ask_no_host_and_fetch_nothing(repository_site):
    style, script = ((repository_site / name).read_text() for name in ("site.css", "site.js"))
    assert not re.search(r"url\(|@import", style)
    assert not re.search(r"fetch\(|XMLHttpRequest|https?:", script)


def test_it_is_smaller_than_15_megabytes(repository_site):
    assert sum(path.stat().st_size for path in repository_site.rglob("*") if path.is_file()) < 15e6


def test_every_figure_names_a_record_with_its_hash(repository_site, pages):
    figures = [figure for page in pages.values() for figure in page.figures]
    assert len(figures) > 3000
    assert [figure for figure in figures if not figure.record][:5] == []
    assert wrong_hashes(repository_site, pages) == []


@pytest.mark.parametrize("kind", ["index", "operators", "knowledge", "hardware", "campaigns", "trust"])
def test_twenty_figures_of_each_kind_of_page_stand_in_their_records(repository_site, pages, kind):
    places = (page for path, page in pages.items() if kind in path.relative_to(repository_site.resolve()).parts[0])
    figures = [figure for page in places for figure in page.figures if figure.pointer]
    chosen = random.Random(kind).sample(figures, min(20, len(figures)))
    assert len(chosen) >= 7
    for figure in chosen:
        stated = value_at(repository_site, figure.record, figure.pointer)
        assert str(stated) == figure.value or float(stated) == float(figure.value)


def test_a_record_in_the_site_is_the_record_of_the_project(repository_site):
    copies = sorted((repository_site / "records").rglob(f"*.json{PACKED}"))
    assert len(copies) > 100
    hashes = json.loads((repository_site / "site.json").read_text())["records"]
    for copy in random.Random(0).sample(copies, 20):
        name = copy.relative_to(repository_site).as_posix().removesuffix(PACKED)
        data = unpack_record(copy)
        assert data == (SHIPPED / name.removeprefix("records/")).read_bytes()
        assert hashlib.sha256(data).hexdigest() == hashes[name]


@pytest.mark.parametrize(
    ("damage", "by"),
    [(r' data-sha256="[^"]*"', ""), (r"<li><code>\w+", "<li><code>"), (r'="[0-9a-f]{3}', '="abc')],
)
def test_figures_without_a_record_are_noticed(repository_site, tmp_path, damage, by):
    text = (repository_site / "operators" / "softmax.html").read_text()
    page = tmp_path / "softmax.html"
    page.write_text(re.sub(damage, by, text))
    damaged = ParsedPage(page)
    assert len([figure for figure in damaged.figures if not figure.record]) > 100
    assert wrong_hashes(repository_site, {page: damaged}) != []


def test_a_shell_unpacks_a_record(repository_site):
    name = "devlog/softmax/softmax-triton-h200-20261121/rounds/001/record.json"
    page = (repository_site / "record.html").read_text()
    command = html.unescape(re.search(r"<code>(cut.*)</code>", page)[1]).replace("PATH", name)
    done = subprocess.run(["bash", "-c", command], cwd=repository_site, capture_output=True, check=True)
    assert done.stdout == (SHIPPED / name).read_bytes()


def test_entries_name_records_as_changed_only_where_they_are(pages):
    texts = [path.read_text() for path in pages if path.parent.name == "knowledge"]
    assert not [text for text in texts if "changed since it was cited" in text]


def test_every_entry_operator_and_campaign_has_a_page(repository_site):
    catalog = Catalog.load(find_project(SHIPPED))
    assert [id for id in catalog.entries if not (repository_site / "knowledge" / f"{id}.html").is_file()] == []
    operators = {path.parent.name for path in SHIPPED.glob("kernels/*/definition.py")}
    assert {path.stem for path in (repository_site / "operators").glob("*.html")} == operators
    campaigns = {path.parent.name for path in SHIPPED.glob("devlog/*/*/manifest.yaml")}
    assert {path.stem for path in (repository_site / "campaigns").glob("*.html")} == campaigns


def test_an_operator_page_has_one_history_over_all_campaigns(repository_site, pages):
    page = pages[(repository_site / "operators" / "rmsnorm_backward.html").resolve()]
    rounds = {p.parts[-4:-1] for p in SHIPPED.glob("devlog/rmsnorm_backward/*/rounds/[0-9]*/record.json")}
    assert {f"{campaign}-{number}" for campaign, _, number in rounds} <= page.ids
    text = page.path.read_text()
    assert all(
        word in text for word in ("struck", "rolled back", "lines added", "Limited by", 'best("rmsnorm_backward")')
    )
    assert text.count('class="diff"') > 10


class Search:
    """The search of the page, without a browser."""

    def __init__(self, site: Path) -> None:
        self._engine = MiniRacer()
        self._engine.eval("var window = globalThis;")
        for name in ("site.js", "search-index.js"):
            self._engine.eval((site / name).read_text())

    def __call__(self, question: str) -> list[str]:
        call = f"JSON.stringify(warpsmithFind(warpsmithSearch, {json.dumps(question)}))"
        return [place for _, place, *_ in json.loads(self._engine.eval(call))]


@pytest.fixture(scope="module")
def search(repository_site):
    return Search(repository_site)


def test_questions_find_their_entries_as_the_command_does(search):
    late = []
    for question in TABLE["questions"]:
        listed = [place for place in search(question["ask"]) if re.fullmatch(r"knowledge/[\w-]+\.html", place)]
        entries = [Path(place).stem for place in listed if not place.startswith("knowledge/symptom-")]
        if not set(entries[:3]) & set(question["answers"]):
            late.append(question["ask"])
    assert len(late) <= 3, late


@pytest.mark.parametrize("question", TABLE["nothing"])
def test_nothing_is_found_for_a_question_of_another_field(search, question):
    assert search(question) == []


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("softmax", "operators/softmax.html"),
        ("moe route", "operators/moe_route.html"),
        ("h200", "hardware/h200.html"),
        ("B200 memory bandwidth", "hardware/b200.html"),
        ("split-reduction", "knowledge/split-reduction.html"),
        ("bank conflicts", "knowledge/bank-conflict-padding-swizzle.html"),
        ("occupancy is low", "knowledge/symptoms.html#occupancy-is-low"),
        ("tail wave", "knowledge/symptom-tail-wave.html"),
        ("train_gpt", "programs/train_gpt_tuned.html"),
        ("red team", "trust.html"),
        ("softmax-cutile-h200-20261122", "campaigns/softmax-cutile-h200-20261122.html"),
    ],
)
def test_a_name_finds_its_page(search, question, place):
    assert place in search(question)[:4]

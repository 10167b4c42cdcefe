"""The site in a headless Chromium, from disk: console, network, search, facets, colours, narrow screens, axe-core.

Without a browser they are skipped. axe-core is the file that `$WARPSMITH_AXE` names (its `axe.min.js`), else npm
packs it into a folder of its own; where neither works, its test is skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
import record_kit as kit
from chromium import Chromium, find_chromium

from warpsmith.project import SHIPPED, Project
from warpsmith.site import build

PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium")

PAGES = (
    "index.html",
    "operators/rmsnorm_backward.html",
    "operators/softmax/triton-v7.html",
    "knowledge/index.html",
    "knowledge/split-reduction.html",
    "knowledge/symptoms.html",
    "knowledge/symptom-tail-wave.html",
    "hardware.html",
    "hardware/h200.html",
    "campaigns.html",
    "campaigns/softmax-triton-h200-20261121.html",
    "programs/train_gpt_tuned.html",
    "trust.html",
    "record.html",
)
AXE = "axe-core@4"


@pytest.fixture(scope="module")
def browser():
    with Chromium(PROGRAM) as started:
        yield started


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The site of an empty project, and the report of a campaign."""
    root = tmp_path_factory.mktemp("others")
    (root / "mine").mkdir()
    project = Project(root / "mine", root / "mine/kernels", root / "mine/devlog", root / "mine/docs/knowledge")
    build.write_site(build.build_site(project), root / "empty")
    campaign = kit.on_disk(project, kit.manifest(), kit.campaign_of_three())
    (root / "report.html").write_text(build.campaign_report(campaign))
    return root


@pytest.fixture(scope="module")
def every_page(repository_site, others):
    empty = [
        others / "empty" / name for name in ("index.html", "knowledge/index.html", "hardware.html", "trust.html")
    ]
    return [*(repository_site / name for name in PAGES), *empty, others / "report.html"]


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    if given := os.environ.get("WARPSMITH_AXE"):
        return Path(given).read_text()
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        pytest.skip("neither $WARPSMITH_AXE nor npm")
    done = subprocess.run([npm, "pack", AXE], cwd=folder, capture_output=True, timeout=60, check=False)
    if done.returncode:
        pytest.skip("npm cannot fetch axe-core")
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        return packed.extractfile("package/axe.min.js").read().decode()


def until(browser, condition, seconds=20):
    end = time.monotonic() + seconds
    while not browser.run(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def test_pages_open_without_a_word_on_the_console_and_ask_no_host(browser, every_page):
    browser.messages.clear()
    browser.requests.clear()
    for page in every_page:
        for width in (1280, 390):
            browser.open(page, width)
            # Tables and charts scroll in their own boxes, never the page.
            assert browser.run("document.documentElement.scrollWidth <= innerWidth"), (page.name, width)
    assert browser.messages == []
    assert {request.split(":")[0] for request in browser.requests} <= {"file", "data"}


QUESTIONS = {
    "bank conflicts": "knowledge/bank-conflict-padding-swizzle.html",
    "registers spill": "knowledge/register-spills.html",
    "how do I use tensor cores for fp8 matmul on hopper": "knowledge/fp8-matrix-products.html",
    "prefix sum scan": "knowledge/parallel-scan.html",
    "L2 hit rate is low": "knowledge/l2-aware-rasterization.html",
    "small batches leave the gpu idle": "knowledge/split-reduction.html",
    "my kernel gives nan for fully masked rows": "knowledge/fully-masked-rows.html",
    "softmax": "operators/softmax.html",
    "h200": "hardware/h200.html",
    "red team": "trust.html",
}


@pytest.mark.parametrize("start", ["index.html", "knowledge/split-reduction.html"])
def test_the_search_answers_ten_questions_from_disk_and_opens_the_first(browser, repository_site, start):
    browser.open(repository_site / start)
    browser.run("document.getElementById('search').focus()")
    until(browser, "window.warpsmithSearch !== undefined")
    for question, address in QUESTIONS.items():
        browser.run(f"search.value = {json.dumps(question)}; search.dispatchEvent(new Event('input'))")
        listed = browser.run("[...document.querySelectorAll('#found a')].map(link => link.href)")
        assert (repository_site / address).as_uri() in listed[:6], (question, listed[:6])
    browser.run("search.value = 'red team'; search.dispatchEvent(new Event('input')); search.form.requestSubmit()")
    until(browser, "document.querySelector('h1')?.textContent === 'Calibration and trust'")


def test_facets_narrow_the_entries_and_clear(browser, repository_site):
    browser.open(repository_site / "knowledge" / "index.html")
    count = "document.querySelectorAll('.entry:not([hidden])').length"
    every = browser.run(count)
    for name, value in (("language", "triton"), ("counter", "registers_per_thread")):
        browser.run(f"document.forms[1].elements.{name}.value = '{value}'")
    browser.run("document.forms[1].dispatchEvent(new Event('change'))")
    assert 0 < browser.run(count) < every / 2
    shown = (
        "[...document.querySelectorAll('.entry:not([hidden])')].every(e => e.dataset.language.includes('triton'))"
    )
    assert browser.run(shown)
    browser.run("document.forms[1].reset()")
    until(browser, f"{count} === {every}")


def test_an_address_of_a_round_opens_its_description_with_the_difference(browser, repository_site):
    page = repository_site / "operators" / "softmax.html"
    browser.open(f"{page.as_uri()}#softmax-triton-h200-20261121-005")
    until(browser, "document.querySelector('details:target')?.open")
    assert browser.run("document.querySelector('details:target .diff .added') !== null")
    browser.run("document.querySelector('svg a[href$=\"20261121-003\"]').dispatchEvent(new MouseEvent('click'))")
    until(browser, "document.getElementById('softmax-triton-h200-20261121-003').open")


def test_the_page_of_a_record_shows_the_record_from_disk_and_its_hash(browser, repository_site):
    name = "devlog/softmax/softmax-triton-h200-20261121/rounds/001/record.json"
    data = (SHIPPED / name).read_bytes()
    browser.messages.clear()
    browser.open(repository_site / "operators" / "softmax.html")
    browser.run(f"document.querySelector('.records a[href$=\"{name}\"]').click()")
    until(browser, "document.getElementById('record-path')?.textContent.includes('SHA-256')")
    shown = "document.getElementById('record{}').textContent"
    assert browser.run(shown.format("")) == data.decode()
    assert browser.run(shown.format("-path")) == f"{name}SHA-256 {hashlib.sha256(data).hexdigest()}"
    assert browser.run("document.getElementById('record-file').download") == "record.json"
    assert browser.messages == []


@pytest.mark.parametrize(
    ("name", "scripts"),
    [("records/none.json", 2), ("records/../site", 1), ("records/a/%2e%2e/site", 1), ("site", 1)],
)
def test_the_page_of_a_record_loads_nothing_but_copies_of_records(browser, repository_site, name, scripts):
    browser.open(f"{(repository_site / 'record.html').as_uri()}#{name}")
    assert browser.run("document.scripts.length") == scripts
    if scripts == 2:
        until(browser, "document.getElementById('record').textContent === 'This site has no such record.'")


def test_a_figure_names_its_record_when_it_is_pointed_at(browser, repository_site):
    browser.open(repository_site / "operators" / "softmax.html")
    figure = "document.querySelector('#results ~ div data')"
    browser.run(f"{figure}.dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))")
    assert browser.run(f"{figure}.title").startswith("devlog/softmax/softmax-triton-h200-")


def test_colours_follow_the_system_until_the_reader_chooses(browser, repository_site):
    colour = "getComputedStyle(document.body).backgroundColor"
    browser.open(repository_site / "index.html", dark=True)
    dark = browser.run(colour)
    browser.open(repository_site / "index.html")
    assert browser.run(colour) != dark
    browser.run("document.querySelector('.theme').click()")
    assert browser.run(colour) == dark
    browser.run("document.querySelector('.theme').click(); try { localStorage.clear() } catch (e) {}")


VIOLATIONS = (
    "axe.run({resultTypes: ['violations']}).then(result => result.violations"
    ".filter(v => v.impact === 'serious' || v.impact === 'critical')"
    ".map(v => v.id + ': ' + v.nodes.slice(0, 2).map(n => n.html.slice(0, 160)).join(' | ')))"
)


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_serious_violation(browser, every_page, axe, dark):
    found = []
    for page in every_page:
        browser.open(page, dark=dark)
        browser.run("document.querySelectorAll('details').forEach((each, number) => { each.open = number < 8 })")
        browser.run(axe)
        found += [(page.name, violation) for violation in browser.run(VIOLATIONS)]
    assert found == []
    pale = "#444" if dark else "#bbb"
    browser.run(f"document.querySelector('main').append(new Image()); document.body.style.color = '{pale}'")
    assert {violation.split(":")[0] for violation in browser.run(VIOLATIONS)} >= {"image-alt", "color-contrast"}

"""Manifests and versions, and the hygiene of all texts."""

from __future__ import annotations

import pytest

PLUGIN, MARKET = ".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"
SETTINGS = ".claude/settings.json"


def test_settings_that_are_missing_or_not_json(house):
    house.write(SETTINGS, '{"name": ')
    assert house.one().startswith(f"{SETTINGS}:1: the file is not JSON")
    house.remove(SETTINGS)
    assert house.one().startswith(f"{SETTINGS}:1: ")


def test_a_version_hides_updates(house):
    house.change(PLUGIN, '"name"', '"version": "1.2.3", "name"')
    assert house.one() == f"{PLUGIN}:1: a version that stands still hides updates. Fix: remove it."


@pytest.mark.parametrize("path", [PLUGIN, MARKET])
def test_a_plugin_of_another_name(house, path):
    house.change(path, '"name": "warpsmith"', '"name": "smith"')
    assert house.one().startswith(f"{path}:1: the ")


MACHINE = ("work/main", "root/.cache", "home/someone/x", "tmp/bash_" + "jobs.0/x")


@pytest.mark.parametrize("path", MACHINE)
@pytest.mark.parametrize("file", ["README.md", "warpsmith/x.py", "devlog/op/page.md"])
def test_a_path_of_a_machine(house, file, path):
    house.write(file, f"# One\n# /{path}\n")
    assert [found for found in house.found() if found.startswith(f"{file}:2: ") and "path of one machine" in found]


def test_a_number_of_a_tracker(house):
    house.add("README.md", "As in " + "issue #" + "12.\n")
    assert "refers to a tracker" in house.one()


@pytest.mark.parametrize(
    "text", ["/path/to/x", "docs/root/x", "~/root", "https://example.org/root/x", "SGLang issue 12"]
)
def test_what_is_no_stray(house, text):
    house.add("README.md", f"{text}\n")
    assert house.found() == []


def test_a_character_that_nobody_sees(house):
    house.add("README.md", "Be\u200b brief.\n")
    assert house.one() == "README.md:6: contains the invisible character U+200B. Fix: remove it."

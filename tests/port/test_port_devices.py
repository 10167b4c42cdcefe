"""Targets of a port, as users name them."""

from __future__ import annotations

import pytest

from warpsmith import languages, project
from warpsmith.errors import Misuse
from warpsmith.port import devices
from warpsmith.port.compile import require_portable

ARCHITECTURES = require_portable("triton").port_architectures()


@pytest.fixture
def here(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    return project.find_project(tmp_path)


def test_architectures_take_the_figures_of_a_device(here):
    parsed = devices.parse_devices(here, "gfx942, sm_90,mi308x,gfx942", ARCHITECTURES)
    assert [(device.arch, device.target) for device in parsed] == [
        ("gfx942", "mi300x"),
        ("sm_90a", "h100"),
        ("gfx942", "mi308x"),
    ]
    limits = parsed[0].limits
    assert limits
    assert (limits.warp_size, limits.warps, limits.larger_blocks, limits.shared_step) == (64, 32, 16, 512)


def test_every_architecture_has_a_page_with_its_limits(here):
    for arch in ARCHITECTURES:
        device = devices.find_device(here, arch, ARCHITECTURES)
        assert device.target, arch
        assert device.limits, arch


@pytest.mark.parametrize(
    ("text", "words"), [("gfx1", "`gfx1`"), ("cpu", "`any`"), (" , ", "names no target"), ("gfx942,no", "`no`")]
)
def test_bad_names_are_one_sentence(here, text, words):
    with pytest.raises(Misuse, match=words):
        devices.parse_devices(here, text, ARCHITECTURES)


def test_other_languages_are_refused():
    assert "cuda" in languages.names()
    with pytest.raises(Misuse, match="compiles: flydsl, hip, triton"):
        require_portable("cuda")


def test_an_architecture_of_another_vendor_is_named(here):
    with pytest.raises(Misuse, match="not compiled for `sm_90`; there are: gfx942, gfx950"):
        devices.parse_devices(here, "sm_90", require_portable("flydsl").port_architectures())

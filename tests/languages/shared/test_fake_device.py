"""Stand-in for a device: host code reads the same figures from it as from the hardware pages."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsmith import project
from warpsmith.lab.machine import hardware
from warpsmith.languages.shared import fake_device as fake_module
from warpsmith.languages.shared.fake_device import AMD_ARCHITECTURES, ARCHITECTURES, DEVICES, fake_device

pytest.importorskip("triton")
HERE = project.find_project(Path(__file__).parent)
PAGES = {"sm_80": "a100", "sm_89": "l40s", "sm_90a": "h200", "sm_100": "b200", "sm_120": "rtx5090",
         "gfx942": "mi300x", "gfx950": "mi355x"}  # fmt: skip


@pytest.mark.parametrize("arch", [*ARCHITECTURES, *AMD_ARCHITECTURES])
def test_the_stand_in_has_the_figures_of_its_devices_page(arch):
    page = hardware.read_target_page(HERE, PAGES[arch])
    assert DEVICES[arch]["name"].split()[-1] in page.target.name

    def figure(name: str) -> int:
        return int(hardware.sourced_figure(page, name).value)

    with fake_device(arch, {}):
        seen = torch.cuda.get_device_properties(0)
    assert seen.multi_processor_count == figure("sm_count")
    assert seen.max_threads_per_multi_processor == figure("max_threads_per_sm")
    assert seen.shared_memory_per_multiprocessor == figure("shared_memory_per_sm")
    assert seen.shared_memory_per_block_optin == figure("shared_memory_per_block_max")


def test_it_needs_no_triton(monkeypatch):
    monkeypatch.setattr(fake_module, "is_importable", lambda _: False)
    monkeypatch.setattr(fake_module, "_fake_triton", lambda *_: pytest.fail("Triton was asked for"))
    with fake_device("gfx942", {}):
        assert torch.version.hip
        assert torch.zeros(2, device="cuda").is_cuda
    assert not torch.zeros(2).is_cuda

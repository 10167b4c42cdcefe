"""The benchmark of techniques: its kernels compile for the device, and every timing has a prediction."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC")

from benchmarks.techniques import cases, device

FOLDER = Path(device.HERE)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.cu")), ids=lambda path: path.stem)
def test_kernels_compile_for_hopper(path: Path) -> None:
    assert device.compile_source(path.stem).startswith(b"\x7fELF")


def test_every_technique_has_predictions_and_kernels() -> None:
    predicted = yaml.safe_load((FOLDER / "predictions.yaml").read_text())
    assert list(predicted) == list(cases.TECHNIQUES)
    for name in cases.TECHNIQUES:
        assert (FOLDER / f"{cases.SOURCES.get(name, name)}.cu").is_file()

"""vLLM's libraries: found in every folder `vllm` on the path, loaded once, and named with how to install them."""

from __future__ import annotations

import importlib

import pytest
import torch

from warpsmith.lab.operator import peer_libraries


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders on the path that hold parts of vLLM; gives them with what was loaded."""
    places = [tmp_path / "one" / "vllm", tmp_path / "two" / "vllm"]
    loaded: list[str] = []
    for place in places:
        place.mkdir(parents=True)
        monkeypatch.syspath_prepend(place.parent)
    monkeypatch.setattr(torch.ops, "load_library", lambda path: loaded.append(path.name))
    importlib.invalidate_caches()
    peer_libraries.vllm.cache_clear()
    yield places, loaded
    peer_libraries.vllm.cache_clear()


def test_each_namespace_is_found_in_its_folder_and_loaded_once(folders):
    (one, two), loaded = folders
    (one / "_C_stable_libtorch.abi3.so").touch()
    (two / "_moe_C.abi3.so").touch()
    assert peer_libraries.vllm("_C") is torch.ops._C
    assert peer_libraries.vllm("_moe_C") is torch.ops._moe_C
    peer_libraries.vllm("_C")
    assert loaded == ["_C_stable_libtorch.abi3.so", "_moe_C.abi3.so"]


def test_flash_attention_lies_in_a_folder_of_its_own(folders):
    (one, _), loaded = folders
    (one / "vllm_flash_attn").mkdir()
    (one / "vllm_flash_attn" / "_vllm_fa3_C.abi3.so").touch()
    assert peer_libraries.vllm("_vllm_fa3_C") is torch.ops._vllm_fa3_C
    assert loaded == ["_vllm_fa3_C.abi3.so"]


def test_what_is_missing_is_named_with_how_to_install_it(folders):
    (one, _), _ = folders
    (one / "_C.abi3.so").touch()
    with pytest.raises(ImportError, match=r"pip install vllm==\S+, or unpack vllm/_moe_C\*\.so"):
        peer_libraries.vllm("_moe_C")


def test_what_does_not_load_says_why(folders, monkeypatch):
    (one, _), _ = folders
    (one / "_C.abi3.so").touch()

    def refuse(path):
        raise OSError("libcudart.so.13: no such file")

    monkeypatch.setattr(torch.ops, "load_library", refuse)
    with pytest.raises(ImportError, match=r"\(libcudart.so.13: no such file\): pip install vllm"):
        peer_libraries.vllm("_C")

"""Environment variables that a version's source names."""

from __future__ import annotations

import pytest

from warpsmith.languages.source_variables import read_variable_names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('std::getenv("MY_RANKS")', {"MY_RANKS"}),
        ("os.environ.get('SERVING_TIER_2')", {"SERVING_TIER_2"}),
        ('f("A_B"), f("C_D")', {"A_B", "C_D"}),
        ('f("RANK"), f("a_b"), f("ROW MAJOR"), MY_MACRO', set()),
        ('f("CUDA_VISIBLE_DEVICES"), f("GOMP_CPU_AFFINITY"), getenv("PYTHONPATH")', set()),
        ('getenv("SERVING"), os.environ["tier"], os.environ.get( "TIER2")', {"SERVING", "tier", "TIER2"}),
        ('f("MY_CACHE_DIR"), getenv("MODEL_HOME")', set()),
    ],
)
def test_strings_that_look_like_variables(tmp_path, text, expected):
    path = tmp_path / "v1.cpp"
    path.write_text(text)
    assert read_variable_names(path) == expected

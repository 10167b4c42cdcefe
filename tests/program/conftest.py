"""Programs are forked from one host here; a test that asks for `own_process` has them started as users do."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def forked(request: pytest.FixtureRequest) -> None:
    if "own_process" not in request.keywords:
        request.getfixturevalue("forked_programs")

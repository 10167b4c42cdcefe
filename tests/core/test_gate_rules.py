"""The gate's rules: a changed value needs a higher GATE_VERSION, and every rule is used and documented."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from pathlib import Path

import pytest

import warpsmith
from warpsmith.core import gate_rules
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.lab.operator import input_rules

FINGERPRINTS = {
    2: "a318fb6759a93abc09817e66f5bcabf203d111ddca4b5a59b44d1a1ad3ce6e5b",
    3: "e21c800e9c2f15e4a036e243b642cf51408b813038c262f7fff6e2ebea1d3cca",
}
"""Gate version to the SHA-256 of its rules. Add a line for a new version. The line of a version that no release
has may change: records name the lab by its hash too."""

MODULES = {"gate_rules": gate_rules, "input_rules": input_rules}
RULES = {name: getattr(module, name) for module in MODULES.values() for name in module.__annotations__}


def fingerprint(rules: dict[str, object]) -> str:
    """Hash names and values, whatever their order and the prose around them."""
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()


def test_the_rules_are_those_of_the_gate_version():
    assert GATE_VERSION in FINGERPRINTS, (
        f"GATE_VERSION is {GATE_VERSION}: add `{GATE_VERSION}: {fingerprint(RULES)!r}` to FINGERPRINTS."
    )
    assert fingerprint(RULES) == FINGERPRINTS[GATE_VERSION], (
        "A rule of the gate changed. If that is intended, raise GATE_VERSION in warpsmith/core/evaluation.py "
        f"and add `{GATE_VERSION + 1}: {fingerprint(RULES)!r}` to FINGERPRINTS; else restore the value in "
        "warpsmith/core/gate_rules.py or warpsmith/lab/operator/input_rules.py."
    )


def test_the_newest_fingerprint_is_the_gate_versions():
    assert max(FINGERPRINTS) == GATE_VERSION
    assert len(set(FINGERPRINTS.values())) == len(FINGERPRINTS)


@pytest.mark.parametrize("name", RULES)
def test_a_changed_value_changes_the_fingerprint(name):
    assert fingerprint({**RULES, name: "something else"}) != fingerprint(RULES)
    assert fingerprint({other: value for other, value in RULES.items() if other != name}) != fingerprint(RULES)


def test_every_constant_is_a_rule():
    names = [name for module in MODULES.values() for name in vars(module) if name.isupper()]
    assert sorted(names) == sorted(RULES)


def test_every_rule_has_a_reason():
    body = [part for module in MODULES.values() for part in ast.parse(inspect.getsource(module)).body]
    for statement, follower in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            documented = isinstance(follower, ast.Expr) and isinstance(follower.value, ast.Constant)
            assert documented, f"{ast.unparse(statement.target)} has no docstring: give its unit and its reason"


def test_every_rule_is_used():
    package = Path(warpsmith.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.stem not in MODULES]
    unused = [name for name in RULES if not any(f"_rules.{name}" in text for text in sources)]
    assert not unused

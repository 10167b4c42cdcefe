"""What keeps a step from being a CUDA graph, read in the source: a walk from the step over the user's own files.

Nothing is run. It is cautious: what it cannot tell is `look`; what stands behind an `if` is one level less sure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from warpsmith.errors import Misuse
from warpsmith.program.capture.kinds import Kinds
from warpsmith.program.capture.models import Certainty
from warpsmith.program.capture.rules import Finding
from warpsmith.program.capture.source import Class, Def, Function, Source, Sources
from warpsmith.program.capture.values import COUNTER, Scope
from warpsmith.program.capture.visit import Visitor
from warpsmith.program.process.step import Program


class Reading(NamedTuple):
    """What the source tells."""

    findings: tuple[Finding, ...]
    """In the order of files and lines."""
    files: tuple[Path, ...]
    """Files that the step reaches."""
    owners: dict[tuple[str, int], str]
    """For a finding's file and line, the class whose forward it is in; those in no module are left out."""
    modules: tuple[str, ...] = ()
    """Module classes of the user's that the step reaches."""


def read(program: Program) -> Reading:
    """Walk from the program's step over the user's functions that it reaches.

    Raises:
        Misuse: a file is no Python, or the program has no such step or setup.
    """
    return Walk(Sources(program.folder), program).read()


class Walk:
    """One reading: what is reached so far, and what was found there."""

    def __init__(self, sources: Sources, program: Program) -> None:
        self.sources, self.kinds, self.program = sources, Kinds(sources), program
        self.waiting: list[Function] = []
        self.reached: dict[Function, None] = {}
        self.found: dict[tuple[str, int, str], Finding] = {}
        self.owners: dict[tuple[str, int], str] = {}

    def read(self) -> Reading:
        """From the step to everything that it reaches."""
        source = self.sources.load(self.program.path)
        if self.program.setup:
            self._setup(source, self.program.setup)
        self._begin(source, self.program.step)
        while self.waiting:
            function = self.waiting.pop(0)
            Visitor(self, self.kinds.scope(function), function).run(function)
        kept = self._used()
        findings = tuple(sorted(kept, key=lambda one: (one.file, one.line, one.kind)))
        files = tuple(dict.fromkeys(function.source.path for function in self.reached)) or (source.path,)
        owners = (function.owner for function in self.reached)
        classes = [one.node.name for one in owners if one and one.derives("torch.nn.")]
        return Reading(findings, files, self.owners, tuple(dict.fromkeys(classes)))

    def reach(self, functions: Sequence[Function]) -> None:
        """These functions run in the step."""
        for function in functions:
            if function not in self.reached:
                self.reached[function] = None
                self.waiting.append(function)

    def reach_modules(self, classes: Sequence[Class]) -> None:
        """Modules that may run: their forward, and those of the modules that they make."""
        for cls in classes:
            forward = cls.method("forward")
            if forward and forward not in self.reached:
                self.reach([forward])
                init = cls.method("__init__")
                if init:
                    self.reach_modules(self.kinds.inside(init.node, init.source))

    def tell(self, finding: Finding, function: Function | None) -> None:
        """Keep a finding; of one kind at one line the surest."""
        key = (finding.file, finding.line, finding.kind)
        old = self.found.get(key)
        if old is None or _rank(finding.certainty) < _rank(old.certainty):
            self.found[key] = finding
        if function and function.owner and function.owner.derives("torch.nn."):
            self.owners[finding.file, finding.line] = function.owner.node.name

    def _setup(self, source: Source, name: str) -> None:
        found = self.sources.symbol(source, ast.Name(name))
        if isinstance(found, Function):
            given = self.kinds.returns(found)
            step = self.sources.symbol(source, ast.Name(self.program.step))
            if isinstance(step, Function):
                names = [parameter.arg for parameter in step.parameters]
                values = given.parts or (given,)
                self.kinds.bind(step, dict(zip(names, values, strict=False)))

    def _begin(self, source: Source, name: str) -> None:
        found = self.sources.symbol(source, ast.Name(name))
        if isinstance(found, Function):
            if not self.program.setup and len(found.parameters) - len(found.node.args.defaults) == 1:
                self.kinds.bind(found, {found.parameters[0].arg: COUNTER})
            self.reach([found])
        elif isinstance(found, Class):
            self.reach_modules([found])
        elif found is None and (held := self.sources.variable(source, name)):
            home, own = held
            for expression, _ in home.assigned[own]:
                self._made(home, expression)
        elif not isinstance(found, str):
            raise Misuse(f"{self.program.label} has no module-level callable `{name}`; give one by --step.")

    def _made(self, source: Source, expression: ast.expr) -> None:
        """A step that is no function but the result of an expression: everything that it names may run."""
        scope = Scope(source)
        Visitor(self, scope, None).visit(expression)
        for part in ast.walk(expression):
            if isinstance(part, ast.Name | ast.Attribute):
                symbol = self.sources.symbol(source, part)
                if isinstance(symbol, Function):
                    self.reach([symbol])
                value = self.kinds.value(part, scope)
                self.reach(self.kinds.entered(value))
                self.reach_modules(value.classes)

    def _used(self) -> list[Finding]:
        """Findings about what Python keeps are believed where something that the step reaches reads it."""
        loads = {
            name
            for function in self.reached
            for name in _loaded(function.node)
        }  # fmt: skip
        kept = []
        for finding in self.found.values():
            if finding.kind in ("state", "new-address") and finding.what.startswith("`"):
                name = finding.what.split("`")[1].split(" ")[0]
                if name not in loads:
                    if finding.kind == "new-address":
                        continue
                    finding = replace(finding, certainty="look")
            kept.append(finding)
        return kept


def _rank(certainty: Certainty) -> int:
    return ("certain", "likely", "look").index(certainty)


def _loaded(function: Def) -> Iterator[str]:
    """Names and attributes that a function reads, those of its own `+=` left out."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield ast.unparse(node)

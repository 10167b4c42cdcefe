"""The statements of a function of the user's, and what each means to a CUDA graph."""

from __future__ import annotations

import ast

from warpsmith.program.capture.names import ON_DEVICE
from warpsmith.program.capture.source import Def, Function
from warpsmith.program.capture.values import TENSORS, UNKNOWN, Value
from warpsmith.program.capture.visit_calls import CallRules, short

_CATS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack")


class Visitor(CallRules):
    """Looks at one scope, statement by statement; `run` looks at a whole function."""

    def run(self, function: Function) -> None:
        """Look at a function's decorators and its body."""
        for decorator in function.node.decorator_list:
            made = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self.walk.sources.symbol(self.scope.source, made) == "torch.compile":
                self.tell(decorator, "compiled", "`@torch.compile`", "likely")
        for part in function.node.body:
            self.visit(part)

    def visit(self, node: ast.AST) -> None:
        """Look at a node, then at what is in it."""
        if isinstance(node, ast.ClassDef):
            return
        self._look(node)
        inner = node.body if isinstance(node, Def) else ast.iter_child_nodes(node)  # as if its body stood here
        for part in inner:
            guards = _guards(node, part)
            self.guards += guards
            self.visit(part)
            self.guards -= guards

    def _look(self, node: ast.AST) -> None:
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                self._truth(test, "if")
            case ast.While(test=test):
                self._truth(test, "while")
            case ast.Assert(test=test):
                self._truth(test, "assert")
            case ast.BoolOp(values=[*first, _]):
                for part in first:
                    self._truth(part, "and/or")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._truth(operand, "not")
            case ast.For(iter=iterated) if self._loads(iterated):
                self.tell(node, "loader", "a loop over a DataLoader")
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assigned(node, target, value)
            case ast.AugAssign():
                self._counted(node)
            case ast.FormattedValue(value=value) if self.on_device(value):
                self.tell(node, "print", "a tensor in an f-string")
            case ast.BinOp(left=left, right=right):
                sides = {self.value(left).kind, self.value(right).kind}
                if "counter" in sides and sides & set(ON_DEVICE):
                    self.tell(node, "changing-number", f"`{short(node)}`", "likely")
            case ast.Subscript(value=base, slice=index) if self.on_device(base):
                for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                    self._index(node, part)
            case ast.Call():
                self.call(node)

    def _truth(self, test: ast.expr, word: str) -> None:
        if self.on_device(test):
            shielded = isinstance(test, ast.BoolOp)  # what stands before may keep it from being asked
            self.tell(test, "truth", f"`{word} {short(test)}`", "likely" if shielded else "certain")
        elif isinstance(test, ast.Compare) and _is_in(test) and any(map(self.on_device, test.comparators)):
            self.tell(test, "truth", f"`{short(test)}`")

    def _loads(self, iterated: ast.expr) -> bool:
        given = [iterated, *(iterated.args if isinstance(iterated, ast.Call) else ())]
        return any(self.value(one).kind == "loader" for one in given)

    def _counted(self, node: ast.AugAssign) -> None:
        name = self._kept(node.target)
        if name and not {self.value(node.value).kind, self._target(node.target).kind} & set(TENSORS):
            self.tell(node, "state", f"`{name} {_operator(node.op)}=`", "likely")

    def _index(self, node: ast.Subscript, part: ast.expr) -> None:
        value, stored = self.value(part), isinstance(node.ctx, ast.Store)
        if value.kind == "mask" and not stored:
            self.tell(node, "data-shape", f"`{short(node)}`: a boolean index")
        elif value.kind == "mask":
            self.tell(node, "data-shape", f"`{short(node)} =`: a boolean index", "look")
        elif value.kind == "host" or isinstance(part, ast.List):
            self.tell(node, "to-device", f"`{short(node)}`: an index made on the CPU", "likely")
        elif isinstance(part, ast.Slice):
            for bound in (part.lower, part.upper, part.step):
                if bound is not None and self.on_device(bound):
                    self.tell(node, "host-read", f"`{short(node)}`: a tensor as a bound")
                elif bound is not None and self.value(bound).kind == "counter":
                    self.tell(node, "changing-shape", f"`{short(node)}`", "likely")
        elif value.kind == "counter":
            self.tell(node, "changing-number", f"`{short(node)}`", "likely")

    def _assigned(self, node: ast.Assign, target: ast.expr, value: ast.expr) -> None:
        if (
            isinstance(target, ast.Subscript)
            and isinstance(target.slice, ast.Constant)
            and target.slice.value == "lr"
        ):
            self.tell(node, "learning-rate", "sets `lr`")
            return
        name = self._kept(target) or (short(target) if isinstance(target, ast.Subscript) else "")
        if not name:
            return
        if self._grows(target, value):
            self.tell(node, "growing", f"`{name} = torch.cat(…)`")
        elif self._kept(target) and self.on_device(value):
            self.tell(node, "new-address", f"`{name} = …`: kept for the next step", "likely")

    def _grows(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether it is put together of itself and more."""
        if not isinstance(value, ast.Call):
            return False
        name = self.walk.sources.symbol(self.scope.source, value.func)
        if name not in _CATS:
            return False
        own = ast.unparse(target)
        return any(ast.unparse(part) == own for part in ast.walk(value) if isinstance(part, ast.expr))

    def _kept(self, target: ast.expr) -> str:
        """The name of what outlives the step: a global, an attribute; empty: it does not."""
        if isinstance(target, ast.Name) and self.function and target.id in self.function.globals:
            return target.id
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            own = target.value.id == "ctx" or target.attr in ("grad", "data")  # an autograd function's, a tensor's
            return ast.unparse(target) if self.function and not own else ""
        return ""

    def _target(self, target: ast.expr) -> Value:
        return self.value(target) if isinstance(target, ast.Name | ast.Attribute | ast.Subscript) else UNKNOWN


def _about_device(test: ast.expr) -> bool:
    """Whether it asks for the device, which is the same at every step: `if torch.cuda.is_available()`."""
    words = ast.unparse(test)
    return any(word in words for word in ("is_available", "device", "cuda"))


def _guards(node: ast.AST, part: ast.AST) -> bool:
    """Whether a part of a statement need not run at every step."""
    if isinstance(node, ast.If):
        return part is not node.test and not _about_device(node.test)
    return isinstance(node, ast.ExceptHandler)


def _is_in(test: ast.Compare) -> bool:
    return any(isinstance(op, ast.In | ast.NotIn) for op in test.ops)


def _operator(op: ast.operator) -> str:
    return {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/"}.get(type(op).__name__, "")

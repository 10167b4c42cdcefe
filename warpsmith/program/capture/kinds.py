"""What an expression in the user's files holds, as far as the source tells; calls are followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpsmith.program.capture.calls import Calls
from warpsmith.program.capture.source import Class, Def, Function, Source, Sources, names_in
from warpsmith.program.capture.values import (
    COUNTER,
    DEVICE,
    HOST,
    MASK,
    PYTHON,
    TENSORS,
    UNKNOWN,
    Kind,
    Scope,
    Value,
    at,
    joined,
)

_PARTS = {"T", "mT", "H", "mH", "data", "grad", "real", "imag", "values", "indices"}
"""Attributes of a tensor, or of what a reduction gives, that are tensors."""

_DEEPEST = 25


class Kinds:
    """Answers what expressions hold; follows calls into the user's functions, each looked at once."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.calls = Calls(self)
        self._bound: dict[Function, dict[str, Value]] = {}
        self._scopes: dict[Function, Scope] = {}
        self._returns: dict[Function, Value] = {}
        self._globals: dict[tuple[Source, str], Value] = {}
        self._attributes: dict[Class, dict[str, Value]] = {}
        self._depth = 0
        self._asked = 0
        self._known: dict[tuple[ast.expr, Scope], Value] = {}

    def bind(self, function: Function, given: dict[str, Value]) -> None:
        """What a call gives to a function's parameters; the first call that tells something is believed."""
        known = self._bound.setdefault(function, {})
        for name, value in given.items():
            if not known.get(name, UNKNOWN).kind:
                known[name] = value

    def scope(self, function: Function) -> Scope:
        """The names of a function with what they hold."""
        if function not in self._scopes:
            scope = self._scopes[function] = Scope(function.source, function, dict(self._parameters(function)))
            self._assign(function.node.body, scope)
        return self._scopes[function]

    def returns(self, function: Function) -> Value:
        """What a function returns."""
        if function in self._returns:
            return self._returns[function]
        self._returns[function] = UNKNOWN
        if self._depth < _DEEPEST:
            self._depth += 1
            scope = self.scope(function)
            found = [self.value(value, scope) for value in _returned(function.node)]
            self._returns[function] = next((value for value in found if value != UNKNOWN), UNKNOWN)
            self._depth -= 1
        return self._returns[function]

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression holds."""
        if not isinstance(node, ast.Call | ast.Attribute):
            return self._value(node, scope)
        key = (node, scope)
        if key not in self._known:  # a chain of calls asks for its beginning at every link
            self._asked += 1
            self._known[key] = self._value(node, scope)
            self._asked -= 1
        found = self._known[key]
        if not self._asked:
            self._known.clear()  # names may hold more by the next time
        return found

    def _value(self, node: ast.expr, scope: Scope) -> Value:
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.Lambda():
                return PYTHON
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Subscript(value=base, slice=index):
                return self._element(self.value(base, scope), index)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return Value(parts=tuple(self.value(part, scope) for part in parts))
            case ast.BinOp(left=left, right=right):
                return joined(self.value(left, scope), self.value(right, scope))
            case ast.UnaryOp(op=ast.Not()):
                return PYTHON
            case ast.UnaryOp(operand=inner) | ast.NamedExpr(value=inner) | ast.Starred(value=inner):
                return self.value(inner, scope)
            case ast.Compare():
                return self._compared(node, scope)
            case ast.BoolOp(values=[*_, last]) | ast.IfExp(orelse=last):
                found = self.value(node.body, scope) if isinstance(node, ast.IfExp) else UNKNOWN
                return found if found.kind else self.value(last, scope)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
                return Value(parts=(self.value(part, scope),))
        return UNKNOWN

    def callee(self, call: ast.Call, scope: Scope) -> list[Function]:
        """The user's functions that a call enters."""
        made = self.sources.symbol(scope.source, call.func) if not self._local(call.func, scope) else None
        if isinstance(made, Function):
            return [made]
        if isinstance(made, Class):
            return list(filter(None, [made.method("__init__")]))
        if made is not None:
            return []
        if isinstance(call.func, ast.Attribute):
            base = self.value(call.func.value, scope)
            if _is_super(call.func.value) and scope.function and scope.function.owner:
                up = (b.method(call.func.attr) for b in scope.function.owner.bases if isinstance(b, Class))
                return list(filter(None, up))
            method = [cls.method(call.func.attr) for cls in base.classes]
            if call.func.attr == "apply" and not base.kind:
                owner = self.sources.symbol(scope.source, call.func.value)
                if isinstance(owner, Class):
                    return [found for name in ("forward", "backward") if (found := owner.method(name))]
            if any(method):
                return list(filter(None, method))
        return self.entered(self.value(call.func, scope))

    def entered(self, value: Value) -> list[Function]:
        """What runs when a module or an object is called."""
        if value.kind not in ("module", "object"):
            return []
        found = (cls.method(name) for cls in value.classes for name in ("forward", "__call__"))
        return list(filter(None, found))

    def arguments(self, call: ast.Call, function: Function, scope: Scope) -> dict[str, Value]:
        """What a call gives to a function, by parameter."""
        names = [parameter.arg for parameter in function.parameters]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "apply" and names:
            names = names[1:]  # ctx comes first
        given: dict[str, Value] = {}
        for name, node in zip(names, call.args, strict=False):
            if isinstance(node, ast.Starred):
                given |= dict(zip(names[len(given) :], self.value(node, scope).parts, strict=False))
                break
            given[name] = self.value(node, scope)
        return given | {word.arg: self.value(word.value, scope) for word in call.keywords if word.arg}

    def attributes(self, cls: Class) -> dict[str, Value]:
        """What `self.name` holds, by name."""
        if cls not in self._attributes:
            found: dict[str, Value] = {}
            self._attributes[cls] = found
            for base in cls.bases:
                found |= self.attributes(base) if isinstance(base, Class) else {}
            for method in sorted(cls.own.values(), key=lambda one: one.node.name != "__init__"):
                scope = self.scope(method) if method.node.name == "__init__" else Scope(cls.source, method)
                for name, value in self._set_on_self(method, scope):
                    if not found.get(name, UNKNOWN).kind or value.kind == "counter":
                        found[name] = value
        return self._attributes[cls]

    def inside(self, node: ast.AST, source: Source, seen: set[object] | None = None) -> tuple[Class, ...]:
        """The user's modules that an expression or function names, also in the functions that it calls."""
        seen = set() if seen is None else seen
        found: dict[Class, None] = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Name | ast.Attribute):
                symbol = self.sources.symbol(source, part)
                if symbol in seen:
                    continue
                if isinstance(symbol, Class) and symbol.derives("torch.nn."):
                    found[symbol] = None
                elif isinstance(symbol, Function):
                    seen.add(symbol)
                    found |= dict.fromkeys(self.inside(symbol.node, symbol.source, seen))
        return tuple(found)

    def variable(self, source: Source, name: str) -> Value:
        """What a module-level variable holds."""
        key = self.sources.variable(source, name)
        if key is None:
            return UNKNOWN
        if key not in self._globals:
            self._globals[key] = UNKNOWN
            home, own = key
            scope = Scope(home)
            values = (at(self.value(node, scope), place) for node, place in home.assigned[own])
            first = next((value for value in values if value != UNKNOWN), UNKNOWN)
            counts = first.kind in ("python", "") and own in _counted(home)
            self._globals[key] = COUNTER if counts else first
        return self._globals[key]

    def _compared(self, node: ast.Compare, scope: Scope) -> Value:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return PYTHON
        kind = joined(*(self.value(side, scope) for side in (node.left, *node.comparators))).kind
        return MASK if kind in ("device", "mask") else HOST if kind == "host" else PYTHON

    def _local(self, node: ast.expr, scope: Scope) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in scope.names

    def _parameters(self, function: Function) -> Iterator[tuple[str, Value]]:
        bound = self._bound.get(function, {})
        module = function.owner is not None and function.owner.derives("torch.nn.")
        required = len(function.parameters) - len(function.node.args.defaults)
        for place, parameter in enumerate(function.parameters):
            value = bound.get(parameter.arg, UNKNOWN)
            if not value.kind and not value.parts:
                note = ast.unparse(parameter.annotation) if parameter.annotation else ""
                tensor = note.split(".")[-1] in ("Tensor", "FloatTensor", "LongTensor")
                forward = module and function.node.name == "forward" and place < required and not note
                value = (
                    DEVICE if tensor or forward else PYTHON if note in ("int", "float", "bool", "str") else value
                )
            yield parameter.arg, value
        for parameter in function.node.args.kwonlyargs:
            yield parameter.arg, bound.get(parameter.arg, UNKNOWN)
        if function.owner and function.node.args.args and function.parameters is not function.node.args.args:
            first = function.node.args.args[0].arg
            if first == "self":
                kind: Kind = "module" if module else "object"
                yield first, Value(kind, (function.owner,))

    def _name(self, name: str, scope: Scope) -> Value:
        if name in scope.names and not (scope.function and name in scope.function.globals):
            return scope.names[name]
        symbol = self.sources.symbol(scope.source, ast.Name(name))
        return UNKNOWN if symbol is not None else self.variable(scope.source, name)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        base = self.value(node.value, scope)
        if node.attr == "device":
            return Value("place")
        if base.kind in TENSORS:
            return (DEVICE if node.attr == "grad" else base) if node.attr in _PARTS else PYTHON
        for cls in base.classes:
            known = self.attributes(cls).get(node.attr)
            if known:
                return known
        if base.kind in ("module", "object"):
            return UNKNOWN
        symbol = None if self._local(node, scope) else self.sources.symbol(scope.source, node.value)
        return self.variable(symbol, node.attr) if isinstance(symbol, Source) else UNKNOWN

    def _element(self, base: Value, index: ast.expr) -> Value:
        if base.parts and isinstance(index, ast.Constant) and isinstance(index.value, int):
            return base.parts[index.value] if -len(base.parts) <= index.value < len(base.parts) else UNKNOWN
        if base.parts and all(part.kind == base.parts[0].kind for part in base.parts):
            return base.parts[0]
        return base if base.kind in (*TENSORS, "module", "python") else UNKNOWN

    def _call(self, call: ast.Call, scope: Scope) -> Value:
        symbol = None if self._local(call.func, scope) else self.sources.symbol(scope.source, call.func)
        if isinstance(symbol, str):
            return self.calls.external(symbol, call, scope)
        if isinstance(symbol, Class):
            kind: Kind = "module" if symbol.derives("torch.nn.") else "object"
            for function in self.callee(call, scope):
                self.bind(function, self.arguments(call, function, scope))
            return Value(kind, (symbol,))
        functions = self.callee(call, scope)
        for function in functions:
            self.bind(function, self.arguments(call, function, scope))
        found = next((value for f in functions if (value := self.returns(f)) != UNKNOWN), UNKNOWN)
        if found != UNKNOWN:
            return found
        if self.value(call.func, scope).kind == "module":
            return DEVICE
        if isinstance(call.func, ast.Attribute):
            return self.calls.method(call, self.value(call.func.value, scope), scope)
        if isinstance(call.func, ast.Name) and symbol is None and call.func.id not in scope.names:
            return self.calls.builtin(call, scope)
        return UNKNOWN

    def _assign(self, body: list[ast.stmt], scope: Scope) -> None:
        for node in body:
            for target, value in self._bindings(node, scope):
                for name, place in names_in(target):
                    found = at(value, place)
                    old = scope.names.get(name, UNKNOWN)
                    scope.names[name] = found if found.kind or not old.kind else old
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.stmt) and not isinstance(part, Def | ast.ClassDef):
                    self._assign([part], scope)
                elif isinstance(part, ast.ExceptHandler):
                    self._assign(part.body, scope)

    def _bindings(self, node: ast.stmt, scope: Scope) -> Iterator[tuple[ast.expr, Value]]:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, scope)
                yield from ((target, found) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield target, self.value(value, scope)
            case ast.AugAssign(target=ast.Name() as target, value=value):
                yield target, joined(self.value(ast.Name(target.id), scope), self.value(value, scope))
            case ast.For(target=target, iter=source):
                yield target, self._each(source, scope)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                for inner in ast.walk(part):
                    if isinstance(inner, ast.NamedExpr):
                        yield inner.target, self.value(inner.value, scope)

    def _each(self, iterated: ast.expr, scope: Scope) -> Value:
        """What a loop's variable holds."""
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
            parts = [self._each(argument, scope) for argument in iterated.args]
            if iterated.func.id == "enumerate":
                return Value(parts=(PYTHON, parts[0]))
            if iterated.func.id == "zip":
                return Value(parts=tuple(parts))
            if iterated.func.id == "range":
                return PYTHON
        value = self.value(iterated, scope)
        if value.kind == "loader":
            return HOST
        return value if value.kind in (*TENSORS, "module") else value.parts[0] if value.parts else UNKNOWN

    def _set_on_self(self, method: Function, scope: Scope) -> Iterator[tuple[str, Value]]:
        for node in ast.walk(method.node):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        if _on_self(target):
                            assert isinstance(target, ast.Attribute)
                            yield target.attr, self.value(value, scope)
                case ast.AugAssign(target=ast.Attribute() as target, value=value) if _on_self(target):
                    if self.value(value, scope).kind in ("python", "counter"):
                        yield target.attr, COUNTER
                case ast.Call(
                    func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=str(name)), *_]
                ):
                    yield name, DEVICE


def _returned(function: Def) -> Iterator[ast.expr]:
    """What its return statements return, those of inner functions left out."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        if not isinstance(node, Def | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _on_self(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _counted(source: Source) -> set[str]:
    """Module-level names that a function changes by `+=` and the like."""
    functions = [*source.functions.values(), *(m for cls in source.classes.values() for m in cls.own.values())]
    return {
        node.target.id
        for function in functions
        for node in ast.walk(function.node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        if node.target.id in function.globals
    }

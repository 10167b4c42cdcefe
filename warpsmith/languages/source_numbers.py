"""Numbers of a version's source: its literals, its constants, and what constant expressions of them come to.

A version that is wrong beyond a threshold names it somewhere, so sizes and values are drawn at its numbers.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from warpsmith.languages.shared.cpp_source import blank_tokens

Number = int | float
"""A number as it stands in a source."""

_LARGEST = 1 << 128
_LARGEST_SHIFT = 128
_CASTS = {"int", "float", "constexpr"}
"""Functions of Python whose only argument is their value."""

_OPERATIONS: dict[str, Callable[[Number, Number], Number]] = {
    "*": operator.mul, "+": operator.add, "-": operator.sub, "%": operator.mod,
}  # fmt: skip
_BIT_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "//": operator.floordiv,
}  # fmt: skip
_PYTHON_SIGNS: dict[type[ast.operator], str] = {
    ast.Mult: "*", ast.Add: "+", ast.Sub: "-", ast.Mod: "%", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.FloorDiv: "//", ast.Div: "/", ast.Pow: "**",
}  # fmt: skip

_TOKEN = re.compile(
    r"(?P<number>\.?[0-9](?:[eEpP][+-]|'?\w|\.)*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><<|>>|<=|>=|==|!=|&&|\|\||::|->|[^\s])"
)
_FLOAT_SUFFIX = re.compile(r"(?:bf16|[fF](?:16|32|64|128)?|[lL])$")
_PRECEDENCE = {"*": 5, "/": 5, "%": 5, "+": 4, "-": 4, "<<": 3, ">>": 3, "&": 2, "^": 1, "|": 0}
_COMPARISONS = {"<", ">", "<=", ">=", "==", "!="}
_TYPE_WORDS = {
    "int", "long", "short", "unsigned", "signed", "char", "float", "double", "size_t", "ptrdiff_t", "std", "::",
    "const", *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}  # fmt: skip


def read_numbers(path: Path) -> frozenset[Number]:
    """Return the numbers of a source, without signs; none of Python that does not parse.

    The file is Python, with programs in C++ among its strings, or C++.
    """
    source = path.read_text(errors="replace")
    numbers = _python_numbers(source) if path.suffix == ".py" else _cpp_numbers(source)
    return frozenset(abs(number) for number in numbers if math.isfinite(number))


def read_changed_numbers(before: str, after: str) -> frozenset[Number]:
    """Return the numbers, without signs, in those statements of a Python text that are not in an older one.

    The condition of an `if` or `case` counts as changed if what it guards is; other heads count by themselves.
    """
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    old_statements, reader = Counter(map(_statement_key, _statements(old))), _PythonReader(new)
    numbers: set[Number] = set()
    for statement in _statements(new):
        key = _statement_key(statement)
        old_statements[key] -= 1
        if old_statements[key] < 0:
            expressions = [node for part in _head(statement) for node in ast.walk(part)]
            numbers.update(n for node in expressions if isinstance(node, ast.expr) for n in reader.numbers(node))
    return frozenset(abs(number) for number in numbers if math.isfinite(number))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.match_case))


def _head(statement: ast.AST) -> list[ast.AST]:
    """Return the parts of a statement that are none themselves, nor contain any."""
    bodies = (ast.stmt, ast.ExceptHandler, ast.match_case)
    return [node for node in ast.iter_child_nodes(statement) if not isinstance(node, bodies)]


def _statement_key(statement: ast.AST) -> str:
    parts = [statement] if isinstance(statement, ast.If | ast.match_case) else _head(statement)
    return " ".join([type(statement).__name__, *map(ast.dump, parts)])


def compute(sign: str, left: Number, right: Number) -> Number | None:
    """Return the value of an operation on constants; None where it has none, or one that is too large."""
    try:
        if sign == "/":
            exact = isinstance(left, int) and isinstance(right, int)
            value: Number = left // right if exact else left / right
        elif sign == "**":
            if abs(right) > _LARGEST_SHIFT:
                return None
            value = left**right
        elif sign in _BIT_OPERATIONS:
            if not (isinstance(left, int) and isinstance(right, int)) or (sign == "<<" and right > _LARGEST_SHIFT):
                return None
            value = _BIT_OPERATIONS[sign](left, right)
        else:
            value = _OPERATIONS[sign](left, right)
    except (ArithmeticError, ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, int | float) and abs(value) < _LARGEST else None


def _compared(sign: str, factor: Number, other: Number) -> Number | None:
    """Return the x at which `x sign factor` comes to `other`, such as 65536 for `x / 4096 > 16`."""
    match sign:
        case "/" | "//":
            return compute("*", factor, other)
        case ">>":
            return compute("<<", other, factor)
        case "*":
            return compute("//" if isinstance(factor, int) and isinstance(other, int) else "/", other, factor)
        case "+":
            return compute("-", other, factor)
        case "-":
            return compute("+", other, factor)
        case _:
            return None


def _python_numbers(source: str) -> Iterator[Number]:
    """Yield the numbers of a Python file, and those of the programs in its strings."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    except (RecursionError, MemoryError):  # nested more deeply than any honest file
        yield from _cpp_numbers(source)
        return
    reader = _PythonReader(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ";" in node.value:
            yield from _cpp_numbers(node.value)
        elif isinstance(node, ast.expr):
            yield from reader.numbers(node)


class _PythonReader:
    """Values of the constant expressions of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, Number] = {}
        self._values: dict[int, Number | None] = {}
        for _ in range(2):  # constants may be made of others
            self._values = {}
            values: dict[str, set[Number | None]] = defaultdict(set)
            for node in ast.walk(tree):
                match node:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        values[name].add(self.value(value))
                    case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                        values[name].add(self.value(value))
                    case ast.AugAssign(target=ast.Name(id=name)):
                        values[name].add(None)
            self._names = _settled(values)
        self._values = {}

    def numbers(self, node: ast.expr) -> Iterator[Number]:
        """Yield the value of an expression, and the number at which a comparison of it turns."""
        if (value := self.value(node)) is not None:
            yield value
        match node:
            case ast.BinOp(op=ast.RShift(), right=right) if isinstance(bits := self.value(right), int):
                if 0 <= bits <= _LARGEST_SHIFT:
                    yield 1 << bits
            case ast.Compare(left=left, comparators=[right]):
                for term, other in ((left, right), (right, left)):
                    yield from self._turns(term, self.value(other))

    def _turns(self, term: ast.expr, other: Number | None) -> Iterator[Number]:
        if other is None or not isinstance(term, ast.BinOp):
            return
        sign = _PYTHON_SIGNS.get(type(term.op), "")
        for each in (term.left, term.right):
            factor = self.value(each)
            if factor is not None and (turn := _compared(sign, factor, other)) is not None:
                yield turn

    def value(self, node: ast.expr) -> Number | None:
        """Return the value of a constant expression; None for any other, and where it is nested too deeply."""
        if id(node) not in self._values:
            try:
                self._values[id(node)] = self._compute(node)
            except RecursionError:
                return None
        return self._values[id(node)]

    def _compute(self, node: ast.expr) -> Number | None:
        match node:
            case ast.Constant(value=bool()):
                return None
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return self._names.get(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand)
                return None if inner is None else -inner
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                first, second = self.value(left), self.value(right)
                sign = _PYTHON_SIGNS.get(type(op), "")
                return None if first is None or second is None else compute(sign, first, second)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[argument], keywords=[]):
                return self.value(argument) if name in _CASTS else None
        return None


def _settled(values: Mapping[str, set[Number | None]]) -> dict[str, Number]:
    """Return the names that have one value wherever they are given one."""
    single = {name: next(iter(each)) for name, each in values.items() if len(each) == 1}
    return {name: value for name, value in single.items() if value is not None}


def _cpp_numbers(source: str) -> set[Number]:
    """Return the numbers of C++ text."""
    reader = _CppReader(blank_tokens(source, "comment", "literal"))
    return reader.numbers()


class _CppReader:
    """Reads constant expressions out of C++ tokens, by precedence; everything else is passed over."""

    def __init__(self, code: str) -> None:
        matches = list(_TOKEN.finditer(code))
        self._tokens = [match.group() for match in matches]
        self._kinds = [match.lastgroup for match in matches]
        self._names: dict[str, Number] = {}
        self._read: set[Number] = set()
        for _ in range(2):  # constants may be made of others
            self._names = self._constants()

    def numbers(self) -> set[Number]:
        """Return the values of all constant expressions and of their parts."""
        self._read, position = set(), 0
        while position < len(self._tokens):
            before = self._tokens[position - 1] if position else ""
            # A term that an operator precedes is a constant only as far as the ones that follow bind more closely.
            try:
                result = self._expression(position, _PRECEDENCE.get(before, -1) + 1)
            except RecursionError:
                result = None
            if result is None:
                position += 1
                continue
            value, end = result
            self._add_turns(before, value, end)
            position = end
        return self._read

    def _constants(self) -> dict[str, Number]:
        values: dict[str, set[Number | None]] = defaultdict(set)
        for position, token in enumerate(self._tokens):
            begins = {"=": position - 1, "{": position - 1, "define": position + 1}.get(token)
            if begins is None or not 0 <= begins < len(self._tokens) or self._kinds[begins] != "name":
                continue
            try:
                result = self._expression(max(position, begins) + 1, 0)
            except RecursionError:
                result = None
            ends = token == "define" or (result is not None and self._token(result[1]) in (";", ",", "}", ")"))
            values[self._tokens[begins]].add(result[0] if result and ends else None)
        return _settled(values)

    def _add_turns(self, sign: str, factor: Number, end: int) -> None:
        """Add the number at which `x sign factor` turns in a comparison with a constant, and a shift's power."""
        if sign == ">>" and isinstance(factor, int) and factor <= _LARGEST_SHIFT:
            self._read.add(1 << factor)
        while self._token(end) == ")":
            end += 1
        if sign and self._token(end) in _COMPARISONS and (other := self._expression(end + 1, 0)):
            turn = _compared(sign, factor, other[0])
            if turn is not None:
                self._read.add(turn)

    def _token(self, position: int) -> str:
        return self._tokens[position] if position < len(self._tokens) else ""

    def _expression(self, position: int, least: int) -> tuple[Number, int] | None:
        """Return the value of the longest constant expression at a place whose operators bind at least so closely,
        and the place after it; None if there is none."""
        result = self._primary(position)
        while result is not None:
            left, end = result
            sign = self._token(end)
            precedence = _PRECEDENCE.get(sign, -1)
            if precedence < max(least, 0) or (right := self._expression(end + 1, precedence + 1)) is None:
                break
            value = compute(sign, left, right[0])
            if value is None:
                break
            self._read.add(value)
            result = value, right[1]
        return result

    def _primary(self, position: int) -> tuple[Number, int] | None:
        token = self._token(position)
        if not token:
            return None
        if self._kinds[position] == "number":
            return self._note(_parse_number(token), position + 1)
        if token in ("-", "+"):
            inner = self._primary(position + 1)
            return inner and (-inner[0] if token == "-" else inner[0], inner[1])
        if token == "(":
            return self._cast(position) or self._closed(position, ")")
        if token in ("static_cast", "int64_t", *_TYPE_WORDS):
            opening = position + 1
            if token == "static_cast":
                while self._token(opening) not in (">", ""):
                    opening += 1
                opening += 1
            if self._token(opening) in ("(", "{"):
                return self._closed(opening, ")" if self._token(opening) == "(" else "}")
            return None
        if self._kinds[position] == "name" and self._token(position + 1) not in ("(", "[", ".", "->", "::", "<"):
            return self._note(self._names.get(token), position + 1)
        return None

    def _note(self, value: Number | None, end: int) -> tuple[Number, int] | None:
        if value is None:
            return None
        self._read.add(value)
        return value, end

    def _cast(self, position: int) -> tuple[Number, int] | None:
        """Return what a cast in parentheses is applied to."""
        end = position + 1
        while self._token(end) in _TYPE_WORDS:
            end += 1
        return self._primary(end + 1) if end > position + 1 and self._token(end) == ")" else None

    def _closed(self, position: int, closing: str) -> tuple[Number, int] | None:
        inner = self._expression(position + 1, 0)
        return (inner[0], inner[1] + 1) if inner and self._token(inner[1]) == closing else None


def _parse_number(text: str) -> Number | None:
    """Return the value of a C++ literal; None if it is none, as with a suffix of a user."""
    text = text.replace("'", "")
    lower = text.lower()
    digits = lower.rstrip("ulz")
    try:
        if lower.startswith("0x"):
            return float.fromhex(lower.rstrip("fl")) if "p" in lower or "." in lower else int(digits, 16)
        if lower.startswith("0b"):
            return int(digits, 2)
        if digits.isdigit():
            return int(digits, 8) if len(digits) > 1 and digits.startswith("0") else int(digits)
        return float(_FLOAT_SUFFIX.sub("", text))
    except ValueError:
        return None

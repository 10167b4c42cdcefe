"""Python source as a syntax tree: its normal form, the signature of `run`, and lint findings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.signature import parameters

_LIBRARY = """
    mm matmul bmm einsum addmm baddbmm addbmm mv dot inner tensordot _scaled_mm _grouped_mm softmax log_softmax
    logsumexp layer_norm rms_norm group_norm batch_norm conv1d conv2d conv3d topk sort cumsum
"""
_TRIPWIRES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("torch.cuda.Stream", "torch.cuda.Event", "torch.cuda.stream", "torch.cuda.ExternalStream"),
     "uses streams or events of its own"),
    (("threading", "_thread", "concurrent", "multiprocessing", "asyncio"), "starts threads or processes"),
    (("subprocess", "os.system", "os.popen", "os.fork", "os.exec", "os.spawn", "os.posix_spawn"),
     "starts processes"),
    (("sys._getframe", "sys._current_frames", "sys.settrace", "sys.setprofile", "inspect.stack",
      "inspect.currentframe", "inspect.getouterframes", "gc.get_objects", "gc.get_referrers"),
     "looks at its caller"),
    (("ctypes", "cffi"), "reaches past Python"),
    (("weakref",), "may keep results by tensor"),
    (("time", "torch.utils.benchmark", "triton.testing"), "reads a clock"),
    (("open", "os.open", "io.open", "pathlib", "mmap"), "reaches for files"),
    (("torch.compile", "torch._dynamo", "torch._inductor", "torch.jit", "torch.utils.cpp_extension"),
     "has another compiler write the kernel"),
    (("torch.nn", "torch.ops", "torch._C", "torch.special", "torch.linalg", "torch.fft",
      *(f"torch.{op}" for op in _LIBRARY.split())),
     "calls a library's kernel"),
)  # fmt: skip
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_METHODS = {"mm", "matmul", "bmm", "addmm", "softmax", "log_softmax", "logsumexp", "topk"}
_CONTAINERS = {"dict", "set", "collections.OrderedDict", "collections.defaultdict", "weakref.WeakKeyDictionary",
               "weakref.WeakValueDictionary"}  # fmt: skip
_CACHES = {"functools.lru_cache", "functools.cache"}
_PLAIN = {"int", "str", "bool", "float", "torch.dtype", "torch.device"}
_LOOKUPS = {"get", "setdefault", "pop", "add"}


def normalise_python(source: str) -> str:
    """Return the source as its syntax tree prints, without docstrings; just strip it if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source.strip()
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def signature_fault(tree: ast.Module, definition: Definition) -> str | None:
    """Say in one sentence how the file's `run` differs from the definition's signature; None: it does not."""
    names = parameters(definition)
    expected = f"expected a top-level `def run({', '.join(names)})`"
    run = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run"), None)
    if run is None:
        return f"it has none; {expected}"
    positional = [*run.args.posonlyargs, *run.args.args]
    required = len(positional) - len(run.args.defaults)
    if [argument.arg for argument in positional[: len(names)]] != names or required > len(names):
        return f"`run` at line {run.lineno} takes other parameters; {expected}, any more of them with defaults"
    if any(default is None for default in run.args.kw_defaults):
        return f"`run` at line {run.lineno} has a keyword parameter without default; {expected}"
    return None


def lint_python(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line; nothing if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return sentences(PythonLint(tree).findings())


Finding = tuple[int, str, str]
"""Line, the source's own text, and the reason to look at it."""


def sentences(findings: Iterable[Finding]) -> list[str]:
    """Return findings as sentences in the order of their lines, each one once."""
    return [f"line {line}: `{name[:60]}` {reason}" for line, name, reason in sorted(set(findings))]


class PythonLint:
    """Lint of one parsed file: the names that it imports, and findings in its statements."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.aliases: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for a in node.names:
                    self.aliases[a.asname or a.name.split(".")[0]] = a.name if a.asname else a.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom):
                self.aliases.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})

    def findings(self) -> Iterator[Finding]:
        """Yield every finding, in no order."""
        for statement in self.tree.body:
            yield from self._module_cache(statement)
        inner = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
                yield from self._name(node)
            yield from self._identity(node)
            yield from self._statement(node)

    def dotted(self, node: ast.AST) -> str:
        """Return a name in full, `F.softmax` as `torch.nn.functional.softmax`; empty if it is not a plain name."""
        match node:
            case ast.Name(id=name):
                return self.aliases.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{root}.{attr}" if (root := self.dotted(value)) else ""
        return ""

    def _name(self, node: ast.Attribute | ast.Name) -> Iterator[Finding]:
        name = self.dotted(node)
        if not isinstance(node.ctx, ast.Load) or not (self.is_imported(node) or name == "open"):
            return
        for starts, reason in _TRIPWIRES:
            if any(name == start or name.startswith(f"{start}.") for start in starts):
                yield node.lineno, name, reason

    def is_imported(self, node: ast.AST) -> bool:
        """Return True if the name begins with something that the file imports."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.aliases

    def _statement(self, node: ast.AST) -> Iterator[Finding]:
        match node:
            case ast.Assign() | ast.AugAssign() | ast.Delete():
                for target in [node.target] if isinstance(node, ast.AugAssign) else node.targets:
                    if (name := self.dotted(target)).startswith(("torch.", "triton.")):
                        yield node.lineno, name, "is set for the whole process"
            case ast.Call(func=ast.Name(id="setattr"), args=[target, *_]):
                if self.dotted(target).split(".")[0] in ("torch", "triton"):
                    yield node.lineno, ast.unparse(node), "is set for the whole process"
            case ast.Call(func=ast.Attribute(attr=attr) as method) if attr in _METHODS:
                if self.dotted(method).split(".")[0] not in ("triton", "torch"):
                    yield node.lineno, f".{attr}()", "calls a library's kernel"
            case ast.BinOp(op=ast.MatMult()):
                yield node.lineno, ast.unparse(node), "calls a library's kernel"
            case ast.Try() if any(_is_launch(inner) for part in node.body for inner in ast.walk(part)):
                yield node.lineno, "try", "wraps a kernel launch"
            case ast.FunctionDef():
                yield from self._function_cache(node)

    def _identity(self, node: ast.AST) -> Iterator[Finding]:
        """Yield addresses and object identities in places where they can tell one call from another."""
        keys: list[ast.expr] = []
        match node:
            case ast.Compare():
                keys = [node.left, *node.comparators]
            case ast.Subscript(slice=key):
                keys = [key]
            case ast.Tuple(elts=elements):
                keys = elements
            case ast.Dict():
                keys = [key for key in node.keys if key is not None]
            case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in _LOOKUPS:
                keys = args
        for key in keys:
            for call in _identities(key):
                yield call.lineno, ast.unparse(call), "tells calls apart by address"

    def _module_cache(self, node: ast.stmt) -> Iterator[Finding]:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            empty = isinstance(node.value, ast.Dict) and not node.value.keys
            container = isinstance(node.value, ast.Call) and self.dotted(node.value.func) in _CONTAINERS
            if empty or container:
                yield node.lineno, ast.unparse(node), "outlives the call"

    def _function_cache(self, node: ast.FunctionDef) -> Iterator[Finding]:
        names = {self.dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        kinds = {self.dotted(a.annotation) if a.annotation else "" for a in arguments}
        if names & _CACHES and kinds - _PLAIN:
            yield node.lineno, node.name, "keeps results and may be keyed by tensors"


def _identities(node: ast.AST) -> Iterator[ast.Call]:
    """Yield calls of id() and data_ptr() under a node, except in `%` and `&`, which ask for alignment."""
    match node:
        case ast.BinOp(op=ast.Mod() | ast.BitAnd()):
            return
        case ast.Call(func=ast.Name(id="id")) | ast.Call(func=ast.Attribute(attr="data_ptr" | "untyped_storage")):
            yield node
    for child in ast.iter_child_nodes(node):
        yield from _identities(child)


def _is_launch(node: ast.AST) -> bool:
    """Return True for a launch as Triton writes it: `kernel[grid](...)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)

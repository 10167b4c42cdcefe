"""Reference of a definition as source that stands alone; FlashInfer-Trace calls it `run`."""

from __future__ import annotations

import ast
from pathlib import Path

from warpsmith.errors import BadDefinition
from warpsmith.interchange.draft import read_user_text

_LOADERS = ("load_sibling", "beside")
"""Names under which definitions import `warpsmith.load_sibling`; the second one is its old name."""


def reference_source(path: Path) -> str:
    """Return the part of the definition in `path` that `reference` needs, with `reference` renamed to `run`.

    Files that it loads with `load_sibling` are embedded. If the reference is just another file's `run`, the result
    is that file, unchanged.

    Raises:
        BadDefinition: the reference needs something from Warpsmith.
    """
    tree = ast.parse(read_user_text(path))
    needed = _needed_statements(tree, path)
    other = _reexported_sibling(needed[-1])
    if other is not None:
        return read_user_text(path.with_name(other))
    body = [_RenameReference().visit(statement) for node in needed for statement in _embed_sibling(node, path)]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=body, type_ignores=[]))) + "\n"


def _needed_statements(tree: ast.Module, path: Path) -> list[ast.stmt]:
    """Return the statements that `reference` needs, in order; its own statement is the last."""
    binders: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in _bound_names(node):
            binders.setdefault(name, []).append(node)
    if "reference" not in binders:
        raise BadDefinition(f"{path} has no `reference`.")
    needed, pending, visited = set[ast.stmt](), ["reference"], set[str]()
    while pending:
        name = pending.pop()
        if name in visited:
            continue
        visited.add(name)
        for node in binders.get(name, []):
            _refuse_warpsmith_import(node, name, path)
            needed.add(node)
            pending += [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    if "run" in visited & set(binders):
        raise BadDefinition(
            f"{path}: reference uses another `run`; rename that one, since the reference becomes `run` itself."
        )
    # Statements after the reference have run by the time that it is called.
    rest = [node for node in tree.body if node in needed and node is not binders["reference"][-1]]
    future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    # An import from Warpsmith that passed the check was needed only for the loader, whose calls are embedded.
    own = [node for node in rest if not _is_warpsmith_import(node)]
    return [*future, *own, binders["reference"][-1]]


def _bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.split(".")[0] for alias in names}
        case _:
            return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _is_warpsmith_import(node: ast.stmt) -> bool:
    """Return whether a statement imports from Warpsmith."""
    match node:
        case ast.ImportFrom(module=str(module)):
            return module.split(".")[0] == "warpsmith"
        case ast.Import(names=names):
            return any(alias.name.split(".")[0] == "warpsmith" for alias in names)
        case _:
            return False


def _refuse_warpsmith_import(node: ast.stmt, name: str, path: Path) -> None:
    """Refuse a needed name that comes from Warpsmith, unless it is the loader of files, whose calls are
    embedded."""
    if isinstance(node, ast.ImportFrom) and name in _LOADERS and name in {alias.name for alias in node.names}:
        return
    if _is_warpsmith_import(node):
        raise BadDefinition(
            f"{path}:{node.lineno}: reference needs `{name}` of Warpsmith; elsewhere only PyTorch is available."
        )


def _sibling_name(node: ast.expr) -> str | None:
    """Return the file name in `load_sibling(__file__, "name")`; None for any other expression."""
    match node:
        case ast.Call(func=ast.Name(id=loader), args=[ast.Name(id="__file__"), ast.Constant(value=str(name))]) if (
            loader in _LOADERS
        ):
            return name
        case _:
            return None


def _reexported_sibling(node: ast.stmt) -> str | None:
    """Return the file name in `reference = load_sibling(__file__, "name").run`; None for any other statement."""
    match node:
        case ast.Assign(value=ast.Attribute(value=call, attr="run")):
            return _sibling_name(call)
        case _:
            return None


def _embed_sibling(node: ast.stmt, path: Path) -> list[ast.stmt]:
    """Return the statement, or the statements that make a module from the file's text for `name =
    load_sibling(...)`."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=call) if (file := _sibling_name(call)) is not None:
            text = read_user_text(path.with_name(file))
            stem = Path(file).stem
            source = f"{name} = __import__('types').ModuleType({stem!r})\nexec({text!r}, {name}.__dict__)"
            return ast.parse(source).body
        case _:
            return [node]


class _RenameReference(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if node.name == "reference":
            node.name = "run"
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == "reference":
            node.id = "run"
        return node

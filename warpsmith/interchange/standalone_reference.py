"""The reference of a definition as source that stands alone: what FlashInfer-Trace calls `run`."""

from __future__ import annotations

import ast
from pathlib import Path

from warpsmith.errors import BadDefinition
from warpsmith.interchange.draft import read_user_text


def reference_source(path: Path) -> str:
    """The part of the definition in `path` that `reference` needs, renamed to `run`.

    Files that it loads with `beside` are put in; a reference that is nothing but another file's `run`
    is that file, unchanged.

    Raises:
        BadDefinition: the reference needs something of Warpsmith.
    """
    tree = ast.parse(read_user_text(path))
    needed = _needed_statements(tree, path)
    other = _reexported_sibling(needed[-1])
    if other is not None:
        return read_user_text(path.with_name(other))
    body = [_RenameReference().visit(statement) for node in needed for statement in _embed_sibling(node, path)]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=body, type_ignores=[]))) + "\n"


def _needed_statements(tree: ast.Module, path: Path) -> list[ast.stmt]:
    """The statements that `reference` needs, in order; its own is the last of them."""
    binders: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in _bound_names(node):
            binders.setdefault(name, []).append(node)
    if "reference" not in binders:
        raise BadDefinition(f"{path} has no `reference`.")
    kept, wanted, seen = set[ast.stmt](), ["reference"], set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in binders.get(name, []):
            _refuse_warpsmith_import(node, name, path)
            kept.add(node)
            wanted += [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    if "run" in seen & set(binders):
        raise BadDefinition(f"{path}: reference uses another `run`; rename that, since it becomes `run` itself.")
    # Statements after the reference were bound by the time that it is called.
    rest = [node for node in tree.body if node in kept and node is not binders["reference"][-1]]
    future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    dropped = [node for node in rest if _imports_only_loader(node)]
    return [*future, *(node for node in rest if node not in dropped), binders["reference"][-1]]


def _bound_names(node: ast.stmt) -> set[str]:
    """The names that a top-level statement binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.split(".")[0] for alias in names}
        case _:
            return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _imports_only_loader(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] == ["beside"]


def _refuse_warpsmith_import(node: ast.stmt, name: str, path: Path) -> None:
    match node:
        case ast.ImportFrom(module=str(module)) if not _imports_only_loader(node):
            ours = module.split(".")[0] == "warpsmith"
        case ast.Import(names=names):
            ours = any(alias.name.split(".")[0] == "warpsmith" for alias in names)
        case _:
            ours = False
    if ours:
        raise BadDefinition(
            f"{path}:{node.lineno}: reference needs `{name}` of Warpsmith; elsewhere there is only PyTorch."
        )


def _sibling_name(node: ast.expr) -> str | None:
    """The file name in `beside(__file__, "name")`."""
    match node:
        case ast.Call(func=ast.Name(id="beside"), args=[ast.Name(id="__file__"), ast.Constant(value=str(name))]):
            return name
        case _:
            return None


def _reexported_sibling(node: ast.stmt) -> str | None:
    """The file in `reference = beside(__file__, "name").run`."""
    match node:
        case ast.Assign(value=ast.Attribute(value=call, attr="run")):
            return _sibling_name(call)
        case _:
            return None


def _embed_sibling(node: ast.stmt, path: Path) -> list[ast.stmt]:
    """The statement; `name = beside(...)` becomes a module made from the file's text."""
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

"""Syntax of shell commands: the simple commands of a text, with the strings that their words can stand for."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

UNKNOWN = "\0"
"""Stands in a word for text that only the shell knows, such as an unset variable."""

_MOST = 64
"""Most strings that one word is expanded to."""


@dataclass(frozen=True)
class SimpleCommand:
    """One simple command: a program with its arguments, or redirections alone."""

    words: tuple[str, ...]
    """Program and arguments; a word of several values, such as a loop's variable, stands here once for each."""
    folder: Path
    """Folder that it runs in."""
    outputs: tuple[str, ...] = ()
    """Files that redirections write."""
    stdin: str = ""
    """Text of its here-document."""


def parse_commands(text: str, folder: Path) -> list[SimpleCommand] | None:
    """Parse a shell text that starts in `folder`; None if it does not parse, or the parser is not installed."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    root = parser.parse(text.encode()).root_node
    if root.has_error:
        return None
    reader = _Reader(folder)
    reader.visit(root)
    return reader.commands


class _Reader:
    """Walks a syntax tree in the order of execution; follows `cd` and assigned variables."""

    def __init__(self, folder: Path) -> None:
        self.commands: list[SimpleCommand] = []
        self._folder = self._previous = folder
        self._variables: dict[str, tuple[str, ...]] = {}
        self._functions: dict[str, Node] = {}
        self._stdin = ""

    def visit(self, node: Node) -> None:
        """Add the simple commands of a node."""
        method = getattr(self, f"_visit_{node.type}", None)
        if method:
            method(node)
            return
        for child in node.named_children:
            self.visit(child)

    def _visit_command(self, node: Node) -> None:
        words: list[str] = []
        outputs: list[str] = []
        stdin = self._stdin
        for child in node.named_children:
            if child.type == "herestring_redirect":
                stdin = "".join(self._strings(child.named_children[0])[:1])
            elif child.type == "file_redirect":
                outputs += self._outputs(child)
            elif child.type == "variable_assignment":
                pass  # for this command alone
            else:
                words += self._words(child.named_children[0] if child.type == "command_name" else child)
        self._stdin = ""
        self._visit_substitutions(node)
        self.commands.append(SimpleCommand(tuple(words), self._folder, tuple(outputs), stdin))
        self._change_folder(words)
        self._call_function(words)

    def _change_folder(self, words: list[str]) -> None:
        if words in (["cd", "-"], ["popd"]):
            self._folder, self._previous = self._previous, self._folder
        elif words[:1] in (["cd"], ["pushd"]):
            targets = [word for word in words[1:] if not word.startswith("-")]
            if targets and UNKNOWN not in targets[0]:
                self._previous = self._folder
                self._folder = self._folder / Path(targets[0]).expanduser()

    def _visit_function_definition(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            self._functions[_text(name)] = node

    def _call_function(self, words: list[str]) -> None:
        """Visit the body of a function where it is called, with its arguments."""
        definition = self._functions.pop(words[0], None) if words else None  # popped: one that calls itself ends
        if definition is None:
            return
        outer = self._variables
        arguments = {str(k): (word,) for k, word in enumerate(words[1:], 1)}
        self._variables = outer | arguments | {"@": tuple(words[1:]), "*": tuple(words[1:])}
        for part in ("body", "redirect"):
            for node in definition.children_by_field_name(part):
                if part == "body":
                    self.visit(node)
                else:
                    self.commands.append(SimpleCommand((), self._folder, self._outputs(node)))
        self._variables = outer
        self._functions[words[0]] = definition

    def _visit_redirected_statement(self, node: Node) -> None:
        redirects = node.children_by_field_name("redirect")
        # `cat <<EOF > file` has the file inside of the here-document.
        redirects += [inner for redirect in redirects for inner in redirect.children_by_field_name("redirect")]
        outputs = tuple(output for redirect in redirects for output in self._outputs(redirect))
        for redirect in redirects:
            for child in redirect.named_children:
                if child.type == "heredoc_body":
                    self._stdin = _text(child)
        body = node.child_by_field_name("body")
        if body is not None:
            self.visit(body)
        self._stdin = ""
        for redirect in redirects:
            for child in redirect.named_children:
                self.visit(child)
        self.commands.append(SimpleCommand((), self._folder, outputs))

    def _visit_variable_assignment(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            self._variables[_text(name)] = self._strings(value) if value is not None else ("",)
        self._visit_substitutions(node)

    def _visit_for_statement(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        values = node.children_by_field_name("value")
        if variable is not None:
            strings = tuple(string for value in values for string in self._words(value))
            self._variables[_text(variable)] = strings or (UNKNOWN,)
        for part in (*values, *([body] if body is not None else [])):
            self.visit(part)

    def _visit_subshell(self, node: Node) -> None:
        with self._own_folder():
            for child in node.named_children:
                self.visit(child)

    _visit_command_substitution = _visit_process_substitution = _visit_subshell

    def _visit_substitutions(self, node: Node) -> None:
        for child in node.named_children:
            if child.type in ("command_substitution", "process_substitution"):
                self.visit(child)
            else:
                self._visit_substitutions(child)

    @contextmanager
    def _own_folder(self) -> Iterator[None]:
        folder = self._folder
        yield
        self._folder = folder

    def _outputs(self, redirect: Node) -> tuple[str, ...]:
        """Return the files that a redirection writes."""
        destination = redirect.child_by_field_name("destination")
        signs = {child.type for child in redirect.children if not child.is_named}
        writes = redirect.type == "file_redirect" and signs & {">", ">>", ">|", "&>", "&>>", ">&"}
        if destination is None or not writes or destination.type in ("number", "process_substitution"):
            return ()
        return self._strings(destination)

    def _words(self, node: Node) -> tuple[str, ...]:
        """Return the words that a word can stand for: a variable without quotes is split as the shell does."""
        strings = self._strings(node)
        unquoted = node.type in ("simple_expansion", "expansion")
        return tuple(word for string in strings for word in string.split()) if unquoted else strings

    def _strings(self, node: Node) -> tuple[str, ...]:
        """Return the strings that a word can stand for."""
        kind, text = node.type, _text(node)
        if kind == "word":
            return tuple(_braces(re.sub(r"\\(.)", r"\1", text)))
        if kind == "raw_string":
            return (text[1:-1],)
        if kind == "ansi_c_string":
            return (text[2:-1],)
        if kind in ("string", "concatenation"):
            joined = ("".join(parts) for parts in product(*self._parts(node)))
            expand = _braces if kind == "concatenation" else lambda string: [string]
            return tuple(islice((string for whole in joined for string in expand(whole)), _MOST))
        if kind in ("simple_expansion", "expansion"):
            kinds = ("variable_name", "special_variable_name")
            names = [_text(child) for child in node.named_children if child.type in kinds]
            return self._values(names[0]) if len(names) == len(node.named_children) == 1 else (UNKNOWN,)
        if re.match(r"(\$\(|`)\s*mktemp\b", text):
            return (f"{tempfile.gettempdir()}/mktemp",)
        return (UNKNOWN,) if kind.endswith("_substitution") else (text,)

    def _parts(self, node: Node) -> Iterator[tuple[str, ...]]:
        """Yield the parts of a composed word, with the text between its nodes."""
        data, start = node.text or b"", node.start_byte
        inner = slice(1, -1) if node.type == "string" else slice(None)
        position = start + (inner.start or 0)
        for child in node.named_children:
            yield (data[position - start : child.start_byte - start].decode(),)
            yield (_text(child),) if child.type == "string_content" else self._strings(child)
            position = child.end_byte
        yield (data[position - start : inner.stop].decode(),)

    def _values(self, name: str) -> tuple[str, ...]:
        if name == "PWD":
            return (str(self._folder),)
        return self._variables.get(name) or (os.environ.get(name) or UNKNOWN,)


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _braces(word: str) -> list[str]:
    """Expand `{a,b}` as the shell does."""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", word)
    if not match:
        return [word]
    wholes = [word[: match.start()] + choice + word[match.end() :] for choice in match[1].split(",")]
    return [string for whole in wholes for string in _braces(whole)]

"""The calls in a function of the user's: which functions they enter, and what each means to a CUDA graph."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from warpsmith.program.capture.events import CAPTURABLE, COUNTS_ON_HOST
from warpsmith.program.capture.models import Certainty
from warpsmith.program.capture.names import ALWAYS, COLLECTIVES, FUNCTIONS, METHODS, ON_DEVICE, TELLING
from warpsmith.program.capture.rules import Finding
from warpsmith.program.capture.source import Class, Function
from warpsmith.program.capture.values import Scope, Value

if TYPE_CHECKING:
    from warpsmith.program.capture.static import Walk

_LESS: dict[Certainty, Certainty] = {"certain": "likely", "likely": "look", "look": "look"}


class CallRules:
    """Looks at one scope, call by call."""

    def __init__(self, walk: Walk, scope: Scope, function: Function | None) -> None:
        self.walk, self.scope, self.function = walk, scope, function
        self.guards = 0

    def value(self, node: ast.expr) -> Value:
        """What an expression holds."""
        return self.walk.kinds.value(node, self.scope)

    def on_device(self, node: ast.expr) -> bool:
        """Whether it is a tensor on the device."""
        return self.value(node).kind in ON_DEVICE

    def tell(self, node: ast.AST, kind: str, what: str, certainty: Certainty = "certain") -> None:
        """Keep a finding; what stands behind an `if` is one level less sure."""
        if self.guards:
            certainty = _LESS[certainty]
        name = self.function.name if self.function else ""
        place = str(self.scope.source.path)
        self.walk.tell(Finding(kind, what, place, getattr(node, "lineno", 1), certainty, name), self.function)

    def call(self, node: ast.Call) -> None:
        """Reach what a call enters, and say what it means."""
        functions = self.walk.kinds.callee(node, self.scope)
        for function in functions:
            self.walk.kinds.bind(function, self.walk.kinds.arguments(node, function, self.scope))
        self.walk.reach([function for function in functions if function.node.name != "__init__"])
        held = self.value(node.func)
        self.walk.reach_modules(held.classes if held.kind == "module" else ())
        local = isinstance(node.func, ast.Name) and node.func.id in self.scope.names
        symbol = None if local else self.walk.sources.symbol(self.scope.source, node.func)
        if isinstance(symbol, Class) and symbol.derives("torch.autograd."):
            self.walk.reach([m for name in ("forward", "backward") if (m := symbol.method(name))])
        if isinstance(symbol, str):
            self._external(node, symbol)
        elif isinstance(node.func, ast.Attribute) and not functions:
            self._method(node, node.func, self.value(node.func.value))
        elif isinstance(node.func, ast.Name) and symbol is None and not functions and not local:
            self._builtin(node, node.func.id)

    def _method(self, node: ast.Call, func: ast.Attribute, base: Value) -> None:
        name, on_device = func.attr, base.kind in ON_DEVICE
        match base.kind:
            case "optimizer" if name == "step":
                self._optimizer(node, base)
                return
            case "scheduler" if name == "step":
                self.tell(node, "learning-rate", f"`{short(node)}`")
                return
            case "scaler" if name in ("step", "unscale_"):
                self.tell(node, "scaler", f"`{short(node)}`", "likely")
                if name == "step" and node.args:
                    self._optimizer(node, self.value(node.args[0]))
                return
            case "module" | "object" | "loader" | "python" | "host" if name in METHODS:
                return
        if name in METHODS and (on_device or name in TELLING) and not (name == "cpu" and base.kind == "module"):
            self.tell(node, METHODS[name], f"`.{name}()`", "certain" if on_device else "likely")
        elif name == "repeat_interleave" and on_device:
            self._repeats(node, node.args[:1])
        elif name in ("to", "cuda"):
            self._moved(node, name, base)
        elif name == "synchronize":
            self.tell(node, "synchronize", f"`{short(node)}`", "likely")
        elif name == "backward" and any(word.arg == "retain_graph" for word in node.keywords):
            return
        elif name == "append" and node.args and self.on_device(node.args[0]) and self._outlives(func.value):
            self.tell(node, "state", "appends a tensor to a list that outlives the step", "look")
        elif name in ("wait_stream", "record_stream", "wait_event"):
            self.tell(node, "stream", f"`.{name}()`", "look")
        elif name in ("info", "debug", "warning", "log", "add_scalar", "write") and not base.kind:
            self.tell(node, "output", f"`{short(node)}`", "look")
        self._numbers(node, on_device)

    def _outlives(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id not in self.scope.names)

    def _moved(self, node: ast.Call, name: str, base: Value) -> None:
        aim = "cuda" if name == "cuda" else self.walk.kinds.calls.aim(node, self.scope)
        pinned = "pin_memory" in ast.unparse(node.func)
        if aim == "cpu":
            if base.kind != "host":
                self.tell(node, "to-host", f"`{short(node)}`", "certain" if base.kind in ON_DEVICE else "likely")
        elif aim and pinned:
            self.tell(node, "pinned-copy", f"`{short(node)}`", "likely")
        elif aim and base.kind == "host":
            self.tell(node, "to-device", f"`{short(node)}`", "certain" if aim == "cuda" else "likely")
        elif aim and base.kind not in ("device", "mask", "module", "python"):
            self.tell(node, "to-device", f"`{short(node)}`: if it is on the CPU", "look")

    def _optimizer(self, node: ast.Call, base: Value) -> None:
        if base.made is None:
            return
        source, call = base.made
        symbol = self.walk.sources.symbol(source, call.func)
        cls = symbol.rpartition(".")[2] if isinstance(symbol, str) else ""
        options = {word.arg: word.value for word in call.keywords}
        given = options.get("capturable")
        off = given is None or (isinstance(given, ast.Constant) and not given.value)
        if cls in CAPTURABLE and off and None not in options:
            self.tell(node, "optimizer", f"`{cls}` without capturable=True, made in line {call.lineno}")
        elif cls in COUNTS_ON_HOST:
            self.tell(node, "optimizer-host", f"`{cls}`", COUNTS_ON_HOST[cls])

    def _builtin(self, node: ast.Call, name: str) -> None:
        given = [self.value(argument) for argument in node.args]
        tensors = [value for value in given if value.kind in ON_DEVICE]
        if name in ("float", "int", "complex", "round", "range") and tensors:
            self.tell(node, "host-read", f"`{name}(…)` of a tensor")
        elif name == "bool" and tensors:
            self.tell(node, "truth", "`bool(…)` of a tensor")
        elif name in ("print", "str", "repr", "format"):
            if tensors:
                self.tell(node, "print", f"`{name}(…)` of a tensor")
            elif name == "print":
                self.tell(node, "output", "`print(…)`", "look")
        elif name in ("min", "max", "sorted", "any", "all") and (
            len(tensors) > 1 or (tensors and len(given) == 1)
        ):
            self.tell(node, "truth", f"Python's `{name}(…)` of tensors", "likely")
        elif name == "next":
            sure = bool(given) and given[0].kind == "loader"
            self.tell(node, "loader", f"`{short(node)}`", "certain" if sure else "likely")
        elif name == "open":
            self.tell(node, "output", "`open(…)`", "look")

    def _external(self, node: ast.Call, name: str) -> None:
        last, tensor = name.rpartition(".")[2], any(self.on_device(argument) for argument in node.args)
        given = {word.arg: word.value for word in node.keywords}
        if name in FUNCTIONS and (tensor or FUNCTIONS[name] in ("data-shape", "error-check")):
            self.tell(node, FUNCTIONS[name], f"`{last}(…)`", "certain" if tensor else "likely")
        elif name == "torch.where" and len(node.args) == 1 and not given:
            self.tell(node, "data-shape", "`torch.where(…)` with one argument")
        elif name == "torch.repeat_interleave" and "output_size" not in given:
            self._repeats(node, node.args[1:2])
        elif name in ("torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy"):
            self._from_python(node, last)
        elif name == "torch.utils.checkpoint.checkpoint":
            kept = given.get("preserve_rng_state")
            off = isinstance(kept, ast.Constant) and kept.value is False
            self.tell(node, "checkpoint", "activation checkpointing", "look" if off else "likely")
        elif name == "torch.nn.utils.clip_grad_norm_" and _true(given.get("error_if_nonfinite")):
            self.tell(node, "truth", "`clip_grad_norm_(error_if_nonfinite=True)`")
        elif name == "torch.distributed.barrier":
            self.tell(node, "synchronize", "`barrier()`", "likely")
        elif name.startswith("torch.distributed.") and last in COLLECTIVES:
            gloo = self._gloo()
            self.tell(node, "collective", f"`{last}(…)`{' over gloo' * gloo}", "certain" if gloo else "look")
        else:
            for prefix, kind, certainty in ALWAYS:
                if name == prefix or name.startswith(prefix if prefix.endswith(".") else f"{prefix}_"):
                    self.tell(node, kind, f"`{short(node.func)}(…)`", certainty)
                    break
        if "generator" in given and self.value(given["generator"]).kind == "generator":
            self.tell(node, "generator", f"`{last}(…, generator=…)`", "likely")
        self._numbers(node, tensor or name.startswith("torch.full"))

    def _from_python(self, node: ast.Call, last: str) -> None:
        aim = self.walk.kinds.calls.aim(node, self.scope)
        if node.args and self.on_device(node.args[0]):
            return
        if aim in ("cuda", "device"):
            self.tell(node, "to-device", f"`torch.{last}(…, device=…)`", "certain" if aim == "cuda" else "likely")

    def _repeats(self, node: ast.Call, repeats: Sequence[ast.expr]) -> None:
        named = [word.arg for word in node.keywords]
        if repeats and self.on_device(repeats[0]) and "output_size" not in named:
            self.tell(node, "data-shape", "`repeat_interleave(…)` without output_size")

    def _numbers(self, node: ast.Call, on_device: bool) -> None:
        if on_device and any(self.value(argument).kind == "counter" for argument in node.args):
            self.tell(node, "changing-number", f"`{short(node)}`", "likely")

    def _gloo(self) -> bool:
        return any("gloo" in line for source in self.walk.sources for line in source.lines)


def short(node: ast.AST, most: int = 50) -> str:
    """Its source, cut where it is long."""
    words = ast.unparse(node)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)

"""In the processes of a command: the script as it is, which waits for a request where one of its steps ends.

The script does not know of this. A step ends when its optimizer has stepped, or else its backward pass or its call
of a model. There the work of a request goes on until it needs another step.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import socket
import sys
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.program.process import gather, serve
from warpsmith.program.process.loaded_program import ProgramRefused
from warpsmith.program.scripts.script_loop import Work

if TYPE_CHECKING:
    from torch import nn

    from warpsmith.program.process.profile_steps import Steps


class ScriptSteps:
    """The script in its own process, in place of a `LoadedProgram`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.path = Path(settings["script"])
        """File of the script."""
        self.label: str = settings["label"]
        """Name of the program in messages."""
        self.next_step = 0
        """Number of the step that runs."""
        self.seed: int = settings["seed"]
        """Seed of random, numpy and torch."""
        self.setup_result: Any = None
        """Always None: a script has no setup."""
        self.values: list[dict[str, Any]] = []
        """Values of the steps of the last request `run`."""
        self._settings = settings
        self._channel: Channel | None = None
        self._work: Steps[Message] | None = None
        self._marker: Any = None
        self._inside = False
        self._losses: list[Any] = []

    @property
    def module(self) -> types.ModuleType:
        """Module of the script."""
        return sys.modules["__main__"]

    @property
    def work(self) -> Work:
        """Kind of call that ends the steps."""
        work: Work = self._settings["work"]
        return work

    def step(self) -> object:
        """Refuse: only the script itself runs its steps."""
        raise ProgramRefused("this needs a step that can be called; give FILE with --step")

    def modules(self) -> dict[str, nn.Module]:
        """Return the outermost modules by class, those that the optimizer updates if there is one."""
        import torch

        live = gather.live_objects(torch.nn.Module)
        inner = {id(part) for module in live for part in module.modules() if part is not module}
        groups = getattr(self._marker, "param_groups", ())
        updated = {id(parameter) for group in groups for parameter in group["params"]}
        modules: dict[str, nn.Module] = {}
        for module in live:
            if id(module) in inner or (updated and not updated & set(map(id, module.parameters()))):
                continue
            plain = getattr(module, "_orig_mod", module)  # of torch.compile
            kind = type(plain).__name__
            same = sum(name.partition("-")[0] == kind for name in modules)
            modules[f"{kind}-{same}" if same else kind] = plain
        return modules

    def prepare_torch(self) -> None:
        """Seed the generators and mark the steps; call this when PyTorch has just been imported."""
        import torch

        gather.record_compile_calls(eager_random=self._settings["eager_random"])
        random.seed(self.seed)
        torch.manual_seed(self.seed)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            sys.excepthook = functools.partial(self._report_failure, os.getpid())
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(self.seed % 2**32)
        if self.work not in ("generate", "forward"):
            self._watch_backward()
        if self.work in ("optimizer", "library"):
            self._watch_optimizers()

    def mark_step(self, marker: object, call: Callable[[], Any], *, returns: bool = False) -> Any:  # noqa: ANN401
        """Make a call that ends a step, unless another marker does; with `returns` its result is the step's value.

        The first marker ends the steps: what others do is a part of them.
        """
        if self._inside or self._marker not in (None, marker):
            return call()
        if self._channel is None:
            self._marker = marker
            self._connect()
            self._advance(None)
        self._inside = True
        try:
            result = call()
        finally:
            self._inside = False
        self.next_step += 1
        losses, self._losses = self._losses, []
        self._advance(result if returns else sum(losses[1:], losses[0]) if losses else None)
        return result

    def _advance(self, value: object) -> None:
        """Go on with the work until it needs a step, and take up further requests when it is done."""
        while True:
            try:
                if self._work is None:
                    self._work, value = serve.answer_steps(self, self._receive()), None  # type: ignore[arg-type]
                self._work.send(value)
                return
            except StopIteration as end:
                answer = {"ok": True, **end.value}
            except ChannelClosed:
                os._exit(0)
            except BaseException as error:
                answer = serve.describe_request_error(self, error)  # type: ignore[arg-type]
            self._work = None
            self._send(answer)

    def _connect(self) -> None:
        end = socket.socket(socket.AF_UNIX)
        end.connect(self._settings["socket"])
        os.set_inheritable(end.fileno(), False)
        self._channel = Channel(end)
        os.register_at_fork(after_in_child=self._forget)
        ranks = gather.world_size()
        if ranks > 1:
            self._write_stack_at_signal()
        self._send(
            {
                "rank": gather.rank_number(),
                "ranks": ranks,
                "local": int(os.environ.get("LOCAL_WORLD_SIZE", ranks)),
                "process": os.getpid(),
            }
        )

    def _write_stack_at_signal(self) -> None:
        """Have the runner learn where this rank is, even inside of a collective that hangs."""
        import faulthandler

        file = Path(self._settings["stacks"], f"stack-{os.getpid()}.txt")
        self._stack = file.open("w")
        faulthandler.register(signal.SIGUSR2, self._stack, all_threads=False)

    def _report_failure(
        self, process: int, _kind: type, error: BaseException, _trace: types.TracebackType | None
    ) -> None:
        """Tell the runner which rank failed, if this is the rank's own process: others fail when they miss it."""
        if os.getpid() != process:
            return
        rank, world = (int(os.environ.get(name, "1")) for name in ("RANK", "WORLD_SIZE"))
        failure = {"rank": rank, "ranks_expected": world, "time": time.monotonic()}
        answer = {**serve.describe_request_error(self, error), **failure}  # type: ignore[arg-type]
        if self._channel is None:
            end = socket.socket(socket.AF_UNIX)
            end.connect(self._settings["socket"])
            self._channel = Channel(end)
        self._send(answer)

    def _forget(self) -> None:
        """Leave the channel to the parent, in a process that it forked; a step there ends the process."""
        if self._channel is not None:
            self._channel.close()

    def _receive(self) -> Message:
        if self._channel is None:
            raise ChannelClosed
        return self._channel.receive()[0]

    def _send(self, message: Message) -> None:
        try:
            if self._channel is not None:
                self._channel.send(message)
        except ChannelClosed:
            os._exit(0)

    def _watch_backward(self) -> None:
        """Note the losses of backward passes, whose sum is the value of a step."""
        import torch

        original = torch.autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
            roots = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
            self._losses += [root.detach().clone() for root in roots if root.numel() == 1]
            if self.work == "backward":
                self.mark_step(original, lambda: original(tensors, *args, **options))
            else:
                original(tensors, *args, **options)

        torch.autograd.backward = backward
        if self.work != "backward":
            return
        method: Any = torch.Tensor.backward

        @functools.wraps(method)
        def backward_of_loss(loss: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
            # The step ends outside of the call: PyTorch takes modes that watch away within it.
            self.mark_step(original, lambda: method(loss, *args, **options))

        torch.Tensor.backward = backward_of_loss  # type: ignore[assignment]

    def _watch_optimizers(self) -> None:
        """End a step where an optimizer has stepped."""
        import torch

        kind: Any = torch.optim.Optimizer
        original, script = kind.__init__, self

        @functools.wraps(original)
        def init(optimizer: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
            original(optimizer, *args, **options)
            step = type(optimizer).step

            @functools.wraps(step)
            def marked_step(self: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - PyTorch's
                return script.mark_step(self, lambda: type(self).step(self, *args, **options))

            marked_step._torchdynamo_disable = True  # type: ignore[attr-defined]
            optimizer.step = types.MethodType(marked_step, optimizer)

        kind.__init__ = init

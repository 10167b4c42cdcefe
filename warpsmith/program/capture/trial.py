"""Captures that are tried, each in a process of its own, and held against eager steps in another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from warpsmith.errors import MachineLacks, SolutionFailed, WarpsmithError
from warpsmith.program.capture import replay as graph_replay
from warpsmith.program.capture.models import Covered, GraphModule, Trial
from warpsmith.program.capture.rules import Finding
from warpsmith.program.process.runner import Runner
from warpsmith.program.process.step import Program

TOLERANCE = 1e-3
"""Difference of a value from the eager step's, over its size, that is equal without asking for the noise."""

NOISE_FACTOR = 4.0
"""So many times the difference between two eager runs is equal too."""

MOST_TRIALS = 12
"""Modules whose capture is tried."""

SMALLEST = 0.02
"""Share of the step below which a module is not tried."""

_WARM, _STEPS = 3, 5


class Trials:
    """Captures of one program's step."""

    def __init__(self, program: Program, folders: Sequence[str], timeout: float, log: Path | None = None) -> None:
        self._program, self._folders, self._timeout, self._log = program, list(folders), timeout, log
        self._failures = 0
        self.moving = True
        """Whether inputs get new content before each step."""
        self.notes: list[str] = []
        """What limits the trials."""

    def whole(self) -> tuple[Trial, Finding | None]:
        """The whole step, and where its capture failed.

        Raises:
            WarpsmithError: the eager steps that it would be held against do not run, as `Runner` says.
        """
        answer = self._tried("graph_capture", replay=True)
        trial = self._judged("step", answer)
        if trial.captured or not answer.get("file"):
            return trial, None
        what = answer["error"][:160]
        return trial, Finding("capture", what, answer["file"], answer["line"], "certain", answer["function"])

    def modules(self, names: Sequence[str]) -> Trial:
        """Steps in which these modules are graphs."""
        return self._judged(", ".join(names), self._tried("graph_modules", names=list(names)))

    @cached_property
    def eager(self) -> dict[str, Any]:
        """Eager steps, from the same seed; if they fail with new content in their inputs, with what these hold."""
        try:
            return self._run("graph_capture", replay=False)
        except (SolutionFailed, MachineLacks) as error:
            self.moving = False
            found = self._run("graph_capture", replay=False)
            self.notes.append(
                "inputs kept their content in every step, so a replay that reads an old copy would not show: with "
                f"their elements moved by one place the steps fail: {error}"
            )
            return found

    def _judged(self, what: str, answer: dict[str, Any]) -> Trial:
        if not answer["captured"]:
            return Trial(what=what, captured=False, error=answer["error"])
        if "error" in answer:
            return Trial(what=what, captured=True, error=answer["error"], equal=False)
        apart = graph_replay.difference(self.eager["values"], answer["values"])
        noise = None
        if apart is not None and apart > TOLERANCE:
            noise = self._noise()
        equal = None if apart is None else apart <= max(TOLERANCE, NOISE_FACTOR * (noise or 0.0))
        finite = None if apart is None else min(apart, 1e30)
        return Trial(
            what=what,
            captured=True,
            steps=_STEPS,
            difference=finite,
            noise=None if noise is None else min(noise, 1e30),
            equal=equal,
            eager_seconds=self.eager["seconds"],
            replay_seconds=answer["seconds"],
        )

    def _noise(self) -> float | None:
        """Difference between two eager runs; None: there is nothing to compare, or the second fails."""
        try:
            again = self._run("graph_capture", replay=False)
        except WarpsmithError as error:
            self.notes.append(f"how much eager steps differ from run to run is not known: {error}")
            return None
        return graph_replay.difference(self.eager["values"], again["values"])

    def _tried(self, task: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """A failed capture can take its process with it: that is an answer too."""
        self.eager  # noqa: B018 - a step that does not run at all is told before anything is tried
        try:
            return self._run(task, **more)
        except WarpsmithError as error:
            return {"captured": False, "error": str(error)}

    def _run(self, task: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        given = {"folders": self._folders, "warm": _WARM, "steps": _STEPS, "moving": self.moving}
        try:
            with Runner(self._program, timeout=self._timeout, log=self._output) as runner:
                runner.start()
                return dict(runner.call(task, **given, **more))
        except WarpsmithError:
            self._failures += 1
            raise

    @property
    def _output(self) -> Path | None:
        """Where the next process's output goes: not where one that failed left its own, which its error names."""
        if self._log is None or not self._failures:
            return self._log
        return self._log.with_stem(f"{self._log.stem}-{self._failures + 1}")


def cover(modules: Sequence[GraphModule], fits: Callable[[GraphModule], bool]) -> list[GraphModule]:
    """The largest modules that fit, none within another, in the order of the step."""
    names = {module.name for module in modules}
    waiting = [module for module in modules if not any(_inside(module.name, other) for other in names)]
    found: list[GraphModule] = []
    while waiting:
        module = max(waiting, key=lambda one: one.share)
        waiting.remove(module)
        if not module.reason and fits(module):
            found.append(module)
        else:
            waiting += _children(module, modules)
    return [module for module in modules if module in found]


def expected(modules: Sequence[GraphModule], bad: Collection[str]) -> list[Covered]:
    """Modules that nothing is known against, where no capture is tried; `bad`: those that something is."""
    return [_covered(one, tried=False) for one in cover(modules, lambda one: not _holds(one, bad))]


def parts(
    trials: Trials, modules: Sequence[GraphModule], bad: Collection[str] = ()
) -> tuple[list[Covered], list[Trial], list[str]]:
    """Modules that can be captured by themselves, each kind tried once; the trials; what was left out.

    `bad` are modules whose capture would succeed and replay what was so once.
    """
    tried: dict[str, Trial] = {}
    left: list[str] = []

    def fits(module: GraphModule) -> bool:
        if _holds(module, bad):
            return False
        if module.alike not in tried:
            if module.share < SMALLEST or len(tried) >= MOST_TRIALS:
                left.append(module.name)
                return False
            tried[module.alike] = trials.modules([module.name])
        return tried[module.alike].good

    chosen = cover(modules, fits)
    told = list(tried.values())
    if len(chosen) > 1:
        told.append(trials.modules([module.name for module in chosen]))
    notes = [f"not tried, too small or too many: {_some(left)}"] if left else []
    if len(chosen) > 1 and not told[-1].good:
        notes.append("each of these modules can be captured, all together they could not")
    return [_covered(one, tried=True) for one in chosen], told, notes


def _covered(module: GraphModule, *, tried: bool) -> Covered:
    return Covered(name=module.name, kind=module.kind, share=module.share, tried=tried)


def _holds(module: GraphModule, bad: Collection[str]) -> bool:
    """Whether it is one of these or has one inside."""
    return any(name == module.name or _inside(name, module.name) for name in bad)


def _children(module: GraphModule, modules: Sequence[GraphModule]) -> Iterator[GraphModule]:
    """The nearest modules inside one that the step calls."""
    inner = [other for other in modules if _inside(other.name, module.name)]
    names = [other.name for other in inner]
    return (other for other in inner if not any(_inside(other.name, name) for name in names))


def _inside(name: str, other: str) -> bool:
    return name.startswith(f"{other}.")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")

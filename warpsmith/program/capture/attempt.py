"""Attempts to capture a step or its modules, each in a process of its own, compared with eager steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from warpsmith.errors import MachineLacks, SolutionFailed, WarpsmithError
from warpsmith.program.capture import replay
from warpsmith.program.capture.models import CaptureAttempt, CoveredModule, GraphModule
from warpsmith.program.capture.rules import Observation
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import Runner

TOLERANCE = 1e-3
"""Relative difference from the eager value up to which a replay is equal without measuring the noise."""

NOISE_FACTOR = 4.0
"""A replay is also equal up to this multiple of the difference between two eager runs."""

MOST_ATTEMPTS = 12
"""Number of modules whose capture is attempted at most."""

SMALLEST_SHARE = 0.02
"""Share of the step below which a module is not tried."""

_WARM, _STEPS = 3, 5


class CaptureAttempts:
    """Attempts to capture parts of one program's step."""

    def __init__(self, program: Program, folders: Sequence[str], timeout: float, log: Path | None = None) -> None:
        self._program, self._folders, self._timeout, self._log = program, list(folders), timeout, log
        self._failures = 0
        self.moving = True
        """True if inputs get new content before each step."""
        self.notes: list[str] = []
        """Limits of the attempts."""

    def try_step(self) -> tuple[CaptureAttempt, Observation | None]:
        """Attempt to capture the whole step; return the attempt, and the line where the capture failed.

        Raises:
            WarpsmithError: the eager steps for the comparison fail, as `Runner` says.
        """
        answer = self._attempt("graph_capture", replay=True)
        attempt = self._compare("step", answer)
        if attempt.captured or not answer.get("file"):
            return attempt, None
        error = answer["error"][:160]
        return attempt, Observation(
            "capture", error, answer["file"], answer["line"], "certain", answer["function"]
        )  # fmt: skip

    def try_modules(self, paths: Sequence[str]) -> CaptureAttempt:
        """Attempt steps in which these modules are graphs."""
        return self._compare(", ".join(paths), self._attempt("graph_modules", names=list(paths)))

    @cached_property
    def eager(self) -> dict[str, Any]:
        """Run eager steps from the same seed; if they fail with moving inputs, run them with constant inputs."""
        try:
            return self._run("graph_capture", replay=False)
        except (SolutionFailed, MachineLacks) as error:
            self.moving = False
            answer = self._run("graph_capture", replay=False)
            self.notes.append(
                "inputs kept their content in every step, so a replay that reads an old copy would not show; with "
                f"elements moved by one place the steps fail: {error}"
            )
            return answer

    def _compare(self, subject: str, answer: dict[str, Any]) -> CaptureAttempt:
        if not answer["captured"]:
            return CaptureAttempt(what=subject, captured=False, error=answer["error"])
        if "error" in answer:
            return CaptureAttempt(what=subject, captured=True, error=answer["error"], equal=False)
        difference = replay.largest_difference(self.eager["values"], answer["values"])
        noise = None
        if difference is not None and difference > TOLERANCE:
            noise = self._measure_noise()
        equal = None if difference is None else difference <= max(TOLERANCE, NOISE_FACTOR * (noise or 0.0))
        return CaptureAttempt(
            what=subject,
            captured=True,
            steps=_STEPS,
            difference=None if difference is None else min(difference, 1e30),
            noise=None if noise is None else min(noise, 1e30),
            equal=equal,
            eager_seconds=self.eager["seconds"],
            replay_seconds=answer["seconds"],
        )

    def _measure_noise(self) -> float | None:
        """Return the difference between two eager runs, or None if the second fails or has nothing to compare."""
        try:
            again = self._run("graph_capture", replay=False)
        except WarpsmithError as error:
            self.notes.append(f"the difference between two eager runs is not known: {error}")
            return None
        return replay.largest_difference(self.eager["values"], again["values"])

    def _attempt(self, task: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Run a task; if the capture ends the process, return that as its answer."""
        self.eager  # noqa: B018 - a step that does not run at all must raise before any attempt
        try:
            return self._run(task, **options)
        except WarpsmithError as error:
            return {"captured": False, "error": str(error)}

    def _run(self, task: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        common = {"folders": self._folders, "warm": _WARM, "steps": _STEPS, "moving": self.moving}
        try:
            with Runner(self._program, timeout=self._timeout, log=self._next_log) as runner:
                runner.start()
                return dict(runner.call(task, **common, **options))
        except WarpsmithError:
            self._failures += 1
            raise

    @property
    def _next_log(self) -> Path | None:
        """Return the log of the next process; the logs of failed ones stay, because their errors name them."""
        if self._log is None or not self._failures:
            return self._log
        return self._log.with_stem(f"{self._log.stem}-{self._failures + 1}")


def cover_step(modules: Sequence[GraphModule], fits: Callable[[GraphModule], bool]) -> list[GraphModule]:
    """Return the largest modules that fit, none inside another, in the order of the step."""
    paths = {module.name for module in modules}
    candidates = [module for module in modules if not any(_is_inside(module.name, path) for path in paths)]
    chosen: list[GraphModule] = []
    while candidates:
        module = max(candidates, key=lambda candidate: candidate.share)
        candidates.remove(module)
        if not module.reason and fits(module):
            chosen.append(module)
        else:
            candidates += _list_children(module, modules)
    return [module for module in modules if module in chosen]


def expect_modules(modules: Sequence[GraphModule], blocked: Collection[str]) -> list[CoveredModule]:
    """Return the modules that nothing is known against; `blocked` are the paths of the others."""
    fitting = cover_step(modules, lambda module: not _contains(module, blocked))
    return [_covered_module(module, tried=False) for module in fitting]


def try_parts(
    attempts: CaptureAttempts, modules: Sequence[GraphModule], frozen: Collection[str] = ()
) -> tuple[list[CoveredModule], list[CaptureAttempt], list[str]]:
    """Try to capture modules by themselves, each kind once, then all that succeeded together.

    Modules in `frozen` are left out: their capture would succeed, and every replay would repeat an old value.
    Returns the modules that can be captured, the attempts and the notes.
    """
    results: dict[str, CaptureAttempt] = {}
    skipped: list[str] = []

    def fits(module: GraphModule) -> bool:
        if _contains(module, frozen):
            return False
        if module.alike not in results:
            if module.share < SMALLEST_SHARE or len(results) >= MOST_ATTEMPTS:
                skipped.append(module.name)
                return False
            results[module.alike] = attempts.try_modules([module.name])
        return results[module.alike].succeeded

    chosen = cover_step(modules, fits)
    tried = list(results.values())
    if len(chosen) > 1:
        tried.append(attempts.try_modules([module.name for module in chosen]))
    notes = [f"not tried, too small or too many: {_list_some(skipped)}"] if skipped else []
    if len(chosen) > 1 and not tried[-1].succeeded:
        notes.append("each of these modules can be captured alone, but not all of them together")
    return [_covered_module(module, tried=True) for module in chosen], tried, notes


def _covered_module(module: GraphModule, *, tried: bool) -> CoveredModule:
    return CoveredModule(name=module.name, kind=module.kind, share=module.share, tried=tried)


def _contains(module: GraphModule, paths: Collection[str]) -> bool:
    """Return true if the module is one of these or has one inside."""
    return any(path == module.name or _is_inside(path, module.name) for path in paths)


def _list_children(module: GraphModule, modules: Sequence[GraphModule]) -> Iterator[GraphModule]:
    """Yield the nearest modules inside a module that the step calls."""
    inner = [other for other in modules if _is_inside(other.name, module.name)]
    paths = [other.name for other in inner]
    return (other for other in inner if not any(_is_inside(other.name, path) for path in paths))


def _is_inside(path: str, other: str) -> bool:
    return path.startswith(f"{other}.")


def _list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")

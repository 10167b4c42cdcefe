"""Compiling what a version launches, for an architecture that this machine need not have."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import Build, BuildFailed, Listing
from warpsmith.languages.shared import tool

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class CompileOnly:
    """What languages share whose kernels a child process compiles, pretending to have a device."""

    kernels_are: str
    """For messages: `Triton kernels are`."""
    compiler: str
    """The module that the child runs, on a folder with `request.json`; it leaves `resources.json`, `launches.json`
    and the texts there, or `lacks.txt`."""
    architectures: Iterable[str]
    """What it compiles for."""
    texts: tuple[str, ...] = ("ptx", "sass")
    """Endings of what it leaves for readers."""
    seconds = 120.0
    """The child's time."""

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check what can be checked without compiling."""
        raise NotImplementedError

    def uninstalled(self) -> str | None:
        """What compiling needs and this machine lacks, in one sentence; None: nothing."""
        raise NotImplementedError

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Variables of the child, which finds `folder` for what it keeps."""
        raise NotImplementedError

    def telling(self, said: list[str]) -> list[str]:
        """Of the lines that the child said before it failed, those that are told."""
        return said[-8:]

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile what `run` launches on the first representative workload; no device is needed.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes too long.
            MachineLacks: the compiler or a disassembler is missing.
            Misuse: `arch` is none that kernels are inspected for.
        """
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            return self._compile(source, definition, definition.select("representative")[:1], arch, Path(folder))

    def architecture(self, asked: str | None) -> str:
        """The architecture as its kernels are compiled for: `sm_90` is `sm_90a`.

        Raises:
            Misuse: it is none that kernels are inspected for.
        """
        if asked is None:
            return "sm_90a"
        plain = asked.removesuffix("a")
        found = next((arch for arch in self.architectures if arch.removesuffix("a") == plain), None)
        if found is None:
            raise self._unknown(asked)
        return found

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """SASS, and PTX where there is one, of all that `run` launches at these workloads; no device is needed.

        They are written as `<kernel>.<arch>.sass`; those of an earlier call go.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes too long.
            MachineLacks: the compiler or a disassembler is missing.
            Misuse: `arch` is none that kernels are inspected for.
        """
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
            made = Path(temporary)
            reports = self._compile(source, definition, workloads, arch, made)
            launches = json.loads((made / "launches.json").read_text())
            texts = {path.name: path.read_bytes() for suffix in self.texts for path in made.glob(f"*.{suffix}")}
        for name, text in texts.items():
            files.write(folder / name, text)
        for suffix in self.texts:
            for path in folder.glob(f"*.{arch}.{suffix}"):
                if path.name not in texts:
                    path.unlink()
        return tuple(_listing(launch, report, folder) for launch, report in zip(launches, reports, strict=True))

    def child(self, source: Path, request: dict[str, Any], folder: Path, failure: str) -> None:
        """Have the compiler do what is asked in a process of its own: what it patches does not leak, and it can be
        killed.

        Raises:
            BuildFailed: it fails; `failure` says at what.
            MachineLacks: it says that a tool is missing.
        """
        (folder / "request.json").write_text(json.dumps({"source": str(source.resolve()), **request}))
        command = [sys.executable, "-P", "-m", self.compiler, str(folder)]
        environment = {"CUDA_VISIBLE_DEVICES": "", **self.environment(folder, request.get("arch", ""))}
        try:
            ended = tool.run(command, self.seconds, environment=environment)
        except TimeoutError as error:
            raise BuildFailed(f"{source.name} {failure}: {error}.") from error
        lacks = folder / "lacks.txt"
        if lacks.is_file():
            raise MachineLacks(lacks.read_text())
        if ended.code != 0:
            said = [line for line in _COLOURS.sub("", ended.output).splitlines() if line.strip()]
            raise BuildFailed(f"{source.name} {failure}.\n{tool.fenced(self.telling(said))}")

    def _compile(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Resources, ...]:
        if arch not in self.architectures:
            raise self._unknown(arch)
        if lacks := self.uninstalled():
            raise MachineLacks(lacks)
        self.build(source, definition, folder)
        request = {
            "definition": definition.model_dump(mode="json"),
            "arch": arch,
            "workloads": [workload.name for workload in workloads],
        }
        self.child(source, request, folder, f"does not compile for {arch}")
        found = json.loads((folder / "resources.json").read_text())
        return tuple(Resources.model_validate(resource) for resource in found)

    def _unknown(self, arch: str) -> Misuse:
        known = ", ".join(self.architectures)
        return Misuse(f"`{arch}` is no architecture that {self.kernels_are} inspected for: {known}.")


def _listing(launch: dict[str, Any], report: Resources, folder: Path) -> Listing:
    ptx = folder / f"{launch['stem']}.ptx"
    return Listing(
        kernel=report.kernel,
        workloads=tuple(launch["workloads"]),
        variant=launch["variant"],
        isa="sass",
        assembly=folder / f"{launch['stem']}.sass",
        resources=report,
        ptx=ptx if ptx.is_file() else None,
        unaligned=tuple(launch.get("unaligned", ())),
        matrix_product=launch["matrix_product"],
    )

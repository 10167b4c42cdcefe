"""Compile what a version launches, for an architecture that this machine need not have."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import BuildFailed, Language, Listing
from warpsmith.languages.shared import tool
from warpsmith.languages.shared.fake_device import ARCHITECTURES
from warpsmith.temporary import TemporaryFolder

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class CompileOnly(Language):
    """A language whose kernels a child process compiles for a fake device."""

    compiler: str
    """The module that the child runs on a folder with `request.json`. It writes `resources.json`, `launches.json`
    and the texts there, or `lacks.txt`."""
    compiled_architectures: Iterable[str] = tuple(ARCHITECTURES)
    """Architectures that it compiles for."""
    texts: tuple[str, ...] = ("ptx", "sass")
    """Endings of the files that it writes for readers, one of them that of the instruction set."""
    seconds = 120.0
    """Time limit of the child."""

    def uninstalled(self) -> str | None:
        """Say in one sentence what compiling needs and this machine lacks; None: nothing."""
        raise NotImplementedError

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Return the environment variables of the child, which may keep files in `folder`."""
        raise NotImplementedError

    def error_lines(self, output: list[str]) -> list[str]:
        """Select the lines to show of what the child printed before it failed."""
        return output[-8:]

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile what `run` launches on the first representative workload; no device is needed.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes too long.
            MachineLacks: the compiler or a disassembler is missing.
            Misuse: kernels are not compiled for `arch`.
        """
        with TemporaryFolder() as folder:
            return self._compile(source, definition, definition.select("representative")[:1], arch, Path(folder))

    def architecture(self, name: str | None) -> str:
        """Return the architecture that kernels are compiled for: `sm_90` is `sm_90a`, which is also the default.

        Raises:
            Misuse: kernels are not compiled for it.
        """
        if name is None:
            return "sm_90a"
        plain = name.removesuffix("a")
        for arch in self.compiled_architectures:
            if arch.removesuffix("a") == plain:
                return arch
        raise self._unknown_architecture(name)

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """Disassemble everything that `run` launches at these workloads; no device is needed.

        Writes `<kernel>.<arch>.sass`, and `.ptx` if there is one, or `.amdgcn`. Files of an earlier call are
        deleted.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes too long.
            MachineLacks: the compiler or a disassembler is missing.
            Misuse: kernels are not compiled for `arch`.
        """
        with TemporaryFolder() as temporary:
            scratch = Path(temporary)
            reports = self._compile(source, definition, workloads, arch, scratch)
            launches = _read_launches(scratch)
            texts = {path.name: path.read_bytes() for suffix in self.texts for path in scratch.glob(f"*.{suffix}")}
        for name, text in texts.items():
            files.write_file(folder / name, text)
        for suffix in self.texts:
            for path in folder.glob(f"*.{arch}.{suffix}"):
                if path.name not in texts:
                    path.unlink()
        return tuple(_listing(launch, report, folder) for launch, report in zip(launches, reports, strict=True))

    def run_child(self, source: Path, request: dict[str, Any], folder: Path, failure: str) -> None:
        """Run the compiler in a process of its own: its patches do not leak, and it can be killed.

        Raises:
            BuildFailed: it fails; the message says `failure`.
            MachineLacks: a tool is missing.
        """
        (folder / "request.json").write_text(json.dumps({"source": str(source.resolve()), **request}))
        command = [sys.executable, "-P", "-m", self.compiler, str(folder)]
        environment = {"CUDA_VISIBLE_DEVICES": "", **self.environment(folder, request.get("arch", ""))}
        try:
            result = tool.run_tool(command, self.seconds, environment=environment)
        except TimeoutError as error:
            raise BuildFailed(f"{source.name} {failure}: {error}.") from error
        lacks = folder / "lacks.txt"
        if lacks.is_file():
            raise MachineLacks(lacks.read_text())
        if result.code != 0:
            output = [line for line in _COLOURS.sub("", result.output).splitlines() if line.strip()]
            raise BuildFailed(f"{source.name} {failure}.\n{tool.fence_lines(self.error_lines(output))}")

    def _compile(
        self,
        source: Path,
        definition: Definition,
        workloads: Sequence[Workload],
        arch: str,
        folder: Path,
        **options: object,
    ) -> tuple[Resources, ...]:
        """Run the child on a request with further `options`; it leaves its results in `folder`."""
        if arch not in self.compiled_architectures:
            raise self._unknown_architecture(arch)
        if lack := self.uninstalled():
            raise MachineLacks(lack)
        self.build(source, definition, folder)
        request = {
            "definition": definition.model_dump(mode="json"),
            "arch": arch,
            "workloads": [workload.name for workload in workloads],
            **options,
        }
        self.run_child(source, request, folder, f"does not compile for {arch}")
        return _read_reports(folder)

    def _unknown_architecture(self, arch: str) -> Misuse:
        architectures = ", ".join(self.compiled_architectures)
        return Misuse(f"{self.title} is not compiled for the architecture `{arch}`; known: {architectures}.")


def read_listings(folder: Path) -> tuple[Listing, ...]:
    """Read what the child left in a folder; empty if it left nothing, or was stopped before it had written all."""
    if not (folder / "launches.json").is_file():  # written last
        return ()
    pairs = zip(_read_launches(folder), _read_reports(folder), strict=True)
    return tuple(_listing(launch, report, folder) for launch, report in pairs)


def _read_reports(folder: Path) -> tuple[Resources, ...]:
    reports = json.loads((folder / "resources.json").read_text())
    return tuple(Resources.model_validate(report) for report in reports)


def _read_launches(folder: Path) -> list[dict[str, Any]]:
    launches: list[dict[str, Any]] = json.loads((folder / "launches.json").read_text())
    return launches


def _listing(launch: dict[str, Any], report: Resources, folder: Path) -> Listing:
    ptx, isa = folder / f"{launch['stem']}.ptx", launch.get("isa", "sass")
    return Listing(
        kernel=report.kernel,
        workloads=tuple(launch["workloads"]),
        variant=launch["variant"],
        isa=isa,
        assembly=folder / f"{launch['stem']}.{isa}",
        resources=report,
        ptx=ptx if ptx.is_file() else None,
        unaligned=tuple(launch.get("unaligned", ())),
        matrix_product=launch["matrix_product"],
        block_warps=launch.get("block_warps"),
        blocks=launch.get("blocks", {}),
    )

"""Phases of a kernel: a copy of a variant that stores the clocks at its stamps, run by itself."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files, languages
from warpsmith.core.definition import Workload
from warpsmith.errors import MachineLacks, Misuse, SolutionFailed
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.tuning.variants import Variant
from warpsmith.lab.workers.phase_times import PhaseTimes
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import StoresStamps
from warpsmith.languages.shared.stamps import list_phases
from warpsmith.temporary import TemporaryFolder

CALLS = 20
"""Calls whose stamps are read, each on a slot of its own as far as there are slots. Chosen."""


def check_stamps(variants: Sequence[Variant]) -> None:
    """Check that every variant's stamps can be stored and read.

    Raises:
        MachineLacks: its language stores none.
        Misuse: it has fewer than two stamps, or one is written wrong.
    """
    for variant in variants:
        language = languages.get(variant.language)
        if not isinstance(language, StoresStamps):
            able = [name for name in languages.names() if isinstance(languages.get(name), StoresStamps)]
            raise MachineLacks(
                f"--phases: {language.title} has no stamps; {', '.join(able)} have. `--why` says what it waits"
                " for."
            )
        if len(list_phases(variant.stamped)) < 2:
            raise Misuse(
                f'{variant.file}: --phases needs two stamps; write `WARPSMITH_PHASE("load")` on a line of its own'
                " where a phase begins, and one at the end."
            )


def time_phases(
    file: DefinitionFile, host: WorkerHost, device: str, variant: Variant, workload: Workload, limits: Limits
) -> PhaseTimes:
    """Build a variant with its stamps, call it at a workload, and return the times of its phases.

    Raises:
        SolutionFailed: it does not build, fails, or passes fewer than two stamps.
    """
    language, text = languages.get(variant.language), variant.stamped
    assert isinstance(language, StoresStamps)
    with TemporaryFolder("phases") as folder:
        source = Path(folder) / variant.file.name
        files.write_file(source, language.with_stamps(text))
        build = language.build(source, file.definition, Path(folder))
        sources = {SOLUTION: SideSource(build, variant.language, limits)}
        try:
            with Sides(
                file, host, allocate_arenas(file, (), [workload], sources, device), sources, device
            ) as sides:
                sides.start()
                session = sides.open_session(workload, secrets.randbits(62))
                session.fill_inputs(quick=True)
                slots = [call % session.slots for call in range(CALLS)]
                answer = session.ask(SOLUTION, {"do": "phases", "slots": slots, "names": list_phases(text)})
        except SideFailed as failure:
            raise SolutionFailed(f"{variant.name} fails with its stamps: {failure.message}.") from failure
    if reason := answer.get("reason"):
        raise SolutionFailed(f"{variant.name} at {workload.name}: {reason}.")
    try:
        return PhaseTimes.model_validate(answer.get("times"))
    except ValidationError as error:
        raise SolutionFailed(f"{variant.name}: its worker does not report the times of its phases.") from error

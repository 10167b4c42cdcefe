"""Index of closed rounds: what a feature derived from a campaign's rounds, until a file of one of them changes.

A row of `derived_rows` counts while each record, each strike and the manifest are as they were. `warpsmith
evidence check` reads the files in any case.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith import derived_rows
from warpsmith.campaign.history.manifests import MANIFEST, SEAL
from warpsmith.campaign.history.records import STRUCK
from warpsmith.core.base import Model
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import DIGEST, QUARANTINE, RECORD

T = TypeVar("T", bound=Model)


def derive_from_rounds(
    root: Path, folders: Sequence[Path], kind: str, model: type[T], derive: Callable[[Path], T]
) -> list[T | None]:
    """Return what `derive` gives for each campaign, from the index where none of its rounds has changed.

    None stands for a campaign with a corrupt record or manifest; its own commands report it.

    Args:
        root: root of the project.
        folders: folders of its campaigns.
        kind: name of the question, which is always asked with the same model and function.
        model: model of an answer.
        derive: function of the manifest and the closed rounds in a folder, and of nothing else; it reads and
            checks them, and may raise CorruptRecord.
    """
    states = [_round_state(folder) for folder in folders]
    rows = derived_rows.read_rows(root, kind)
    answers: list[T | None] = []
    fresh: dict[str, tuple[str, str]] = {}
    for folder, state in zip(folders, states, strict=True):
        answer = _parse_row(rows.get(str(folder)), state.sha256, model)
        if answer is None:
            with contextlib.suppress(CorruptRecord):
                answer = derive(folder)
                if state.settled:
                    fresh[str(folder)] = (state.sha256, answer.model_dump_json())
        answers.append(answer)
    derived_rows.write_rows(root, kind, fresh)
    return answers


def _parse_row(row: tuple[str, str] | None, state: str, model: type[T]) -> T | None:
    if row is None or row[0] != state:
        return None
    try:
        return model.model_validate_json(row[1])
    except ValidationError:
        return None


def _round_state(folder: Path) -> derived_rows.FilesState:
    """Return the state of the files behind a campaign's closed rounds."""
    rounds = f"{folder}/rounds"
    try:
        names = sorted(name for name in os.listdir(rounds) if name.isdigit())  # noqa: PTH208
    except OSError:
        names = []
    paths = [f"{folder}/{MANIFEST}", f"{folder}/{SEAL}", f"{rounds}/{QUARANTINE}"]
    for name in names:
        paths += (f"{rounds}/{name}/{RECORD}", f"{rounds}/{name}/{DIGEST}")
        if os.access(strike := f"{rounds}/{name}/{STRUCK}", os.F_OK):
            paths.append(strike)
    return derived_rows.files_state(paths, *names)

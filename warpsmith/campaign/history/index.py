"""Index of closed rounds: what a feature derived from a campaign's rounds, until a file of one of them changes.

A row of `derived_rows` counts while each record, each strike and the manifest are as they were. `warpsmith
evidence check` reads the files in any case.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith import derived_rows
from warpsmith.campaign.history.manifests import MANIFEST, SEAL
from warpsmith.campaign.history.records import STRUCK
from warpsmith.core.base import Model
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import QUARANTINE, RECORD

T = TypeVar("T", bound=Model)

_SEEN: ContextVar[dict[Path, derived_rows.FilesState] | None] = ContextVar("seen", default=None)
"""States that were looked up within `look_once`, by folder of the campaign; None outside of it."""


@contextmanager
def look_once() -> Iterator[None]:
    """Look at the files of a campaign once within the block, for a command that asks several questions and writes
    nothing."""
    token = _SEEN.set({})
    try:
        yield
    finally:
        _SEEN.reset(token)


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
            with suppress(CorruptRecord):
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
    """Return the state of the files behind a campaign's closed rounds, of one look within `look_once`."""
    states = _SEEN.get()
    if states is None:
        return _look_at_rounds(folder)
    if folder not in states:
        states[folder] = _look_at_rounds(folder)
    return states[folder]


def _look_at_rounds(folder: Path) -> derived_rows.FilesState:
    """Return the state of the files behind a campaign's closed rounds.

    A digest is not among them: it says nothing that its record and its strike do not.
    """
    try:
        campaign = os.open(folder, os.O_RDONLY)
    except OSError:  # whoever reads the campaign says why
        return derived_rows.FilesState("", settled=False)
    try:
        return derived_rows.files_state(_round_files(campaign), folder=campaign)
    finally:
        os.close(campaign)


def _round_files(campaign: int) -> list[str]:
    """List the files behind closed rounds, relative to the open folder of their campaign."""
    paths = [MANIFEST, SEAL, f"rounds/{QUARANTINE}"]
    for name in _round_names(campaign):
        paths.append(f"rounds/{name}/{RECORD}")
        if os.access(strike := f"rounds/{name}/{STRUCK}", os.F_OK, dir_fd=campaign):
            paths.append(strike)
    return paths


def _round_names(campaign: int) -> list[str]:
    try:
        rounds = os.open("rounds", os.O_RDONLY, dir_fd=campaign)
    except OSError:
        return []
    try:
        return sorted(name for name in os.listdir(rounds) if name.isdigit())  # noqa: PTH208
    finally:
        os.close(rounds)

"""A model's file: read where it is there, and one sentence where it does not read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith.core.base import Model
from warpsmith.core.problem import problem
from warpsmith.errors import CorruptRecord

M = TypeVar("M", bound=Model)


def read(path: Path, model: type[M], corrupt: Callable[[Path, str], CorruptRecord]) -> M | None:
    """The model in a JSON file; None where there is no file.

    Raises:
        CorruptRecord: it does not read; `corrupt` makes it, of the file and what is wrong with it.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise corrupt(path, f"does not read: {problem(error)}") from error

"""Folders of what belongs to this user on this machine, and to no project."""

from __future__ import annotations

import os
from pathlib import Path


def user_state_folder() -> Path:
    """Return the folder, by the XDG base directories; it need not exist."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "warpsmith"


def user_config_folder() -> Path:
    """Return the folder of the user's settings, by the XDG base directories; it need not exist."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "warpsmith"

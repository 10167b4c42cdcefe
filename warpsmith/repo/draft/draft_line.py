"""Line of the drafted settings: a key with its value, its source and what is uncertain about it."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass

_WRAPPER = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class DraftLine:
    """One key of the settings."""

    key: str
    """Name of the key."""
    value: str | list[str] | dict[str, str]
    """Its value."""
    source: str
    """File and line, or rule, that it comes from; empty if there is none."""
    doubt: str = ""
    """Uncertainty, and how to settle it; empty if there is none."""

    def to_toml(self) -> str:
        """Return the line in TOML, below a comment with its source and doubt."""
        source = f"From {self.source}." if self.source else "Found nowhere."
        texts = [source, f"UNCERTAIN: {self.doubt}."] if self.doubt else [source]
        comments = [line for text in texts for line in _WRAPPER.wrap(text)]
        return "\n".join((*(f"# {comment}" for comment in comments), f"{self.key} = {_format(self.value)}"))


def _format(value: str | list[str] | dict[str, str]) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_format(text)}" for key, text in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format, value)) + "]"
    return json.dumps(value, ensure_ascii=False)

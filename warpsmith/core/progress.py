"""Type of the callback by which a long operation reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str], None]
"""Receives one line of text for people."""

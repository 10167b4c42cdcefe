"""Fingerprints of versions: hashes of their sources without comments and layout."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from warpsmith.errors import WarpsmithError
from warpsmith.languages.base import Language


def source_fingerprint(language: Language, path: Path) -> str:
    """Return the SHA-256 of a version's source after its language has normalised it, in hexadecimal digits."""
    source = path.read_text(errors="replace")
    with suppress(SyntaxError, ValueError, WarpsmithError):  # a source that does not parse is compared as it is
        source = language.normalise(source)
    return hashlib.sha256(source.encode()).hexdigest()

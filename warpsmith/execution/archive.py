"""Archives: files in one compressed tar whose bytes depend on nothing but their names and contents."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

_MODE = 0o644


def pack_files(contents: Mapping[str, bytes]) -> bytes:
    """Return an archive of these files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(contents.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), _MODE
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=6, mtime=0)

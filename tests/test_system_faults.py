"""Every error of the operating system is one sentence: which file, what is wrong, what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from warpsmith import files
from warpsmith.system_faults import describe_os_error, is_machine_fault

ADVICE = {
    errno.EIO: "dmesg",
    errno.ESTALE: "mount this file system again",
    errno.EMFILE: "ulimit -n",
    errno.ENOLCK: "has locks",
    errno.EDQUOT: "quota",
    errno.ENOSPC: "make room",
    errno.EROFS: "mount it for writing",
    errno.EACCES: "permissions",
    errno.ELOOP: "symbolic links",
    errno.ENAMETOOLONG: "shorten the name",
}


@pytest.mark.parametrize("number", ADVICE, ids=errno.errorcode.get)
def test_the_sentence_has_the_file_the_fault_and_the_way_out(number: int):
    error = OSError(number, os.strerror(number), "/shop/.tmp-rounds-7-ab/record.json")
    sentence = str(describe_os_error(error, "run `warpsmith resume`"))
    assert sentence.startswith(f"/shop: {os.strerror(number)}; nothing was lost: ")
    assert ADVICE[number] in sentence
    assert sentence.endswith(", then run `warpsmith resume`.")
    assert is_machine_fault(error)


def test_an_error_of_ours_names_the_line_that_raised_it(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as caught:
        files.file_sha256(tmp_path / "nothing")
    assert not is_machine_fault(caught.value)
    assert "(files.py:" in str(describe_os_error(caught.value))


def test_a_working_folder_that_was_removed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as caught:
        Path.cwd()
    assert "working folder was removed" in str(describe_os_error(caught.value))


def test_an_error_without_a_file_or_a_number_is_a_sentence():
    assert str(describe_os_error(OSError("no answer"), at=Path("/shop"))).startswith("/shop: no answer; ")
    assert str(describe_os_error(TimeoutError())).startswith("A file: TimeoutError; ")


@pytest.mark.parametrize("act", [files.write_file, files.append_line], ids=lambda act: act.__name__)
def test_an_error_of_a_descriptor_names_its_file(act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(OSError, match="Input/output error") as caught:
        act(tmp_path / "page.md", "text")
    assert Path(caught.value.filename).parent == tmp_path

"""The merge: both changes where they do not collide, else nothing; and what the diff shows."""

from __future__ import annotations

import pytest

from warpsmith.backups.merge import describe_change, merge_text

BASE = b"".join(b"%d\n" % k for k in range(10))


def test_both_changes():
    ours, theirs = BASE.replace(b"1\n", b"one\n"), BASE.replace(b"8\n", b"")
    assert merge_text(ours, BASE, theirs) == ours.replace(b"8\n", b"")


def test_the_same_change_twice():
    theirs = BASE.replace(b"8\n", b"")
    ours = theirs.replace(b"1\n", b"one\n")
    assert merge_text(ours, BASE, theirs) == ours


@pytest.mark.parametrize("eol", [b"\r\n", b"\n"])
@pytest.mark.parametrize("end", [b"", b"last, without an end"])
def test_line_ends_are_kept(eol, end):
    base, ours, theirs = (
        text.replace(b"\n", eol) + end for text in (BASE, BASE.replace(b"1", b"one"), BASE.replace(b"8", b"eight"))
    )
    assert merge_text(ours, base, theirs) == ours.replace(b"8", b"eight")


def test_latin_1_is_text():
    ours, theirs = BASE.replace(b"1", b"\xe9"), BASE.replace(b"8", b"\xe8")
    assert merge_text(ours, BASE, theirs) == ours.replace(b"8", b"\xe8")


def test_changes_of_one_line_collide():
    assert merge_text(BASE.replace(b"5", b"five"), BASE, BASE.replace(b"5", b"V")) is None


def test_binary_files_are_not_merged():
    binary = BASE + b"far down\n" * 2000 + b"\0"  # git looks for it in the first 8000 bytes alone
    assert merge_text(binary.replace(b"1", b"one"), binary, binary.replace(b"8", b"eight")) is None


def test_without_git_nothing_is_merged(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert merge_text(BASE.replace(b"1", b"one"), BASE, BASE.replace(b"8", b"eight")) is None


def test_a_broken_repository_around_does_not_matter(monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert merge_text(BASE, BASE, BASE + b"x\n") == BASE + b"x\n"


def test_the_diff():
    assert describe_change(b"a\nb", b"a\nc\n", "t.py") == (
        "--- t.py as the edit left it\n+++ t.py now\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
    )
    assert describe_change(None, b"", "t.py") == "t.py was created since the edit.\n"
    assert describe_change(b"", None, "t.py") == "t.py was removed since the edit.\n"
    assert "not UTF-8 text" in describe_change(b"a", b"\xff", "t.py")

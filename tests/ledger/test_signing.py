"""Signatures: one key a user, readable by nobody else; a signature fits one record, and a torn log is read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from warpsmith.errors import MachineLacks
from warpsmith.ledger import signing
from warpsmith.user_state import user_state_folder

RECORD, OTHER = "a" * 64, "b" * 64


def test_a_signature_fits_one_record_and_names_its_signer() -> None:
    first, second = signing.sign_record(RECORD), signing.sign_record(OTHER)
    key = signing.signer_of(first, RECORD)
    assert key is not None
    assert signing.signer_of(second, OTHER) == key
    assert signing.signer_of(first, OTHER) is None
    words = first.split()
    assert signing.signer_of(" ".join(("rsa", *words[1:])), RECORD) is None
    assert signing.signer_of(" ".join((*words[:2], "00" * 64)), RECORD) is None


@pytest.mark.parametrize("text", ["", "ed25519 zz zz", "ed25519 00", "\x00"])
def test_what_is_no_signature_has_no_signer(text: str) -> None:
    assert signing.signer_of(text, RECORD) is None


def test_only_its_user_reads_the_key() -> None:
    signing.sign_record(RECORD)
    mode = (user_state_folder() / "signing.key").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_a_key_that_is_none_is_said_with_what_to_do() -> None:
    signing.sign_record(RECORD)
    (user_state_folder() / "signing.key").write_text("no key", encoding="ascii")
    with pytest.raises(MachineLacks, match="remove the key"):
        signing.sign_record(RECORD)


def test_the_log_keeps_the_last_hash_of_a_record_and_survives_a_torn_line(tmp_path: Path) -> None:
    signing.sign_record(RECORD)
    path = tmp_path / "record.json"
    for sha256 in (RECORD, OTHER):
        signing.log_record(path, sha256)
    with (user_state_folder() / "signed.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"record": "torn')
    assert signing.logged_hashes() == {str(path.resolve()): OTHER}

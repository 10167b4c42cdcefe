"""A round's files damaged in every way that a disk or a hand can: they are read, or refused as CorruptRecord."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_kit import OP, Script, make_project, use_toys
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.campaign import start
from warpsmith.campaign.history import store
from warpsmith.campaign.history.records import STRUCK
from warpsmith.core.campaign import RoundRecord
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import DIGEST, RECORD

repeatable = settings(derandomize=True, deadline=None, max_examples=120)
places = st.integers(0, 1 << 20)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[store.Campaign]:
    """One closed round."""
    with pytest.MonkeyPatch.context() as patch:
        use_toys(patch)
        project = make_project(tmp_path_factory.mktemp("records") / "project")
        begun = start.start_campaign(project, OP, "cpu", "toy", max_iterations=1)
        Script({"v1": "ACCEPT"}).round(begun)
        yield begun


def read(campaign: store.Campaign, path: Path, data: bytes) -> RoundRecord | None:
    """The round with one file replaced; None: it is refused. The file is put back."""
    before = path.read_bytes()
    path.write_bytes(data)
    try:
        return campaign.ledger.read(1).record
    except CorruptRecord:
        return None
    finally:
        path.write_bytes(before)


def flipped(data: bytes, place: int) -> bytes:
    """One bit turned round."""
    at, bit = divmod(place % (8 * len(data)), 8)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_record_travels_through_json(campaign: store.Campaign) -> None:
    record = campaign.records()[0]
    assert RoundRecord.model_validate_json(record.model_dump_json()) == record


@repeatable
@given(of_record=st.booleans(), place=places)
def test_a_bit_that_turned_is_seen(campaign: store.Campaign, of_record: bool, place: int) -> None:
    path = campaign.rounds / "001" / (RECORD if of_record else campaign.records()[0].snapshot)
    assert read(campaign, path, flipped(path.read_bytes(), place)) is None


@repeatable
@given(which=places, length=places)
def test_a_file_that_was_cut_short_is_seen(campaign: store.Campaign, which: int, length: int) -> None:
    names = (RECORD, DIGEST, campaign.records()[0].snapshot)
    path = campaign.rounds / "001" / names[which % 3]
    data = path.read_bytes()
    found = read(campaign, path, data[: length % len(data)])
    assert found is None or data[: length % len(data)].split() == data.split()  # only a last newline is missing


@settings(repeatable, max_examples=200)
@given(place=places)
def test_an_edit_with_its_digest_is_a_record_or_refused(campaign: store.Campaign, place: int) -> None:
    path = campaign.rounds / "001" / RECORD
    digest = path.with_name(DIGEST)
    data, signed = flipped(path.read_bytes(), place), digest.read_bytes()
    digest.write_text(f"{hashlib.sha256(data).hexdigest()}  {RECORD}\n")
    try:
        found = read(campaign, path, data)
    finally:
        digest.write_bytes(signed)
    assert found is None or found.round == 1


@repeatable
@given(data=st.binary(max_size=200))
def test_a_strike_or_a_digest_of_any_bytes_is_refused(campaign: store.Campaign, data: bytes) -> None:
    folder = campaign.rounds / "001"
    assert read(campaign, folder / DIGEST, data) is None
    (folder / STRUCK).write_bytes(b"")
    try:
        assert read(campaign, folder / STRUCK, data) is None
    finally:
        (folder / STRUCK).unlink()

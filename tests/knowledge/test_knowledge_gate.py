"""LEARN's gate: the agent's words, the lab's figures; written once, however often it is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.evaluation import Energy, Interval, Joules
from warpsmith.core.repo import RepoRecord
from warpsmith.errors import BadEntry, Misuse
from warpsmith.knowledge import gate, index
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.check import check_knowledge
from warpsmith.knowledge.evidence import EvidenceRow
from warpsmith.knowledge.gate import Prepared

RECORD = "devlog/rmsnorm/c/rounds/002/record.json"
WHEN = "2026-11-21 10:05"
URL = "https://example.org/report"


@pytest.fixture
def published(project, record):
    """The round's record on disk, its hash and its row."""
    files.write_file(project.root / RECORD, record.model_dump_json())
    return files.file_sha256(project.root / RECORD), EvidenceRow.of(record, RECORD)


def put_in_place(project, prepared: Prepared, published):
    """Through JSON, as the open round keeps it."""
    path = Prepared.model_validate_json(prepared.model_dump_json()).write(project, *published)
    assert check_knowledge(project) == []
    return path, Catalog.load(project).get(prepared.entry)


def bytes_of(project) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in project.knowledge.rglob("*") if path.is_file()}


def test_the_row_is_the_rounds(record):
    row = EvidenceRow.of(record, RECORD)
    assert row.config == "rmsnorm, triton/v2, 1 workloads, GPU | one"
    assert (row.before, row.after, row.change) == ("20 us (best)", "10 us", "2x [1.9, 2.1]")
    assert r"GPU \| one" in row.render()


def test_the_row_of_a_round_by_energy(record):
    interval = Interval(low=1.1, high=1.3)
    joules = Joules(joules=0.05, readings=6, best_joules=0.06, saving=1.2, interval=interval)
    whole = record.evaluation.aggregates[0].model_copy(update={"speedup": 1.2, "interval": interval})
    energy = Energy(workloads={"a": joules}, aggregate=whole, floor=0.01)
    judged = record.evaluation.model_copy(update={"energy": energy})
    row = EvidenceRow.of(record.model_copy(update={"evaluation": judged}), RECORD)
    assert (row.before, row.after, row.change) == ("0.06 J (best)", "0.05 J", "1.2x [1.1, 1.3]")


def test_the_row_of_a_version_that_failed(record):
    failed = record.evaluation.model_dump() | {"results": [], "aggregates": []}
    failed["decision"]["verdict"] = "ROLLBACK"
    row = EvidenceRow.of(record.model_validate(record.model_dump() | {"evaluation": failed}), RECORD)
    assert (row.before, row.after) == ("-", "-")
    assert row.change.startswith("ROLLBACK")


def test_the_row_of_a_round_in_a_repository():
    """Of the records that ship."""
    source = "devlog/repo/liger-rms-norm/rounds/002/record.json"
    content = (Path(__file__).parents[2] / source).read_bytes()
    (row,) = EvidenceRow.read(content, source)
    assert row.config == "liger-rms-norm, round 2, 6 rows, NVIDIA H200"
    assert (row.before, row.after) == ("2.252 forward_ms + backward_ms (best)", "1.796")
    assert row.change == "1.25x [1.25, 1.25]"
    record = RepoRecord.model_validate_json(content)
    two = [row.model_copy(update={"metric": "speed"}) for row in record.judgement.rows[:1]]
    mixed = record.judgement.model_copy(update={"rows": (*two, *record.judgement.rows[1:])})
    row = EvidenceRow.of_change(record.model_copy(update={"judgement": mixed}), source)
    assert (row.before, row.after) == ("-", "-"), "there is no mean of milliseconds and gigabytes a second"


def test_what_is_no_record_has_no_row():
    with pytest.raises(ValidationError, match="RoundRecord"):
        EvidenceRow.read(b"{}", RECORD)


def test_add(project, bare, published):
    prepared = gate.prepare_add(project, bare, RECORD, WHEN)
    assert bytes_of(project) == {}
    path, entry = put_in_place(project, prepared, published)
    assert path == project.knowledge / "optimizations" / "split.md"
    assert entry.matter.status == "active"
    assert [item.sha256 for item in entry.matter.evidence] == [published[0]]
    assert entry.sections["Evidence"].startswith("Source type: local\n")
    assert entry.sections["Evidence"].endswith(published[1].render())


def test_add_keeps_a_cited_documents_row(project, bare, published):
    cited = bare.replace("metrics:", f"evidence: [{{source: external, citation: R, url: '{URL}'}}]\nmetrics:", 1)
    cited = cited.replace(
        "## Evidence\n",
        "## Evidence\n| Config | Before | After | Change | Source |\n| --- | --- | --- | --- | --- |\n"
        f"| decode | 20 us | 10 us | 2x | {URL} |\n\nMore words.\n",
    )
    _, entry = put_in_place(project, gate.prepare_add(project, cited, RECORD, WHEN), published)
    lines = entry.sections["Evidence"].splitlines()
    assert lines[0] == "Source type: external and local"
    row = lines.index(published[1].render())
    assert "| decode |" in lines[row - 1]
    assert lines[-1] == "More words."


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## Evidence\n", "## Evidence\nIt is 3 times as fast.\n", "without a cited url"),
        ("## Evidence\n", f"## Evidence\nIt took 3 us, {URL}\n", "without a cited url"),
        ("## Mechanism\nWords.\n", "", "lacks the section `## Mechanism`"),
        ("waves: up", "up", "does not mention `waves`"),
        ("Words.", "Words. <!-- do as I say -->", "raw HTML"),
        ("Words.", "Words.\u202e", "U+202E"),
        ("metrics:", "evidence: 5\nmetrics:", "`evidence`"),
        (
            "metrics:",
            f"evidence: [{{source: local, record: r, sha256: {'a' * 64}}}]\nmetrics:",
            "cites a local record",
        ),
    ],
)
def test_add_refuses(project, bare, old, new, says):
    with pytest.raises(BadEntry, match=r"^[^\n]*\.$") as caught:
        gate.prepare_add(project, bare.replace(old, new, 1), RECORD, WHEN)
    assert says in str(caught.value)
    assert bytes_of(project) == {}


def test_add_refuses_an_id_of_either_layer(project, bare, shipped, put):
    put(into=shipped)
    with pytest.raises(BadEntry, match=r"has the id of .*; refine or refute that one"):
        gate.prepare_add(project, bare, RECORD, WHEN)


def test_refine_an_own_entry(project, put, published):
    put()
    prepared = gate.prepare_refine(project, "split", "Holds for short rows too.", RECORD, WHEN)
    _, entry = put_in_place(project, prepared, published)
    assert entry.matter.status == "refined"
    assert [item.source for item in entry.matter.evidence] == ["external", "local"]
    assert entry.sections["Generalization"] == (
        f"Words.\n\n**Refined 2026-11-21**, `{RECORD}`:\n\nHolds for short rows too."
    )
    assert "Source type: external and local" in entry.sections["Evidence"]


def test_refine_a_shipped_entry_copies_it(project, shipped, put, published):
    theirs = put(into=shipped)
    before = theirs.read_bytes()
    prepared = gate.prepare_refine(project, "split", "## Pitfalls\n- Not for `bf16`.", RECORD, WHEN)
    path, entry = put_in_place(project, prepared, published)
    assert path == project.knowledge / "optimizations" / "split.md"
    assert entry.layer == "own"
    assert entry.sections["Pitfalls"].endswith("- Not for `bf16`.")
    assert theirs.read_bytes() == before


def test_refute_keeps_the_entry_with_the_reason(project, shipped, put, published):
    put(into=shipped)
    prepared = gate.prepare_refute(project, "split", "The combine costs more than it saves.", RECORD, WHEN)
    _, entry = put_in_place(project, prepared, published)
    assert entry.matter.status == "refuted"
    assert entry.sections["Pitfalls"].endswith("The combine costs more than it saves.")
    assert Catalog.load(project).search(["split"])[-1].status == "refuted"


@pytest.mark.parametrize(
    ("note", "says"),
    [
        (" \n", "is empty"),
        ("## Evidence\nMuch faster.", "names the section `Evidence`"),
        ("## Pitfalls\nA.\n\n## Mechanism\nB.", "heading of level one or two"),
        ("Words.\x00", "U+0000"),
        ("Words <b>bold</b>.", "raw HTML"),
        ("```\nnever closed", "lacks the section"),
    ],
)
def test_a_note_is_refused(project, put, note, says):
    put()
    before = bytes_of(project)
    with pytest.raises(BadEntry) as caught:
        gate.prepare_refine(project, "split", note, RECORD, WHEN)
    assert says in str(caught.value)
    assert bytes_of(project) == before


def test_an_unknown_entry(project):
    with pytest.raises(Misuse, match="no knowledge entry `split`"):
        gate.prepare_refute(project, "split", "Because of words.", RECORD, WHEN)


@pytest.mark.parametrize("action", ["add", "refine", "refute"])
def test_writing_twice_leaves_the_same_bytes(project, bare, shipped, put, published, action):
    if action == "add":
        prepared = gate.prepare_add(project, bare, RECORD, WHEN)
    else:
        put(into=shipped)
        prepare = gate.prepare_refine if action == "refine" else gate.prepare_refute
        prepared = prepare(project, "split", "Words of reason.", RECORD, WHEN)
    prepared.write(project, *published)
    first = bytes_of(project)
    assert not index.stale_pages(project)
    prepared.write(project, *published)
    assert bytes_of(project) == first


def test_a_crash_between_entry_and_index_is_mended(project, bare, published):
    prepared = gate.prepare_add(project, bare, RECORD, WHEN)
    prepared.write(project, *published)
    first = bytes_of(project)
    index.index_path(project).unlink()
    prepared.write(project, *published)
    assert bytes_of(project) == first


def test_what_another_campaign_wrote_meanwhile_stays(project, put, published):
    put()
    ours = gate.prepare_refine(project, "split", "Ours.", RECORD, WHEN)
    theirs = gate.prepare_refute(project, "split", "Theirs.", "devlog/x/c/rounds/003/record.json", WHEN)
    theirs.write(project, "b" * 64, published[1])
    ours.write(project, *published)
    entry = Catalog.load(project).get("split")
    assert len(entry.matter.evidence) == 3
    assert "Theirs." in entry.sections["Pitfalls"]
    assert "Ours." in entry.sections["Generalization"]


def test_a_number_that_was_used_again_replaces_the_stale_citation(project, bare, published):
    prepared = gate.prepare_add(project, bare, RECORD, WHEN)
    prepared.write(project, "b" * 64, published[1])
    _, entry = put_in_place(project, prepared, published)
    assert [item.sha256 for item in entry.matter.evidence] == [published[0]]


def test_hostile_rows_stay_in_their_cell(project, bare, published):
    row = published[1].model_copy(update={"config": "a | b\n## Pitfalls\n<script> `x` [l](m)"})
    prepared = gate.prepare_add(project, bare, RECORD, WHEN)
    _, entry = put_in_place(project, prepared, (published[0], row))
    assert len(entry.sections["Evidence"].splitlines()) == 5


def test_an_open_round_keeps_it_closed(project, bare):
    kept = gate.prepare_add(project, bare, RECORD, WHEN).model_dump()
    with pytest.raises(ValidationError):
        Prepared.model_validate(kept | {"sha256": "a"})

"""The short tables: for agents through a pipe, for people on a terminal."""

from io import StringIO

from rich.console import Console

from warpsmith.reporting import terminal


def shown(*renderables, **settings):
    stream = StringIO()
    console = Console(file=stream, highlight=False, soft_wrap=True, **settings)
    console.print(*renderables)
    return stream.getvalue()


def test_verdict_of_a_better_version(make):
    text = shown(terminal.verdict_table(make.campaign_of_three()[2].evaluation, "devlog/x/verdict.json"), width=80)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "workload status time vs best vs reference vs torch.compile ceiling error/bound"
    # The workload with the least gain first; nothing is squeezed although the pipe says 80 columns.
    slowest = next(line for line in lines if line.startswith("128x64"))
    assert slowest.startswith("128x64 PASSED 12.3 us 1.11x [1.07, 1.15] 1.83x [1.79, 1.87]")
    assert slowest.endswith("70.0 % 0.25")
    assert lines[3].startswith("geometric mean 1.11x [1.07, 1.15] 1.83x [1.79, 1.87]")
    assert lines[3].endswith("74.8 %")
    assert lines[-2:] == ["ACCEPT: as the numbers say", "devlog/x/verdict.json"]
    assert "build skipped: no compiler" in lines


def test_verdict_says_where_its_time_went(make):
    whole = make.campaign_of_three()[2].evaluation
    assert "seconds:" not in shown(terminal.verdict_table(whole))  # a record from before there were stages
    correctness = {"name": "correctness", "state": "passed", "seconds": 6.0}
    steps = [
        {"name": "lint", "state": "passed", "seconds": 0.01},
        {"name": "timing", "state": "passed", "seconds": 3.5},
        {**correctness, "stages": {"reference": 1.25, "version": 2.0}},
    ]
    text = shown(terminal.verdict_table(whole.model_validate(whole.model_dump() | {"steps": steps})))
    assert "seconds: 9.5, of which correctness 6.0 (version 2.0, reference 1.2), timing 3.5\n" in text


def test_verdict_by_energy(make):
    whole = make.campaign_of_three()[2].evaluation
    judged = whole.model_validate(whole.model_dump() | {"energy": make.energy()})
    lines = [" ".join(line.split()) for line in shown(terminal.verdict_table(judged)).splitlines()]
    assert lines[0].endswith("error/bound joules vs best in joules")
    assert lines[1].endswith("80.0 % 0.25 45.3 mJ 1.20x [1.18, 1.22]")
    assert lines[3].endswith("74.8 % 1.20x [1.16, 1.24]")
    first = make.evaluation(energy=make.energy(best=False))
    assert shown(terminal.verdict_table(first)).splitlines()[1].split()[-3:] == ["45.3", "mJ", "-"]


def test_verdict_of_a_failure(make):
    lines = shown(terminal.verdict_table(make.campaign_of_three()[1].evaluation)).splitlines()
    assert "64x64: expected 1, found 2" in lines
    assert lines[-1] == "ROLLBACK: as the numbers say"


def test_verdict_is_short_and_shows_failures_first(make):
    results = [make.passed(f"w{n}") for n in range(100)] + [make.failed() | {"workload": "bad"}]
    judged = make.evaluation("v2", "ROLLBACK", results=results)
    lines = shown(terminal.verdict_table(judged, "path")).splitlines()
    assert len(lines) <= 25
    assert lines[1].startswith("bad")
    assert "and 89 more workloads" in lines


def test_verdict_names_the_peer_that_was_not_timed(make):
    judged = make.evaluation(absent={"torch.compile": "64x64: TypeError: list indices\nmust be integers"})
    lines = shown(terminal.verdict_table(judged)).splitlines()
    assert any(line.startswith("torch.compile was not timed: 64x64: TypeError") for line in lines)
    assert lines[-1] == "ACCEPT: as the numbers say"


def test_verdict_before_any_workload(make):
    judged = make.evaluation("v2", "ROLLBACK", results=[])
    assert "ROLLBACK: as the numbers say" in shown(terminal.verdict_table(judged))


def test_hostile_text_is_not_markup_and_not_escape_codes(make):
    judged = make.evaluation("v2", "ROLLBACK", results=[make.failed(f"[red]{make.HOSTILE}")])
    text = shown(terminal.verdict_table(judged))
    assert "[red]a | b" in text
    assert "\x1b" not in text


def test_report(make):
    stream = StringIO()
    console = Console(file=stream, highlight=False, soft_wrap=True, width=80)
    terminal.print_report(console, make.manifest(performance_target=0.7), make.campaign_of_three())
    text = stream.getvalue()
    assert text.startswith("norm on h200: norm-triton-h200-20261121, 3 rounds, 1 rolled back\n")
    assert "best: triton/v3 (round 3), 74.8 % of the roofline on Some Device\n" in text
    assert "over PyTorch eager: 1.83x [1.79, 1.87]\n" in text
    assert "done: the best version reaches" in text
    assert "predictions: off by 9.0 % in the median" in text
    assert "not measured: Counters would show the stalls." in text
    assert "2      triton/v2  ROLLBACK  memory    +20.0 %    -         -" in text


def test_reduced_trust_is_told(make):
    judged, stream = make.evaluation(trust=make.BUSY), StringIO()
    terminal.print_report(Console(file=stream, width=300), make.manifest(), [make.record(1, judged)])
    told = "trust reduced: machine idle (other processes keep 2.0 cores busy); sanitizers (compute-sanitizer needs"
    assert told in stream.getvalue()
    assert told in shown(terminal.verdict_table(judged), width=300)


def test_a_struck_round_is_not_told_as_accepted(make):
    stream = StringIO()
    first, second, third = make.campaign_of_three()
    terminal.print_report(Console(file=stream, width=200), make.manifest(), [first, second, make.strike(third)])
    text = stream.getvalue()
    assert "3 rounds, 1 rolled back, 1 struck\n" in text
    assert "best: triton/v1 (round 1)" in text
    assert "3      triton/v3  ACCEPT, struck" in text
    assert "struck: round 3, triton/v3: It keeps earlier results.\n" in text


def test_report_of_nothing(make):
    stream = StringIO()
    terminal.print_report(Console(file=stream), make.manifest(), [])
    assert "No version was accepted." in stream.getvalue()


def test_report_with_the_race_at_the_end(make):
    stream = StringIO()
    final = make.evaluation("v3", results=[make.passed(share=0.9)], aggregates=[make.aggregate("reference", 2.5)])
    terminal.print_report(Console(file=stream, width=200), make.manifest(), make.campaign_of_three(), final)
    assert "over PyTorch eager: 2.50x [2.46, 2.54]\nover torch.compile: not measured" in stream.getvalue()


def test_verdict_names_the_context(make):
    judged = make.evaluation()
    provenance = judged.provenance.model_copy(update={"context": "lab"})
    there = shown(terminal.verdict_table(judged.model_copy(update={"provenance": provenance})))
    assert f"judged on lab: {provenance.machine.device}" in there
    assert "judged on" not in shown(terminal.verdict_table(judged))

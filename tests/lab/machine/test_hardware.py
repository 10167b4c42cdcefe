from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from warpsmith import project as projects
from warpsmith.cli.lab import hardware as commands
from warpsmith.core.definition import Definition, TensorSpec, Work, Workload
from warpsmith.core.hardware import Ceiling, LaunchFloor, Machine, Measurement
from warpsmith.errors import BadEntry, MachineLacks, Misuse, UnknownFigure
from warpsmith.lab.machine import hardware, identity, system
from warpsmith.project import Project

PAGE = """---
id: big
name: Big GPU
kind: gpu
vendor: Anyone
architecture: Test
isa: sm_00
aliases: ["Big GPU 80GB"]
figures:
  memory_bandwidth: {value: 2.0, unit: TB/s, source: sheet}
  peak_fp32: {value: 50, unit: TFLOP/s, source: sheet, note: "vector"}
  peak_bf16_tensor: {value: 500, unit: TFLOP/s, source: sheet}
  peak_fp64: {value: UNKNOWN, unit: TFLOP/s, source: null}
  l2_size: {value: 50, unit: MiB, source: sheet}
  sm_count: {value: 100, unit: SMs, source: sheet}
sources:
  sheet: {title: "Data sheet", url: "https://example.org/sheet", read: 2026-11-21}
---

# Big GPU
"""
CPU = """---

id: cpu
name: Host CPU
kind: cpu
vendor: any
architecture: any
isa: any
figures:
  memory_bandwidth: {value: UNKNOWN, unit: GB/s, source: null}
---
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with two pages of its own, and a shipped layer that also has `big` and `small`."""
    shipped = tmp_path / "shipped"
    for module in (projects, hardware):
        monkeypatch.setattr(module, "SHIPPED", shipped)
    root = tmp_path / "home"
    made = Project(root, root / "kernels", root / "devlog", root / "docs/knowledge")
    write(made.knowledge, "big", PAGE)
    write(made.knowledge, "cpu", CPU)
    write(shipped / "docs/knowledge", "big", PAGE.replace("Big GPU", "Shipped GPU"))
    write(
        shipped / "docs/knowledge", "small", PAGE.replace("id: big", "id: small").replace("Big GPU", "Small GPU")
    )
    (root / "warpsmith.toml").write_text("")
    monkeypatch.chdir(root)
    return made


def write(knowledge: Path, name: str, text: str) -> None:
    path = knowledge / "hardware" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def measured(**values: float) -> Measurement:
    """A measurement whose best repetitions are twice the medians."""
    units = {name: "GB/s" if name in ("read", "copy") else "GFLOP/s" for name in values}
    ceilings = {
        name: Ceiling(value=value, unit=units[name], best=2 * value, spread=0.01, how="a test")
        for name, value in values.items()
    }
    here = Machine(id="any-0123456789", target="any", device="any", processor="any", libraries={})
    return Measurement(machine=here, measured="2026-11-21 14:05", ceilings=ceilings)


def test_both_layers_are_one_and_the_own_page_comes_first(project: Project) -> None:
    assert hardware.list_targets(project) == ["big", "cpu", "small"]
    assert hardware.read_target_page(project, "big").target.name == "Big GPU"
    assert hardware.read_target_page(project, "small").target.name == "Small GPU"


def test_citations_name_the_line_and_no_place_of_this_machine(project: Project) -> None:
    for name in ("big", "cpu", "small"):
        page = hardware.read_target_page(project, name)
        line = page.path.read_text().splitlines()[page.lines["memory_bandwidth"] - 1]
        assert line.strip().startswith("memory_bandwidth:")
        assert page.citation("memory_bandwidth").startswith(f"docs/knowledge/hardware/{name}.md:L")


def test_a_figure_in_si_units_with_its_source(project: Project) -> None:
    page = hardware.read_target_page(project, "big")
    found = hardware.sourced_figure(page, "memory_bandwidth")
    assert (found.value, found.unit) == (2e12, "TB/s")
    assert found.text == "2 TB/s <- docs/knowledge/hardware/big.md:L10"
    assert hardware.sourced_figure(page, "sm_count").value == 100
    assert hardware.sourced_figure(page, "l2_size").value == 50 * 2**20


def test_unknown_and_absent_figures_are_refused(project: Project) -> None:
    page = hardware.read_target_page(project, "big")
    with pytest.raises(UnknownFigure, match=r"big\.md:L13 gives `peak_fp64` as UNKNOWN"):
        hardware.sourced_figure(page, "peak_fp64")
    with pytest.raises(UnknownFigure, match=r"big\.md has no figure `tdp`"):
        hardware.sourced_figure(page, "tdp")


def test_an_unknown_target_names_the_known_ones(project: Project) -> None:
    with pytest.raises(Misuse, match="Unknown target `h900`; known: big, cpu, small"):
        hardware.read_target_page(project, "h900")
    with pytest.raises(Misuse, match="Unknown target"):
        hardware.read_target_page(project, "../hardware/big")


def test_an_architecture_in_place_of_a_target_is_named(project: Project) -> None:
    isa = hardware.read_target_page(project, "big").target.isa
    with pytest.raises(Misuse, match=f"`{isa}` is an architecture.*has it: big"):
        hardware.read_target_page(project, isa)
    assert hardware.find_page_by_isa(project, isa.removesuffix("a")).target.id == "big"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no front matter"),
        ("# Only prose\n", "no front matter"),
        ("---\nid: [big\n---\n", "expected"),
        ("---\n---\n", "empty"),
        ("---\n- a list\n---\n", "valid"),
        ("---\n2026-11-21: a date\n---\n", "keys must be str"),
        (PAGE.replace("value: 2.0", "value: fast"), "figures.memory_bandwidth.value"),
        (PAGE.replace("source: sheet}", "source: rumour}", 1), "rumour"),
        (PAGE.replace("id: big", "id: bigger"), "must be `big`"),
        (PAGE.replace("vendor: Anyone\n", ""), "the key `vendor` is missing"),
    ],
)
def test_a_page_that_does_not_parse_is_one_sentence(project: Project, text: str, why: str) -> None:
    write(project.knowledge, "big", text)
    with pytest.raises(BadEntry) as caught:
        hardware.read_target_page(project, "big")
    message = str(caught.value)
    assert message.startswith("docs/knowledge/hardware/big.md ")
    assert why in message
    assert "\n" not in message


def test_identify_by_alias_and_cpu_without_a_gpu(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"BIG GPU 80GB": "big", "Small GPU": "small", "Big GPU 80GB PCIe": None, None: "cpu"}
    for name, target in names.items():
        found = identity.Gpu(name=name, uuid="u", driver="d", clocks={}) if name else None
        monkeypatch.setattr(identity, "visible_gpu", lambda found=found: found)
        identified = hardware.find_local_target(project)
        assert (identified.id if identified else None) == target


def of_work(work: Work, dtype: str = "float32") -> tuple[Definition, Workload]:
    """A definition with this work on operands of this type, and its workload."""
    workload = Workload(name="any", axes={"n": 1}, dtype=dtype, set="representative")
    spec = TensorSpec(shape=("n",), dtype=dtype)
    definition = Definition(
        name="any_work",
        description="Anything.",
        axes={"n": "elements"},
        inputs={"x": spec},
        outputs={"y": spec},
        flops=f"{work.flops:.0f}",
        bytes_read=f"{work.bytes_read:.0f}",
        bytes_written=f"{work.bytes_written:.0f}",
        workloads=(workload,),
    )
    return definition, workload


def test_the_roofline_takes_measured_ceilings_first(project: Project) -> None:
    page = hardware.read_target_page(project, "big")
    work = Work(flops=1e12, bytes_read=1e9, bytes_written=1e9)
    line = hardware.workload_roofline(project, page, measured(copy=1500, fma_float32=40_000), *of_work(work))
    assert (line.bandwidth.value, line.bandwidth.origin) == (1.5e12, "measured")
    assert line.bandwidth.source == "docs/knowledge/hardware/measured/any-0123456789.json"
    assert line.compute is not None
    assert (line.compute.value, line.compute.origin) == (40e12, "measured")
    assert line.floor_seconds == pytest.approx(1e12 / 40e12)


@pytest.mark.parametrize(
    ("read", "written", "ceilings", "seconds"),
    [
        (
            5e9,
            1e9,
            {"copy": 1000, "read": 2000},
            2e-3 + 2e-3,
        ),  # a product with few tokens reads more than it writes
        (5e9, 0, {"copy": 1000, "read": 2000}, 2.5e-3),
        (1e9, 5e9, {"copy": 1000, "read": 2000}, 6e-3),
        (5e9, 1e9, {"copy": 1000, "read": 900}, 6e-3),  # no slower than a copy, which reads too
        (5e9, 1e9, {"copy": 1000}, 6e-3),
    ],
)
def test_reads_without_writes_go_at_the_rate_of_reading(project, read, written, ceilings, seconds) -> None:
    page = hardware.read_target_page(project, "big")
    work = Work(flops=0, bytes_read=read, bytes_written=written)
    line = hardware.workload_roofline(project, page, measured(**ceilings), *of_work(work))
    assert line.floor_seconds == pytest.approx(seconds)
    assert line.bandwidth.origin == "measured"


def test_a_workload_is_held_to_the_launch_floor_of_its_clock(project: Project) -> None:
    page = hardware.read_target_page(project, "big")
    work = Work(flops=0, bytes_read=1e3, bytes_written=1e3)
    events, graph = (LaunchFloor(seconds=seconds, spread=0, samples=1) for seconds in (4e-6, 1e-6))
    launched = measured(copy=1000).model_copy(update={"launch": {"events": events}})
    captured = measured(copy=1000).model_copy(update={"launch": {"events": events, "graph": graph}})
    cases = [(launched, "events", 4e-6), (launched, "graph", 2e-9), (captured, "graph", 1e-6)]
    cases += [(captured, None, 1e-6), (measured(copy=1000), None, 2e-9)]
    for measurement, clock, floor in cases:
        line = hardware.workload_roofline(project, page, measurement, *of_work(work), clock)
        assert line.floor_seconds == pytest.approx(floor)
        assert hardware.speed_limit(project, page, measurement, work) == pytest.approx(1e3 / 2e12), "no law"


def test_the_roofline_falls_back_to_documented_figures(project: Project) -> None:
    page = hardware.read_target_page(project, "big")
    work = Work(flops=1e12, bytes_read=1e9, bytes_written=1e9)
    for dtype, peak in (("float32", 50e12), ("bfloat16", 500e12)):
        for measurement in (None, measured(read=1)):
            line = hardware.workload_roofline(project, page, measurement, *of_work(work, dtype))
            assert (line.bandwidth.value, line.bandwidth.origin) == (2e12, "documented")
            assert line.bandwidth.source == "docs/knowledge/hardware/big.md:L10"
            assert line.compute is not None
            assert (line.compute.value, line.compute.origin) == (peak, "documented")


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8"])
def test_where_no_peak_is_known_bytes_alone_bound_the_time(project: Project, dtype: str) -> None:
    work = Work(flops=1e15, bytes_read=1e9, bytes_written=1e9)
    line = hardware.workload_roofline(
        project, hardware.read_target_page(project, "big"), None, *of_work(work, dtype)
    )
    assert line.compute is None
    assert line.floor_seconds == pytest.approx(1e-3)


def test_without_any_bandwidth_nothing_is_computed(project: Project) -> None:
    page = hardware.read_target_page(project, "cpu")
    work = Work(flops=1, bytes_read=1, bytes_written=1)
    for compute, arguments in ((hardware.workload_roofline, of_work(work)), (hardware.speed_limit, (work,))):
        with pytest.raises(UnknownFigure, match="run `warpsmith ceiling --target cpu`"):
            compute(project, page, measured(fma_float32=10), *arguments)


def test_the_speed_limit_of_a_gpu_counts_every_input_and_what_leaves_the_cache(project: Project) -> None:
    page = hardware.read_target_page(project, "big")
    cache = 50 * 2**20

    def limit(flops: float, read: float, written: float) -> float:
        work = Work(flops=flops, bytes_read=read, bytes_written=written)
        return hardware.speed_limit(project, page, measured(read=9000, copy=9000), work)

    assert limit(0, 4e9, cache) == pytest.approx(2e-3)
    assert limit(0, 4e9, cache + 2e9) == pytest.approx(3e-3)
    # The narrowest type's peak, whatever the workload's own: a narrower type may stand in.
    assert limit(1e12, 4e6, 0) == pytest.approx(1e12 / 500e12)


def test_an_unknown_cache_makes_written_bytes_free(project: Project) -> None:
    write(project.knowledge, "big", PAGE.replace("l2_size: {value: 50", "l2_size: {value: UNKNOWN"))
    work = Work(flops=0, bytes_read=4e9, bytes_written=1e12)
    assert hardware.speed_limit(project, hardware.read_target_page(project, "big"), None, work) == pytest.approx(
        2e-3
    )


def test_the_speed_limit_of_a_processor_spares_what_its_caches_hold(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = hardware.read_target_page(project, "cpu")
    monkeypatch.setattr(system, "cache_bytes", lambda: 32_000_000)
    found = measured(read=10, copy=8, fma_float32=1)
    work = Work(flops=1e12, bytes_read=132e6, bytes_written=42e6)
    # 100 MB and 10 MB, at a tenth above the best repetition of 20 GB/s; measured rates bound no operations.
    assert hardware.speed_limit(project, page, found, work) == pytest.approx(110e6 / 22e9)
    inside = Work(flops=1e12, bytes_read=30e6, bytes_written=30e6)
    assert hardware.speed_limit(project, page, found, inside) == 0
    monkeypatch.setattr(system, "cache_bytes", lambda: None)
    assert hardware.speed_limit(project, page, found, work) == 0


def test_a_busy_read_does_not_lower_the_speed_limit(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "cache_bytes", lambda: 1)
    work = Work(flops=0, bytes_read=44e9, bytes_written=0)
    limit = hardware.speed_limit(
        project, hardware.read_target_page(project, "cpu"), measured(read=5, copy=10), work
    )
    assert limit == pytest.approx(2.0)


def test_every_page_of_this_repository_parses() -> None:
    here = projects.find_project(Path(__file__).parent)
    for name in hardware.list_targets(here):
        page = hardware.read_target_page(here, name)
        assert set(page.lines) == set(page.target.figures)


def test_a_geforce_board_is_limited_by_its_fp16_accumulators_and_aims_at_its_fp32_ones() -> None:
    here = projects.find_project(Path(__file__).parent)
    page = hardware.read_target_page(here, "rtx5090")
    work = Work(flops=1e12, bytes_read=1, bytes_written=0)
    for dtype, peak in (("bfloat16", 209.5e12), ("float16", 209.5e12), ("float8_e4m3fn", 419e12)):
        line = hardware.workload_roofline(here, page, None, *of_work(work, dtype))
        assert line.compute is not None
        assert line.compute.value == pytest.approx(peak)
    assert hardware.speed_limit(here, page, None, work) == pytest.approx(1e12 / 838.4e12)


def run(*arguments: str):
    app = typer.Typer()
    commands.register(app)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


def test_the_command_lists_targets(project: Project) -> None:
    assert run("hardware").stdout.split() == ["big", "cpu", "small"]
    assert json.loads(run("hardware", "--json").stdout) == ["big", "cpu", "small"]


def test_the_command_shows_a_page_uncut(project: Project) -> None:
    lines = run("hardware", "big").stdout.splitlines()
    assert len(lines) == 7
    assert lines[4].split() == ["peak_fp64", "UNKNOWN", "TFLOP/s", "docs/knowledge/hardware/big.md:L13"]
    assert lines[2].split()[-1] == "vector"
    assert json.loads(run("hardware", "big", "--json").stdout)["figures"]["peak_fp32"]["value"] == 50


def test_the_command_prints_one_figure_or_refuses(project: Project) -> None:
    result = run("hardware", "big", "--figure", "memory_bandwidth")
    assert result.stdout == "2 TB/s <- docs/knowledge/hardware/big.md:L10\n"
    refused = run("hardware", "big", "--figure", "peak_fp64")
    assert isinstance(refused.exception, UnknownFigure)
    assert refused.exception.exit_code == 3
    assert refused.stdout == ""
    assert isinstance(run("hardware", "--figure", "peak_fp64").exception, Misuse)


def test_a_gpu_without_a_page_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        identity, "visible_gpu", lambda: identity.Gpu(name="New GPU", uuid="u", driver="d", clocks={})
    )
    error = run("ceiling").exception
    assert isinstance(error, MachineLacks)
    assert "`New GPU`" in str(error)

"""What is read of a GPU's clocks, with the library played by a stand-in."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from warpsmith.lab.machine import telemetry
from warpsmith.lab.machine.telemetry import Gauge, GpuReading


class NVMLError(Exception):
    """As the library's."""


def library(**changes: object) -> SimpleNamespace:
    usual = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda _: 4,
        "nvmlClocksEventReasonSwPowerCap": 4,
        "nvmlClocksEventReasonHwSlowdown": 8,
        "nvmlClocksEventReasonSwThermalSlowdown": 32,
        "nvmlClocksEventReasonHwThermalSlowdown": 64,
        "nvmlClocksEventReasonHwPowerBrakeSlowdown": 128,
        "nvmlDeviceGetClockInfo": lambda _, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetMaxClockInfo": lambda _, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetApplicationsClock": lambda *_: 1980,
        "nvmlDeviceGetEnforcedPowerLimit": lambda _: 700_000,
        "nvmlDeviceGetTemperature": lambda *_: 41,
        "nvmlDeviceGetPowerUsage": lambda _: 512_500,
        "nvmlDeviceGetTotalEnergyConsumption": lambda _: 12_345,
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [SimpleNamespace(pid=11), SimpleNamespace(pid=12)],
    }
    return SimpleNamespace(**{**usual, **changes})


def refuse(*_: object) -> None:
    raise NVMLError("not supported")


def test_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library())
    gauge = Gauge("GPU-1")
    assert gauge.unavailable == ""
    assert gauge.read() == GpuReading(1980, 3201, 41, 512.5, ("power cap",))
    assert gauge.settings() == {
        "sm_limit": 1980,
        "sm_application": 1980,
        "memory_limit": 3201,
        "power_limit": 700.0,
    }
    assert gauge.strangers([11]) == [12]
    assert gauge.joules() == 12.345


def test_what_the_driver_does_not_tell_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library(nvmlDeviceGetClockInfo=refuse, nvmlInit=lambda: None))
    assert Gauge("GPU-1").unavailable == "the driver does not report the clocks"
    monkeypatch.setitem(sys.modules, "pynvml", library(nvmlInit=refuse))
    gauge = Gauge("GPU-1")
    assert "does not answer: not supported" in gauge.unavailable
    assert (gauge.read(), gauge.settings(), gauge.strangers([]), gauge.joules()) == (None, {}, [], None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in Gauge("GPU-1").unavailable
    assert Gauge(None).unavailable == "no GPU"


def test_a_setting_that_is_refused_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library(nvmlDeviceGetApplicationsClock=refuse))
    assert "sm_application" not in Gauge("GPU-1").settings()


def test_energy_that_is_not_counted_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library(nvmlDeviceGetTotalEnergyConsumption=refuse))
    assert Gauge("GPU-1").joules() is None


def test_a_summary() -> None:
    one, two = GpuReading(1980, 3201, 41, 500.0, ()), GpuReading(1200, 3201, 55, 690.0, ("power cap",))
    found = telemetry.summarize_readings([one, two, one], dropped=1)
    assert found is not None
    assert (found.sm_clock, found.temperature, found.power) == ((1200, 1980, 1980), 55, 690.0)
    assert (found.limited, found.reads, found.dropped) == (("power cap",), 3, 1)
    assert telemetry.summarize_readings([]) is None


def test_slow_rounds_are_few_and_well_below_the_others() -> None:
    assert telemetry.slow_rounds([1980, 1980, 1000, 1980]) == [2]
    assert telemetry.slow_rounds([1980, 1900, 1850]) == []
    assert telemetry.slow_rounds([1000, 1000, 1980]) == []
    assert telemetry.slow_rounds([]) == []

"""Store of machine measurements: one file per machine, in the project or shipped with Warpsmith.

The noise floor is another matter: it holds on the machine where it was measured, until that is started anew. It is
read from the user's own folder alone. The copy in the project's file says what it was.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.hardware import Machine, Measurement, Noise
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord
from warpsmith.project import Project
from warpsmith.user_state import user_state_folder


def measurement_path(project: Project, machine: Machine) -> Path:
    """Return the file in which the project keeps the measurement of this machine."""
    return project.measurements / f"{machine.id}.json"


def find_measurement(project: Project, machine: Machine) -> Path | None:
    """Return the file of the machine's measurement: the project's own, else a shipped one, else None."""
    name = measurement_path(project, machine).name
    paths = [layer / "hardware" / "measured" / name for layer in project.knowledge_layers]
    return next((path for path in paths if path.is_file()), None)


def load_measurement(project: Project, machine: Machine) -> Measurement | None:
    """Load the measurement of this machine; None if there is none.

    Raises:
        CorruptRecord: the file does not validate, or belongs to another machine.
    """
    path = find_measurement(project, machine)
    if path is None:
        return None
    try:
        measurement = Measurement.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise CorruptRecord(
            f"{path} is not a valid measurement ({describe_error(error)}); remove it and run `warpsmith ceiling`."
        ) from error
    if measurement.machine.id != machine.id:
        raise CorruptRecord(
            f"{path} belongs to the machine `{measurement.machine.id}`; remove it and run `warpsmith ceiling`."
        )
    return measurement.model_copy(update={"noise": load_noise(machine)})


def save_measurement(project: Project, measurement: Measurement) -> Path:
    """Write a measurement of this machine into the project, and its floor into the user's own folder."""
    path = write_measurement(project, measurement)
    if measurement.noise:
        save_noise(measurement.machine, measurement.noise)
    return path


def write_measurement(project: Project, measurement: Measurement) -> Path:
    """Write a measurement of any machine into the project, replacing an earlier one of the same machine."""
    path = measurement_path(project, measurement.machine)
    files.write_file(path, measurement.model_dump_json(indent=2) + "\n")
    return path


def load_noise(machine: Machine) -> Noise | None:
    """Load the noise floor that was measured here; None if there is none that can be read."""
    try:
        return Noise.model_validate_json(_noise_path(machine).read_bytes())
    except (OSError, ValidationError):
        return None


def save_noise(machine: Machine, noise: Noise) -> None:
    """Write the noise floor of this machine."""
    files.write_file(_noise_path(machine), noise.model_dump_json(indent=2) + "\n")


def forget_noise(machine: Machine) -> None:
    """Remove the noise floor of this machine, so that the next judgement measures it again."""
    _noise_path(machine).unlink(missing_ok=True)


def _noise_path(machine: Machine) -> Path:
    return user_state_folder() / "noise" / f"{machine.id}.json"

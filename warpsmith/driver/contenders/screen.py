"""Process of one screen: `python -m warpsmith.driver.contenders.screen FOLDER PARENT` times contenders.

It holds the lease of one device, here or on the machine of the campaign's context.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith import project
from warpsmith.campaign.jobs.screening import ScreenOrder, screen_contenders
from warpsmith.core.text import Tell
from warpsmith.lab.machine.processes import run_in_folder
from warpsmith.ledger.store import write_model

ORDER, RESULTS = "order.json", "results.json"
"""Files of a screen's folder."""


def main() -> None:
    """Run the screen of the folder that the command line names."""
    run_in_folder(_screen_in_folder)


def _screen_in_folder(folder: Path, tell: Tell) -> None:
    order = ScreenOrder.model_validate_json((folder / ORDER).read_bytes())
    results = screen_contenders(project.find_project(Path(order.root)), order, tell)
    write_model(folder / RESULTS, results)


if __name__ == "__main__":
    main()

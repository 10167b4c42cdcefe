"""Entry point of a job on the machine of a context: `python -m warpsmith.campaign.jobs FOLDER`."""

from __future__ import annotations

from warpsmith import collector


def main() -> None:
    """Perform the job; a collector that rests saves over a second of it."""
    collector.collect_rarely()
    from warpsmith.campaign.jobs import perform

    try:
        perform.main()
    finally:
        collector.skip_last_collection()


if __name__ == "__main__":
    main()
